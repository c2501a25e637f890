"""Call events are data."""

import msgspec

from interlingua.client.call_events import CallCompleted, CallEvent, CallFailed, CallStarted
from interlingua.spec.errors import ErrorClass

ABOUT = {"request_id": "r", "provider": "openai", "model": "m"}


def test_they_go_through_json():
    """With their type, and only what is said."""
    told = [
        CallStarted(**ABOUT, stream=True),
        CallFailed(**ABOUT, error_class=ErrorClass.RATE_LIMIT, retryable=True),
        CallCompleted(**ABOUT, attempt=1, finish_reason="stop", latency_ms=5),
    ]
    text = msgspec.json.encode(told)

    assert msgspec.json.decode(text, type=list[CallEvent]) == told
    assert [event["type"] for event in msgspec.json.decode(text)] == [
        "call_started",
        "call_failed",
        "call_completed",
    ]
    assert [event.type for event in told] == ["call_started", "call_failed", "call_completed"]
