"""
The shape of middleware that only counts: something before a call, and something after it.

`RateLimit` and `Budget` have this shape; it is not for other programs. Such a layer neither sees
nor changes answers, so one pair of methods serves whole answers and streams. Neighbours share one
coroutine, and nothing is awaited that does not have to wait.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from interlingua.client.middleware.meter import StreamMeter, failed_usage
from interlingua.runtime.fold import ClosedStream
from interlingua.spec.errors import StreamError
from interlingua.spec.events import StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, RateLimitInfo, Response, Usage

if TYPE_CHECKING:
    from interlingua.client.middleware.layers import CallInfo, CompleteNext, StreamNext

Token = TypeVar("Token")


class BeginEnd(Generic[Token]):
    """A layer around calls or attempts that does not see their answers."""

    def begin(
        self, request: Request, call: CallInfo, /
    ) -> Token | Coroutine[Any, Any, Token | None] | None:
        """
        Let a call begin, or raise an error instead.

        What is returned, or what a returned coroutine returns, is passed to the other methods.
        With None, they are not called.
        """
        raise NotImplementedError

    def learn(self, token: Token, limit: RateLimitInfo, /) -> None:
        """The provider has reported its limits."""

    def end(
        self,
        token: Token,
        usage: Usage | None,
        cost: Cost | None,
        error: BaseException | None,
        /,
    ) -> Awaitable[object] | None:
        """
        The call has ended, with an error or without; returns what has to be awaited, if anything.

        The usage of a call that failed is an estimate, None if nothing is known to be billed.
        """
        raise NotImplementedError


class BeginEndGroup:
    """Neighbouring layers of this shape; the first is the outermost."""

    __slots__ = ("_begins", "_ends", "_layers", "complete")

    def __init__(self, layers: Iterable[BeginEnd[Any]]) -> None:
        self._layers = tuple(layers)
        self._begins = tuple(layer.begin for layer in self._layers)
        self._ends = tuple(layer.end for layer in reversed(self._layers))
        self.complete: Callable[[CompleteNext, CallInfo, Request], Awaitable[Response]] = (
            self._complete_one if len(self._layers) == 1 else self._complete_all
        )
        """The whole answer of the next layer."""

    async def _complete_one(
        self, call_next: CompleteNext, call: CallInfo, request: Request
    ) -> Response:
        """With one layer, without the loops over several."""
        token = self._begins[0](request, call)
        if type(token) is CoroutineType:
            token = await token
        if token is None:
            return await call_next(request)
        try:
            response = await call_next(request)
            if response.rate_limit is not None:
                self._learn((token,), response.rate_limit)
        except BaseException as error:
            await self._end([token], failed_usage(error, request), None, error)
            raise
        waiting = self._ends[0](token, response.usage, response.cost, None)
        if waiting is not None:
            await waiting
        return response

    async def _complete_all(
        self, call_next: CompleteNext, call: CallInfo, request: Request
    ) -> Response:
        tokens: list[Any] = []  # what the layers that have begun returned
        try:
            for begin in self._begins:  # as in `stream`: another coroutine would take longer
                token = begin(request, call)
                if type(token) is CoroutineType:
                    token = await token
                tokens.append(token)
            response = await call_next(request)
            if response.rate_limit is not None:
                self._learn(tokens, response.rate_limit)
            usage, cost = response.usage, response.cost
            for end in self._ends:
                token = tokens.pop()
                if token is not None:
                    waiting = end(token, usage, cost, None)
                    if waiting is not None:
                        await waiting
        except BaseException as error:
            await self._end(tokens, failed_usage(error, request), None, error)
            raise
        else:
            return response

    async def stream(
        self, call_next: StreamNext, call: CallInfo, request: Request
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of the next layer."""
        tokens: list[Any] = []
        meter = StreamMeter()
        failure: BaseException | None = None
        try:
            for begin in self._begins:
                token = begin(request, call)
                if type(token) is CoroutineType:
                    token = await token
                tokens.append(token)
            async with ClosedStream(call_next(request)) as events:
                async for event in events:
                    meter.feed(event)
                    if type(event) is StreamStart and event.rate_limit is not None:
                        self._learn(tokens, event.rate_limit)
                    yield event
            if meter.finish is None:
                failure = StreamError("The stream ended without a finish event.")
        except BaseException as error:
            failure = error
            raise
        finally:
            usage = meter.usage(request, failure)
            reason = None if meter.finish is not None else failure
            await self._end(tokens, usage, meter.cost, reason)

    def _learn(self, tokens: Sequence[Any], limit: RateLimitInfo) -> None:
        for layer, token in zip(self._layers, tokens, strict=True):
            if token is not None:
                layer.learn(token, limit)

    async def _end(
        self,
        tokens: list[Any],
        usage: Usage | None,
        cost: Cost | None,
        error: BaseException | None,
    ) -> None:
        """End what has begun, the innermost first; if that fails, the layers outside are told."""
        failure: BaseException | None = None
        for end in self._ends[len(self._ends) - len(tokens) :]:
            token = tokens.pop()
            try:
                waiting = None if token is None else end(token, usage, cost, error)
                if waiting is not None:
                    await waiting
            except BaseException as raised:  # noqa: BLE001 -- the others are ended first
                failure = error = raised
        if failure is not None:
            raise failure
