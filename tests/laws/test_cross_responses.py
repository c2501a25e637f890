"""
Law 9 for answers: said in another dialect, they are the same to that vendor's own client.

Every recorded answer and stream is decoded, encoded as each of the other dialects, and read
by the client that the vendor publishes.
"""

from __future__ import annotations

import functools
import itertools
import json
from typing import Any

import pytest
from msgspec.structs import replace

from interlingua import dialects
from interlingua.conformance.laws import (
    Case,
    cut_frames,
    decode_frames,
    encode_events,
    fold,
    read_cases,
)
from interlingua.spec.content import Image, Refusal, Text, Thinking, ToolCall
from interlingua.spec.errors import ContextLengthError, ProviderError, RateLimitError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ReasoningDelta,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.wire.classify import SPENT, Fault, error_text, make_error
from interlingua.wire.fields import carried_body
from interlingua.wire.json_text import dumps
from support import corpus
from support.exceptions import EXCEPTIONS, NEWER
from support.oracles_clients import ORACLES, oracle
from support.oracles_errors import VENDORS, raised_for
from support.oracles_expected import read_back, shown, told
from support.oracles_order import disorder
from support.run_profile import FULL

PAIRS = list(itertools.permutations(dialects.names(), 2))
DELTAS = 8
ERRORS = {  # (status, exception, message) of dialects without recordings
    "bedrock_converse": (
        (400, "ValidationException", "The provided model identifier is invalid."),
        (400, "ValidationException", "Input is too long for requested model."),
        (403, "AccessDeniedException", "You have no access to the model."),
        (404, "ResourceNotFoundException", "There is no such model."),
        (408, "ModelTimeoutException", "The model took too long."),
        (424, "ModelErrorException", "The model failed."),
        (429, "ThrottlingException", "Too many requests, please wait before trying again."),
        (500, "InternalServerException", "Something failed."),
        (503, "ServiceUnavailableException", "Bedrock is unable to process your request."),
    ),
}
CHANGED = {("bedrock_converse", 424): 500}
"""A failure of the model at AWS: clients of others do not try again after a 424."""
ANSWERS, STREAMS = "9 answers of others", "9 streams of others"

recorded = pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")


def recordings(dialect: str) -> tuple[Case, ...]:
    """The recorded exchanges; of a dialect without any, those that are written by hand."""
    return corpus.cases(dialect) or tuple(read_cases(corpus.FIXTURES / dialect))


@functools.cache
def answers(dialect: str) -> dict[str, Response]:
    """Every recorded answer; a body that is none (a token count, a list) says nothing."""
    spoken = dialects.get(dialect)
    decoded = {
        case.name: spoken.decode_response(case.response, headers=case.headers)
        for case in recordings(dialect)
        if case.response is not None and case.status < 400
    }
    return {name: found for name, found in decoded.items() if carried_body(found, dialect) is None}


@functools.cache
def streams(dialect: str) -> dict[str, list[StreamEvent] | ProviderError]:
    """The events of every recorded stream, shortened by default, or the error that it told."""
    found: dict[str, list[StreamEvent] | ProviderError] = {}
    for case in recordings(dialect):
        if case.stream is not None:
            try:
                frames = cut_frames([case.stream], case.framing)
                events = decode_frames(dialects.get(dialect), frames)
                found[case.name] = events if FULL else shortened(events)
            except ProviderError as error:
                found[case.name] = error
    return found


def failures(dialect: str) -> tuple[dict[str, Any], ...]:
    """The recorded exchanges; of a dialect without any, errors that are written by hand."""
    made = [
        {
            "id": name,
            "status": status,
            "response_headers": {"x-amzn-errortype": f"{name}:http://internal.amazon.com/"},
            "response_body": {"message": message},
        }
        for status, name, message in ERRORS.get(dialect, ())
    ]
    return corpus.records(dialect) or tuple(made)


def shortened(events: list[StreamEvent]) -> list[StreamEvent]:
    """
    The events, but of many deltas in a row the first few, and the others as one.

    A vendor's client takes most of a millisecond for each delta, and treats all of them alike.
    """
    short: list[StreamEvent] = []
    for key, run in itertools.groupby(events, _delta_of):
        same = list(run)
        if key is None or len(same) <= DELTAS:
            short += same
        else:
            rest = "".join(event.delta for event in same[DELTAS:])
            short += [*same[:DELTAS], replace(same[DELTAS], delta=rest)]
    return short


def _delta_of(event):
    is_delta = isinstance(event, (TextDelta, ReasoningDelta, ToolCallDelta))
    return (event.type, event.id, event.index) if is_delta else None


def answer_faults(target: str, response: Response) -> list[str]:
    """How an answer differs once it is said in another dialect."""
    spoken, reader = dialects.get(target), oracle(target)
    body = spoken.encode_response(response)
    back = spoken.decode_response(body)
    return [
        *(fault for fault in reader.validate(body) if fault not in NEWER),
        *_differ("client", shown(target, response), reader.read(body)),
        *_differ("decoder", read_back(target, response), told(target, back)),
    ]


def stream_faults(target: str, events: list[StreamEvent]) -> list[str]:
    """The same for a stream."""
    spoken, reader = dialects.get(target), oracle(target)
    response = fold(events)
    frames = encode_events(spoken, events)
    back = fold(decode_frames(spoken, frames))
    return [
        *disorder(target, frames),
        *(fault for fault in reader.validate_stream(frames) if fault not in NEWER),
        *_differ("client", shown(target, response, streamed=True), reader.read_stream(frames)),
        *_differ("decoder", read_back(target, response), told(target, back)),
    ]


def _differ(who, expected, found):
    pairs = zip(expected._fields, expected, found, strict=True)
    return [f"{who}: {name} {a!r} is not {b!r}" for name, a, b in pairs if a != b]


def _judge(law, names, broken):
    listed = {name for (about, name) in EXCEPTIONS if about == law} & names
    assert {name: broken[name][:2] for name in sorted(broken.keys() - listed)} == {}
    assert listed - broken.keys() == set(), "these keep the law now; take them off the list"
    assert len(broken) <= 0.005 * len(names)


@recorded
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_recorded_answers_are_the_same_to_another_client(source, target):
    """Types, text, thinking, calls, finish and usage; and our own decoder agrees."""
    found = {name: answer_faults(target, response) for name, response in answers(source).items()}

    _judge(ANSWERS, found.keys(), {name: faults for name, faults in found.items() if faults})


@recorded
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_recorded_streams_are_the_same_to_another_client(source, target):
    """The same, through the client's own stream parser, and in the vendor's order."""
    found = {
        name: [repr(events)] if isinstance(events, ProviderError) else stream_faults(target, events)
        for name, events in streams(source).items()
    }

    _judge(STREAMS, found.keys(), {name: faults for name, faults in found.items() if faults})


@recorded
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_recorded_errors_are_the_same_to_another_client(source, target):
    """Status, exception and words; and our own decoder finds the same error again."""
    spoken = dialects.get(target)
    failed = [record for record in failures(source) if record["status"] >= 400]
    for record in failed:
        body = record["response_body"]
        raw = (
            (record["response_text"] or "").encode() if body is None else json.dumps(body).encode()
        )
        error = dialects.get(source).decode_error(
            record["status"], record["response_headers"] or {}, raw
        )
        status, headers, said = spoken.encode_error(error)

        raised = oracle(target).read_error(status, headers, said)
        back = spoken.decode_error(status, headers, dumps(said))

        assert type(raised) is raised_for(target, status), record["id"]
        if isinstance(error, (ContextLengthError, *SPENT)):  # in the words and with the status
            assert back.retryable is error.retryable  # of the client: tests/serving/test_errors.py
            continue
        assert error_text(error) in str(raised)
        known = CHANGED.get((source, error.status_code), error.status_code)
        message = error.message.replace(f"HTTP {error.status_code}:", f"HTTP {known}:")
        assert (status, type(back), back.message) == (known, type(error), message)
        delay = 1.0 if isinstance(error, RateLimitError) else None  # a rate limit always has one
        assert (back.retryable, back.retry_after) == (error.retryable, error.retry_after or delay)

    assert failed


# By hand.

STATUSES = (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)


@pytest.mark.parametrize("target", ORACLES)
@pytest.mark.parametrize("status", STATUSES)
def test_errors_of_every_status(target, status):
    """The vendor's client raises its exception for the status, with the words."""
    error = make_error(status, {}, Fault("it went wrong"))

    sent = dialects.get(target).encode_error(error)
    raised = oracle(target).read_error(*sent)

    assert sent[0] == status or isinstance(error, SPENT)
    # The client of AWS reads the name of the exception, not the status.
    expected = raised_for(target, status if target == "bedrock_converse" else sent[0])
    assert type(raised) is expected
    assert "it went wrong" in str(raised)
    assert "HTTP" not in str(raised)


WEATHER = ToolCall(id="call_1", name="weather", arguments={"city": "Paris"})
TIME = ToolCall(id="call_2", name="time", raw_arguments="")
ANSWER = Response(
    id="made_1",
    model="m",
    message=Message(
        role="assistant",
        content=(
            Thinking(text="Where?", signature="c2ln", extra={"elsewhere": {}}),
            Text(text="I will look."),
            Refusal(text="Not that."),
            WEATHER,
            TIME,
        ),
    ),
    finish_reason=FinishReason(reason="tool_calls", raw="calls!"),
    usage=Usage(
        input_tokens=100,
        output_tokens=50,
        reasoning_tokens=20,
        cache_read_tokens=30,
        cache_write_tokens=40,
        raw={"in": 100},
    ),
    extra={"elsewhere": {"odd": True}},
)
"""An answer of a dialect that is none of ours."""


@pytest.mark.parametrize("target", ORACLES)
def test_an_answer_of_another(target):
    """All of its parts, whole and as a stream."""
    assert answer_faults(target, ANSWER) == []
    assert stream_faults(target, events_from_response(ANSWER)) == []


@pytest.mark.parametrize("target", ORACLES)
def test_calls_that_overlap(target):
    """Fragments of several calls and a text mixed: each client still sees each whole."""
    start = [
        ToolCallStart(id=c.id, index=i, tool_call_id=c.id, name=c.name)
        for i, c in enumerate((WEATHER, TIME))
    ]
    events = [
        StreamStart(id="made_2", model="m"),
        *start,
        ToolCallDelta(id="call_2", index=1, delta=" "),
        ToolCallDelta(id="call_1", index=0, delta='{"city":'),
        TextStart(id="text", index=2),
        TextDelta(id="text", index=2, delta="Both."),
        ToolCallDelta(id="call_1", index=0, delta='"Paris"}'),
        ToolCallEnd(id="call_2", index=1, tool_call=TIME),
        TextEnd(id="text", index=2, part=Text(text="Both.")),
        ToolCallEnd(id="call_1", index=0, tool_call=WEATHER),
        Finish(finish_reason=FinishReason(reason="tool_calls")),
    ]

    assert stream_faults(target, events) == []


@pytest.mark.parametrize("target", ORACLES)
def test_an_error_in_the_middle(target):
    """A stream that fails is no answer to any client."""
    error = RateLimitError("HTTP 429: slow down", status_code=429, retry_after=3)
    half = Text(text="Once upon")
    events = [
        StreamStart(id="made_3", model="m"),
        TextStart(id="text", index=0),
        TextDelta(id="text", index=0, delta=half.text),
        TextEnd(id="text", index=0, part=half),
        ErrorEvent(error=error),
        Finish(finish_reason=FinishReason(reason="error")),
    ]
    frames = encode_events(dialects.get(target), events)

    with pytest.raises(VENDORS, match="slow down"):
        oracle(target).read_stream(frames)


@recorded
@pytest.mark.parametrize("dialect", dialects.names())
def test_shortened_streams_say_the_same(dialect):
    """The answer is the same, nothing but deltas is missing, and no long run of them is left."""
    spoken = dialects.get(dialect)
    for case in recordings(dialect):
        if case.stream is None or isinstance(streams(dialect)[case.name], ProviderError):
            continue
        events = decode_frames(spoken, cut_frames([case.stream], case.framing))
        short = shortened(events)
        runs = [len(list(run)) for key, run in itertools.groupby(short, _delta_of) if key]

        assert fold(short) == fold(events)
        assert [e for e in short if not _delta_of(e)] == [e for e in events if not _delta_of(e)]
        assert max(runs, default=0) <= DELTAS + 1


def test_newer_fields_are_not_in_the_types_yet():
    """Each listed field is one that we write and the vendor's types still do not have."""
    custom = ToolCall(id="call_3", name="run", raw_arguments="1 + 1", type="custom")
    image = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
    message = Message(
        role="assistant", content=(Thinking(text="Hm.", extra={"x": {}}), image, custom)
    )
    response = Response(id="made_4", model="m", message=message, extra={"x": {}})

    found: set[str] = set()
    for target in ORACLES:
        spoken, reader = dialects.get(target), oracle(target)
        found.update(reader.validate(spoken.encode_response(response)))
        found.update(reader.validate_stream(encode_events(spoken, events_from_response(response))))

    assert found == NEWER.keys()
