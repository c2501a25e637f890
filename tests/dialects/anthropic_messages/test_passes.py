"""`usage.iterations`: an answer that took several passes, each billed at its own model's price."""

import pytest

from interlingua.dialects.anthropic_messages import decode_response, encode_response
from interlingua.spec.response import Usage, UsagePass
from support.anthropic_frames import STOP, decode, fold, told

ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5",
    "content": [],
    "stop_reason": "end_turn",
    "stop_sequence": None,
}


def entry(kind, input_tokens, output_tokens, *, read=0, written=0, hourly=0, **fields):
    """One entry of `iterations`, as the API sends it."""
    return {
        "type": kind,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - hourly,
            "ephemeral_1h_input_tokens": hourly,
        },
        **fields,
    }


def whole(usage):
    response = decode_response({**ANSWER, "usage": usage})
    assert encode_response(response)["usage"] == usage
    return response.usage


def streamed(usage):
    first = {"input_tokens": usage["input_tokens"], "output_tokens": 1}
    message = {**ANSWER, "stop_reason": None, "usage": first}
    return fold(
        decode({"type": "message_start", "message": message}, told("end_turn", **usage), STOP)
    ).usage


@pytest.fixture(params=[whole, streamed])
def read(request):
    """Reads a usage from a whole answer, or from the last figures of a stream."""
    return request.param


def test_a_compaction_counts_although_the_totals_leave_it_out(read):
    """«A `compaction` entry's tokens are not included in the top-level `usage` fields.»"""
    usage = read(
        {
            "input_tokens": 120,
            "output_tokens": 8,
            "iterations": [
                entry("compaction", 100, 125, written=55096, hourly=96),
                entry("message", 120, 8),
            ],
        }
    )

    assert (usage.input_tokens, usage.output_tokens) == (55316, 133)
    assert (usage.cache_write_tokens, usage.cache_write_1h_tokens) == (55096, 96)


def test_an_answer_that_is_only_a_compaction_is_not_free(read):
    """Its totals are 0, and its one entry has the tokens."""
    iterations = [entry("compaction", 55196, 125)]
    usage = read({"input_tokens": 0, "output_tokens": 0, "iterations": iterations})

    assert (usage.input_tokens, usage.output_tokens) == (55196, 125)


def test_the_passes_of_an_advisor_keep_their_model(read):
    """An advisor is another model, with prices of its own."""
    usage = read(
        {
            "input_tokens": 2390,
            "output_tokens": 121,
            "output_tokens_details": {"thinking_tokens": 28},
            "iterations": [
                entry("message", 1128, 110),
                entry("advisor_message", 2518, 22, model="claude-opus-4-8"),
                entry("message", 1262, 11),
            ],
        }
    )

    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (4908, 143, 28)
    assert [(each.model, each.usage.total_tokens) for each in usage.passes] == [
        ("", 1238),
        ("claude-opus-4-8", 2540),
        ("", 1273),
    ]


def test_an_attempt_that_declined_before_any_output_is_not_billed(read):
    """It is listed before the attempt of the model that answered."""
    usage = read(
        {
            "input_tokens": 70,
            "output_tokens": 20,
            "iterations": [
                entry("message", 5000, 0, model="claude-fable-5"),
                entry("fallback_message", 70, 20, model="claude-opus-5"),
            ],
        }
    )

    assert (usage.input_tokens, usage.output_tokens) == (70, 20)


def test_an_attempt_that_declined_after_some_output_is_billed(read):
    """It is billed at the rates of the model that ran it."""
    usage = read(
        {
            "input_tokens": 70,
            "output_tokens": 20,
            "iterations": [
                entry("message", 26, 299, read=560186, model="claude-fable-5"),
                entry("fallback_message", 70, 20, model="claude-opus-5"),
            ],
        }
    )

    assert (usage.input_tokens, usage.output_tokens) == (560282, 319)
    first = usage.passes[0]
    assert (first.model, first.usage.cache_read_tokens) == ("claude-fable-5", 560186)


def test_a_request_that_only_fills_the_cache_is_billed(read):
    """`max_tokens: 0` writes the cache and has no output; nobody declined."""
    iterations = [entry("message", 3, 0, written=4000)]
    usage = read(
        {
            "input_tokens": 3,
            "output_tokens": 0,
            "cache_creation_input_tokens": 4000,
            "iterations": iterations,
        }
    )

    assert (usage.input_tokens, usage.cache_write_tokens) == (4003, 4000)


@pytest.mark.parametrize("iterations", [None, [], [None, 3], "x", [{}]])
def test_iterations_that_cannot_be_read_leave_the_totals(read, iterations):
    """Without a readable entry the totals stand."""
    usage = read({"input_tokens": 3, "output_tokens": 5, "iterations": iterations})

    assert (usage.input_tokens, usage.output_tokens, usage.passes) == (3, 5, ())


def test_the_usual_answer_has_no_passes(read):
    """One entry of the answering model says nothing that the totals do not say."""
    iterations = [entry("message", 3, 5)]
    usage = read({"input_tokens": 3, "output_tokens": 5, "iterations": iterations})

    assert usage.passes == ()


def test_a_sum_of_usages_has_no_passes():
    """The passes are those of one answer."""
    usage = Usage(input_tokens=3, passes=(UsagePass(usage=Usage(input_tokens=3)),))

    assert (usage + Usage(input_tokens=2)) == Usage(input_tokens=5)
