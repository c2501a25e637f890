"""Botocore accepts every request that we write, and parses every answer, stream and error."""

import pytest
from botocore.exceptions import EventStreamError
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from interlingua import dialects
from interlingua.conformance import strategies
from interlingua.conformance.laws import cut_frames, encode_events, read_cases
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.contracts import Frame, WireCall
from interlingua.spec.errors import (
    AccessDeniedError,
    NotFoundError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    StreamError,
)
from interlingua.spec.events import ErrorEvent, StreamStart
from interlingua.streams.accumulate import events_from_response
from interlingua.wire.aws_event_stream import EventDecoder, encode_event
from interlingua.wire.json_text import dumps
from support import corpus
from support.oracles_botocore import (
    parse_reply,
    parse_stream,
    request_problems,
    response_problems,
)
from support.run_profile import examples

CONVERSE = dialects.get("bedrock_converse")
CASES = {case.name: case for case in read_cases(corpus.FIXTURES / CONVERSE.NAME)}
MODELS = ("us.amazon.nova-pro-v1:0", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0")
MANY = settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("name", CASES)
def test_the_fixtures_are_what_botocore_reads_and_writes(name):
    """The hand-written requests, answers and streams fit the service model."""
    case = CASES[name]

    assert request_problems(case.call) == []
    assert response_problems(case.response) == []
    if case.stream is not None:
        data = b"".join(map(encode_event, cut_frames([case.stream])))
        assert [next(iter(event)) for event in parse_stream(data)][-1] == "metadata"


def test_the_judge_finds_what_is_wrong():
    """An unknown field, a wrong word, a pattern and an empty union are found."""
    good = CASES["tool_result"].call
    wrong = (
        {**good.body, "mispelt": 1},
        {**good.body, "serviceTier": {"type": "free"}},
        {**good.body, "toolConfig": {"tools": [{"toolSpec": {"name": "a b", "inputSchema": {}}}]}},
        {**good.body, "messages": [{"role": "user", "content": [{}]}]},
        {**good.body, "inferenceConfig": {"temperature": 2}},
    )

    for body in wrong:
        assert request_problems(WireCall(path=good.path, body=body)) != []


@pytest.mark.parametrize("model", MODELS)
@MANY
@given(request=strategies.requests())
def test_every_request_that_we_write_is_one_of_botocore(model, request):
    """A made-up request, prepared for a model, is written as botocore writes it."""
    profile = profile_for(CONVERSE.NAME, model, CONVERSE.NAME)
    asked = replace(request, model=model)

    assert request_problems(CONVERSE.encode_request(asked, profile)) == []
    assert request_problems(CONVERSE.encode_request(asked, profile, stream=True)) == []
    count = CONVERSE.OPERATIONS["count_tokens"].encode(asked, profile)
    assert request_problems(count) == []


@MANY
@given(response=strategies.responses())
def test_every_answer_that_we_write_is_parsed_by_botocore(response):
    """A made-up answer fits the service model, and has the same text and calls there."""
    body = CONVERSE.encode_response(response)

    parsed = parse_reply("Converse", 200, {}, dumps(body))

    assert response_problems(body) == []
    blocks = parsed["output"]["message"]["content"]
    assert "".join(block.get("text", "") for block in blocks) == _text(response)
    calls = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
    assert calls == [call.id for call in response.tool_calls]
    assert parsed["usage"]["totalTokens"] == response.usage.total_tokens


@MANY
@given(response=strategies.responses())
def test_every_stream_that_we_write_is_parsed_by_botocore(response):
    """The same answer as a stream has the same text for botocore, and for our own decoder."""
    frames = encode_events(CONVERSE, events_from_response(response))
    data = b"".join(map(encode_event, frames))

    events = parse_stream(data)

    deltas = [event["contentBlockDelta"]["delta"] for event in events if _is_delta(event)]
    assert "".join(delta.get("text", "") for delta in deltas) == _text(response)
    decoder = EventDecoder()
    assert decoder.feed(data) == frames
    assert decoder.finish() == []


def _is_delta(event):
    return "contentBlockDelta" in event


def _text(response):
    parts = response.message.content
    return "".join(part.text for part in parts if part.kind in ("text", "refusal"))


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (RateLimitError("Slow down.", status_code=429), "ThrottlingException"),
        (AccessDeniedError("No.", status_code=403), "AccessDeniedException"),
        (NotFoundError("None.", status_code=404), "ResourceNotFoundException"),
        (QuotaExceededError("Spent.", status_code=402), "ServiceQuotaExceededException"),
        (ServerError("Busy.", status_code=503), "ServiceUnavailableException"),
        (ServerError("Broken."), "InternalServerException"),
    ],
)
def test_botocore_knows_our_errors_by_their_names(error, name):
    """The header names the exception of the service model; the body has its message."""
    status, headers, body = CONVERSE.encode_error(error)

    parsed = parse_reply("Converse", status, headers, dumps(body))

    assert parsed["Error"]["Code"] == name
    assert parsed["Error"]["Message"] in error.message


def test_an_error_in_a_stream_is_an_exception_of_botocore_and_an_error_of_ours():
    """An exception is a message of its own type, in the middle of the stream."""
    error = RateLimitError("Slow down.", status_code=429)
    frames = encode_events(CONVERSE, [StreamStart(), ErrorEvent(error=error)])
    data = b"".join(map(encode_event, frames))

    with pytest.raises(EventStreamError, match="throttlingException"):
        parse_stream(data)
    decoder = CONVERSE.stream_decoder()
    first, last = EventDecoder().feed(data)
    decoder.feed(first)
    with pytest.raises(RateLimitError, match="Slow down"):
        decoder.feed(last)


def test_an_unknown_message_of_a_stream_is_an_event_of_the_provider():
    """What is newer than this library is passed on."""
    decoder = CONVERSE.stream_decoder()
    (frame,) = EventDecoder().feed(encode_event(Frame(event="applause", data='{"hands": 2}')))

    events = decoder.feed(frame)

    assert [event.type for event in events] == ["stream_start", "provider_event"]
    with pytest.raises(StreamError, match="before its event `metadata`"):
        decoder.finish()
