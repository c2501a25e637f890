"""A real server of another maker, through our three dialects that it speaks."""

import json
import socket
from urllib.parse import urlsplit

import jsonschema_rs
import pytest
from msgspec.structs import replace

from interlingua import dialects
from interlingua.conformance.laws import LAWS, Case, check
from interlingua.spec.errors import (
    ContextLengthError,
    InvalidRequestError,
    NotFoundError,
    ServerError,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolChoice, ToolDefinition
from support.llama import SERVED, address, call, encode, eventually, send, streamed, whole

QUESTION = Request(
    model="any",
    messages=(Message.system("You answer in one sentence."), Message.user("Where is Paris?")),
    max_tokens=12,
    temperature=0.0,
)
PERSON = {
    "type": "object",
    "properties": {"name": {"enum": ["Jane", "John"]}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
WEATHER = ToolDefinition(
    name="get_weather",
    description="The weather of a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
OPENING_BRACE = 107  # its token in the vocabulary of SmolLM2
PATHS = {
    "openai_chat": "/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
}


@pytest.mark.parametrize("dialect", SERVED)
def test_every_law_holds_on_its_traffic(url, dialect):
    """Each law of a dialect holds on what the server really sends."""
    sent, body = call(url, dialect, QUESTION)
    case = Case(
        name="llama.cpp",
        call=sent,
        response=json.loads(body),
        stream=call(url, dialect, QUESTION, stream=True)[1],
    )

    report = check(dialects.get(dialect), [case])

    assert report.violations == (), str(report)
    assert len(LAWS) >= 9


@pytest.mark.parametrize("dialect", SERVED)
def test_a_stream_says_what_the_whole_says(url, dialect):
    """The same question gives the same words, end and counts, whole or streamed."""
    whole(url, dialect, QUESTION)  # so that both find the same prompt in the cache

    one, other = whole(url, dialect, QUESTION), streamed(url, dialect, QUESTION)

    assert one.text == other.text != ""
    assert one.finish_reason == other.finish_reason
    assert one.model == other.model
    for count in ("input_tokens", "output_tokens", "cache_read_tokens"):
        assert getattr(one.usage, count) == getattr(other.usage, count), count


def test_usage_is_the_same_in_every_dialect(url):
    """The prompt has as many tokens in each dialect, cached or not."""
    counts = {whole(url, dialect, QUESTION).usage.input_tokens for dialect in SERVED}

    assert len(counts) == 1


@pytest.mark.parametrize("dialect", SERVED)
def test_any_model_name_is_served(url, dialect):
    """The name in the request is not looked at; the answer names the model it has."""
    assert whole(url, dialect, QUESTION).model == "SmolLM2-135M-Instruct.Q4_1"


@pytest.mark.parametrize(
    ("dialect", "reason"),
    [
        ("openai_chat", "length"),
        ("anthropic_messages", "length"),
        ("openai_responses", "stop"),  # the server says `completed` also when it was cut
    ],
)
def test_the_limit_on_tokens_holds(url, dialect, reason):
    """An answer ends at `max_tokens`, and two of the three dialects say so."""
    answer = whole(url, dialect, QUESTION)

    assert answer.usage.output_tokens == QUESTION.max_tokens
    assert answer.finish_reason.reason == reason


def test_chat_keeps_to_a_schema(url):
    """A schema asked for natively binds the answer, whole and streamed."""
    request = replace(
        QUESTION,
        max_tokens=60,
        response_format=ResponseFormat(type="json_schema", json_schema=PERSON, name="person"),
    )
    validator = jsonschema_rs.validator_for(PERSON)

    for answer in (whole(url, "openai_chat", request), streamed(url, "openai_chat", request)):
        assert answer.finish_reason.reason == "stop"
        validator.validate(json.loads(answer.text))


def test_responses_keeps_to_a_schema_of_the_servers_own_field(url):
    """On Responses llama.cpp ignores `text.format`; its own `json_schema` binds the answer."""
    request = replace(
        QUESTION, max_tokens=60, provider_options={"openai_responses": {"json_schema": PERSON}}
    )

    answer = whole(url, "openai_responses", request)

    jsonschema_rs.validator_for(PERSON).validate(json.loads(answer.text))


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_tool_calls_come_whole_and_streamed(able_url, dialect):
    """A call decodes to the same tool and arguments, whole or streamed."""
    request = replace(
        QUESTION,
        messages=(Message.user("Weather in Paris?"),),
        max_tokens=60,
        tools=(WEATHER,),
        tool_choice=ToolChoice(mode="required"),
        # A model this small seldom calls of itself: push it to open a brace.
        provider_options={dialect: {"logit_bias": [[OPENING_BRACE, 60]]}},
    )
    whole(able_url, dialect, request)

    calls = [ask(able_url, dialect, request).tool_calls for ask in (whole, streamed)]

    for answer in calls:
        assert [found.name for found in answer] == ["get_weather"]
        assert answer[0].arguments["city"] in ("Paris", "Rome")
        assert answer[0].id
    assert calls[0][0].arguments == calls[1][0].arguments


@pytest.mark.parametrize("dialect", SERVED)
def test_leaving_a_stream_frees_its_slot(url, dialect):
    """A connection closed mid-stream ends the work for it, and the next request is answered."""
    endless = replace(QUESTION, max_tokens=1900, provider_options={dialect: {"ignore_eos": True}})
    wire = encode(dialect, endless, stream=True)
    body = json.dumps(wire.body).encode()
    place = urlsplit(address(url, wire.path))
    head = f"POST {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}\r\n"

    with socket.create_connection((place.hostname, place.port)) as connection:
        connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        assert connection.recv(64).startswith(b"HTTP/1.1 200")
        assert busy(url) == 1

    eventually(lambda: busy(url) == 0)
    assert whole(url, dialect, QUESTION).text


def busy(url):
    return sum(slot["is_processing"] for slot in json.loads(send(f"{url}/slots")[2]))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", SERVED)
def test_a_prompt_too_long_is_a_context_length_error(url, dialect, stream):
    """Overflow is known as such, before a stream begins."""
    request = replace(QUESTION, messages=(Message.user("word " * 4000),))
    wire = encode(dialect, request, stream=stream)

    error = dialects.get(dialect).decode_error(*send(address(url, wire.path), wire.body))

    assert isinstance(error, ContextLengthError)
    assert not error.retryable
    assert "2048" in error.message


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{nope", InvalidRequestError),
        ({"messages": [], "input": 5, "temperature": "hot", "max_tokens": 4}, InvalidRequestError),
    ],
    ids=["not JSON", "wrong types"],
)
@pytest.mark.parametrize("dialect", SERVED)
def test_bad_bodies_are_invalid_requests(url, dialect, body, kind):
    """What the server refuses decodes to the error that it is, with its words."""
    error = dialects.get(dialect).decode_error(*send(address(url, PATHS[dialect]), body))

    assert isinstance(error, kind)
    assert not error.retryable
    assert error.message


@pytest.mark.parametrize(
    ("dialect", "kind"),
    [
        ("openai_chat", InvalidRequestError),
        ("openai_responses", InvalidRequestError),
        ("anthropic_messages", ServerError),  # the server blames itself here
    ],
)
def test_an_empty_body_names_what_is_missing(url, dialect, kind):
    """A body without the conversation is refused by name."""
    error = dialects.get(dialect).decode_error(*send(address(url, PATHS[dialect]), {}))

    assert isinstance(error, kind)
    assert "is required" in error.message


@pytest.mark.parametrize("dialect", SERVED)
def test_an_unknown_path_is_not_found(url, dialect):
    """A path the server does not have is a `NotFoundError`."""
    error = dialects.get(dialect).decode_error(*send(f"{url}/v1/nowhere", {}))

    assert isinstance(error, NotFoundError)


def test_tokens_can_be_counted(url):
    """The count endpoint of Messages says what the answer's usage will say."""
    wire = encode("anthropic_messages", QUESTION)

    status, _, body = send(f"{url}/v1/messages/count_tokens", wire.body)

    assert status == 200
    count = json.loads(body)["input_tokens"]
    assert count == whole(url, "anthropic_messages", QUESTION).usage.input_tokens


def test_embeddings_are_offered_where_they_were_asked_for(url, able_url):
    """A server started with `embeddings=True` gives vectors; another says that it does not."""
    body = {"model": "any", "input": ["one", "two"]}

    status, _, refusal = send(f"{url}/v1/embeddings", body)
    assert status == 501
    assert b"does not support embeddings" in refusal

    status, _, answer = send(f"{able_url}/v1/embeddings", body)
    assert status == 200
    assert [len(item["embedding"]) for item in json.loads(answer)["data"]] == [576, 576]
