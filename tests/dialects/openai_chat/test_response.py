"""Whole answers."""

import pytest

from interlingua.dialects.openai_chat import decode_response, encode_request, encode_response
from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.dialects.openai_chat.response import decode_usage, encode_usage
from interlingua.spec.content import Audio, Image, Refusal, Text, Thinking, ToolCall
from interlingua.spec.contracts import Profile
from interlingua.spec.errors import DecodeError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage

NAME = "openai_chat"
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def body(message=None, finish="stop", *, choice=None, **fields):
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "a", **(message or {})},
                "finish_reason": finish,
                **(choice or {}),
            }
        ],
        "usage": USAGE,
        **fields,
    }


def calls(call_id="x"):
    function = {"name": "f", "arguments": "{}"}
    return {
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def without(whole, *names):
    return {name: value for name, value in whole.items() if name not in names}


def test_fields():
    """An answer is its first choice."""
    response = decode_response(body(choice={"logprobs": None}, service_tier="default"))

    assert (response.id, response.model) == ("c1", "m")
    assert response.message == Message.assistant("a")
    assert response.finish_reason == FinishReason(reason="stop", raw="stop")
    assert response.usage == Usage(input_tokens=10, output_tokens=5, raw=USAGE)
    assert response.extra == {
        NAME: {"created": 1, "service_tier": "default", "choice": {"logprobs": None}}
    }


EVERY_FORM = [
    body(),
    body({"refusal": None, "annotations": [], "tool_calls": None}),
    body({"refusal": "", "function_call": {"name": "", "arguments": ""}}),
    body({"content": None, "refusal": "no"}),
    body({"content": {"a": 1}}),
    body({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
    body({"content": [{"type": "text", "text": "a", "x": 1}]}),
    body({"content": []}),
    body({"role": "model"}),
    body({"reasoning": None, "reasoning_content": "hm"}),
    body(calls(), "tool_calls"),
    body(calls(""), "tool_calls"),
    body({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "function_call"),
    body({"audio": {"id": "a", "data": "", "transcript": "t"}}),
    body(finish=""),
    body(finish=None),
    body(choice={"index": 3, "delta": {"content": ""}, "native_finish_reason": "x"}),
    body(choice={"logprobs": {"content": [{"token": "a"}], "refusal": None}}),
    body(choices=[*body()["choices"], {"index": 1, "message": {"content": "b"}}]),
    body(usage=None),
    body(usage=None, x_groq={"usage": USAGE}),
    without(body(x_groq={"usage": USAGE}), "usage"),
    without(body(choice={"usage": USAGE}), "usage"),
    without(body(), "usage", "object", "model", "id", "created"),
    {"choices": [{"message": {}}]},
    body(error={"code": 502, "message": "late"}),
]


@pytest.mark.parametrize("wire", EVERY_FORM)
def test_every_form_comes_back(wire):
    """Known fields are read, all others kept, and the body is written as it was."""
    assert encode_response(decode_response(wire)) == wire


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("eos", "stop"),
        ("end_turn", "stop"),
        ("model_length", "length"),
        ("error", "error"),
        ("", "other"),
        (None, "other"),
        ("new_one", "other"),
    ],
)
def test_finish_reasons(raw, reason):
    """Words of compatible servers are known; others keep their name."""
    assert decode_response(body(finish=raw)).finish_reason == FinishReason(reason=reason, raw=raw)


@pytest.mark.parametrize("raw", ["stop", "", None])
def test_calls_say_more_than_stop(raw):
    """An answer that asks for calls is one, whatever the server calls it."""
    response = decode_response(body(calls(), raw))

    assert response.finish_reason == FinishReason(reason="tool_calls", raw=raw)
    assert encode_response(response)["choices"][0]["finish_reason"] == raw


def test_an_answer_cut_by_its_length_is_a_result():
    """A cut answer keeps its text and usage (field bug 87)."""
    response = decode_response(body(finish="length"))

    assert (response.text, response.finish_reason.reason) == ("a", "length")
    assert response.usage.output_tokens == 5


def test_foreign_answers_are_said():
    """An answer of another model is a valid body, its thought shown, its text one string."""
    response = Response(
        id="r",
        model="m",
        message=Message.assistant(
            (
                Thinking(text="hm", extra={"anthropic_messages": {}}),
                Text(text="a"),
                Text(text="b", extra={"anthropic_messages": {"citations": []}}),
                ToolCall(id="x", name="f", arguments={"a": 1}),
            )
        ),
        finish_reason=FinishReason(reason="tool_calls", raw="tool_use"),
        usage=Usage(
            input_tokens=10,
            output_tokens=5,
            reasoning_tokens=2,
            cache_read_tokens=4,
            cache_write_tokens=1,
            raw={"input_tokens": 5},
        ),
    )

    assert encode_response(response) == {
        "id": "r",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "reasoning_content": "hm",
                    "content": "ab",
                    "tool_calls": [
                        {
                            "id": "x",
                            "type": "function",
                            "function": {"name": "f", "arguments": '{"a":1}'},
                        }
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    }


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("cancelled", "stop"),
        ("error", "stop"),
        ("other", "stop"),
    ],
)
def test_foreign_finish_reasons(reason, word):
    """The nearest of this API's words."""
    response = Response(finish_reason=FinishReason(reason=reason, raw="end_turn"))

    assert encode_response(response)["choices"][0]["finish_reason"] == word


def test_a_call_without_an_id_gets_one_that_is_sent_with_its_result():
    """A call without an id gets one; it is sent with the result, not in the server's own form.

    Field bug 7.
    """
    response = decode_response(body(calls("")), new_id=lambda: "01")
    (call,) = response.tool_calls

    assert call.id == "call_01"
    request = Request(messages=(response.message, Message.tool_result(call.id, "r")))
    sent = encode_request(request).body["messages"]
    assert sent[0]["tool_calls"][0]["id"] == sent[1]["tool_call_id"] == "call_01"


def test_refusal():
    """A refusal is its own part."""
    response = decode_response(body({"content": None, "refusal": "no"}))

    assert response.message.content == (Refusal(text="no"),)


def test_think_tags():
    """A thought in tags is taken out of the text, unless the quirk says that there are none."""
    wire = body({"content": "<think>hm</think>a"})
    response = decode_response(wire)
    split = Profile(quirks=ChatQuirks(think_tags=False))

    assert (response.reasoning, response.text) == ("hm", "a")
    assert encode_response(response) == wire
    assert decode_response(wire, profile=split).text == "<think>hm</think>a"


@pytest.mark.parametrize(
    "wire",
    [
        {"error": {"message": "no"}},
        {"choices": []},
        {"choices": [5]},
        {"choices": [{"message": None}]},
        {"object": "list", "data": []},
        {},
    ],
)
def test_bodies_that_are_no_answer(wire):
    """They are carried whole; an error is told by the finish reason."""
    response = decode_response(wire)

    assert response.finish_reason.reason == ("error" if "error" in wire else "other")
    assert response.message.content == ()
    assert encode_response(response) == wire


def test_error_beside_an_answer():
    """Both are kept; without a reason of its own the answer failed."""
    assert decode_response(body(finish=None, error={"code": 502})).finish_reason.reason == "error"


def test_no_object():
    """A body that is no object cannot be read."""
    with pytest.raises(DecodeError, match="object"):
        decode_response([])


def test_rate_limit_headers():
    """They are read."""
    headers = {"x-ratelimit-remaining-requests": "9"}

    assert decode_response(body(), headers=headers).rate_limit.requests_remaining == 9


# Usage.


def used(**fields):
    return decode_usage({**USAGE, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt_tokens_details": {"cached_tokens": 4}},
        {"prompt_cache_hit_tokens": 4},
        {"num_cached_tokens": 4},
        {"cached_tokens": 4},
        {"cache_read_input_tokens": 4},
    ],
)
def test_cached_tokens_are_read_under_each_servers_name(fields):
    """Each server has its own name for them (field bug 97)."""
    assert used(**fields).cache_read_tokens == 4
    assert used().cache_read_tokens is None


def test_cache_writes():
    """Two names."""
    assert used(prompt_tokens_details={"cache_write_tokens": 4}).cache_write_tokens == 4
    assert used(cache_creation_input_tokens=4).cache_write_tokens == 4


def test_reasoning_is_counted_once():
    """It is part of the output; where the total shows that it is not, it is added.

    Field bug 67.
    """
    details = {"completion_tokens_details": {"reasoning_tokens": 3}}

    assert (used(**details).output_tokens, used(**details).reasoning_tokens) == (5, 3)
    beside = used(**details, total_tokens=18)
    assert (beside.output_tokens, beside.total_tokens) == (8, 18)
    assert used().reasoning_tokens is None


def test_contradicting_counts_are_limited():
    """Subsets never exceed what they are part of; negative and odd counts are nothing.

    Field bug 70.
    """
    thought = used(completion_tokens_details={"reasoning_tokens": 99})
    assert (thought.output_tokens, thought.reasoning_tokens) == (104, 99)
    more = used(prompt_tokens_details={"cached_tokens": 90})
    assert (more.input_tokens, more.cache_read_tokens) == (10, 10)
    assert decode_usage({"prompt_tokens": -1, "completion_tokens": "x"}) == Usage(
        raw={"prompt_tokens": -1, "completion_tokens": "x"}
    )


def test_usage_in_the_choice_is_read():
    """One server puts it there (field bug 62)."""
    response = decode_response(without(body(choice={"usage": USAGE}), "usage"))

    assert response.usage.input_tokens == 10


def test_usage_goes_back_as_it_came():
    """Unless the numbers were changed; what is unknown is not sent."""
    wire = {**USAGE, "queue_time": 0.1}

    assert encode_usage(decode_usage(wire), native=True) == wire
    assert encode_usage(Usage(input_tokens=1, raw=wire), native=True) == {
        "prompt_tokens": 1,
        "completion_tokens": 0,
        "total_tokens": 1,
    }
    assert encode_usage(Usage(), native=False) is None
    assert encode_usage(Usage(raw={"input_tokens": 0}), native=False)["total_tokens"] == 0


def test_answers_of_others():
    """Content is one text; images stand beside it; no arguments are an empty object."""
    content = (
        Text(text="a"),
        Image(url="https://e.com/a.png"),
        Audio(data=b"x", media_type="audio/wav"),
        Text(text="b"),
        ToolCall(id="t", name="f", raw_arguments=""),
    )
    message = encode_response(Response(message=Message(role="assistant", content=content)))[
        "choices"
    ][0]["message"]

    assert message["content"] == "ab"
    assert message["images"] == [{"type": "image_url", "image_url": {"url": "https://e.com/a.png"}}]
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_n_is_an_option_of_the_wire():
    """`Request` has no `n`; asked for in the wire's words, the other choices are in `extra`."""
    assert "n" not in Request.__struct_fields__
    request = Request(model="m", messages="?", provider_options={NAME: {"n": 2}})
    assert encode_request(request).body["n"] == 2
    choices = [
        {"index": index, "message": {"role": "assistant", "content": word}, "finish_reason": "stop"}
        for index, word in enumerate(("one", "two"))
    ]
    response = decode_response({"id": "x", "model": "m", "choices": choices})
    assert response.text == "one"
    assert response.extra[NAME]["choices"] == choices[1:]
