"""The calls behind a client's request: attempts, the waits between them, what is told of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from time import perf_counter
from typing import Any

from interlingua.client.call_events import (
    CallCompleted,
    CallEvent,
    CallFailed,
    CallStarted,
    Subscriber,
)
from interlingua.client.retry_policy import RetryPolicy, Sleep, close, retry, retry_stream
from interlingua.providers.call import logger, since
from interlingua.providers.cancel import CancelledCallError, Flight
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import AbortError, ConfigurationError, ErrorClass, SDKError
from interlingua.spec.events import Finish, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response


class Calls:
    """Makes the calls of one client."""

    def __init__(self, *, strict: bool = False) -> None:
        self.subscribers: tuple[Subscriber, ...] = ()
        self._settings: dict[str, Any] = {"strict": True} if strict else {}
        self._waits: dict[str, Flight] = {}

    def complete(
        self, adapter: Adapter, request: Request, *, retries: bool = True
    ) -> Awaitable[Response]:
        """The whole answer, after as many attempts as the adapter is set to, or after one."""
        policy = policy_of(adapter) if retries else None
        return (
            self._complete_once(adapter, request, 0)
            if policy is None
            else self._complete_again(adapter, request, policy)
        )

    def stream(
        self, adapter: Adapter, request: Request, *, retries: bool = True
    ) -> AsyncIterator[StreamEvent]:
        """The same for an answer as it comes."""
        policy = policy_of(adapter) if retries else None
        return (
            self._stream_once(adapter, request, 0)
            if policy is None
            else self._stream_again(adapter, request, policy)
        )

    async def perform(
        self,
        adapter: Adapter,
        request: Request,
        call: Callable[[], Awaitable[Any]],
        *,
        retries: bool = True,
    ) -> Any:
        """The result of an operation; of `request` only the model and the id count."""
        attempts = count()

        async def attempt() -> Any:
            with self._telling(adapter, request, next(attempts), stream=False) as completed:
                result = await call()
                completed(Response(finish_reason=FinishReason(reason="stop")))
                return result

        policy = policy_of(adapter) if retries else None
        if policy is None:
            return await attempt()
        with self._waiting(request) as sleep:
            try:
                return await retry(attempt, policy, sleep=sleep)
            except CancelledCallError:
                gone = AbortError("the call was cancelled", request_id=request.request_id)
                raise gone from None

    def cancel(self, request_id: str) -> bool:
        """Stop a call that waits for its next attempt."""
        flight = self._waits.get(request_id)
        return flight is not None and flight.cancel()

    def close(self) -> None:
        """Stop all that wait for their next attempt."""
        for flight in tuple(self._waits.values()):
            flight.cancel()

    def _complete_once(
        self, adapter: Adapter, request: Request, attempt: int
    ) -> Awaitable[Response]:
        if not self.subscribers:
            return adapter.complete(request, **self._settings)
        return self._complete_told(adapter, request, attempt)

    async def _complete_told(self, adapter: Adapter, request: Request, attempt: int) -> Response:
        with self._telling(adapter, request, attempt, stream=False) as told:
            response = await adapter.complete(request, **self._settings)
            told(response)
            return response

    async def _complete_again(
        self, adapter: Adapter, request: Request, policy: RetryPolicy
    ) -> Response:
        attempts = count()
        with self._waiting(request) as sleep:
            try:
                return await retry(
                    lambda: self._complete_once(adapter, request, next(attempts)),
                    policy,
                    sleep=sleep,
                )
            except CancelledCallError:
                gone = AbortError("the call was cancelled", request_id=request.request_id)
                raise gone from None

    def _stream_once(
        self, adapter: Adapter, request: Request, attempt: int
    ) -> AsyncIterator[StreamEvent]:
        events = adapter.stream(request, **self._settings)
        if not self.subscribers:
            return events
        return self._stream_told(adapter, request, attempt, events)

    async def _stream_told(
        self,
        adapter: Adapter,
        request: Request,
        attempt: int,
        events: AsyncIterator[StreamEvent],
    ) -> AsyncIterator[StreamEvent]:
        with self._telling(adapter, request, attempt, stream=True) as told:
            try:
                async for event in events:
                    if type(event) is Finish and event.finish_reason.reason != "error":
                        told(event.response or Response(finish_reason=event.finish_reason))
                    yield event
            finally:
                await close(events)

    async def _stream_again(
        self, adapter: Adapter, request: Request, policy: RetryPolicy
    ) -> AsyncIterator[StreamEvent]:
        attempts = count()
        with self._waiting(request) as sleep:
            events = retry_stream(
                lambda: self._stream_once(adapter, request, next(attempts)), policy, sleep=sleep
            )
            try:
                async for event in events:
                    yield event
            except CancelledCallError:
                for event in _cancelled(adapter, request):
                    yield event
            finally:
                await close(events)

    def _tell(self, event: CallEvent) -> None:
        for subscriber in self.subscribers:
            try:
                subscriber(event)
            except Exception:  # noqa: BLE001 -- whoever only listens must not end the call
                logger.exception("a subscriber failed on %s", event.type)

    @contextmanager
    def _waiting(self, request: Request) -> Iterator[Sleep]:
        """A sleep that `cancel` ends."""
        request_id = request.request_id or ""
        if request_id in self._waits:
            raise ConfigurationError(
                f"a call with the request id {request_id!r} is under way; ids must differ",
                request_id=request_id,
            )
        flight = self._waits[request_id] = Flight()
        try:
            yield lambda seconds: flight.wait(asyncio.sleep(seconds))
        finally:
            del self._waits[request_id]

    @contextmanager
    def _telling(
        self, adapter: Adapter, request: Request, attempt: int, *, stream: bool
    ) -> Iterator[Callable[[Response], None]]:
        """Tell of an attempt's start, and of its end, whichever it has."""
        about: dict[str, Any] = {
            "request_id": request.request_id or "",
            "provider": adapter.name,
            "model": request.model,
            "attempt": attempt,
        }
        began = perf_counter()
        is_told = False  # an attempt has one end, whatever happens after it

        def completed(response: Response) -> None:
            nonlocal is_told
            is_told = True
            reason = response.finish_reason.reason
            ended = CallCompleted(
                **about, usage=response.usage, finish_reason=reason, latency_ms=since(began)
            )
            self._tell(ended)

        def failed(**why: Any) -> None:
            if not is_told:
                self._tell(CallFailed(**about, **why, latency_ms=since(began)))

        self._tell(CallStarted(**about, stream=stream))
        try:
            yield completed
        except SDKError as error:
            failed(error_class=error.error_class, message=error.message, retryable=error.retryable)
            raise
        except (GeneratorExit, asyncio.CancelledError):
            gone = "whoever waited for it went away"
            failed(error_class=ErrorClass.CANCELLED, message=gone)
            raise
        except Exception as error:
            failed(message=type(error).__name__)  # of an adapter that is not ours
            raise


def policy_of(adapter: Adapter | None) -> RetryPolicy | None:
    """How often an adapter is set to be called again; None if it is not."""
    retries = getattr(adapter, "max_retries", 0)
    return RetryPolicy(max_retries=retries, on_long_wait="cap") if retries else None


def _cancelled(adapter: Adapter, request: Request) -> list[StreamEvent]:
    """A stream that was cancelled before it began."""
    reason = FinishReason(reason="cancelled")
    about: dict[str, Any] = {"provider": adapter.name, "request_id": request.request_id}
    response = Response(model=request.model, finish_reason=reason, **about)
    return [StreamStart(**about), Finish(finish_reason=reason, response=response)]
