"""Frames that hold JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import json_objects
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import DecodeError, StreamError
from interlingua.streams.frames import DONE, is_bare_error, json_frame, read_frame


@given(json_objects, st.none() | st.text(max_size=5))
def test_frames_round_trip(data, event):
    """An object framed and read is the same, its event name beside it."""
    frame = json_frame(data, event)

    assert read_frame(frame) == data
    assert frame.event == event


@given(json_objects)
def test_frame_is_one_line(data):
    """The text of a frame has no line break that SSE would cut it at."""
    assert not set(json_frame(data).data) & {"\n", "\r"}


@given(st.text())
def test_any_frame_is_an_object_or_a_stream_error(text):
    """What is no object is a `StreamError` and nothing else."""
    try:
        found = read_frame(Frame(data=text))
    except StreamError as error:
        assert error.message
    else:
        assert found is None or isinstance(found, dict)


@pytest.mark.parametrize("data", ["", DONE])
def test_frames_that_say_nothing(data):
    """An empty frame and `[DONE]` are None."""
    assert read_frame(Frame(data=data, event="x")) is None


def test_empty_object_is_an_object():
    """An empty object is not nothing."""
    assert read_frame(Frame(data="{}")) == {}


@pytest.mark.parametrize("data", ['{"a":', "oops", "[DONE", '{"a":NaN}', "[" * 100_000])
def test_frame_that_is_no_json(data):
    """A broken frame is a `StreamError` that says why, caused by the reading error."""
    with pytest.raises(StreamError, match="Cannot decode a stream event: ") as caught:
        read_frame(Frame(data=data))
    assert isinstance(caught.value.__cause__, DecodeError)


@pytest.mark.parametrize("data", ["[]", "null", "5", '"text"'])
def test_frame_that_is_no_object(data):
    """JSON of another type is a `StreamError`."""
    with pytest.raises(StreamError, match="not a JSON object"):
        read_frame(Frame(data=data))


def test_a_bare_error_has_no_type():
    """What has one is for its dialect to read."""
    assert is_bare_error({"error": {"message": "m"}})
    assert not is_bare_error({"type": "error", "error": {"message": "m"}})
    assert not is_bare_error({"error": None, "id": "x"})
