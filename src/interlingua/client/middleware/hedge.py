"""`Hedge`: a second request, if the first one does not answer in time; the first answer counts."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from functools import partial
from math import ceil
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

from msgspec.structs import replace

from interlingua.client.middleware.contract import NO_CALL, Call, CompleteNext, StreamNext
from interlingua.client.middleware.other_model import OtherModel, to_model
from interlingua.lazy import Remade
from interlingua.runtime.fold import close_stream
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.grammar import is_content

SAMPLES = 200
"""How many answers of each model a quantile is taken of."""
ENOUGH_SAMPLES = 20
"""With fewer samples the floor is used."""
_STEP = 10  # samples after which the quantile is computed again
_BURST = 100  # calls whose share of hedges may be saved up
_PATIENCE = 1.0  # seconds to wait for the end of a cancelled request
_MODELS = 1000  # callers choose the names
_read_quantile = re.compile(r"p(\d{1,2}(?:\.\d+)?)").fullmatch


def quantile(samples: Iterable[float], part: float) -> float:
    """The smallest sample such that at least this part of all samples are not greater."""
    ordered = sorted(samples)
    return ordered[max(ceil(part * len(ordered)) - 1, 0)]


class LearnedTime:
    """A quantile of the last samples; with few samples it is 0."""

    __slots__ = ("_count", "_part", "_samples", "value")

    def __init__(self, part: float) -> None:
        self._part = part
        self._samples: deque[float] = deque(maxlen=SAMPLES)
        self._count = 0
        self.value: float = 0.0

    def add(self, seconds: float) -> None:
        """Add a sample."""
        self._samples.append(seconds)
        self._count += 1
        # Sorting at each call would cost more than the rest of this middleware.
        if self._count >= ENOUGH_SAMPLES and self._count % _STEP == 0:
            self.value = quantile(self._samples, self._part)


class HedgeShare:
    """Limits the hedges to a share of the calls; some may be saved up."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._most = max(1.0, share * _BURST)
        self._left = 1.0

    def add_call(self) -> None:
        """There was one more call."""
        self._left = min(self._left + self._share, self._most)

    def take(self) -> bool:
        """Whether one more hedge is within the share; it is counted then."""
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Hedge(Remade):
    """
    Sends a second request if the first one does not answer in time; the first answer counts.

        Client(adapters, middleware=[Hedge(after=2.0)])

    `after` is a number of seconds, or a quantile such as `"p95"` of what each model took before,
    but not less than `floor` seconds. For a whole answer the time until its end counts, for a
    stream that until the first part of the answer; after that nothing is sent. The second request
    goes to the same model, or to `model`. The request that loses is cancelled, and
    `response.attempts` has both; it counts its input and the output of the winner, as an estimate.
    At most `share` of all calls are hedged, so that an outage does not double the load.
    """

    def __init__(
        self,
        after: float | str = "p95",
        *,
        model: str | OtherModel | None = None,
        share: float = 0.1,
        floor: float = 1.0,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._seconds, self._part = _read_after(after)
        if not 0 < share <= 1:
            raise ConfigurationError(f"Hedge: share is more than 0 and at most 1, not {share!r}.")
        if not 0 <= floor < float("inf"):
            raise ConfigurationError(f"Hedge: floor is a number of seconds, not {floor!r}.")
        self._model = None if model is None else to_model(model)
        self._share = HedgeShare(share)
        self._floor = floor
        self._clock = clock
        self._times: dict[tuple[str | None, str, bool], LearnedTime] = {}

    async def complete(
        self, request: Request, call_next: CompleteNext, call: Call = NO_CALL
    ) -> Response:
        """Return the answer that comes first."""
        race = _Race(self, request, call, partial(_Whole, call_next), stream=False)
        try:
            winner = await race.run()
        finally:
            await race.close()
        return winner.task.result()

    async def stream(
        self, request: Request, call_next: StreamNext, call: Call = NO_CALL
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the answer that begins first."""
        race = _Race(self, request, call, partial(_Beginning, call_next), stream=True)
        try:
            winner = await race.run()
            await race.close(winner)
            for event in winner.withheld:
                yield event
            async for event in winner.events:
                yield event
        finally:
            await race.close()

    def delay(self, request: Request, *, stream: bool) -> float:
        """Return the seconds after which a second request is sent."""
        if self._part is None:
            return self._seconds
        learned = self._times.get((request.provider, request.model, stream))
        return self._floor if learned is None else max(learned.value, self._floor)

    def end(self, request: Request, began: float, *, stream: bool) -> None:
        """Note that a call that began at this time has its answer, or the start of it."""
        if self._part is None:
            return
        key = (request.provider, request.model, stream)
        if key not in self._times:
            if len(self._times) >= _MODELS:
                self._times.clear()
            self._times[key] = LearnedTime(self._part)
        self._times[key].add(self._clock() - began)

    def second(self, request: Request) -> Request | None:
        """Return the second request; None if the share of hedges is used up."""
        if not self._share.take():
            return None
        if self._model is None:
            return request
        reason = f"hedge: {request.provider}:{request.model} had not answered in time"
        return replace(self._model.apply(request), chosen_because=reason)

    def begin(self) -> float:
        """Note that a call begins; return the time."""
        self._share.add_call()
        return self._clock()


class _Runner(Protocol):
    """A request that is under way."""

    @property
    def task(self) -> asyncio.Task[Any]: ...

    async def close(self) -> None: ...


_Kind = TypeVar("_Kind", bound=_Runner)


class _Race(Generic[_Kind]):
    """One or two requests of one call."""

    def __init__(
        self,
        hedge: Hedge,
        request: Request,
        call: Call,
        start: Callable[[Request], _Kind],
        *,
        stream: bool,
    ) -> None:
        self._hedge = hedge
        self._request = request
        self._call = call
        self._start = start
        self._is_stream = stream
        self._runners: list[_Kind] = []

    @property
    def is_hedged(self) -> bool:
        """Whether there was a second request."""
        return len(self._runners) > 1

    async def run(self) -> _Kind:
        """The request that answers first; the error of the first one if none does."""
        hedge, request = self._hedge, self._request
        began = hedge.begin()
        first = self._start(request)
        self._runners.append(first)
        await asyncio.wait({first.task}, timeout=hedge.delay(request, stream=self._is_stream))
        if not first.task.done():
            second = hedge.second(request)
            if second is not None:
                self._runners.append(self._start(second))
        winner = await self._find_winner()
        hedge.end(request, began, stream=self._is_stream)
        return winner

    async def _find_winner(self) -> _Kind:
        while True:
            for runner in self._runners:
                task = runner.task
                if task.done() and not task.cancelled() and task.exception() is None:
                    return runner
            pending = [runner.task for runner in self._runners if not runner.task.done()]
            if not pending:
                break
            await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        first = self._runners[0].task
        error = None if first.cancelled() else first.exception()
        if isinstance(error, SDKError) and self.is_hedged:
            error.add_outcome(self._call.attempts())
        first.result()  # raises
        raise AssertionError("unreachable")

    async def close(self, winner: _Kind | None = None) -> None:
        """Cancel all requests but the winner, and wait until they have ended."""
        others = [runner for runner in self._runners if runner is not winner]
        for runner in others:  # all of them before the wait, which may be cancelled
            runner.task.cancel()
        for runner in others:
            await runner.close()


class _Whole:
    """A request for a whole answer."""

    def __init__(self, call_next: CompleteNext, request: Request) -> None:
        self.task: asyncio.Task[Response] = asyncio.ensure_future(_wait(call_next, request))

    async def close(self) -> None:
        await _end(self.task)


async def _wait(call_next: CompleteNext, request: Request) -> Response:
    return await call_next(request)


class _Beginning:
    """A request for a stream, read up to the first part of its answer."""

    def __init__(self, call_next: StreamNext, request: Request) -> None:
        self.events: AsyncIterator[StreamEvent] = call_next(request)
        self.withheld: list[StreamEvent] = []
        self.task: asyncio.Task[None] = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for event in self.events:
            self.withheld.append(event)
            if is_content(event) or type(event) is Finish:
                return

    async def close(self) -> None:
        if await _end(self.task):
            await close_stream(self.events)


async def _end(task: asyncio.Task[Any]) -> bool:
    """Wait for the end of a task that was cancelled; False if it does not end."""
    if not task.done():
        await asyncio.wait({task}, timeout=_PATIENCE)
    if task.done() and not task.cancelled():
        task.exception()  # marks it as retrieved: that of the winner counts
    return task.done()


def _read_after(after: float | str) -> tuple[float, float | None]:
    """The seconds, or the part of a quantile."""
    if isinstance(after, str):
        found = _read_quantile(after)
        if found is None or not 0 < float(found[1]) < 100:
            raise ConfigurationError(f"Hedge: a quantile is written as 'p95', not {after!r}.")
        return 0.0, float(found[1]) / 100
    if isinstance(after, bool) or not 0 <= after < float("inf"):
        raise ConfigurationError(f"Hedge: after is a number of seconds, or 'p95', not {after!r}.")
    return float(after), None
