"""What happens to calls, told to subscribers: a channel of its own beside the stream's events."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, TypeAlias

import msgspec

from interlingua.spec.errors import ErrorClass
from interlingua.spec.response import Usage


class _CallEvent(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    omit_defaults=True,
    repr_omit_defaults=True,
):
    request_id: str
    provider: str
    model: str
    step: int = 0
    """0 for the first call of the model in a run, then one more for each that follows it."""
    attempt: int = 0
    """0 for the first, then one more for each retry."""


class CallStarted(_CallEvent, frozen=True, kw_only=True, tag="call_started"):
    """An attempt goes out."""

    type: ClassVar[Literal["call_started"]] = "call_started"
    stream: bool = False


class CallCompleted(_CallEvent, frozen=True, kw_only=True, tag="call_completed"):
    """An attempt was answered."""

    type: ClassVar[Literal["call_completed"]] = "call_completed"
    usage: Usage = Usage()
    finish_reason: str = "other"
    latency_ms: int = 0


class CallFailed(_CallEvent, frozen=True, kw_only=True, tag="call_failed"):
    """An attempt failed; another may follow."""

    type: ClassVar[Literal["call_failed"]] = "call_failed"
    error_class: ErrorClass = ErrorClass.OTHER
    message: str = ""
    retryable: bool = False
    latency_ms: int = 0


CallEvent: TypeAlias = CallStarted | CallCompleted | CallFailed
Subscriber: TypeAlias = Callable[[CallEvent], object]
