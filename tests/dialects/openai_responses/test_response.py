"""Response <-> body."""

import pytest
from openai.types.responses import Response as OpenAIResponse

from interlingua.dialects.openai_responses import decode_response, encode_response
from interlingua.spec.content import Image, Opaque, Refusal, Text, Thinking, ToolCall
from interlingua.spec.errors import DecodeError
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage

NAME = "openai_responses"
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hi\n", "annotations": [], "logprobs": []}],
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": "{}",
    "status": "completed",
}
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 30},
    "output_tokens": 50,
    "output_tokens_details": {"reasoning_tokens": 20},
    "total_tokens": 150,
}


def body(*output, **fields):
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "gpt",
        "output": list(output),
        "usage": USAGE,
        **fields,
    }


def test_text():
    """Text is kept to the byte; the item's fields are kept beside it (field bug 94)."""
    response = decode_response(body(MESSAGE))

    assert (response.id, response.model, response.text) == ("resp_1", "gpt", "Hi\n")
    assert FinishReason(reason="stop", raw="completed") == response.finish_reason
    assert response.message.content[0].extra[NAME] == {
        "annotations": [],
        "logprobs": [],
        "~item": {"id": "msg_1", "status": "completed"},
    }
    assert body(MESSAGE) == encode_response(response)


def test_usage():
    """The totals include what the details count."""
    usage = decode_response(body(MESSAGE)).usage

    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (100, 50, 150)
    assert (
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    ) == (40, 30, 20)


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": 1, "output_tokens": 2}])
def test_usage_that_is_not_reported_stays_none(usage):
    """A figure the wire does not give stays None, and the object comes back as it was.

    Field bug 90.
    """
    given = body(MESSAGE, usage=usage)

    response = decode_response(given)

    assert None is response.usage.reasoning_tokens
    assert given == encode_response(response)


SHELL = {"type": "shell_call", "call_id": "s"}


@pytest.mark.parametrize(
    ("output", "fields", "reason", "raw"),
    [
        ([MESSAGE, CALL], {}, "tool_calls", "completed"),
        (
            [{"type": "custom_tool_call", "call_id": "c", "name": "f", "input": ""}],
            {},
            "tool_calls",
            "completed",
        ),
        ([{"type": "computer_call", "call_id": "c"}], {}, "tool_calls", "completed"),
        ([{"type": "mcp_approval_request", "id": "m"}], {}, "tool_calls", "completed"),
        ([{"type": "tool_search_call", "execution": "client"}], {}, "tool_calls", "completed"),
        ([{"type": "tool_search_call", "execution": "server"}], {}, "stop", "completed"),
        ([SHELL], {}, "tool_calls", "completed"),
        ([SHELL, {"type": "shell_call_output", "call_id": "s"}, MESSAGE], {}, "stop", "completed"),
        (
            [{**MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]}],
            {},
            "content_filter",
            "completed",
        ),
        (
            [MESSAGE],
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
            "max_output_tokens",
        ),
        (
            [CALL],
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter", "x": 1}},
            "content_filter",
            "content_filter",
        ),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "new"}}, "other", "new"),
        ([], {"status": "incomplete"}, "other", "incomplete"),
        (
            [],
            {"status": "failed", "error": {"code": "server_error", "message": "x"}},
            "error",
            "failed",
        ),
        ([], {"status": "cancelled"}, "cancelled", "cancelled"),
        ([], {"status": "queued", "usage": None}, "other", "queued"),
        ([], {"status": "in_progress"}, "other", "in_progress"),
        ([], {"status": "pondering"}, "other", "pondering"),
        ([], {"status": 5}, "other", None),
    ],
)
def test_statuses(output, fields, reason, raw):
    """The reason follows from the status, its details and the items; the status comes back."""
    given = body(*output, **fields)

    response = decode_response(given)

    assert FinishReason(reason=reason, raw=raw) == response.finish_reason
    assert given == encode_response(response)


def test_a_call_cut_by_its_length_is_not_valid():
    """A call whose arguments were cut off is not valid (field bug 88)."""
    cut = {**CALL, "arguments": '{"city": "Os', "status": "incomplete"}
    given = body(cut, status="incomplete", incomplete_details={"reason": "max_output_tokens"})

    response = decode_response(given)

    assert response.finish_reason.reason == "length"
    assert not response.tool_calls[0].is_valid
    assert given == encode_response(response)


def test_server_tools_are_no_calls_for_the_caller():
    """What the provider ran itself is no call for the caller, but is kept (field bug 89)."""
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": None}

    response = decode_response(body(search, MESSAGE))

    assert response.tool_calls == ()
    assert response.message.content[0].data == search


@pytest.mark.parametrize(
    "given",
    [
        {"output": []},
        {"output": [MESSAGE], "status": "completed"},
        {"output": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]},
        {
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "x"}],
                }
            ]
        },
        {"id": 5, "model": None, "output": [5, {}], "usage": "none"},
        {**body(MESSAGE), "instructions": [{"role": "developer", "content": []}], "billing": {}},
        {"object": "response.compaction", "output": [{"role": "user", "content": []}]},
    ],
)
def test_bodies_with_missing_and_odd_fields_decode(given):
    """Bodies with less, more or other than usual decode, and come back as they were.

    Field bug 92.
    """
    assert given == encode_response(decode_response(given))


@pytest.mark.parametrize(
    "given",
    [
        {"object": "response.input_tokens", "input_tokens": 9},
        {"id": "resp_1", "object": "response.deleted", "deleted": True},
        {"object": "list", "data": [], "has_more": False},
        {},
    ],
)
def test_bodies_that_are_no_answers(given):
    """They are carried whole."""
    response = decode_response(given)

    assert response.message.content == ()
    assert given == encode_response(response)


def test_body_that_is_no_object():
    """It is a typed error."""
    with pytest.raises(DecodeError):
        decode_response([])


FOREIGN = Response(
    id="msg_abc",
    model="claude",
    message=Message.assistant(
        [
            Thinking(text="hm", signature="S", extra={"anthropic_messages": {}}),
            Text(text="Hi"),
            ToolCall(id="t", name="f", arguments={"a": 1}),
            Refusal(text="No."),
        ]
    ),
    finish_reason=FinishReason(reason="tool_calls", raw="tool_use"),
    usage=Usage(input_tokens=3, output_tokens=4, raw={"input_tokens": 3, "output_tokens": 4}),
)


def test_answer_of_others():
    """It has all that the vendor's own client reads."""
    given = encode_response(FOREIGN)

    read = OpenAIResponse.model_validate(given)

    assert read.output_text == "Hi"
    assert [i.type for i in read.output] == ["reasoning", "message", "function_call", "message"]
    assert read.usage.total_tokens == 7
    assert read.status == "completed"


def test_foreign_answer_decodes_to_the_same():
    """Text, calls and counts survive."""
    back = decode_response(encode_response(FOREIGN))

    assert back.text == "Hi"
    assert [(call.id, call.arguments) for call in back.tool_calls] == [("t", {"a": 1})]
    assert (back.usage.input_tokens, back.usage.output_tokens) == (3, 4)


@pytest.mark.parametrize(
    ("reason", "status", "details"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
        ("cancelled", "cancelled", None),
        ("error", "failed", None),
        ("other", "completed", None),
    ],
)
def test_reasons_of_others(reason, status, details):
    """Each reason has a status."""
    given = encode_response(Response(finish_reason=FinishReason(reason=reason, raw="x")))

    assert (status, details) == (given["status"], given["incomplete_details"])
    OpenAIResponse.model_validate(given)


def test_parts_an_answer_cannot_hold():
    """They are left out."""
    message = Message.assistant([Image(url="https://e.com/a.png"), Opaque(dialect="x", data={})])

    assert encode_response(Response(message=message))["output"] == []


def test_rate_limit():
    """The headers' limits are read."""
    headers = {"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "1s"}

    assert decode_response(body(), headers=headers).rate_limit.requests_remaining == 5


def test_no_arguments_are_an_empty_object():
    """A client parses the text; that of our own calls is left as it came (field bug 10)."""
    call = ToolCall(id="t", name="f", raw_arguments="")
    message = Message.assistant([call])

    assert encode_response(Response(message=message))["output"][0]["arguments"] == "{}"
    own = Response(message=message, extra={NAME: {}})
    assert encode_response(own)["output"][0]["arguments"] == ""
