"""
The attempts of a call, of a model or of an operation: the only place that retries.

Middleware that runs once per request is outside of it, `per_attempt` middleware inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from functools import partial
from itertools import count
from typing import Any

from msgspec.structs import replace

from interlingua.client.attempt_log import AttemptLog, Running, Target, find_failure
from interlingua.client.calls import CallIds, Calls
from interlingua.client.custom_adapter import CustomCall, as_member_adapter, perform_custom
from interlingua.client.metering import add_metered, meter_failure
from interlingua.client.middleware.contract import Call, Progress
from interlingua.client.middleware.layers import Layers
from interlingua.client.middleware.meter import hedged_usage, is_unanswered
from interlingua.client.middleware.operation_meter import metered
from interlingua.client.middleware.shown import Shown, refuse_hidden_calls
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.http_requests import Ready
from interlingua.providers.operations import NO_USAGE, model_of
from interlingua.providers.uploads import Uploads
from interlingua.runtime.cancel import CancelScope, is_cancelled
from interlingua.runtime.fold import close_stream, fold_stream
from interlingua.runtime.items import ItemsEnd, WatchedItems
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import AbortError, SDKError, StreamError
from interlingua.spec.events import Finish, StreamEvent, StreamStart
from interlingua.spec.messages import Message
from interlingua.spec.operations import Operation, OperationInput
from interlingua.spec.request import Request
from interlingua.spec.request_check import check_input
from interlingua.spec.response import Attempt, FinishReason, Response, Usage, label_message
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import is_content

_NO_REASONS: dict[int, str | None] = {}
_CANCELLED = FinishReason(reason="cancelled")


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
        "_call_ids",
        "_calls",
        "_log",
        "_logged",
        "_ready",
        "_reasons",
        "_retry",
        "_scope",
        "_shown",
        "_step",
        "_uploads",
        "left_out",
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
        call_ids: CallIds | None = None,
    ) -> None:
        """
        `logged` holds the codes of warnings that earlier calls of the same run have logged.

        `uploads` holds the files that they have stored; the caller closes it. `call_ids` translates
        the ids of tool calls, for a session.
        """
        self.request: Request = calls.routing.address(request)
        """The request with its provider, the provider's name for the model, and an id."""
        self._calls = calls
        self._call_ids = call_ids
        self._uploads = uploads
        self._adapters = calls.routing.adapters
        self._reasons = _NO_REASONS  # why a model was chosen, by attempt; else as `request` says
        self._retry = retry
        self._step = step
        self._logged: set[str] = set() if logged is None else logged
        self._log = AttemptLog(calls, self.request.request_id or "", request.session_id, step)
        self._ready: tuple[Request, Adapter, Ready] | None = None
        self._shown: Shown | None = None  # only set if middleware sees the events
        self._scope: CancelScope | None = None
        self._answer: Response | None = None  # of `complete`
        self._accumulator: StreamAccumulator | None = None  # of a stream
        self.left_out: tuple[str, ...] = ()
        """The names of tools that the behaviour of the provider did not send."""

    @property
    def records(self) -> tuple[Attempt, ...]:
        """The finished attempts."""
        return self._log.records

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
        if response is self._answer and response.attempts is self._log.records:
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

    def _call(self, running: Running | None = None) -> Call:
        """What layers may know about the call, or about an attempt."""
        request = self.request
        return Call(
            provider=request.provider or "",
            model=request.model,
            request_id=request.request_id or "",
            step=self._step,
            attempt=None if running is None else running.number,
            adapters=self._adapters,
            tariffs=self._calls.tariffs,
            attempts=self._log.list_attempts,
            progress=Progress() if running is None else running.progress,
        )

    def finish(self, finish: Finish, accumulator: StreamAccumulator) -> Response:
        """The response of a stream, from the events that have left the middleware."""
        shown = self._shown
        if shown is None:
            response = accumulator.response()
        else:
            response = shown.settle(finish, accumulator)
            refuse_hidden_calls(response, accumulator.content())  # nothing runs that was not shown
        attempts = self._attempts_of(response)
        return replace(response, attempts=attempts, message=self._message(response))

    def _message(self, response: Response) -> Message:
        """The message of the answer, labelled with the attempt that made it."""
        known = response.message.metadata
        records = self._log.records
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
        records = self._log.records
        made = None if len(records) == 1 else self._find_maker(response)
        if made is None or made is records[-1]:
            return records
        return (*(each for each in records if each is not made), made)

    def _find_maker(self, response: Response) -> Attempt | None:
        """The attempt that made an answer: a layer may have asked on, and kept an earlier one."""
        records = self._log.records
        for each in reversed(records):
            if each.usage is response.usage:  # the same object, also if a layer changed the text
                return each
        same = (each for each in reversed(records) if each.provider == response.provider)
        return next(same, records[-1] if records else None)

    def _settle_partial(self, partial: Response) -> Response:
        """An answer that was cut off, labelled, with the usage and the cost of its attempt."""
        partial = self._meter_partial(partial)
        return replace(partial, message=self._message(partial))

    def _meter_partial(self, partial: Response) -> Response:
        records = self._log.records
        is_known = bool(records) and len(records) == self._log.started
        return add_metered(partial, records) if is_known else partial

    def label_partial(self, partial: Response) -> Response:
        """An answer that its reader did not read to its end; its message is labelled as cut."""
        partial, request = self._meter_partial(partial), self.request
        cut = replace(partial, finish_reason=_CANCELLED)
        message_id = f"{request.request_id}-{self._step}"
        provider = request.provider or ""
        because = self._reasons.get(self._log.started - 1, request.chosen_because)
        message = label_message(cut, message_id, provider, request.model, because=because)
        return replace(partial, message=message)

    def _revise(self, event: StreamEvent, accumulator: StreamAccumulator) -> StreamEvent:
        return event if self._shown is None else self._shown.revise(event, accumulator)

    # The loop.

    async def complete(self, request: Request) -> Response:
        """The whole answer, with retries as the policy allows."""
        inner, log = self._calls.inner, self._log
        if request is not self.request:
            request = self._resolve(request)
        target = Target(request.provider or "", request.model, request.chosen_because)
        for retries in count():
            running = log.start(target, stream=False)
            if request is not self.request:
                self._reasons = {**self._reasons, running.number: request.chosen_because}
            try:
                if log.outcomes:
                    await log.settle()
                if inner.is_empty:
                    response = await self._send(running, request)
                else:
                    await self._get_ready(target.provider)
                    call, send = self._call(running), partial(self._send, running)
                    response = await inner.complete(request, send, call, self._resolve)
            except BaseException as error:
                self._fail(running, request, error)
                policy = log.policy_for(target.provider, self._retry, self._adapters)
                delay = await log.delay(error, policy, retries)
                if delay is None:
                    raise
            else:
                reason = response.finish_reason.reason
                log.complete(running, response.usage, response.cost, reason)
                if log.outcomes:
                    await log.settle()
                message = self._message(response)
                self._answer = replace(response, attempts=log.records, message=message)
                return self._answer
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
                    self._fail(running, request, error, usage)
                delay = await log.delay(error, None if withheld is None else policy, retries)
                if delay is None:
                    for early in withheld or () if isinstance(error, SDKError) else ():
                        yield early
                    raise
            finally:
                await close_stream(events)
            await asyncio.sleep(delay)

    def _fail(
        self,
        running: Running,
        request: Request,
        error: BaseException,
        usage: Usage | None = None,
    ) -> None:
        log, progress = self._log, running.progress
        if isinstance(error, SDKError) and error.partial is not None:
            usage = error.partial.usage
        elif is_cancelled(error) and progress.usage is None and usage is None:
            usage = hedged_usage(request, progress, log.records, log.started)
        provider = running.target.provider
        adapter = self._adapters.get(provider) or self._calls.adapters[provider]
        tariffs, failure = self._calls.tariffs, find_failure(error, self._scope)
        if progress.usage is None:
            usage, cost = meter_failure(usage, request, self._accumulator, tariffs, adapter)
        else:
            usage, cost = progress.usage, progress.cost
        log.fail(running, failure, usage, cost)

    def explain(self, error: SDKError) -> None:
        """Add what is known of the call to an error that ended it, such as a timeout in a wait."""
        request = self.request
        error.add_facts(request_id=request.request_id, attempts=self._log.records or None)
        if not isinstance(error, AbortError):  # that is not about the provider
            error.add_facts(provider=request.provider, model=request.model)
        if self._log.failure is not error:
            error.add_cause(self._log.failure)

    # One attempt.

    def _get_ready(self, key: str) -> Awaitable[None]:
        """Wait for what takes time before the first request: no place in a limit is taken yet."""
        adapter = self._adapters.get(key) or self._calls.adapters[key]
        return self._calls.initialization.get_ready(key, adapter)

    async def _send(
        self, running: Running, request: Request, member: Adapter | None = None
    ) -> Response:
        calls, progress = self._calls, running.progress
        if request is not self.request and not calls.inner.is_empty:
            request = self._resolve(request)
        key = request.provider or ""
        adapter = member or self._adapters.get(key) or calls.adapters[key]
        ids = self._call_ids
        if not isinstance(adapter, HttpAdapter) or not adapter.has_stations:
            if key in calls.initialization.pending:
                await calls.initialization.ensure(key)
            members = as_member_adapter(adapter)
            if members is not None:
                send = partial(self._send, running, request)
                on_member = self._log.on_member(running.number)
                return await members.send_by_member(request, send, on_member)
            call = self._custom(adapter, request)
            progress.is_sent = True
            response = await call.complete()
        else:
            ready = await self._make_ready(adapter, request, running, stream=False)
            response = await adapter.generation.answer(ready)
        if not calls.inner.is_empty:
            progress.answer(response.usage, response.cost)
        return response if ids is None else ids.read(response, key)

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
            make_ready = partial(self._make_ready, adapter, request, running)
            scope = self._scope or CancelScope()
            events = adapter.generation.events(make_ready, scope)
        return events if ids is None else ids.read_events(events, key)

    def _custom(self, adapter: Adapter, request: Request) -> CustomCall:
        """One attempt at an adapter that is not ours."""
        call = CustomCall(self._calls, adapter, request, self._call_ids, self._logged)
        self.left_out = call.left_out
        return call

    async def _make_ready(
        self, adapter: HttpAdapter, request: Request, running: Running, *, stream: bool = True
    ) -> Ready:
        """The encoded request, made once for all attempts that send the same one."""
        attempt, progress = running.number, running.progress
        if request.provider in self._calls.initialization.pending:
            await self._calls.initialization.ensure(request.provider)
        known = self._ready
        if known is not None and known[0] is request and known[1] is adapter:
            progress.is_sent = True
            on_resend = partial(self._log.resent.add, attempt)
            return known[2].for_attempt(self._step, attempt, on_resend, progress.connect)
        ids = self._call_ids
        sent = request if ids is None else ids.write(request, adapter)
        if self._uploads is not None:
            sent = await adapter.operations.store_files(sent, self._uploads)
        encoded = await adapter.generation.encode(sent, stream=stream, logged=self._logged)
        ready = await adapter.generation.address(
            encoded,
            step=self._step,
            attempt=attempt,
            on_resend=partial(self._log.resent.add, attempt),
            on_connect=progress.connect,
            tariffs=self._calls.tariffs,
        )
        self._ready, self.left_out = (request, adapter, ready), ready.left_out
        progress.is_sent = True
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
        if request.short_name is not None:  # so was that
            request = replace(request, short_name=None)
        return self._calls.routing.resolve_again(request)


class OperationAttempts:
    """
    One call of an operation, at the adapter of this key.

    It waits in the scope of its caller, which registers it under the id of the call.
    """

    def __init__(
        self,
        calls: Calls,
        key: str,
        operation: str | Operation,
        value: Any,
        retry: RetryPolicy | None = None,
    ) -> None:
        if isinstance(value, OperationInput):
            value = check_input(value)
        self._calls = calls
        self._operation = operation
        self._value = value
        self._retry = retry
        self._scope: CancelScope | None = None
        self.request_id: str = getattr(value, "request_id", None) or new_ulid()
        """The id for `client.cancel`, events and logs."""
        name = operation if isinstance(operation, str) else operation.name
        session_id = getattr(value, "session_id", None)
        self._log = AttemptLog(calls, self.request_id, session_id, operation=name)
        self._adapter = calls.routing.adapters[key]
        self._call = Call(
            name=name,
            provider=key,
            model=model_of(value),
            request_id=self.request_id,
            adapters=calls.routing.adapters,
            tariffs=calls.tariffs,
            attempts=self._log.list_attempts,
        )

    def perform(self, scope: CancelScope) -> Awaitable[Any]:
        """The result, through all middleware; of a streamed operation, an iterator of its items."""
        self._scope = scope
        outer = self._calls.outer
        if outer.passes_operations:
            return self._perform(self._value)
        return outer.perform(self._call, self._value, self._perform)

    async def _perform(self, value: Any) -> Any:
        """The result, with retries as the policy allows."""
        log, inner, key = self._log, self._calls.inner, self._call.provider
        target = Target(key, self._call.model if value is self._value else model_of(value))
        policy = log.policy_for(key, self._retry, self._call.adapters)
        for retries in count():
            running = log.start(target, stream=False)
            try:
                if log.outcomes:
                    await log.settle()
                if inner.passes_operations:
                    result = await self._send(running, value)
                else:
                    await self._calls.initialization.get_ready(key, self._adapter)
                    call = replace(self._call, attempt=running.number, progress=running.progress)
                    result = await inner.perform(call, value, partial(self._send, running))
            except BaseException as error:
                if is_unanswered(error, running.progress):
                    self._call.progress.lost += 1
                log.fail(running, find_failure(error, self._scope))
                delay = await log.delay(error, policy, retries)
                if delay is None:
                    raise
            else:
                if isinstance(result, AsyncGenerator):
                    return WatchedItems(result, partial(self._end, running))
                usage, cost = metered(result)
                log.complete(running, usage or NO_USAGE, cost)
                if log.outcomes:
                    await log.settle()
                return result
            await asyncio.sleep(delay)
        raise AssertionError("unreachable")

    async def _end(self, running: Running, end: ItemsEnd) -> None:
        """The items of a streamed operation have ended."""
        log = self._log
        if end.error is None:
            log.complete(running, end.usage or NO_USAGE, end.cost)
        else:
            log.fail(running, find_failure(end.error, self._scope), end.usage, end.cost)
        if log.outcomes:
            await log.settle()

    def _send(self, running: Running, value: Any) -> Awaitable[Any]:
        """The result of one attempt."""
        is_pending = self._call.provider in self._calls.initialization.pending
        if isinstance(self._adapter, HttpAdapter) and not is_pending:
            running.progress.is_sent = True
            return self._perform_at(value, self._adapter)
        return self._prepare_and_send(running, value)

    async def _prepare_and_send(self, running: Running, value: Any) -> Any:
        """The same for an adapter that is to be initialized, or that is not an `HttpAdapter`."""
        await self._calls.initialization.ensure(self._call.provider)
        running.progress.is_sent = True
        members = as_member_adapter(self._adapter)
        if members is None:
            return await self._perform_at(value, self._adapter)
        perform, on_member = partial(self._perform_at, value), self._log.on_member(running.number)
        return await members.perform_by_member(value, self.request_id, perform, on_member)

    def _perform_at(self, value: Any, adapter: Adapter) -> Awaitable[Any]:
        operation, request_id, tariffs = self._operation, self.request_id, self._calls.tariffs
        if not isinstance(adapter, HttpAdapter):
            return perform_custom(adapter, operation, value, request_id)
        if not adapter.has_operation_stations:
            return adapter.perform(operation, value, request_id=request_id, tariffs=tariffs)
        scope = self._scope or CancelScope()
        return adapter.operations.run(operation, value, request_id, tariffs, scope)
