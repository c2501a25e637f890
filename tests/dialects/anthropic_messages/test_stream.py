"""Stream frames <-> events."""

from interlingua.spec.content import Thinking
from interlingua.spec.events import (
    ProviderEvent,
)
from support.anthropic_frames import NAME, START, STOP, block, decode, delta, encode, end, fold


def test_redacted_thinking_arrives_and_goes_back_whole():
    """Redacted thinking arrives whole and goes back whole (field bug 35)."""
    events = decode(START, block(0, type="redacted_thinking", data="D"), end(0), STOP)

    assert fold(events).message.content == (Thinking(redacted=True, data="D", extra={NAME: {}}),)
    assert encode(events)[1]["content_block"] == {"type": "redacted_thinking", "data": "D"}


def test_citations_gather_on_their_text():
    """Each citation delta adds to the part, and is told again as a delta."""
    events = decode(
        START,
        block(0, type="text", text="", citations=[]),
        delta(0, type="text_delta", text="x"),
        delta(0, type="citations_delta", citation={"cited_text": "a"}),
        delta(0, type="citations_delta", citation={"cited_text": "b"}),
        end(0),
        STOP,
    )

    citations = [{"cited_text": "a"}, {"cited_text": "b"}]
    assert fold(events).message.content[0].extra == {NAME: {"citations": citations}}
    assert events[1].extra == {NAME: {"citations": []}}
    again = [p["delta"] for p in encode(events) if p["type"] == "content_block_delta"]
    assert [d["citation"] for d in again if d["type"] == "citations_delta"] == citations


def test_unknown_events_are_passed_on():
    """An event type nobody knows yet is shown, and told again as it was."""
    strange = {"type": "message_mood", "mood": "good"}
    events = decode(START, strange, STOP)

    assert events[1] == ProviderEvent(dialect=NAME, name="message_mood", data=strange)
    assert strange in encode(events)
