"""Stream frames -> events."""

import json

import pytest

from interlingua.dialects import gemini_generate
from interlingua.spec.content import Opaque, Text, Thinking
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import RateLimitError, ServerError, StreamError
from interlingua.spec.events import ProviderEvent
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import Grammar
from support.patterns import LINEAR, growth

NAME = "gemini_generate"


def chunk(*parts, **candidate):
    content = {"role": "model", "parts": list(parts)}
    return {
        "candidates": [{"content": content, "index": 0, **candidate}],
        "usageMetadata": {"promptTokenCount": 5},
        "modelVersion": "m",
        "responseId": "r",
    }


END = chunk({"text": ""}, finishReason="STOP")


def events_of(*chunks, new_id=None):
    decoder = gemini_generate.stream_decoder(new_id=new_id)
    frames = [Frame(data=item if isinstance(item, str) else json.dumps(item)) for item in chunks]
    found = [event for frame in frames for event in decoder.feed(frame)]
    return [*found, *decoder.finish()]


def fold(*chunks, new_id=None):
    accumulator, grammar = StreamAccumulator(), Grammar()
    for event in events_of(*chunks, new_id=new_id):
        grammar.feed(event)
        accumulator.feed(event)
    grammar.finish()
    return accumulator.response()


def test_text_goes_on_from_frame_to_frame():
    """Text parts of one kind are one part; thoughts are told apart."""
    response = fold(
        chunk({"text": "h", "thought": True}),
        chunk({"text": "m", "thought": True}),
        chunk({"text": " h"}),
        chunk({"text": "i\n"}),
        END,
    )

    assert response.message.content == (
        Thinking(text="hm", extra={NAME: {}}),
        Text(text=" hi\n"),
    )
    assert (response.id, response.model) == ("r", "m")


def test_a_signed_part_is_joined_with_no_other():
    """A signature is never joined with text that came without it, nor lost when text is empty.

    Field bug 36.
    """
    signed = {NAME: {"thoughtSignature": "U0lH"}}
    response = fold(
        chunk({"text": "a"}),
        chunk({"text": "b", "thoughtSignature": "U0lH"}),
        chunk({"text": "c"}),
        chunk({"text": "", "thoughtSignature": "U0lH"}, finishReason="STOP"),
    )

    assert response.message.content == (
        Text(text="a"),
        Text(text="b", extra=signed),
        Text(text="c"),
        Text(text="", extra=signed),
    )


def test_two_parts_of_one_frame_are_two():
    """Parts that come together are not one."""
    response = fold(chunk({"text": "a"}, {"text": "b"}), chunk({"text": "c"}), END)

    assert [part.text for part in response.message.content] == ["a", "bc"]


@pytest.mark.parametrize("part", [{"text": ""}, {"functionCall": {"name": "f", "args": {}}}])
def test_the_empty_text_at_the_end_is_no_part(part):
    """Streams end with an empty text, which says nothing."""
    assert fold(chunk({"text": "a"}), END).message.content == (Text(text="a"),)
    assert "" not in [getattr(p, "text", None) for p in fold(chunk(part), END).message.content[1:]]


def test_calls_come_whole():
    """A call has its start, one delta and its end; without an id it is named."""
    call = {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "U0lH"}
    events = events_of(
        chunk(call, {"functionCall": {"name": "f", "id": "x"}}), END, new_id=iter("1").__next__
    )

    types = [event.type for event in events]
    assert types == [
        "stream_start",
        *["tool_call_start", "tool_call_delta", "tool_call_end"] * 2,
        "finish",
    ]
    assert events[1].tool_call_id == "call_1"
    assert events[2].delta == '{"a":1}'
    assert events[3].tool_call.extra[NAME]["thoughtSignature"] == "U0lH"
    assert events[4].tool_call_id == "x"
    assert events[-1].finish_reason.reason == "tool_calls"


def partial(*pieces, **call):
    pieces = [{"jsonPath": path, "stringValue": text} for path, text in pieces]
    return {"functionCall": {**({"partialArgs": pieces} if pieces else {}), **call}}


STARTED = {"functionCall": {"name": "f", "willContinue": True}, "thoughtSignature": "U0lH"}


@pytest.mark.parametrize(
    "ending",
    [
        [chunk({"functionCall": {}}), END],
        [END],
        [chunk({"text": "so"}), END],
        [chunk(partial(("$.b", "z"))), chunk({"functionCall": {}}), END],
    ],
    ids=["ended", "not ended", "ended by text", "ended by the last piece"],
)
def test_arguments_in_pieces(ending):
    """Pieces are put together, whether or not the end of the call is told."""
    response = fold(
        chunk(STARTED),
        chunk(partial(("$.a", "x"), willContinue=True)),
        chunk(partial(("$.a", "y"), willContinue=True)),
        *ending,
    )

    (call,) = response.tool_calls
    assert call.arguments["a"] == "xy"
    assert call.extra[NAME]["thoughtSignature"] == "U0lH"
    assert response.finish_reason.reason == "tool_calls"
    assert not any(isinstance(part, Opaque) for part in response.message.content)


def test_two_calls_in_pieces():
    """A named call ends the one before it; a late signature is kept."""
    response = fold(
        chunk({"functionCall": {"name": "f", "willContinue": True}}),
        chunk({**partial(("$.a", "x"), willContinue=True), "thoughtSignature": "U0lH"}),
        chunk({"functionCall": {"name": "g", "willContinue": True}}),
        chunk({"functionCall": {}}),
        END,
    )

    assert [(call.name, call.arguments) for call in response.tool_calls] == [
        ("f", {"a": "x"}),
        ("g", {}),
    ]
    assert response.tool_calls[0].extra[NAME]["thoughtSignature"] == "U0lH"


def test_a_call_cut_by_the_limit_is_not_valid():
    """Arguments that the length limit cut do not look whole (field bug 88)."""
    response = fold(
        chunk(STARTED),
        chunk(partial(("$.a", "x"), willContinue=True)),
        chunk(finishReason="MAX_TOKENS"),
    )

    (call,) = response.tool_calls
    assert not call.is_valid
    assert call.raw_arguments == '{"a":"x"'


def test_pieces_are_linear():
    """Twice as many pieces of arguments take twice the time."""
    piece = json.dumps(chunk(partial(("$.a", "x" * 50), willContinue=True)))

    def use(count):
        response = fold(chunk(STARTED), *[piece] * count, END)
        assert len(response.tool_calls[0].arguments["a"]) == 50 * count

    assert growth(use, lambda size: size // 20) < LINEAR


def test_other_parts_are_carried_in_place():
    """Code, its result and unknown parts keep their place among the text."""
    code, outcome = {"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}
    response = fold(chunk({"text": "a"}), chunk(code, outcome), chunk({"text": "b"}), END)

    assert response.message.content == (
        Text(text="a"),
        Opaque(dialect=NAME, data=code, tool="code_execution", input={"code": "1"}),
        Opaque(dialect=NAME, data=outcome, tool="code_execution", output="1"),
        Text(text="b"),
    )


def test_the_last_usage_counts_and_fields_stay():
    """Usage is cumulative; a field that a later frame leaves out is kept (field bug 66)."""
    frames = [chunk({"text": "a"}) for _ in range(3)]
    frames[0]["usageMetadata"] = {"promptTokenCount": 5, "thoughtsTokenCount": 7}
    frames[1]["usageMetadata"] = {"promptTokenCount": 5, "candidatesTokenCount": 1}
    frames[2]["usageMetadata"] = {"candidatesTokenCount": 3, "thoughtsTokenCount": None}

    usage = fold(*frames, {**END, "usageMetadata": {"trafficType": "X"}}).usage

    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) == (5, 10, 7)
    assert usage.raw["trafficType"] == "X"


def test_frames_that_repeat_the_last_lose_nothing():
    """Figures go on with the text; a null, another name or a missing field does no harm."""

    def frame(usage, text="a"):
        return {**chunk({"text": text}), "usageMetadata": usage, "responseId": "r_1"}

    response = fold(
        frame({"prompt_token_count": 5, "candidatesTokenCount": 1}),
        frame({"prompt_token_count": 6, "candidatesTokenCount": 2}),
        frame({"prompt_token_count": 6, "candidatesTokenCount": None}),
        frame({"prompt_token_count": 6, "candidatesTokenCount": 0}),
        frame({"prompt_token_count": 7, "candidatesTokenCount": 3}),
        frame({"prompt_token_count": 8}),
        frame(5, ""),
        frame(["prompt_token_count"]),
        {"candidates": [{"finishReason": "STOP"}]},
    )

    assert response.text == "a" * 7
    assert response.usage.raw == {"promptTokenCount": 8, "candidatesTokenCount": 3}
    assert response.extra[NAME] == {"candidate": {"index": 0}}


def test_text_of_another_candidate_is_not_the_answers():
    """Frames that are alike but for their candidate are told apart."""
    frames = [
        chunk({"text": text}, index=i) for i, text in ((0, "a"), (1, "x"), (1, "y"), (0, "b"))
    ]

    assert fold(*frames, END).text == "ab"


def test_fields_of_later_frames_are_kept():
    """Grounding and the like stay; the last of each counts, and null says nothing."""
    response = fold(
        {**chunk({"text": "a"}, groundingMetadata={"a": 1}), "createTime": "now"},
        chunk({"text": "b"}, groundingMetadata={"b": 2}),
        {**chunk({"text": "c"}, finishReason="STOP", groundingMetadata=None), "createTime": None},
    )

    assert response.extra[NAME] == {
        "createTime": "now",
        "candidate": {"index": 0, "groundingMetadata": {"b": 2}},
    }


def test_usage_may_follow_the_finish_reason():
    """Frames after the finish reason are read too."""
    response = fold(
        chunk({"text": "a"}, finishReason="STOP"),
        {"usageMetadata": {"candidatesTokenCount": 9}},
    )

    assert response.usage.output_tokens == 9


def test_more_candidates_are_kept_whole():
    """Only the first is the answer; the others are put together and kept."""
    both = chunk({"text": "a"})
    both["candidates"].append({"content": {"parts": [{"text": "x"}]}, "index": 1})
    other = chunk({"text": "y"}, index=1, finishReason="STOP")

    response = fold(both, other, chunk({"text": "b"}, finishReason="STOP"))

    assert response.text == "ab"
    assert response.extra[NAME]["candidates"] == [
        {
            "content": {"parts": [{"text": "xy"}], "role": "model"},
            "index": 1,
            "finishReason": "STOP",
        }
    ]


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [chunk({"text": "a"})],
        [chunk({"text": "a"}), {"usageMetadata": {"promptTokenCount": 5}}],
        [chunk({"executableCode": {"code": "1"}}, finishReason="STOP")],
        [chunk({"text": "a"}, finishReason="STOP"), chunk({"text": "b"})],
        [chunk({"text": "a"}, finishReason=None)],
    ],
    ids=["nothing", "no reason", "usage only", "code without result", "more text", "null"],
)
def test_a_cut_stream_is_an_error(frames):
    """A body that ends before its finish reason, or after more than it, was cut (field bug 52)."""
    with pytest.raises(StreamError, match="before a finish reason"):
        events_of(*frames)


def test_half_a_frame_is_an_error():
    """So is a frame that cannot be read."""
    with pytest.raises(StreamError, match="Cannot decode a stream event"):
        events_of(json.dumps(END)[:-3])
    with pytest.raises(StreamError, match="not a JSON object"):
        events_of("[]")


def test_blocked_prompt():
    """A refused prompt ends a stream without any candidate."""
    response = fold({"promptFeedback": {"blockReason": "SAFETY"}, "responseId": "r"})

    assert response.finish_reason.reason == "content_filter"
    assert response.extra[NAME] == {"promptFeedback": {"blockReason": "SAFETY"}}


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_error_in_the_stream_is_raised(wrapped):
    """An error frame, in an array or not, is the provider's error (field bug 54)."""
    body = {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}

    with pytest.raises(RateLimitError, match="slow down") as caught:
        events_of(chunk({"text": "a"}), [body] if wrapped else body)

    assert caught.value.status_code == 429
    with pytest.raises(ServerError):
        events_of({"error": {"message": "x", "status": "UNAVAILABLE"}})


def test_unknown_frames_are_passed_on():
    """A frame that is no answer is shown as it is, wherever it comes."""
    strange = {"newNextYear": 1}
    for frames in ([strange, chunk({"text": "a"}), END], [chunk({"text": "a"}), strange, END]):
        events = events_of(*frames)

        assert [e.data for e in events if isinstance(e, ProviderEvent)] == [strange]
        assert fold(*frames).text == "a"


def test_snake_case_is_read():
    """A server that writes snake case is understood; arguments are not renamed."""
    response = fold(
        {
            "candidates": [
                {
                    "content": {"parts": [{"function_call": {"name": "f", "args": {"a_b": 1}}}]},
                    "finish_reason": "STOP",
                }
            ],
            "usage_metadata": {"prompt_token_count": 5},
            "response_id": "r",
        }
    )

    assert response.tool_calls[0].arguments == {"a_b": 1}
    assert (response.id, response.usage.input_tokens) == ("r", 5)


def test_done_and_empty_frames_are_harmless():
    """A gateway's `[DONE]` changes nothing (field bug 93)."""
    assert fold("", chunk({"text": "a"}), END, "[DONE]").text == "a"
