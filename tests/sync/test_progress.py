"""What a reader has seen."""

import pytest

from interlingua.spec.content import Text
from interlingua.spec.errors import AbortError, ConfigurationError, ServerError
from interlingua.spec.events import (
    Finish,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallStart,
)
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.grammar import Grammar
from interlingua.sync.streams import Progress

ANSWER = Response(message=Message.assistant("ab"), finish_reason=FinishReason(reason="stop"))
EVENTS = [
    StreamStart(),
    TextStart(id="t", index=0),
    TextDelta(id="t", index=0, delta="a"),
    TextDelta(id="t", index=0, delta="b"),
    TextEnd(id="t", index=0, part=Text(text="ab")),
    Finish(finish_reason=FinishReason(reason="stop"), response=ANSWER),
]


@pytest.mark.parametrize("looks", [range(len(EVENTS)), [2], [3, 5], [5]], ids=repr)
def test_looking_at_it(looks):
    """Whenever somebody looks, it is what the events so far say; None before the first."""
    progress = Progress()
    assert progress.partial() is None
    seen = {}
    for place, event in enumerate(EVENTS):
        progress.feed(event)
        if place in looks:
            seen[place] = progress.partial().text

    texts = ["", "", "a", "ab", "ab", "ab"]
    assert seen == {place: texts[place] for place in looks}
    assert progress.partial().text == "ab"


def test_the_end():
    """The last answer is there when the end was seen, not before."""
    progress = Progress()
    for event in EVENTS[:-1]:
        progress.feed(event)
    with pytest.raises(ConfigurationError):
        progress.response()
    progress.feed(EVENTS[-1])

    assert progress.response() is ANSWER


def test_one_that_failed():
    """Its error is what there is to tell, however much had come."""
    for events in ((), EVENTS[:3], EVENTS):
        progress, error = Progress(), ServerError("down")
        for event in events:
            progress.feed(event)
        progress.fail(error)
        assert progress.is_over
        with pytest.raises(ServerError) as caught:
            progress.response()
        assert caught.value is error


@pytest.mark.parametrize("length", range(len(EVENTS)))
def test_one_that_was_given_up(length):
    """What its reader saw of it is closed, as the grammar wants; then comes the error."""
    progress, grammar, error = Progress(), Grammar(), AbortError("enough")
    for event in EVENTS[:length]:
        progress.feed(event)
        grammar.feed(event)
    rest = []
    with pytest.raises(AbortError) as caught:
        rest.extend(progress.abort(error))
    for event in rest:
        grammar.feed(event)
    if length:
        grammar.finish()
        assert event.finish_reason.reason == "cancelled"
        assert event.response.text == "".join("ab"[: max(0, min(length, 4) - 2)])

    assert caught.value is error
    with pytest.raises(AbortError):
        progress.response()


@pytest.mark.parametrize("kind", ["text", "arguments"])
def test_looking_all_the_time_is_cheap(kind):
    """What was joined or read before is not joined or read again, piece by piece."""
    progress, pieces = Progress(), 3_000
    if kind == "text":
        progress.feed(TextStart(id="t", index=0))
        delta = TextDelta(id="t", index=0, delta="word ")
    else:
        progress.feed(ToolCallStart(id="t", index=0, tool_call_id="c", name="f"))
        progress.feed(ToolCallDelta(id="t", index=0, delta='{"a": ["'))
        delta = ToolCallDelta(id="t", index=0, delta='word", "')
    segment, most = progress_segment(progress), 0
    for _ in range(pieces):
        progress.feed(delta)
        seen = progress.partial()
        most = max(most, len(segment().pieces))

    assert most == 1
    if kind == "text":
        assert seen.text == "word " * pieces
    else:
        (call,) = seen.tool_calls
        assert len(call.raw_arguments) == 8 * (pieces + 1)
        assert pieces * 0.9 < len(call.arguments["a"]) <= pieces + 1


def progress_segment(progress):
    return lambda: progress._accumulator.open["t"]
