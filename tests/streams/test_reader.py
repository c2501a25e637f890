"""From bytes to events, however it ends."""

import pytest

from interlingua import dialects
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.errors import DecodeError, SDKError, ServerError, StreamError
from interlingua.spec.events import Finish, StreamStart, TextDelta
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Warning
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.streams.frames import json_frame
from interlingua.streams.grammar import Grammar
from interlingua.streams.reader import StreamReader
from interlingua.wire.json_array import JSONArrayDecoder
from interlingua.wire.sse import encode_sse
from support import corpus

WARNING = Warning(code="temperature_dropped", message="no")
ABOUT = Response(provider="here", request_id="r1", model="asked", warnings=(WARNING,))
ANSWER = Response(
    id="1",
    model="m",
    message=Message.assistant(
        [Text(text="Let me look."), ToolCall(id="a", name="f", arguments={"city": "Oslo"})]
    ),
    finish_reason=FinishReason(reason="tool_calls", raw="tool_use"),
)


def reader_for(dialect="anthropic_messages", **settings):
    return StreamReader(dialects.get(dialect).stream_decoder(), ABOUT, lambda: 7, **settings)


def drive(reader, *chunks):
    """The events of these chunks and of the end after them, and the error that ended them."""
    events = []
    try:
        for chunk in chunks:
            for frame in reader.frames.feed(chunk):
                events += [reader.label(event) for event in reader.decoder.feed(frame)]
                if reader.is_finished:
                    return events, None
        for event in reader.finish():
            events.append(event)
    except SDKError as error:
        return events, error
    return events, None


def fold(events):
    accumulator = StreamAccumulator()
    for event in events:
        accumulator.feed(event)
    return accumulator


def body_of(response, dialect="anthropic_messages"):
    encoder = dialects.get(dialect).stream_encoder(None)
    frames = [frame for event in events_from_response(response) for frame in encoder.feed(event)]
    return b"".join(encode_sse(frame) for frame in (*frames, *encoder.finish()))


def check(events):
    """The events keep the grammar to the end."""
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.finish()
    return events


@pytest.mark.parametrize("dialect", dialects.names())
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_last_event_has_the_whole_response(dialect, size):
    """With what only the caller knew, however the bytes are cut."""
    reader = reader_for(dialect)
    body = body_of(ANSWER, dialect)
    events, error = drive(reader, *(body[at : at + size] for at in range(0, len(body), size)))
    response = fold(check(events)).response()

    assert reader.is_finished
    assert error is None
    assert (events[0].provider, events[0].request_id) == ("here", "r1")
    assert response.text == "Let me look."
    assert response.tool_calls[0].arguments == {"city": "Oslo"}
    assert (response.provider, response.request_id) == ("here", "r1")
    assert (response.warnings, response.latency_ms) == ((WARNING,), 7)


@pytest.mark.parametrize("dialect", dialects.names())
def test_every_cut_ends_in_an_error_with_what_had_come(dialect):
    """Never a short success: the events before it come first."""
    body = body_of(ANSWER, dialect)
    last_frame = body.rstrip().rindex(b"\n\n")  # what is in it may be the end already
    for cut in range(last_frame):
        events, error = drive(reader_for(dialect), body[:cut])
        assert isinstance(error, StreamError)
        assert ANSWER.text.startswith(fold(events).partial().text)


def test_events_before_an_error_in_the_same_bytes_are_kept():
    """An overload told after some text takes nothing of the text."""
    overload = {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}
    told = encode_sse(json_frame(overload, "error"))
    body = body_of(ANSWER)
    events, error = drive(reader_for(), body[: body.index(b"event: content_block_stop")] + told)

    assert any(isinstance(event, TextDelta) for event in events)
    assert isinstance(error, ServerError)


def test_what_follows_the_end_does_not_matter():
    """Neither more bytes nor nonsense (field bug 55)."""
    events, error = drive(reader_for(), body_of(ANSWER) + b"data: {broken\n\n")

    assert isinstance(events[-1], Finish)
    assert error is None


def test_a_whole_response_at_the_end_can_be_refused():
    """Before any event of it is shown."""

    class Decoder:
        def feed(self, _):
            return []

        def finish(self):
            reason = FinishReason(reason="stop")
            return [StreamStart(), Finish(finish_reason=reason, response=ANSWER)]

    def refuse(response):
        raise DecodeError(f"no answer: {response.id}")

    reader = StreamReader(Decoder(), ABOUT, lambda: 7, check=refuse)
    events, error = drive(reader, b"")

    assert (events, error.message) == ([], "no answer: 1")


def test_what_is_no_delta_can_be_edited():
    """As the arguments of strict tools are."""
    reader = reader_for(edit=lambda event: StreamStart() if type(event) is StreamStart else event)
    events, _ = drive(reader, body_of(ANSWER))

    assert events[0] == StreamStart()


def test_json_arrays():
    """Gemini without SSE."""
    reader = reader_for("gemini_generate", frames=JSONArrayDecoder())
    chunk = b'[{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}]'
    events, _ = drive(reader, chunk)

    assert fold(check(events)).response().text == "hi"


UNRECORDED = {"bedrock_converse": "no recording of the API was at hand, see its facts"}


@pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
@pytest.mark.parametrize("dialect", [name for name in dialects.names() if name not in UNRECORDED])
def test_recorded_streams(dialect):
    """Each gives its grammar, and a response with text or calls or a reason."""
    seen = 0
    for case in corpus.cases(dialect):
        if case.stream is None or case.framing != "sse":
            continue
        events, error = drive(reader_for(dialect), case.stream)
        if error is not None:
            continue
        seen += 1
        assert fold(check(events)).response().finish_reason.reason != "error", case.name
    assert seen > 100
