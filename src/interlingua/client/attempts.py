"""
The attempts of a call: the only place that retries, and that reports each attempt to subscribers.

Middleware that runs once per request is outside of it, `per_attempt` middleware inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any, Self, TypeVar

from msgspec.structs import replace

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
from interlingua.client.custom_adapter import CustomCall, OnMember, as_member_adapter
from interlingua.client.metering import add_metered, meter_failure
from interlingua.client.middleware.contract import Call
from interlingua.client.middleware.layers import Layers
from interlingua.client.middleware.shown import Shown
from interlingua.client.retry_policy import DEFAULT_POLICY, RetryPolicy, adapter_policy
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.http_requests import Ready
from interlingua.providers.uploads import Uploads
from interlingua.runtime.cancel import CANCELLED, CancelScope
from interlingua.runtime.fold import close_stream, fold_stream
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import AbortError, CircuitOpenError, ErrorClass, SDKError, StreamError
from interlingua.spec.events import Finish, StreamEvent, StreamStart
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import (
    Attempt,
    FinishReason,
    Response,
    Usage,
    label_message,
)
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import is_content

Value = TypeVar("Value")


class Attempts:
    """
    One call of a client: its retry policy, its scope, and its attempts.

    Policy and scope are bound here, when the call enters the middleware. They stay the same if a
    middleware passes on another request. So do the adapters, if others are registered meanwhile.
    """

    __slots__ = (
        "_accumulator",
        "_adapters",
        "_answer",
        "_calls",
        "_count",
        "_failure",
        "_logged",
        "_members",
        "_outcomes",
        "_ready",
        "_reasons",
        "_resent",
        "_retry",
        "_scope",
        "_shown",
        "_step",
        "_subscribers",
        "_uploads",
        "left_out",
        "records",
        "request",
    )

    def __init__(
        self,
        calls: Calls,
        request: Request,
        retry: RetryPolicy | None = None,
        step: int = 0,
        logged: set[str] | None = None,
        uploads: Uploads | None = None,
    ) -> None:
        self._calls = calls
        self._uploads = uploads
        self._adapters = calls.routing.adapters
        self.request: Request = request
        self._reasons = _NO_REASONS  # why a model was chosen, by attempt; else as `request` says
        self._subscribers = calls.subscribers
        self._retry = retry
        self._step = step
        self._logged: set[str] = set() if logged is None else logged
        self._count = 0
        self._failure: SDKError | None = None  # of the last attempt
        self._resent: set[int] = set()  # attempts whose request was sent twice
        self._members = _NO_MEMBERS  # of a `Balance`, by attempt
        self._outcomes: list[Outcome] = []  # of async subscribers
        self._ready: tuple[Request, Adapter, Ready] | None = None
        self._shown: Shown | None = None  # only set if middleware sees the events
        self._scope: CancelScope | None = None
        self._answer: Response | None = None  # of `complete`
        self._accumulator: StreamAccumulator | None = None  # of a stream
        self.records: tuple[Attempt, ...] = ()
        """The finished attempts."""
        self.left_out: tuple[str, ...] = ()
        """The names of tools that the behaviour of the provider did not send."""

    @classmethod
    def open(
        cls,
        calls: Calls,
        request: Request,
        retry: RetryPolicy | None = None,
        step: int = 0,
        logged: set[str] | None = None,
        uploads: Uploads | None = None,
    ) -> Self:
        """
        A call of this request.

        `logged` holds the codes of warnings that earlier calls of the same run have logged, and
        `uploads` the files that they have stored; the caller closes it.
        """
        return cls(calls, calls.routing.address(request), retry, step, logged, uploads)

    @property
    def is_cancelled(self) -> bool:
        """Whether the call was cancelled by its id."""
        return self._scope is not None and self._scope.is_quiet

    def answer(self, scope: CancelScope) -> Awaitable[Response]:
        """The whole answer, through all middleware."""
        self._scope = scope
        outer = self._calls.outer
        return self.complete(self.request) if outer.is_empty else self._answer_through(outer)

    async def _answer_through(self, outer: Layers) -> Response:
        response = await outer.complete(self.request, self.complete, self._call(), self._resolve)
        if response is self._answer and response.attempts is self.records:
            return response  # no layer has changed it
        attempts = self._attempts_of(response) or response.attempts  # a layer may have made more
        return replace(response, attempts=attempts, message=self._message(response))

    def fold(
        self, scope: CancelScope | None = None, accumulator: StreamAccumulator | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of the answer, through all middleware; `Finish` has the whole response."""
        self._accumulator = accumulator or StreamAccumulator()
        return fold_stream(
            self.events,
            self.request,
            self._calls.scopes,
            scope,
            accumulator=self._accumulator,
            finish=self.finish,
            settle=self._settle_partial,
            revise=self._revise if self._calls.has_layers else None,
        )

    def events(self, scope: CancelScope) -> AsyncIterator[StreamEvent]:
        """The events of the answer, through all middleware, before they are folded."""
        self._scope = scope
        outer = self._calls.outer
        if not self._calls.has_layers:
            return self.stream(self.request)
        shown = self._shown = Shown()
        return outer.stream(self.request, self.stream, self._call(), self._resolve, shown)

    def _call(self, attempt: int | None = None) -> Call:
        """What layers may know about the call."""
        request = self.request
        return Call(
            provider=request.provider or "",
            model=request.model,
            request_id=request.request_id or "",
            step=self._step,
            attempt=attempt,
            adapters=self._adapters,
            tariffs=self._calls.tariffs,
            attempts=self._ended,
        )

    def _ended(self) -> tuple[Attempt, ...]:
        return self.records

    def finish(self, finish: Finish, accumulator: StreamAccumulator) -> Response:
        """The response of a stream, from the events that have left the middleware."""
        shown = self._shown
        response = accumulator.response() if shown is None else shown.settle(finish, accumulator)
        attempts = self._attempts_of(response)
        return replace(response, attempts=attempts, message=self._message(response))

    def _message(self, response: Response) -> Message:
        """The message of the answer, labelled with the attempt that made it."""
        known = response.message.metadata
        records = self.records
        made = records[0] if len(records) == 1 else self._find_maker(response)
        if "provider" in known and "model" in known:  # labelled before
            provider, model = known["provider"], known["model"]
        elif made is not None:
            provider, model = made.provider, made.model
        else:  # a middleware answered
            provider, model = response.provider, response.model
        registry_id = self._calls.registry_ids.get((provider, model))
        message_id = f"{self.request.request_id}-{self._step}"
        number = 0 if made is None else made.number
        because = self._reasons.get(number, self.request.chosen_because)
        return label_message(response, message_id, provider, model, registry_id, because)

    def _attempts_of(self, response: Response) -> tuple[Attempt, ...]:
        """All attempts; the one that made the answer is the last, whatever ended after it."""
        records = self.records
        made = None if len(records) == 1 else self._find_maker(response)
        if made is None or made is records[-1]:
            return records
        return (*(each for each in records if each is not made), made)

    def _find_maker(self, response: Response) -> Attempt | None:
        """The attempt that made an answer: a layer may have asked on, and kept an earlier one."""
        for each in reversed(self.records):
            if each.usage is response.usage:  # the same object, also if a layer changed the text
                return each
        same = (each for each in reversed(self.records) if each.provider == response.provider)
        return next(same, self.records[-1] if self.records else None)

    def _settle_partial(self, partial: Response) -> Response:
        """An answer that was cut off, labelled, with the usage and the cost of its attempt."""
        if self.records and len(self.records) == self._count:
            partial = add_metered(partial, self.records)
        return replace(partial, message=self._message(partial))

    def label_partial(self, partial: Response) -> Response:
        """An answer that its reader did not read to its end; its message is labelled as cut."""
        if self.records and len(self.records) == self._count:
            partial = add_metered(partial, self.records)
        request = self.request
        cut = replace(partial, finish_reason=_CANCELLED)
        message_id = f"{request.request_id}-{self._step}"
        provider = request.provider or ""
        because = self._reasons.get(self._count - 1, request.chosen_because)
        message = label_message(cut, message_id, provider, request.model, because=because)
        return replace(partial, message=message)

    def _revise(self, event: StreamEvent, accumulator: StreamAccumulator) -> StreamEvent:
        return event if self._shown is None else self._shown.revise(event, accumulator)

    # The loop.

    async def complete(
        self, request: Request, perform: Callable[[OnMember], Awaitable[Any]] | None = None
    ) -> Any:
        """The whole answer, or the result of `perform`, with retries as the policy allows."""
        inner = self._calls.inner
        if request is not self.request:
            request = self._resolve(request)
        policy = self._policy(request)
        for retries in count():
            number, began = self._start(request, stream=False), perf_counter()
            if self._outcomes:
                await self._settle()
            try:
                if perform is not None:
                    result = await perform(self._on_member(number))
                elif inner.is_empty:
                    result = await self._send(number, request)
                else:
                    send = partial(self._send, number)
                    result = await inner.complete(request, send, self._call(number), self._resolve)
            except BaseException as error:
                self._fail(number, began, request, error)
                delay = await self._delay(error, policy, retries)
                if delay is None:
                    raise
            else:
                is_answer = isinstance(result, Response)
                self._complete(number, began, request, result if is_answer else _PERFORMED)
                if self._outcomes:
                    await self._settle()
                result = self._answer = (
                    replace(result, attempts=self.records, message=self._message(result))
                    if is_answer
                    else result
                )
                return result
            await asyncio.sleep(delay)
        raise AssertionError("unreachable")

    async def stream(  # noqa: C901, PLR0912 -- one function: another generator would cost each delta
        self, request: Request
    ) -> AsyncGenerator[StreamEvent, None]:
        """
        The events of the answer; a failure after the first content event is not retried.

        Until then the events of an attempt that may be retried are withheld, so that the reader
        sees only one beginning.
        """
        request = self._resolve(request)
        policy = self._policy(request)
        for retries in count():
            may_retry = policy is not None and retries < policy.max_retries
            withheld: list[StreamEvent] | None = [] if may_retry else None
            number, began = self._start(request, stream=True), perf_counter()
            if self._outcomes:
                await self._settle()
            is_over, usage = False, None
            events = self._open(request, number)
            try:
                async for event in events:
                    kind = type(event)
                    if kind is StreamStart:
                        usage = event.usage  # type: ignore[union-attr]
                    elif kind is Finish and not is_over:
                        is_over = True
                        self._complete(number, began, request, event)  # type: ignore[arg-type]
                        if self._outcomes:
                            await self._settle()
                    if withheld is not None:
                        withheld.append(event)
                        if not is_content(event) and kind is not Finish:
                            continue
                        for early in withheld[:-1]:
                            yield early
                        withheld = None
                    yield event
                if is_over:
                    return
                raise StreamError("The stream ended without a finish event.")  # noqa: TRY301
            except BaseException as error:
                if not is_over:  # an attempt is reported once, whatever happens after its end
                    self._fail(number, began, request, error, usage)
                delay = await self._delay(error, None if withheld is None else policy, retries)
                if delay is None:
                    for early in withheld or () if isinstance(error, SDKError) else ():
                        yield early
                    raise
            finally:
                await close_stream(events)
            await asyncio.sleep(delay)

    def _policy(self, request: Request) -> RetryPolicy | None:
        """The policy of the call; if it has none of its own, that of the adapter."""
        policy = self._retry
        if policy is not None and policy is not DEFAULT_POLICY:
            return policy
        key = request.provider or ""
        adapter = self._adapters.get(key) or self._calls.adapters[key]
        if isinstance(adapter, HttpAdapter):
            own = adapter.configuration
            behaviour, retries = own.behaviour, own.max_retries
        else:
            behaviour = getattr(adapter, "behaviour", None)
            if behaviour is None:
                behaviour = self._calls.routing.behaviour_of(key)
            retries = getattr(adapter, "max_retries", 0)
        is_plain = not retries and behaviour is None
        return policy if is_plain else adapter_policy(retries, behaviour, policy)

    def explain(self, error: SDKError) -> None:
        """Add what is known of the call to an error that ended it, such as a timeout in a wait."""
        request = self.request
        error.add_facts(request_id=request.request_id, attempts=self.records or None)
        if not isinstance(error, AbortError):  # that is not about the provider
            error.add_facts(provider=request.provider, model=request.model)
        if self._failure is not error:
            error.add_cause(self._failure)

    async def _delay(
        self, error: BaseException, policy: RetryPolicy | None, retries: int
    ) -> float | None:
        """The seconds until the next attempt, after the callbacks; None if there is none."""
        if self._outcomes:
            await self._settle()
        if not isinstance(error, SDKError):
            return None
        self._failure = error
        if isinstance(error, CircuitOpenError) and self._calls.outer.has_other_models:
            policy = None  # another model can be asked now
        delay = None if policy is None else policy.delay(error, retries)
        if policy is not None and delay is not None:
            await policy.notify(error, retries, delay)
            return delay
        if self._calls.has_layers:
            error.drop_partial()  # no layer has seen it
        advice = None if policy is None else policy.explain(error, retries)
        error.add_facts(attempts=self.records, advice=advice)
        return None

    # One attempt.

    async def _send(
        self, attempt: int, request: Request, member: Adapter | None = None
    ) -> Response:
        calls = self._calls
        if request is not self.request and not calls.inner.is_empty:
            request = self._resolve(request)
        key = request.provider or ""
        adapter = member or self._adapters.get(key) or calls.adapters[key]
        if key in calls.initialization.pending:
            await calls.initialization.ensure(key)
        ids = calls.call_ids
        if not isinstance(adapter, HttpAdapter) or not adapter.has_stations:
            members = as_member_adapter(adapter)
            if members is not None:
                send = partial(self._send, attempt, request)
                return await members.send_by_member(request, send, self._on_member(attempt))
            response = await self._custom(adapter, request).complete()
        else:
            ready = await self._make_ready(adapter, request, attempt, stream=False)
            response = await adapter.generation.answer(ready)
        return response if ids is None else ids.read(response, key)

    def _open(self, request: Request, attempt: int) -> AsyncIterator[StreamEvent]:
        """The events of one attempt, through the `per_attempt` middleware."""
        inner, shown = self._calls.inner, self._shown
        if shown is None:
            return self._send_stream(attempt, request)

        def send(request: Request) -> AsyncIterator[StreamEvent]:
            return shown.attach(self._send_stream(attempt, request), is_first=True)

        return inner.stream(request, send, self._call(attempt), self._resolve, shown)

    def _send_stream(
        self, attempt: int, request: Request, member: Adapter | None = None
    ) -> AsyncIterator[StreamEvent]:
        request, ids = self._resolve(request), self._calls.call_ids
        key = request.provider or ""
        adapter = member or self._adapters.get(key) or self._calls.adapters[key]
        events: AsyncIterator[StreamEvent]
        if not isinstance(adapter, HttpAdapter) or not adapter.has_stations:
            members = as_member_adapter(adapter)
            if members is not None:
                send = partial(self._send_stream, attempt, request)
                return members.stream_by_member(request, send, self._on_member(attempt))
            events = self._custom(adapter, request).stream()
        else:
            make_ready = partial(self._make_ready, adapter, request, attempt)
            scope = self._scope or CancelScope()
            events = adapter.generation.events(make_ready, scope)
        return events if ids is None else ids.read_events(events, key)

    def _custom(self, adapter: Adapter, request: Request) -> CustomCall:
        """One attempt at an adapter that is not ours."""
        call = CustomCall(self._calls, adapter, request)
        self.left_out = call.left_out
        return call

    def _on_member(self, attempt: int) -> OnMember:
        """A function that notes which of several keys or endpoints is used."""
        self._members = {} if self._members is _NO_MEMBERS else self._members
        return partial(self._members.__setitem__, attempt)

    async def _make_ready(
        self, adapter: HttpAdapter, request: Request, attempt: int, *, stream: bool = True
    ) -> Ready:
        """The encoded request, made once for all attempts that send the same one."""
        if request.provider in self._calls.initialization.pending:
            await self._calls.initialization.ensure(request.provider)
        known = self._ready
        if known is not None and known[0] is request and known[1] is adapter:
            return known[2].for_attempt(self._step, attempt, partial(self._resent.add, attempt))
        ids = self._calls.call_ids
        sent = request if ids is None else ids.write(request, adapter)
        if self._uploads is not None:
            sent = await adapter.operations.store_files(sent, self._uploads)
        encoded = await adapter.generation.encode(sent, stream=stream, logged=self._logged)
        ready = await adapter.generation.address(
            encoded,
            step=self._step,
            attempt=attempt,
            on_resend=partial(self._resent.add, attempt),
            tariffs=self._calls.tariffs,
        )
        self._ready, self.left_out = (request, adapter, ready), ready.left_out
        return ready

    def _resolve(self, request: Request) -> Request:
        """The request with its provider and model looked up again, if a middleware changed it."""
        known = self.request
        if request is known:
            return request
        if request.request_id != known.request_id:  # a call has one id
            request = replace(request, request_id=known.request_id)
        if request.provider == known.provider and request.model == known.model:
            return request
        if request.chosen_because == known.chosen_because:  # that was about the other model
            why = f"a middleware changed the model from {known.provider}:{known.model}"
            request = replace(request, chosen_because=why)
        return self._calls.routing.resolve_again(request)

    # The records and events of attempts.

    def _start(self, request: Request, *, stream: bool) -> int:
        """The number of the attempt that begins now."""
        number = self._count
        self._count += 1
        if request is not self.request:
            self._reasons = {**self._reasons, number: request.chosen_because}
        if self._subscribers:
            self._notify(CallStarted(**self._facts(number, request), stream=stream))
        return number

    def _complete(
        self, number: int, began: float, request: Request, end: Response | Finish
    ) -> None:
        self._failure = None
        latency, usage, cost = round((perf_counter() - began) * 1000), end.usage, end.cost
        attempt = Attempt(
            number=number,
            provider=request.provider or "",
            model=request.model,
            usage=usage,
            cost=cost,
            latency_ms=latency,
            member=self._members.get(number),
        )
        self.records = (*self.records, attempt)
        if self._subscribers:
            reason = end.finish_reason.reason
            facts = self._facts(number, request)
            self._notify(
                CallCompleted(
                    **facts,
                    usage=usage,
                    cost=cost,
                    finish_reason=reason,
                    latency_ms=latency,
                    resent=number in self._resent,
                )
            )

    def _fail(
        self,
        number: int,
        began: float,
        request: Request,
        error: BaseException,
        usage: Usage | None = None,
    ) -> None:
        latency, retryable = round((perf_counter() - began) * 1000), False
        if isinstance(error, SDKError):
            error.add_facts(provider=request.provider, model=request.model or None)
            kind, message, retryable = error.error_class, error.message, error.retryable
            usage = usage if error.partial is None else error.partial.usage
        elif isinstance(error, (GeneratorExit, asyncio.CancelledError)):
            kind, message = ErrorClass.CANCELLED, CANCELLED
        else:  # raised by a custom adapter or middleware
            kind, message = ErrorClass.OTHER, type(error).__name__
        key, tariffs = request.provider or "", self._calls.tariffs
        adapter = self._adapters.get(key) or self._calls.adapters[key]
        usage, cost = meter_failure(usage, request, self._accumulator, tariffs, adapter)
        attempt = Attempt(
            number=number,
            provider=request.provider or "",
            model=request.model,
            error_class=kind,
            usage=usage,
            cost=cost,
            latency_ms=latency,
            member=self._members.get(number),
        )
        self.records = (*self.records, attempt)
        if self._subscribers:
            self._notify(
                CallFailed(
                    **self._facts(number, request),
                    error_class=kind,
                    message=message,
                    retryable=retryable,
                    latency_ms=latency,
                    usage=usage,
                    cost=cost,
                    resent=number in self._resent,
                )
            )

    def _facts(self, number: int, request: Request) -> dict[str, Any]:
        return {
            "request_id": request.request_id or "",
            "provider": request.provider or "",
            "model": request.model,
            "session_id": request.session_id,
            "reason": request.chosen_because,
            "step": self._step,
            "attempt": number,
            "member": self._members.get(number),
        }

    def _notify(self, event: CallEvent) -> None:
        self._outcomes += notify(event, self._subscribers)

    async def _settle(self) -> None:
        """Wait for the async subscribers, in order."""
        outcomes, self._outcomes = self._outcomes, []
        await settle_outcomes(outcomes)


_NO_MEMBERS: dict[int, str] = {}
_NO_REASONS: dict[int, str | None] = {}
_CANCELLED = FinishReason(reason="cancelled")
_PERFORMED = Finish(finish_reason=FinishReason(reason="stop"))
"""Stands for the end of an operation, which has no finish reason and no usage."""
