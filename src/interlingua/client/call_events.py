"""Call events: what the subscribers of a client are told about each attempt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import ClassVar, Literal, TypeAlias

import msgspec

from interlingua.runtime.log import logger
from interlingua.spec.errors import ErrorClass
from interlingua.spec.response import Cost, Usage


class _CallEvent(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="type",
    omit_defaults=True,
    repr_omit_defaults=True,
):
    request_id: str
    """The id of the run or call."""
    provider: str
    """The adapter that is called."""
    model: str
    """The model, as it is sent."""
    operation: str = "generate"
    """The operation, such as `embed`; `generate` for an answer."""
    session_id: str | None = None
    """The conversation, if the call is a turn of one."""
    reason: str | None = None
    """Why this model was chosen; None if the caller named it."""
    step: int = 0
    """The number of the model call in its run, from 0."""
    attempt: int = 0
    """The number of the attempt, from 0; it grows with each retry."""
    member: str | None = None
    """
    Which of several keys or endpoints of the provider was used, if there are several.

    It is chosen after the attempt has started, so `CallStarted` does not have it.
    """


class CallStarted(_CallEvent, frozen=True, kw_only=True, tag="call_started"):
    """An attempt begins."""

    type: ClassVar[Literal["call_started"]] = "call_started"
    stream: bool = False
    """Whether the answer is streamed."""


class CallCompleted(_CallEvent, frozen=True, kw_only=True, tag="call_completed"):
    """
    An attempt succeeded, or was cancelled: then `finish_reason` is `cancelled`.

    It was cancelled by its id, with its task or its client, by an abort signal, because the reader
    of its stream left, or because another request of a hedge was faster.
    """

    type: ClassVar[Literal["call_completed"]] = "call_completed"
    usage: Usage = Usage()
    """The tokens of the attempt; if it was cancelled, as far as they are known, as an estimate."""
    cost: Cost | None = None
    """What the attempt cost; None if the price is unknown."""
    finish_reason: str = "other"
    """Why generation ended."""
    latency_ms: int = 0
    """Milliseconds until the answer was whole, or the attempt was cancelled."""
    resent: bool = False
    """The request was sent twice: the server had closed the connection that was reused."""


class CallFailed(_CallEvent, frozen=True, kw_only=True, tag="call_failed"):
    """An attempt failed; a retry may follow. One that was cancelled is a `CallCompleted`."""

    type: ClassVar[Literal["call_failed"]] = "call_failed"
    error_class: ErrorClass = ErrorClass.OTHER
    """The class of the error, for metrics."""
    message: str = ""
    """The message of the error, keys redacted."""
    retryable: bool = False
    """Whether the same call may succeed if it is repeated."""
    latency_ms: int = 0
    """Milliseconds until the attempt failed."""
    usage: Usage | None = None
    """
    What the provider reported, or an estimate for the part of a stream that has arrived.

    None if nothing was reported and nothing has arrived.
    """
    cost: Cost | None = None
    """The cost of `usage`; None if it or the price is unknown."""
    resent: bool = False
    """As in `CallCompleted`."""


CallEvent: TypeAlias = CallStarted | CallCompleted | CallFailed
"""Any call event; `Client.subscribe` takes a function of it."""
Subscriber: TypeAlias = Callable[[CallEvent], object]
"""Called with each call event; sync or async. The call waits for it."""

Outcome: TypeAlias = tuple[CallEvent, Awaitable[object]]
"""An event, and what an async subscriber returned for it."""
_FAILED = "A subscriber raised an exception on %s."


def notify(event: CallEvent, subscribers: Iterable[Subscriber]) -> list[Outcome]:
    """Call the subscribers; returns what must be awaited. Their exceptions are logged."""
    outcomes: list[Outcome] = []
    for subscriber in subscribers:
        try:
            outcome = subscriber(event)
        except Exception:  # noqa: BLE001 -- a subscriber that fails must not end the call
            logger.exception(_FAILED, event.type)
        else:
            if isawaitable(outcome):
                outcomes.append((event, outcome))
    return outcomes


async def settle_outcomes(outcomes: Iterable[Outcome]) -> None:
    """Wait for the async subscribers, in order."""
    for event, outcome in outcomes:
        try:
            await outcome
        except Exception:  # noqa: BLE001 -- as above
            logger.exception(_FAILED, event.type)
