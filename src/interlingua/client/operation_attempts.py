"""The attempts of an operation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from functools import partial
from itertools import count
from typing import Any

from msgspec.structs import replace

from interlingua.client.attempt_log import AttemptLog, Running, Target, find_failure
from interlingua.client.calls import Calls
from interlingua.client.custom_adapter import perform_custom
from interlingua.client.member_adapters import as_member_adapter
from interlingua.client.middleware.contract import Call
from interlingua.client.middleware.meter import is_unanswered
from interlingua.client.middleware.operation_meter import metered
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.operations import NO_USAGE, model_of
from interlingua.runtime.cancel import CancelScope
from interlingua.runtime.items import ItemsEnd, WatchedItems
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.contracts import Adapter
from interlingua.spec.operations import Operation, OperationInput
from interlingua.spec.request_check import check_input


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
