"""Broken input: nothing but the library's own errors ever escapes."""

import copy
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.conformance.laws import cut_frames, read_cases
from interlingua.conformance.strategies import json_values
from interlingua.spec.contracts import Frame, WireCall
from interlingua.spec.errors import InvalidRequestError, ProviderError, SDKError, StreamError
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.wire.json_text import dumps
from support import corpus
from support.run_profile import examples

ODD = [
    None,
    5,
    -1.5,
    "x",
    "",
    [],
    {},
    True,
    [[]],
    {"type": 7},
    {"type": ["x"]},
    10**40,
    [None],
    "\ud83d",
]
DIALECTS = pytest.mark.parametrize("dialect", dialects.names())


def deep(levels=10_000):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def mutate(value, source):
    """One place of a JSON value, replaced by something odd or removed."""
    value = copy.deepcopy(value)
    places = []
    stack = [value]
    while stack:
        node = stack.pop()
        keys = node.keys() if isinstance(node, dict) else range(len(node))
        for key in keys:
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                stack.append(node[key])
    if places:
        node, key = source.choice(places)
        if source.random() < 0.2:
            del node[key]
        else:
            node[key] = source.choice(ODD)
    return value


def cases(dialect, source, count):
    found = list(read_cases(corpus.FIXTURES / dialect))
    if corpus.is_here():
        known = corpus.cases(dialect)  # none of a dialect without recordings
        found += source.sample(known, min(count, len(known)))
    assert found
    return found


def speak(spoken, body, path="", *, stream=False):
    """Decode as a request, and encode what could be read."""
    try:
        request = spoken.decode_request(WireCall(path=path, body=body, stream=stream))
    except InvalidRequestError as error:
        assert error.status_code == 400
        return
    spoken.encode_request(request, stream=stream)


def listen(spoken, body):
    try:
        response = spoken.decode_response(body)
    except SDKError:
        return
    spoken.encode_response(response)


def follow(spoken, frames):
    decoder, accumulator, encoder = (
        spoken.stream_decoder(),
        StreamAccumulator(),
        spoken.stream_encoder(None),
    )
    try:
        for frame in frames:
            for event in decoder.feed(frame):
                accumulator.feed(event)
                encoder.feed(event)
        for event in decoder.finish():
            accumulator.feed(event)
            encoder.feed(event)
    except SDKError:
        accumulator.end_segments()
    accumulator.partial()


@DIALECTS
def test_mutated_requests(dialect):
    """A request with one odd value is read, or refused with a 400."""
    spoken, source = dialects.get(dialect), random.Random(f"{dialect} requests")
    for case in cases(dialect, source, 250):
        if case.call is not None:
            for _ in range(6):
                speak(spoken, mutate(case.call.body, source), case.call.path)


@DIALECTS
def test_mutated_responses(dialect):
    """A response with one odd value is read, or refused with a typed error."""
    spoken, source = dialects.get(dialect), random.Random(f"{dialect} responses")
    for case in cases(dialect, source, 250):
        if case.response is not None:
            for _ in range(6):
                body = mutate(case.response, source)
                listen(spoken, body)
                error = spoken.decode_error(case.status, case.headers, dumps(body))
                assert isinstance(error, ProviderError)
                spoken.encode_error(error)


@DIALECTS
def test_mutated_streams(dialect):
    """A stream with one odd frame gives events or a typed error, and a partial response."""
    spoken, source = dialects.get(dialect), random.Random(f"{dialect} streams")
    for case in cases(dialect, source, 250):
        if case.stream is None:
            continue
        frames = cut_frames([case.stream], case.framing)
        for _ in range(6):
            broken = list(frames)
            at = source.randrange(len(frames))
            try:
                data = json.loads(frames[at].data)
            except ValueError:
                data = {}
            text = dumps(mutate(data, source)).decode()
            data = source.choice([text, frames[at].data[:-3], "[]", "NaN"])
            broken[at] = Frame(event=frames[at].event, data=data)
            if source.random() < 0.3:
                source.shuffle(broken)
            follow(spoken, broken)


@DIALECTS
@settings(max_examples=examples(200), deadline=None)
@given(value=json_values)
def test_random_json(dialect, value):
    """Any JSON at all."""
    spoken = dialects.get(dialect)
    speak(spoken, value)
    speak(spoken, {"model": "m", "messages": value, "input": value, "contents": value})
    listen(spoken, value)
    listen(spoken, {"choices": value, "content": value, "output": value, "candidates": value})
    follow(spoken, [Frame(data=dumps(value).decode())])


@DIALECTS
@settings(max_examples=examples(200), deadline=None)
@given(body=st.binary(max_size=200), status=st.integers(100, 599))
def test_decode_error_never_raises(dialect, body, status):
    """`decode_error` never raises (law 7)."""
    error = dialects.get(dialect).decode_error(status, {"retry-after": "soon"}, body)

    assert error.status_code == status


@DIALECTS
def test_deep_nesting(dialect):
    """Ten thousand levels are refused or carried, in a body and as text."""
    spoken, nested = dialects.get(dialect), deep()
    for key in (
        "messages",
        "input",
        "contents",
        "tools",
        "metadata",
        "unknown",
        "content",
        "choices",
    ):
        speak(spoken, {"model": "m", "messages": [], "input": [], "contents": [], key: nested})
        listen(spoken, {"model": "m", key: nested})
    text = "[" * 10_000 + "]" * 10_000
    follow(spoken, [Frame(data='{"type": "x", "y": ' + text + "}")])
    assert isinstance(spoken.decode_error(400, {}, text.encode()), ProviderError)


@DIALECTS
@pytest.mark.parametrize(
    "data",
    [
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a": 1, "a": 2}',
        '{"a": "\\ud83d"}',
        "{",
    ],
    ids=["nan", "infinity", "huge integer", "duplicate keys", "lone surrogate", "cut"],
)
def test_odd_json_text(dialect, data):
    """Text that is not quite JSON, in a stream and in an error body."""
    spoken = dialects.get(dialect)
    follow(spoken, [Frame(data=data)])

    assert spoken.decode_error(500, {}, data.encode()).status_code == 500


def test_oversized_event():
    """One event over the limit is an error, not memory."""
    chunk = b"data: " + b"x" * 100_000
    with pytest.raises(StreamError, match="larger than"):
        cut_frames([chunk] * 200)
