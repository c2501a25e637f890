"""
The attempts of a call: the only place that retries, and that tells subscribers of each attempt.

Middleware that runs once per request is outside of it, `per_attempt` middleware inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from interlingua.client.call_events import (
    CallCompleted,
    CallEvent,
    CallFailed,
    CallStarted,
    Subscriber,
)
from interlingua.client.middleware.layers import Onion, Shown
from interlingua.client.retry_policy import DEFAULT_POLICY, RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.call import Ready, logger, since
from interlingua.providers.cancel import CANCELLED, CancelScope, Scopes
from interlingua.providers.fold import close_stream, fold_stream
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import ErrorClass, SDKError, StreamError
from interlingua.spec.events import Finish, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt, FinishReason, Response, Usage
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import is_content

Value = TypeVar("Value")


class Calls:
    """
    The calls of one client.

    `address` gives a request its provider, model and id; `resolve` is for requests that a
    middleware has changed.
    """

    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        address: Callable[[Request], Request],
        resolve: Callable[[Request], Request],
        *,
        outer: Onion,
        inner: Onion,
        settings: Mapping[str, Any],
    ) -> None:
        self.adapters = adapters
        self.address = address
        self.resolve = resolve
        self.outer = outer
        self.inner = inner
        self.settings = settings
        """Arguments of the adapters' own methods."""
        self.scopes: Scopes = Scopes()
        """The runs and calls under way."""
        self.subscribers: tuple[Subscriber, ...] = ()

    def open(self, request: Request, retry: RetryPolicy | None = None, step: int = 0) -> Attempts:
        """A call of this request, which gets its provider, model and id."""
        return Attempts(self, self.address(request), retry, step)

    def stream(
        self,
        request: Request,
        scope: CancelScope | None = None,
        retry: RetryPolicy | None = None,
        step: int = 0,
        accumulator: StreamAccumulator | None = None,
    ) -> AsyncGenerator[StreamEvent, None]:
        """The same as it comes, in a scope of its own unless given."""
        attempts = self.open(request, retry, step)
        return fold_stream(
            attempts.events,
            attempts.request,
            self.scopes,
            scope,
            accumulator=accumulator,
            finish=attempts.finish,
        )

    def perform(
        self,
        request: Request,
        call: Callable[[], Awaitable[Value]],
        retry: RetryPolicy | None = None,
    ) -> Awaitable[Value]:
        """The result of an operation; of the request only the provider, model and id count."""
        return Attempts(self, request, retry).complete(request, lambda _: call())


class Attempts:
    """
    One call of a client: its policy, its scope, and the attempts so far.

    Policy and scope are bound here, when the call enters the middleware: whatever request a
    middleware passes on, they stay.
    """

    __slots__ = (
        "_calls",
        "_count",
        "_ready",
        "_retry",
        "_scope",
        "_shown",
        "_step",
        "_subscribers",
        "records",
        "request",
    )

    def __init__(
        self,
        calls: Calls,
        request: Request,
        retry: RetryPolicy | None = None,
        step: int = 0,
    ) -> None:
        self._calls = calls
        self.request: Request = request
        self._subscribers = calls.subscribers
        self._retry = retry
        self._step = step
        self._count = 0
        self._ready: tuple[Request, Ready] | None = None
        self._shown: Shown | None = None  # only where there is middleware
        self._scope: CancelScope | None = None
        self.records: tuple[Attempt, ...] = ()
        """The attempts that are over."""

    def answer(self, scope: CancelScope) -> Awaitable[Response]:
        """The whole answer, through all middleware."""
        self._scope = scope
        outer = self._calls.outer
        if outer.is_empty:
            return self.complete(self.request)
        return outer.wrap_complete(self.complete)(self.request)

    def events(self, scope: CancelScope) -> AsyncIterator[StreamEvent]:
        """The same as it comes."""
        self._scope = scope
        outer, inner = self._calls.outer, self._calls.inner
        if outer.is_empty and inner.is_empty:
            return self.stream(self.request)
        self._shown = Shown()
        return outer.wrap_stream(self.stream, self._shown)(self.request)

    def finish(self, finish: Finish, accumulator: StreamAccumulator) -> Response:
        """The response of a stream, of the events that have left the middleware."""
        shown = self._shown
        response = accumulator.response() if shown is None else shown.settle(finish, accumulator)
        return replace(response, attempts=self.records)

    # The loop.

    async def complete(
        self, request: Request, send: Callable[[Request], Awaitable[Any]] | None = None
    ) -> Any:
        """The whole answer, or what `send` gives, after as many attempts as the policy allows."""
        if send is None:
            inner = self._calls.inner
            if request is not self.request:
                request = self._resolve(request)
            send = self._send if inner.is_empty else inner.wrap_complete(self._send)
        policy = self._policy(request)
        for retries in count():
            attempt = self._start(request, stream=False)
            try:
                result = await send(request)
            except BaseException as error:
                self._fail(attempt, request, error)
                delay = self._delay(error, policy, retries)
                if delay is None:
                    raise
            else:
                if not isinstance(result, Response):
                    self._complete(attempt, request, _PERFORMED)
                    return result
                self._complete(attempt, request, result)
                return replace(result, attempts=self.records)
            await asyncio.sleep(delay)
        raise AssertionError("unreachable")

    async def stream(  # noqa: C901, PLR0912 -- in one piece: a generator more would cost every delta
        self, request: Request
    ) -> AsyncGenerator[StreamEvent, None]:
        """
        The same as it comes; what fails after the first content event is not tried again.

        Until then the events of an attempt that may be retried are withheld, so that the reader
        sees the beginning of one only.
        """
        request = self._resolve(request)
        policy = self._policy(request)
        for retries in count():
            may_retry = policy is not None and retries < policy.max_retries
            withheld: list[StreamEvent] | None = [] if may_retry else None
            attempt = self._start(request, stream=True)
            is_over, usage = False, None
            events = self._open(request)
            try:
                async for event in events:
                    kind = type(event)
                    if kind is StreamStart:
                        usage = event.usage  # type: ignore[union-attr]
                    elif kind is Finish and not is_over:
                        is_over = True
                        self._complete(attempt, request, event)  # type: ignore[arg-type]
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
                raise StreamError("the stream ended without its last event")  # noqa: TRY301
            except BaseException as error:
                if not is_over:  # an attempt has one end, whatever happens after it
                    self._fail(attempt, request, error, usage)
                delay = self._delay(error, None if withheld is None else policy, retries)
                if delay is None:
                    for early in withheld or () if isinstance(error, SDKError) else ():
                        yield early
                    raise
            finally:
                await close_stream(events)
            await asyncio.sleep(delay)

    def _policy(self, request: Request) -> RetryPolicy | None:
        """What the call says goes first, then what the adapter is set to."""
        policy = self._retry
        if policy is None or policy is DEFAULT_POLICY:
            retries = getattr(self._calls.adapters[request.provider or ""], "max_retries", 0)
            return RetryPolicy(max_retries=retries) if retries else policy
        return policy

    def _delay(
        self, error: BaseException, policy: RetryPolicy | None, retries: int
    ) -> float | None:
        """Seconds until the next attempt; None if there is none."""
        if not isinstance(error, SDKError):
            return None
        delay = None if policy is None else policy.delay(error, retries)
        if policy is not None and delay is not None:
            policy.notify(error, retries, delay)
            return delay
        advice = None if policy is None else policy.explain(error, retries)
        error.add_facts(attempts=self.records, advice=advice)
        return None

    # One attempt.

    async def _send(self, request: Request) -> Response:
        if not self._calls.inner.is_empty:
            request = self._resolve(request)
        adapter = self._calls.adapters[request.provider or ""]
        if isinstance(adapter, HttpAdapter) and adapter.has_stations:
            if self._ready is None or self._ready[0] is not request:
                self._ready = (request, await adapter.ready(request, **self._calls.settings))
            return await adapter.answer(self._ready[1])
        return await adapter.complete(request, **self._calls.settings)

    def _open(self, request: Request) -> AsyncIterator[StreamEvent]:
        """The events of one attempt, through the middleware that is about attempts."""
        if self._shown is None:
            return self._send_stream(request)
        return self._calls.inner.wrap_stream(self._send_stream, self._shown, attach=True)(request)

    def _send_stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        request = self._resolve(request)
        adapter = self._calls.adapters[request.provider or ""]
        if isinstance(adapter, HttpAdapter) and adapter.has_stations:
            make_ready = partial(self._make_ready, adapter, request)
            return adapter.events(make_ready, self._scope or CancelScope())
        return adapter.stream(request, **self._calls.settings)

    async def _make_ready(self, adapter: HttpAdapter, request: Request) -> Ready:
        """The request as it is streamed, made once for all attempts that send the same one."""
        if self._ready is None or self._ready[0] is not request:
            ready = await adapter.ready(request, stream=True, **self._calls.settings)
            self._ready = (request, ready)
        return self._ready[1]

    def _resolve(self, request: Request) -> Request:
        """The request with its provider and model looked up again, if a middleware changed it."""
        known = self.request
        if request is known:
            return request
        if request.request_id != known.request_id:  # a call has one id
            request = replace(request, request_id=known.request_id)
        if request.provider == known.provider and request.model == known.model:
            return request
        return self._calls.resolve(request)

    # What is told of it.

    def _start(self, request: Request, *, stream: bool) -> _Start:
        number = self._count
        self._count += 1
        if self._subscribers:
            self._tell(CallStarted(**self._facts(number, request), stream=stream))
        return _Start(number, perf_counter())

    def _complete(self, start: _Start, request: Request, end: Response | Finish) -> None:
        latency, usage = since(start.began), end.usage
        attempt = Attempt(
            number=start.number,
            provider=request.provider or "",
            model=request.model,
            usage=usage,
            latency_ms=latency,
        )
        self.records = (*self.records, attempt)
        if self._subscribers:
            reason = end.finish_reason.reason
            facts = self._facts(start.number, request)
            self._tell(
                CallCompleted(**facts, usage=usage, finish_reason=reason, latency_ms=latency)
            )

    def _fail(
        self, start: _Start, request: Request, error: BaseException, usage: Usage | None = None
    ) -> None:
        latency, retryable = since(start.began), False
        if isinstance(error, SDKError):
            kind, message, retryable = error.error_class, error.message, error.retryable
            usage = usage if error.partial is None else error.partial.usage
        elif isinstance(error, (GeneratorExit, asyncio.CancelledError)):
            kind, message = ErrorClass.CANCELLED, CANCELLED
        else:  # of an adapter or a middleware that is not ours
            kind, message = ErrorClass.OTHER, type(error).__name__
        attempt = Attempt(
            number=start.number,
            provider=request.provider or "",
            model=request.model,
            error_class=kind,
            usage=usage,
            latency_ms=latency,
        )
        self.records = (*self.records, attempt)
        if self._subscribers:
            facts = self._facts(start.number, request)
            self._tell(
                CallFailed(
                    **facts,
                    error_class=kind,
                    message=message,
                    retryable=retryable,
                    latency_ms=latency,
                )
            )

    def _facts(self, number: int, request: Request) -> dict[str, Any]:
        return {
            "request_id": request.request_id or "",
            "provider": request.provider or "",
            "model": request.model,
            "step": self._step,
            "attempt": number,
        }

    def _tell(self, event: CallEvent) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception:  # noqa: BLE001 -- a subscriber that fails must not end the call
                logger.exception("a subscriber failed on %s", event.type)


_PERFORMED = Finish(finish_reason=FinishReason(reason="stop"))
"""The end of an operation, which has no answer."""


class _Start(NamedTuple):
    number: int
    began: float


async def retry(
    call: Callable[[], Awaitable[Value]], policy: RetryPolicy = DEFAULT_POLICY
) -> Value:
    """
    What `call` gives, after as many attempts as the policy allows; its last error else.

    For calls of one's own: those of a client are retried with `client.complete(retry=policy)`.
    """
    for retries in count():
        try:
            return await call()
        except SDKError as error:
            delay = policy.delay(error, retries)
            if delay is None:
                raise
            policy.notify(error, retries, delay)
        await asyncio.sleep(delay)
    raise AssertionError("unreachable")
