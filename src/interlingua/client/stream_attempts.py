"""The attempts of a stream: as those of a whole answer, until its content begins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from itertools import count

from msgspec.structs import replace

from interlingua.client.attempt_log import Running, Target
from interlingua.client.attempts import Attempts
from interlingua.client.member_adapters import as_member_adapter
from interlingua.providers.adapter import HttpAdapter
from interlingua.runtime.cancel import CancelScope
from interlingua.runtime.fold import close_stream, fold_stream
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import SDKError, StreamError
from interlingua.spec.events import Finish, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import is_content


class StreamAttempts(Attempts):
    """One streamed call of a client."""

    __slots__ = ()

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
        from interlingua.client.middleware.shown import Shown

        shown = self._shown = Shown()
        return outer.stream(self.request, self.stream, self._call(), self._resolve, shown)

    def finish(self, finish: Finish, accumulator: StreamAccumulator) -> Response:
        """The response of a stream, from the events that have left the middleware."""
        shown = self._shown
        if shown is None:
            response = accumulator.response()
        else:
            from interlingua.client.middleware.shown import refuse_hidden_calls

            response = shown.settle(finish, accumulator)
            refuse_hidden_calls(response, accumulator.content())  # nothing runs that was not shown
        attempts = self._attempts_of(response)
        return replace(response, attempts=attempts, message=self._message(response))

    def _settle_partial(self, partial: Response) -> Response:
        """An answer that was cut off, labelled, with the usage and the cost of its attempt."""
        partial = self._meter_partial(partial)
        return replace(partial, message=self._message(partial))

    def _revise(self, event: StreamEvent, accumulator: StreamAccumulator) -> StreamEvent:
        return event if self._shown is None else self._shown.revise(event, accumulator)

    # The loop.

    async def stream(  # noqa: C901, PLR0912 -- one function: another generator would cost each delta
        self, request: Request
    ) -> AsyncGenerator[StreamEvent, None]:
        """
        The events of the answer; a failure after the first content event is not retried.

        Until then the events of an attempt that may be retried are withheld, so that the reader
        sees only one beginning.
        """
        log, request = self._log, self._resolve(request)
        target = Target(request.provider or "", request.model, request.chosen_because)
        policy = log.policy_for(target.provider, self._retry, self._adapters)
        for retries in count():
            may_retry = policy is not None and retries < policy.max_retries
            withheld: list[StreamEvent] | None = [] if may_retry else None
            running = log.start(target, stream=True)
            if request is not self.request:
                self._reasons = {**self._reasons, running.number: request.chosen_because}
            is_over, usage = False, None
            events = self._open(request, running)
            try:
                if log.outcomes:
                    await log.settle()
                if not self._calls.inner.is_empty:
                    await self._get_ready(target.provider)
                async for event in events:
                    kind = type(event)
                    if kind is StreamStart:
                        usage = event.usage  # type: ignore[union-attr]
                    elif type(event) is Finish and not is_over:
                        is_over = True
                        if self._losers:
                            self._record_losers(event.usage)
                        reason = event.finish_reason.reason
                        log.complete(running, event.usage, event.cost, reason)
                        if log.outcomes:
                            await log.settle()
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
                    await self._fail(running, request, error, usage)
                delay = await log.delay(error, None if withheld is None else policy, retries)
                if delay is None:
                    for early in withheld or () if isinstance(error, SDKError) else ():
                        yield early
                    raise
            finally:
                await close_stream(events)
            await asyncio.sleep(delay)

    # One attempt.

    def _open(self, request: Request, running: Running) -> AsyncIterator[StreamEvent]:
        """The events of one attempt, through the `per_attempt` middleware."""
        inner, shown, progress = self._calls.inner, self._shown, running.progress
        if shown is None:
            return self._send_stream(running, request)

        def send(request: Request) -> AsyncIterator[StreamEvent]:
            return shown.attach(partial(self._send_stream, running, request), progress=progress)

        return inner.stream(request, send, self._call(running), self._resolve, shown)

    def _send_stream(
        self, running: Running, request: Request, member: Adapter | None = None
    ) -> AsyncIterator[StreamEvent]:
        request, ids = self._resolve(request), self._call_ids
        key = request.provider or ""
        adapter = member or self._adapters.get(key) or self._calls.adapters[key]
        events: AsyncIterator[StreamEvent]
        if not isinstance(adapter, HttpAdapter) or not adapter.has_stations:
            members = as_member_adapter(adapter)
            if members is not None:
                send = partial(self._send_stream, running, request)
                on_member = self._log.on_member(running.number)
                return members.stream_by_member(request, send, on_member)
            events = self._custom(adapter, request).stream()
            running.progress.is_sent = True
        else:
            if adapter.has_branches:
                adapter = adapter.for_model(request.model)
            make_ready = partial(self._make_ready, adapter, request, running)
            scope = self._scope or CancelScope()
            events = adapter.generation.streaming.events(make_ready, scope)
        return events if ids is None else ids.read_events(events, key)
