"""From bytes to events, however it ends."""

import pytest

from interlingua import dialects
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import ServerError, StreamError
from interlingua.spec.events import ErrorEvent, Finish, StreamStart, TextDelta, TextEnd
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Warning
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.frames import json_frame
from interlingua.streams.grammar import Grammar
from interlingua.streams.reader import StreamReader, WholeBody, WholeDecoder
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


def reader_for(dialect="anthropic_messages"):
    return StreamReader(dialects.get(dialect).stream_decoder(), ABOUT, lambda: 7)


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
    events = []
    for at in range(0, len(body), size):
        events += reader.feed(body[at : at + size])
    events += reader.finish()
    response = check(events)[-1].response

    assert reader.is_finished
    assert reader.error is None
    assert (events[0].provider, events[0].request_id) == ("here", "r1")
    assert response.text == "Let me look."
    assert response.tool_calls[0].arguments == {"city": "Oslo"}
    assert (response.provider, response.request_id) == ("here", "r1")
    assert (response.warnings, response.latency_ms) == ((WARNING,), 7)


@pytest.mark.parametrize("dialect", dialects.names())
def test_every_cut_ends_in_an_error_with_what_had_come(dialect):
    """Never a short success: the events before it come first, then the error, then the end."""
    body = body_of(ANSWER, dialect)
    last_frame = body.rstrip().rindex(b"\n\n")  # what is in it may be the end already
    for cut in range(last_frame):
        reader = reader_for(dialect)
        events = [*reader.feed(body[:cut]), *reader.finish()]
        error = reader.error
        assert isinstance(error, StreamError)
        events += reader.fail(error)
        if not events:
            continue
        *_, told, last = check(events)
        assert isinstance(told, ErrorEvent)
        assert told.error is error
        assert error.partial is last.response
        assert last.finish_reason.reason == "error"
        assert ANSWER.text.startswith(last.response.text)


def test_cancelled_before_and_after_the_first_event():
    """Open parts are closed, an unfinished call with what parses, and the end says why."""
    body = body_of(ANSWER)
    early = check(reader_for().cancel())
    reader = reader_for()
    events = reader.feed(body[: body.index(b"Oslo")])
    late = check([*events, *reader.cancel()])

    assert [type(event) for event in early] == [StreamStart, Finish]
    assert (early[0].request_id, early[-1].response.model) == ("r1", "asked")
    assert late[-1].finish_reason == FinishReason(reason="cancelled")
    assert late[-1].response.text == "Let me look."
    assert late[-1].response.tool_calls[0].arguments == {}


def test_events_before_an_error_in_the_same_bytes_are_kept():
    """An overload told after some text takes nothing of the text."""
    overload = {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}
    told = encode_sse(json_frame(overload, "error"))
    body = body_of(ANSWER)
    reader = reader_for()
    events = reader.feed(body[: body.index(b"event: content_block_stop")] + told)

    assert any(isinstance(event, TextDelta) for event in events)
    assert isinstance(reader.error, ServerError)
    assert reader.is_done
    assert reader.finish() == []
    assert any(isinstance(event, TextEnd) for event in reader.fail(reader.error))


def test_field_bug_55_what_follows_the_end_does_not_matter():
    """Neither more bytes nor nonsense."""
    reader = reader_for()
    events = reader.feed(body_of(ANSWER) + b"data: {broken\n\n")

    assert isinstance(events[-1], Finish)
    assert reader.error is None


def test_nothing_is_told_of_a_stream_that_never_began():
    """So that it can be tried again."""
    error = StreamError("reset")

    assert reader_for().fail(error) == []


def test_a_whole_body_where_a_stream_was_asked():
    """Its events are those it would have had."""
    spoken = dialects.get("openai_chat")
    reader = reader_for("openai_chat")
    reader.begin(None, WholeBody(), WholeDecoder(lambda _: ANSWER))
    events = [*reader.feed(b"{"), *reader.feed(b"}"), *reader.finish()]

    assert spoken.NAME == "openai_chat"
    assert check(events)[-1].response.text == "Let me look."
    assert WholeDecoder(lambda _: ANSWER).feed(Frame(data="")) == events_from_response(ANSWER)


def test_json_arrays():
    """Gemini without SSE."""
    reader = reader_for("gemini_generate")
    reader.begin(None, JSONArrayDecoder())
    chunk = b'[{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}]'
    events = [*reader.feed(chunk), *reader.finish()]

    assert check(events)[-1].response.text == "hi"


@pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
@pytest.mark.parametrize("dialect", dialects.names())
def test_recorded_streams(dialect):
    """Each gives its grammar, and a response with text or calls or a reason."""
    seen = 0
    for case in corpus.cases(dialect):
        if case.stream is None or case.framing != "sse":
            continue
        reader = reader_for(dialect)
        events = [*reader.feed(case.stream), *reader.finish()]
        if reader.error is not None:
            continue
        seen += 1
        assert check(events)[-1].response.finish_reason.reason != "error", case.name
    assert seen > 100
