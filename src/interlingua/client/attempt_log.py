"""The record of a call's attempts: how each ended, what it used, and who is told about it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from msgspec import Struct

from interlingua.client.call_events import (
    CallCompleted,
    CallEvent,
    CallFailed,
    CallStarted,
    Outcome,
    notify,
    settle_outcomes,
)
from interlingua.client.calls import Calls
from interlingua.client.member_adapters import OnMember
from interlingua.client.middleware.contract import GENERATE, Progress
from interlingua.client.retry_policy import DEFAULT_POLICY, RetryPolicy, adapter_policy
from interlingua.providers.adapter import HttpAdapter
from interlingua.runtime.cancel import CANCELLED, CancelScope, is_cancelled
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import CircuitOpenError, ErrorClass, SDKError
from interlingua.spec.response import Attempt, Cost, Usage

_NO_MEMBERS: dict[int, str] = {}
_UNKNOWN_USAGE = Usage(estimated=True)


class Target(Struct, frozen=True, gc=False):
    """Where an attempt goes, and why."""

    provider: str
    model: str
    reason: str | None = None


class Running(Struct, frozen=True, gc=False):
    """An attempt that is under way."""

    number: int
    target: Target
    began: float
    """On the clock of `perf_counter`."""
    progress: Progress

    def latency(self) -> int:
        """The milliseconds since it began."""
        return round((perf_counter() - self.began) * 1000)


class _Failure(NamedTuple):
    """How an attempt has failed, for `CallFailed`."""

    error_class: ErrorClass
    message: str
    retryable: bool = False


def find_failure(error: BaseException, scope: CancelScope | None) -> BaseException:
    """What ended an attempt: a task is cancelled when the time of its scope is over, too."""
    is_late = scope is not None and scope.cause == "timeout"
    return scope.error() if scope is not None and is_late and is_cancelled(error) else error


class AttemptLog:
    """The attempts of one call of a model or an operation; subscribers are told of each."""

    __slots__ = (
        "_calls",
        "_facts",
        "_members",
        "_subscribers",
        "failure",
        "outcomes",
        "records",
        "resent",
        "started",
    )

    def __init__(
        self,
        calls: Calls,
        request_id: str,
        session_id: str | None,
        step: int = 0,
        operation: str = GENERATE,
    ) -> None:
        self._calls = calls
        self._facts = (request_id, session_id, step, operation)
        self._subscribers = calls.subscribers
        self._members = _NO_MEMBERS  # of a `Balance`, by attempt
        self.resent: set[int] = set()
        """The attempts whose request was sent twice."""
        self.failure: SDKError | None = None
        """The error of the last attempt."""
        self.outcomes: list[Outcome] = []
        """What async subscribers have returned, until `settle`."""
        self.started: int = 0
        """How many attempts have begun."""
        self.records: tuple[Attempt, ...] = ()
        """The finished attempts."""

    def list_attempts(self) -> tuple[Attempt, ...]:
        """The finished attempts, for `Call.attempts`."""
        return self.records

    def policy_for(
        self, key: str, given: RetryPolicy | None, adapters: Mapping[str, Adapter]
    ) -> RetryPolicy | None:
        """The policy of a call that began with these adapters: its own, or that of its adapter."""
        if given is not None and given is not DEFAULT_POLICY:
            return given
        routing = self._calls.routing
        adapter = adapters.get(key) or routing.adapters[key]
        if isinstance(adapter, HttpAdapter):
            own = adapter.configuration
            behaviour, retries = own.behaviour, own.max_retries
        else:
            behaviour = getattr(adapter, "behaviour", None) or routing.behaviour_of(key)
            retries = getattr(adapter, "max_retries", 0)
        is_plain = not retries and behaviour is None
        return given if is_plain else adapter_policy(retries, behaviour, given)

    def start(self, target: Target, *, stream: bool) -> Running:
        """The attempt that begins now."""
        number, self.started = self.started, self.started + 1
        progress = Progress(is_stream=stream, earlier=len(self.records))
        running = Running(number, target, perf_counter(), progress)
        if self._subscribers:
            self._notify(CallStarted(**self._event(running), stream=stream))
        return running

    def on_member(self, number: int) -> OnMember:
        """A function that notes which of several keys or endpoints an attempt uses."""
        self._members = {} if self._members is _NO_MEMBERS else self._members
        return partial(self._members.__setitem__, number)

    def complete(
        self,
        running: Running,
        usage: Usage | None,
        cost: Cost | None,
        finish_reason: str = "stop",
        failure: _Failure | None = None,
        latency: int | None = None,
    ) -> None:
        """An attempt has ended: well, or with a failure; before now, if its `latency` says so."""
        number, target = running.number, running.target
        if latency is None:
            latency = round((perf_counter() - running.began) * 1000)
        attempt = Attempt(
            number=number,
            provider=target.provider,
            model=target.model,
            error_class=None if failure is None else failure.error_class,
            usage=usage,
            cost=cost,
            latency_ms=latency,
            member=self._members.get(number),
        )
        self.records = (*self.records, attempt)
        if failure is None:
            self.failure = None
        if not self._subscribers:
            return
        facts = {**self._event(running), "latency_ms": latency, "resent": number in self.resent}
        if failure is None or failure.error_class is ErrorClass.CANCELLED:
            used = _UNKNOWN_USAGE if usage is None else usage
            event = CallCompleted(**facts, usage=used, cost=cost, finish_reason=finish_reason)
            self._notify(event)
        else:
            self._notify(CallFailed(**facts, **failure._asdict(), usage=usage, cost=cost))

    def fail(
        self,
        running: Running,
        error: BaseException,
        usage: Usage | None = None,
        cost: Cost | None = None,
        latency: int | None = None,
    ) -> None:
        """An attempt has failed, or was cancelled."""
        target = running.target
        if isinstance(error, SDKError):
            error.add_facts(provider=target.provider, model=target.model or None)
            failure = _Failure(error.error_class, error.message, error.retryable)
        elif is_cancelled(error):
            failure = _Failure(ErrorClass.CANCELLED, CANCELLED)
        else:  # raised by a custom adapter or middleware
            failure = _Failure(ErrorClass.OTHER, type(error).__name__)
        self.complete(running, usage, cost, failure.error_class.value, failure, latency)

    async def delay(
        self, error: BaseException, policy: RetryPolicy | None, retries: int
    ) -> float | None:
        """The seconds until the next attempt, after the callbacks; None if there is none."""
        if self.outcomes:
            await self.settle()
        if not isinstance(error, SDKError):
            return None
        self.failure = error
        if isinstance(error, CircuitOpenError) and self._calls.outer.has_other_models:
            policy = None  # another model can be asked now
        delay = None if policy is None else policy.delay(error, retries)
        if policy is not None and delay is not None:
            await policy.notify(error, retries, delay)
            return delay
        if self._calls.outer.sees_answers or self._calls.inner.sees_answers:
            error.drop_partial()  # no layer has seen it
        advice = None if policy is None else policy.explain(error, retries)
        error.add_facts(attempts=self.records, advice=advice)
        return None

    async def settle(self) -> None:
        """Wait for the async subscribers, in order."""
        outcomes, self.outcomes = self.outcomes, []
        await settle_outcomes(outcomes)

    def _event(self, running: Running) -> dict[str, Any]:
        """The fields that all events of an attempt have."""
        request_id, session_id, step, operation = self._facts
        number, target = running.number, running.target
        return {
            "request_id": request_id,
            "operation": operation,
            "provider": target.provider,
            "model": target.model,
            "session_id": session_id,
            "reason": target.reason,
            "step": step,
            "attempt": number,
            "member": self._members.get(number),
        }

    def _notify(self, event: CallEvent) -> None:
        self.outcomes += notify(event, self._subscribers)
