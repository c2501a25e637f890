"""The attempts of an operation other than generation: retries, middleware, call events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from interlingua.client.attempt_log import AttemptLog, Target
from interlingua.client.calls import Calls
from interlingua.client.custom_adapter import as_member_adapter, perform_custom
from interlingua.client.middleware.contract import Call
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
            check_input(value)
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
            number, began = log.start(target, stream=False), perf_counter()
            if log.outcomes:
                await log.settle()
            try:
                if inner.passes_operations:
                    result = await self._send(number, value)
                else:
                    call, send = replace(self._call, attempt=number), partial(self._send, number)
                    result = await inner.perform(call, value, send)
            except BaseException as error:
                log.fail(number, began, target, error)
                delay = await log.delay(error, policy, retries)
                if delay is None:
                    raise
            else:
                if isinstance(result, AsyncGenerator):
                    return WatchedItems(result, partial(self._end, number, began, target))
                usage, cost = metered(result)
                log.complete(number, began, target, usage or NO_USAGE, cost)
                if log.outcomes:
                    await log.settle()
                return result
            await asyncio.sleep(delay)
        raise AssertionError("unreachable")

    async def _end(self, number: int, began: float, target: Target, end: ItemsEnd) -> None:
        """The items of a streamed operation have ended."""
        log = self._log
        if end.error is None:
            log.complete(number, began, target, end.usage or NO_USAGE, end.cost)
        else:
            log.fail(number, began, target, end.error, end.usage, end.cost)
        if log.outcomes:
            await log.settle()

    def _send(self, number: int, value: Any) -> Awaitable[Any]:
        """The result of one attempt."""
        adapter, is_pending = (
            self._adapter,
            self._call.provider in self._calls.initialization.pending,
        )
        if isinstance(adapter, HttpAdapter) and not is_pending:
            return self._perform_at(value, adapter)
        return self._prepare_and_send(number, value)

    async def _prepare_and_send(self, number: int, value: Any) -> Any:
        """The same for an adapter that is to be initialized, or that is not an `HttpAdapter`."""
        await self._calls.initialization.ensure(self._call.provider)
        members = as_member_adapter(self._adapter)
        if members is None:
            return await self._perform_at(value, self._adapter)
        perform, on_member = partial(self._perform_at, value), self._log.on_member(number)
        return await members.perform_by_member(value, self.request_id, perform, on_member)

    def _perform_at(self, value: Any, adapter: Adapter) -> Awaitable[Any]:
        operation, request_id, tariffs = self._operation, self.request_id, self._calls.tariffs
        if not isinstance(adapter, HttpAdapter):
            return perform_custom(adapter, operation, value, request_id)
        if not adapter.has_operation_stations:
            return adapter.perform(operation, value, request_id=request_id, tariffs=tariffs)
        scope = self._scope or CancelScope()
        return adapter.operations.run(operation, value, request_id, tariffs, scope)
