"""Reports of usage to a callback of the program, while an answer streams and at its end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from interlingua.client.calls import Calls
from interlingua.client.metering import seller_of
from interlingua.client.middleware.contract import (
    Call,
    CompleteNext,
    PerformNext,
    StreamNext,
)
from interlingua.providers.cost import price_usage
from interlingua.providers.operations import NO_USAGE
from interlingua.runtime.callbacks import settle
from interlingua.runtime.fold import close_stream
from interlingua.runtime.items import ItemsEnd, WatchedItems
from interlingua.runtime.log import logger
from interlingua.spec.events import Finish, StreamEvent, StreamStart
from interlingua.spec.modalities.batch import BatchResult
from interlingua.spec.operations import OperationResult
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, Response, Usage
from interlingua.streams.grammar import DELTAS
from interlingua.tokens.estimate import estimate_request, estimate_tokens

BATCH = 100
"""How many output tokens there are between two reports by default."""
_LETTERS = 3  # characters that are certainly no more than a token, in most languages


class UsageReport(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """
    What a model call has used since its last report.

    The reports of a call add up to the last one's `total`: its `usage` is the rest, and corrects
    the estimates before it. So a count of it may be negative.
    """

    usage: Usage
    """What is new. An estimate (`usage.estimated`) until the end of the call."""
    cost: Cost | None = None
    """What that costs; None if the price is unknown."""
    total: Usage = Usage()
    """The usage of the call so far."""
    total_cost: Cost | None = None
    """What the call has cost so far; None if the price is unknown."""
    is_final: bool = False
    """Whether it is the last report of the call."""
    caller_id: str | None = None
    """The `caller_id` of the run."""
    request_id: str = ""
    """The id of the run."""
    session_id: str | None = None
    """The conversation, if the call is a turn of one."""
    provider: str = ""
    """The adapter that was called."""
    model: str = ""
    """The model."""
    call: int = 0
    """The number of the model call in its run, from 0."""


UsageCallback: TypeAlias = Callable[[UsageReport], object]
"""Called with each report; sync or async. The call waits for it."""


class UsageReports:
    """
    The layer of a run with `on_usage=`.

    A callback that fails is logged; it does not end the run.
    """

    def __init__(
        self, callback: UsageCallback, calls: Calls, *, batch: int, caller_id: str | None
    ) -> None:
        self._callback = callback
        self._calls = calls
        self._batch = batch
        self._caller_id = caller_id
        self._count = 0

    async def complete(self, request: Request, call_next: CompleteNext) -> Response:
        """One report: the whole answer."""
        meter = self._open(request)
        response = await call_next(request)
        await self._send(meter.end(response.usage, response.cost))
        return response

    async def stream(
        self, request: Request, call_next: StreamNext
    ) -> AsyncGenerator[StreamEvent, None]:
        """A report after each batch of tokens, and one at the end."""
        meter = self._open(request)
        events = call_next(request)
        try:
            async for event in events:
                if type(event) in DELTAS:
                    if meter.feed(event.delta):  # type: ignore[union-attr]
                        await self._send(meter.report())
                elif type(event) is StreamStart:
                    meter.begin(event)
                elif type(event) is Finish:
                    await self._send(meter.end(event.usage, event.cost))
                yield event
        except BaseException:
            if meter.is_open:  # what had arrived is billed
                await self._send(meter.end())
            raise
        finally:
            await close_stream(events)

    async def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Any:
        """One report for a result that shows its usage; of a stream or a job, at its end."""
        result = await call_next(value)
        if operation.name == "batch_results":
            return self._report_results(result, operation)
        if isinstance(result, AsyncGenerator):

            async def end(items: ItemsEnd) -> None:
                await self._report(operation, items.result)

            return WatchedItems(result, end)
        await self._report(operation, result)
        return result

    async def _report(self, operation: Call, result: Any) -> None:
        is_result = isinstance(result, OperationResult) and result.is_final
        if not is_result or result.usage == NO_USAGE:
            return
        request = Request(
            model=result.model, provider=operation.provider, request_id=operation.request_id
        )
        await self._send(self._open(request).end(result.usage, result.cost))

    async def _report_results(
        self, results: AsyncGenerator[BatchResult, None], operation: Call
    ) -> AsyncGenerator[BatchResult, None]:
        """The results of a batch, with one report for each answer."""
        async with aclosing(results):
            async for result in results:
                response = result.response
                if response is not None:
                    request = Request(
                        model=response.model, provider=operation.provider, request_id=result.id
                    )
                    await self._send(self._open(request).end(response.usage, response.cost))
                yield result

    def _open(self, request: Request) -> _Meter:
        call, self._count = self._count, self._count + 1
        return _Meter(request, self._calls, self._batch, self._caller_id, call)

    async def _send(self, report: UsageReport) -> None:
        try:
            await settle(self._callback(report))
        except Exception:  # noqa: BLE001 -- a callback that fails must not end the run
            logger.exception(
                "on_usage raised an exception; the run goes on.",
                extra={"request_id": report.request_id},
            )


class _Meter:
    """The usage of one model call, and what of it was reported."""

    def __init__(
        self, request: Request, calls: Calls, batch: int, caller_id: str | None, call: int
    ) -> None:
        self._request = request
        key = request.provider or ""
        adapter = calls.adapters.get(key)  # it may be unregistered before the end of the call
        self._seller = seller_of(adapter, key)
        self._tariffs = calls.tariffs
        self._batch = batch
        self._facts: dict[str, Any] = {
            "caller_id": caller_id,
            "request_id": request.request_id or "",
            "session_id": request.session_id,
            "provider": request.provider or "",
            "model": request.model,
            "call": call,
        }
        self._served = request.model
        self._pieces: list[str] = []
        self._letters = 0
        self._pending = 0  # tokens since the last report
        self._total = Usage(estimated=True)
        self._reported: tuple[Usage, Cost] = (Usage(), Cost())
        self.is_open: bool = False
        """Whether a stream has begun and not ended."""

    def begin(self, start: StreamStart) -> None:
        """The start of a stream, which may have the input tokens."""
        self.is_open = True
        self._served = start.model or self._served
        known = start.usage or Usage()
        tokens = known.input_tokens or estimate_request(self._request, self._request.provider or "")
        self._total = replace(known, input_tokens=tokens, output_tokens=0, estimated=True)

    def feed(self, delta: str) -> bool:
        """Count a piece of the answer; whether a report is due."""
        self._pieces.append(delta)
        self._letters += len(delta)
        if self._letters < self._batch * _LETTERS and len(self._pieces) < self._batch:
            return False
        self._count_pieces()
        return self._pending >= self._batch

    def _count_pieces(self) -> None:
        tokens = estimate_tokens("".join(self._pieces), self._request.model)
        self._pieces, self._letters = [], 0
        self._pending += tokens
        output = self._total.output_tokens + tokens
        self._total = replace(self._total, output_tokens=output)

    def report(self) -> UsageReport:
        """What is new, as an estimate."""
        tariffs = self._tariffs
        self._pending = 0
        tariff = tariffs[self._seller, self._served, self._request.model]
        return self._make(self._total, price_usage(self._total, tariff, tariffs.clock()))

    def end(self, usage: Usage | None = None, cost: Cost | None = None) -> UsageReport:
        """The last report; without a usage, of a call that failed."""
        self.is_open = False
        if usage is None:
            self._count_pieces()
            return replace(self.report(), is_final=True)
        return replace(self._make(usage, cost), is_final=True)

    def _make(self, total: Usage, cost: Cost | None) -> UsageReport:
        usage, spent = self._reported
        self._reported = (total, spent if cost is None else cost)
        rest = None if cost is None else _minus(cost, spent, Cost)
        return UsageReport(
            usage=_minus(total, usage, Usage),
            cost=rest,
            total=total,
            total_cost=cost,
            **self._facts,
        )


def _minus(total: Any, part: Any, kind: Any) -> Any:
    """The difference of all amounts; other fields are those of `total`."""
    values = {}
    for name in kind.__struct_fields__:
        value, less = getattr(total, name), getattr(part, name)
        is_amount = type(value) in (int, float) or (value is None and type(less) in (int, float))
        values[name] = (value or 0) - (less or 0) if is_amount else value
    return kind(**values)
