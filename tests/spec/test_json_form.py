"""JSON documents."""

import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from interlingua.api.run.results import GenerateResult, StepResult
from interlingua.conformance.strategies import conversations, json_values, requests, responses
from interlingua.spec import errors
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    ProviderError,
    RateLimitError,
    SDKError,
)
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    StreamEvent,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.json_form import (
    FORMAT_VERSION,
    from_document,
    from_json,
    to_document,
    to_json,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolDefinition
from interlingua.spec.response import (
    Cost,
    FinishReason,
    RateLimitInfo,
    Response,
    Usage,
    Warning,
)
from interlingua.streams.accumulate import events_from_response

SLOW = settings(deadline=None)
KINDS = [Message, Request, Response, StreamEvent]
EXTRA = {"anthropic_messages": {"cache_control": {"type": "ephemeral"}}}
FULL = Response(
    id="r",
    model="m",
    provider="p",
    message=Message(
        role="assistant",
        content=(
            Text(text="", extra=EXTRA),
            Image(data=b"\x89PNG\x00\xff", media_type="image/png"),
            Audio(data=b""),
            Document(data=bytes(range(256)), file_name="a.pdf"),
            ToolCall(id="1", name="n", arguments={"a": [None, 0.5, {}]}, raw_arguments=""),
            ToolResult(tool_call_id="1", content=(Text(text="x"), Image(data=b"\x00"))),
            ToolResult(tool_call_id="2", content=()),
            ToolResult(tool_call_id="3", content=[]),
            ToolResult(tool_call_id="4", content=""),
            ToolResult(tool_call_id="5", content=None),
            ToolResult(tool_call_id="6", content={"kind": "text", "text": "x"}),
            Thinking(text="", signature="", redacted=True, data="e30="),
            Refusal(text="no"),
            Opaque(dialect="gemini_generate", data=[1, {"x": None}]),
        ),
        name="",
        metadata={"a": 1},
    ),
    finish_reason=FinishReason(reason="length", raw="max_tokens"),
    usage=Usage(input_tokens=2**60, reasoning_tokens=0, raw={"x": 1}),
    cost=Cost(total=0.5, output=0.5, reasoning=0.25, pricing_version="1", source="prices"),
    warnings=(Warning(code="c", message="m", path="p"),),
    rate_limit=RateLimitInfo(
        reset_at=datetime(2026, 11, 15, 20, 0, 0, 123456, tzinfo=UTC), raw={"x-a": "1"}
    ),
    raw={"choices": [{"index": 0}]},
    request_id="",
    latency_ms=0.5,
    extra=EXTRA,
)
EVENTS = [
    StreamStart(id="r", model="m", usage=Usage(input_tokens=3), extra=EXTRA),
    TextStart(id="a", index=0, extra=EXTRA),
    TextDelta(id="a", index=0, delta="\ud83d"),
    TextEnd(id="a", index=0, part=Text(text="x")),
    ReasoningStart(id="b", index=1),
    ReasoningDelta(id="b", index=1, delta="hm"),
    ReasoningEnd(id="b", index=1, part=Thinking(text="hm", signature="s")),
    ToolCallStart(id="c", index=2, tool_call_id="1", name="n", tool_type="custom"),
    ToolCallDelta(id="c", index=2, delta='{"a'),
    ToolCallEnd(id="c", index=2, tool_call=ToolCall(id="1", name="n", raw_arguments='{"a')),
    ProviderEvent(dialect="d", data=None, name="ping"),
    ProviderEvent(part=Image(data=b"\x00\xff"), index=3),
    StepStart(step=0),
    StepFinish(step=0, response=FULL),
    StreamRestart(start=StreamStart(id="r", extra=EXTRA), reason="cut"),
    Finish(finish_reason=FinishReason(reason="stop"), response=FULL, message_extra=EXTRA),
]
FAILURES = [
    SDKError("x", request_id="req_1"),
    DecodeError("x", path="messages[2]"),
    errors.AbortError("x"),
    RateLimitError(
        "slow \ud83d",
        provider="groq",
        status_code=429,
        error_code="slow",
        retry_after=0.0,
        raw={"error": {"message": "slow", "param": None}},
        retryable=False,
        request_id="",
    ),
    errors.ServerError("x", raw=""),
    errors.ProviderTimeoutError("x", status_code=504),
]


@SLOW
@given(conversations())
def test_messages_round_trip(messages):
    """A message read from its JSON is the same message."""
    for message in messages:
        assert from_json(to_json(message), Message) == message
        assert from_document(to_document(message), Message) == message


@SLOW
@given(requests())
def test_requests_round_trip(request):
    """A request read from its JSON is the same request."""
    assert from_json(to_json(request), Request) == request


@SLOW
@given(requests() | responses() | conversations().map(lambda messages: messages[-1]), json_values)
def test_documents_are_plain_json(value, data):
    """A document is its own JSON round trip: lists and string keys, whatever it was made of."""
    field = "raw" if isinstance(value, Response) else "metadata"
    held = {"of the caller": [(data, 1), {2: (3,)}]}
    value = structs.replace(value, **{field: held})

    document = to_document(value)

    assert json.loads(json.dumps(document)) == document == json.loads(to_json(value))
    assert document[field] == {"of the caller": [[data, 1], {"2": [3]}]}
    assert held == {"of the caller": [(data, 1), {2: (3,)}]}


@SLOW
@given(responses())
def test_responses_and_their_events_round_trip(response):
    """A response, and each event of its replay, read from JSON is the same."""
    assert from_json(to_json(response), Response) == response
    for event in events_from_response(response):
        assert from_json(to_json(event), StreamEvent) == event


@given(st.text(st.sampled_from('a\ud83d\\"\n\0é')), json_values)
def test_any_text_and_data_round_trip(text, data):
    """Lone surrogates, control characters and any JSON data come back the same."""
    message = Message.user([text, Opaque(dialect="d", data=data)])

    assert from_json(to_json(message), Message) == message


def test_full_response_round_trips():
    """Every field and every kind of part comes back, bytes and moments too."""
    again = from_json(to_json(FULL), Response)

    assert again == FULL
    assert again.rate_limit.reset_at == datetime(2026, 11, 15, 20, 0, 0, 123456, tzinfo=UTC)
    assert again.message.content[3].data == bytes(range(256))


def test_request_with_tools_round_trips():
    """Both kinds of tools and the choice among them come back."""
    request = Request(
        tools=[
            ToolDefinition(name="n", parameters={"type": "object"}, strict=False),
            BuiltinTool(dialect="openai_responses", data={"type": "web_search"}),
        ],
        tool_choice=ToolChoice(mode="required", allowed=["n"]),
        provider_options={"openai_chat": {"logit_bias": {"50256": -100}}},
    )

    assert from_json(to_json(request), Request) == request


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_events_round_trip(event):
    """Every kind of event comes back the same."""
    assert from_json(to_json(event), StreamEvent) == event


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_error_events_round_trip(error):
    """An error comes back as its class with its fields; the partial is the event's."""
    event = ErrorEvent(error=error, response=FULL)

    again = from_json(to_json(event), StreamEvent)

    assert again.response == FULL
    assert type(again.error) is type(error)
    assert vars(again.error) == vars(error)


def test_every_error_class_round_trips():
    """No class of the tree is forgotten."""
    for cls in vars(errors).values():
        if isinstance(cls, type) and issubclass(cls, SDKError):
            again = from_json(to_json(ErrorEvent(error=cls("x"))), StreamEvent)
            assert type(again.error) is cls


def test_error_of_an_application_becomes_the_nearest_of_ours():
    """A subclass we do not know is told as the class it derives from."""

    class OurGatewayError(RateLimitError):
        pass

    again = from_json(to_json(ErrorEvent(error=OurGatewayError("x", provider="p"))), StreamEvent)

    assert type(again.error) is RateLimitError
    assert again.error.provider == "p"


@pytest.mark.parametrize(
    ("fields", "cls"), [({}, SDKError), ({"provider": "p", "status_code": 418}, ProviderError)]
)
def test_error_of_a_newer_library_is_read(fields, cls):
    """A class with an unknown name is a provider's error if it names one."""
    document = {"type": "error", "error": {"class": "TeapotError", "message": "x", **fields}}

    error = from_document(document, StreamEvent).error

    assert type(error) is cls
    assert vars(error) == vars(cls("x", **fields))


@pytest.mark.parametrize("value", [Message.user("x"), Request(), Response(), EVENTS[0]], ids=type)
def test_documents_say_their_version(value):
    """The version is in every document, under the library's name."""
    assert json.loads(to_json(value))["interlingua"] == FORMAT_VERSION == 1


def test_document_without_version_is_read():
    """A document written by hand needs no version."""
    assert from_json('{"role":"user","content":[]}', Message) == Message(role="user")


def test_unknown_fields_are_ignored():
    """What a newer library added to a document does not disturb."""
    assert from_document({"role": "user", "mood": "good"}, Message) == Message(role="user")


@pytest.mark.parametrize("version", [2, 99, "1", 1.5, None, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_newer_version_is_refused(version, kind):
    """A version this library does not know is an error that says what to do."""
    with pytest.raises(DecodeError, match=r"reads up to 1\. Upgrade interlingua") as caught:
        from_document({"interlingua": version}, kind)
    assert caught.value.path == "interlingua"


@given(
    json_values
    | st.fixed_dictionaries(
        {},
        optional={
            "role": json_values | st.just("user"),
            "content": st.lists(
                st.fixed_dictionaries(
                    {"kind": st.sampled_from(["text", "image", "tool_call", "tool_result", "x"])},
                    optional={"text": json_values, "data": json_values, "content": json_values},
                )
            ),
            "messages": json_values,
            "usage": json_values,
            "message": json_values,
            "type": json_values | st.sampled_from(["text_delta", "error", "finish"]),
            "error": json_values
            | st.fixed_dictionaries(
                {"class": json_values | st.just("RateLimitError"), "message": json_values},
                optional={"raw": json_values, "partial": json_values, "retry_after": json_values},
            ),
            "interlingua": json_values | st.just(1),
        },
    ),
    st.sampled_from(KINDS),
)
def test_any_json_is_a_value_or_a_decode_error(document, kind):
    """JSON of a wrong shape is a `DecodeError` and nothing else; what is read is well formed."""
    try:
        value = from_document(document, kind)
    except DecodeError as error:
        assert error.message
    else:
        to_json(value)


@given(st.binary() | st.text(), st.sampled_from(KINDS))
def test_any_bytes_are_a_value_or_a_decode_error(data, kind):
    """Bytes that are no document are a `DecodeError` and nothing else."""
    try:
        from_json(data, kind)
    except DecodeError as error:
        assert error.message


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"1", b"\xff", b"[" * 100_000, b'{"a":' * 100_000]
)
def test_no_document(kind, data):
    """Cut, empty, deep and foreign texts are refused by name."""
    with pytest.raises(DecodeError, match="not a "):
        from_json(data, kind)


def test_results_within_results_without_end():
    """A document nested as deeply as can be is read or refused, never a crash."""
    for depth in (10, 300, 3_000, 30_000):
        opening = '{"kind":"tool_result","tool_call_id":"1","content":['
        text = opening * depth + '{"kind":"text","text":"x"}' + "]}" * depth
        try:
            from_json(f'{{"role":"tool","content":[{text}]}}', Message)
        except DecodeError as error:
            assert "deep" in error.message or "recursion" in error.message


def test_error_document_written_by_hand():
    """A class and a message are enough."""
    document = {"type": "error", "error": {"class": "ServerError", "message": "x"}}

    error = from_document(document, StreamEvent).error

    assert type(error) is errors.ServerError
    assert vars(error) == vars(errors.ServerError("x"))


def test_message_of_a_refusal():
    """The error says what was read, what was wrong, and where."""
    with pytest.raises(DecodeError, match=r"not a Message document: .*\$.content\[0\].text"):
        from_document({"role": "user", "content": [{"kind": "text", "text": 5}]}, Message)


@pytest.mark.parametrize(
    "error",
    [
        5,
        {},
        {"class": "ServerError"},
        {"message": "x"},
        {"class": "ServerError", "message": 5},
        {"class": "ServerError", "message": "x", "status_code": "500"},
    ],
)
def test_error_of_wrong_shape_is_refused(error):
    """An error needs a class and a message, and fields of the right type."""
    with pytest.raises(DecodeError, match="not a StreamEvent document"):
        from_document({"type": "error", "error": error}, StreamEvent)


def test_what_has_no_json_form():
    """An object of the application's, or data without end, cannot be written."""
    endless: list = []
    endless.append(endless)

    with pytest.raises(DecodeError, match="object has no JSON form"):
        to_json(Message.user(Opaque(dialect="d", data=object())))
    with pytest.raises(DecodeError, match="nested too deeply"):
        to_json(Message.user(Opaque(dialect="d", data=endless)))


def test_a_list_of_messages_is_written_and_read_back():
    """It is written as a list of documents, and read back."""
    messages = [Message.user("Hi"), Message.assistant("Hello")]
    data = to_json(messages)

    assert from_json(data, list[Message]) == messages
    assert from_json(to_json(tuple(messages)), tuple[Message, ...]) == tuple(messages)
    assert from_json(json.loads(data), list[Message]) == messages
    newer = data.replace(b'"interlingua":1', b'"interlingua":99', 1)
    with pytest.raises(DecodeError, match="version 99"):
        from_json(newer, list[Message])


DEEP: list = []
for _ in range(100_000):
    DEEP = [DEEP]
CYCLE: list = []
CYCLE.append(CYCLE)
ODD = [10**5000, DEEP, object(), CYCLE, {None: 1}, ["\ud800", 10**5000]]


@pytest.mark.parametrize("value", ODD, ids=["digits", "deep", "object", "cycle", "key", "both"])
def test_values_without_a_json_form_are_our_error(value):
    """They give an error of ours."""
    message = Message(role="user", metadata={"v": value})

    for document in (message, [message]):
        with pytest.raises(DecodeError, match="JSON"):
            to_json(document)


def test_nan_is_null_beside_a_lone_surrogate():
    """The same as without one; `NaN` is not JSON."""
    for texts in (["a"], ["\ud800"]):
        data = to_json(Message(role="user", metadata={"v": [math.nan, math.inf, *texts]}))
        assert from_json(data, Message).metadata == {"v": [None, None, *texts]}


@pytest.mark.parametrize(
    "text",
    [
        '{"role":"user","metadata":{"v":NaN}}',
        '{"role":"user","metadata":{"v":1e999}}',
        '{"role":"user","metadata":{"v":%s}}' % ("1" * 5000),
        '{"role":"user","metadata":{"v":"\\ud800","w":NaN}}',
        "[" * 100_000,
        b"\xff",
        "",
    ],
    ids=["nan", "infinity", "digits", "surrogate", "deep", "utf-8", "empty"],
)
def test_text_that_is_no_json_is_our_error(text):
    """It gives an error of ours."""
    with pytest.raises(DecodeError, match="not a Message document"):
        from_json(text, Message)


def test_a_trailing_comma_is_reported_at_its_position():
    """It is reported as invalid JSON at its position."""
    with pytest.raises(DecodeError, match=r"char [89]"):
        from_json('{"a":"1",}', Message)


def test_what_is_neither_text_nor_a_dict():
    """The error says what to pass."""
    with pytest.raises(ConfigurationError, match="takes JSON text or a dict, not a int"):
        from_json(5, Message)


@pytest.mark.parametrize(
    "text",
    [
        r'{"role": "\ud800"}',
        r'{"\ud800": 1, "role": "user"}',
        r'{"role": "user", "content": [{"kind": "\ud800"}]}',
        r'{"role": "user", "content": [{"kind": "text", "\ud800": 1}]}',
    ],
)
def test_a_lone_surrogate_where_a_name_is_expected_is_our_error(text):
    """As text, and as the JSON that was parsed of it."""
    for document in (text, text.encode(), json.loads(text)):
        with pytest.raises(DecodeError, match=r"lone surrogate|Invalid|required"):
            from_json(document, Message)


def test_a_result_of_a_run_is_no_document():
    """The error names the values of it that are."""
    result = GenerateResult(
        steps=(StepResult(response=Response(message=Message.assistant("Hi."))),),
        messages=(Message.assistant("Hi."),),
    )
    advice = r"Write to_json\(result\.response\) or to_json\(result\.messages\)"
    with pytest.raises(ConfigurationError, match=advice):
        to_json(result)
    with pytest.raises(ConfigurationError, match="Documents are messages, requests"):
        to_json(5)
