"""
The attempts of a call of a model: the only place that retries.

Those of a stream are in `stream_attempts.py`, those of an operation in `operation_attempts.py`.
Middleware that runs once per request is outside of them, `per_attempt` middleware inside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from interlingua.client.attempt_log import AttemptLog, Running, Target, find_failure
from interlingua.client.calls import CallIds, Calls
from interlingua.client.configured import adapter_for
from interlingua.client.member_adapters import as_member_adapter
from interlingua.client.middleware.contract import Call, Progress
from interlingua.client.middleware.layers import Layers
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.http_requests import Ready
from interlingua.runtime.cancel import CancelScope, is_cancelled
from interlingua.spec.contracts import Adapter
from interlingua.spec.defaults import MANY_PARTS
from interlingua.spec.errors import AbortError, SDKError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt, Cost, FinishReason, Response, Usage, label_message

if TYPE_CHECKING:
    from interlingua.client.custom_adapter import CustomCall
    from interlingua.client.middleware.shown import Shown
    from interlingua.providers.uploads import Uploads
    from interlingua.streams.accumulate import StreamAccumulator


class _Loser(NamedTuple):
    """An attempt at a stream that a hedge has cancelled, while the winner is under way."""

    running: Running
    request: Request
    failure: BaseException
    usage: Usage
    latency: int
    """In milliseconds."""


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
        "_losers",
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
        self._losers: tuple[_Loser, ...] = ()
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

    def _meter_partial(self, partial: Response) -> Response:
        records = self._log.records
        is_known = bool(records) and len(records) == self._log.started
        if not is_known:
            return partial
        from interlingua.client.metering import add_metered

        return add_metered(partial, records)

    def label_partial(self, partial: Response) -> Response:
        """An answer that its reader did not read to its end; its message is labelled as cut."""
        partial, request = self._meter_partial(partial), self.request
        cut = replace(partial, finish_reason=_CANCELLED)
        message_id = f"{request.request_id}-{self._step}"
        provider = request.provider or ""
        because = self._reasons.get(self._log.started - 1, request.chosen_because)
        message = label_message(cut, message_id, provider, request.model, because=because)
        return replace(partial, message=message)

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
                await self._fail(running, request, error)
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

    async def _fail(
        self,
        running: Running,
        request: Request,
        error: BaseException,
        usage: Usage | None = None,
    ) -> None:
        log, progress = self._log, running.progress
        failure = find_failure(error, self._scope)
        others = log.started - len(log.records) - len(self._losers) - 1  # that are under way
        if isinstance(error, SDKError) and error.partial is not None:
            usage = error.partial.usage
        elif log.started > 1 and is_cancelled(error) and progress.usage is None:
            from interlingua.client.middleware.meter import hedged_usage

            is_beaten = progress.is_stream and others > 0
            if usage is None:
                usage = hedged_usage(request, progress, log.records, is_beaten=is_beaten)
            if is_beaten and usage is not None:
                loser = _Loser(running, request, failure, usage, running.latency())
                self._losers = (*self._losers, loser)
                return
        accumulator, cost = self._accumulator, progress.cost
        has_begun = accumulator is not None and accumulator.has_begun
        try:
            if progress.usage is not None:
                usage = progress.usage
            elif accumulator is not None and accumulator.is_large:
                usage, cost = await asyncio.to_thread(self._meter, usage, request, accumulator)
            elif usage is not None or has_begun:
                usage, cost = self._meter(usage, request, accumulator)
        finally:  # also if the task is cancelled meanwhile
            if self._losers and not others:
                self._record_losers(usage)
            log.fail(running, failure, usage, cost)

    def _meter(
        self, usage: Usage | None, request: Request, accumulator: StreamAccumulator | None = None
    ) -> tuple[Usage | None, Cost | None]:
        """The usage and the cost of an attempt that failed."""
        from interlingua.client.metering import meter_failure

        key = request.provider or ""
        adapter = self._adapters.get(key) or self._calls.adapters[key]
        return meter_failure(usage, request, accumulator, self._calls.tariffs, adapter)

    def _record_losers(self, winner: Usage | None) -> None:
        """Record the losers of a hedged stream, now that it is known how long its answer is."""
        from interlingua.client.middleware.meter import with_output_of

        losers, self._losers = self._losers, ()
        for running, request, failure, usage, latency in losers:
            metered = self._meter(with_output_of(usage, winner), request)
            self._log.fail(running, failure, *metered, latency=latency)

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
        adapter = adapter_for(adapter, self.request.model)
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
            if adapter.has_branches:
                adapter = adapter.for_model(request.model)
            ready = await self._make_ready(adapter, request, running, stream=False)
            response = await adapter.generation.answer(ready)
        if not calls.inner.is_empty:
            progress.answer(response.usage, response.cost)
        if ids is None:
            return response
        read = partial(ids.read, response, key)
        is_large = len(response.message.content) > MANY_PARTS
        return await asyncio.to_thread(read) if is_large else read()

    def _custom(self, adapter: Adapter, request: Request) -> CustomCall:
        """One attempt at an adapter that is not ours."""
        from interlingua.client.custom_adapter import CustomCall

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
