"""Cases from folders, and running streams."""

import json

import pytest

from interlingua import dialects
from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold, read_cases
from interlingua.spec.errors import StreamError
from interlingua.spec.messages import Message
from interlingua.spec.response import Response
from interlingua.streams.accumulate import events_from_response

DIALECT = dialects.get("anthropic_messages")


def test_read_cases(tmp_path):
    """A folder is a case; what is not there is None."""
    place = tmp_path / "hello"
    place.mkdir()
    (place / "request.json").write_text(json.dumps({"model": "m", "stream": True}))
    (place / "meta.json").write_text(json.dumps({"path": "/p", "headers": {"a": "b"}}))
    (tmp_path / "notes.txt").write_text("not a case")

    (case,) = read_cases(tmp_path)

    assert (case.name, case.call.path, case.call.stream) == ("hello", "/p", True)
    assert (case.call.headers, case.response, case.stream) == ({"a": "b"}, None, None)


def test_there_and_back():
    """Events to frames to events to a response."""
    response = Response(id="r", model="m", message=Message.assistant("Hi."))

    events = decode_frames(DIALECT, encode_events(DIALECT, events_from_response(response)))

    assert fold(events).text == "Hi."


def test_fold_checks_the_grammar():
    """Events out of order are refused."""
    with pytest.raises(StreamError, match="out of order"):
        fold(events_from_response(Response())[1:])


def test_framing():
    """Frames come from SSE or from a JSON array."""
    assert [frame.data for frame in cut_frames([b"data: {}\n\n"])] == ["{}"]
    assert [frame.data for frame in cut_frames([b'[{"a":1}]'], "json-array")] == ['{"a":1}']
