"""What `RateLimit` and `Budget` have in common: they count before a call and after it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import ClassVar, Generic, TypeVar

from interlingua.client.middleware.contract import Call, CompleteNext, StreamNext
from interlingua.client.middleware.meter import StreamMeter, failed_amounts
from interlingua.runtime.fold import ClosedStream
from interlingua.spec.errors import StreamError
from interlingua.spec.events import StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, RateLimitInfo, Response, Usage

Token = TypeVar("Token")


class Counting(Generic[Token]):
    """A middleware that counts calls or attempts, with the same methods in both modes."""

    only_counts: ClassVar[bool] = True

    async def begin(self, request: Request, call: Call, /) -> Token | None:
        """
        Let a call begin, or raise an error instead.

        What is returned is passed to the other methods. With None, they are not called.
        """
        raise NotImplementedError

    def learn(self, token: Token, limit: RateLimitInfo, /) -> None:
        """The provider has reported its limits."""

    async def end(
        self,
        token: Token,
        usage: Usage | None,
        cost: Cost | None,
        error: BaseException | None,
        /,
    ) -> None:
        """
        The call has ended, with an error or without.

        The usage of a call that failed is an estimate, None if nothing is known to be billed.
        """
        raise NotImplementedError

    async def complete(self, request: Request, call_next: CompleteNext, call: Call) -> Response:
        """Return the answer of the next layer, and count it."""
        token = await self.begin(request, call)
        if token is None:
            return await call_next(request)
        try:
            response = await call_next(request)
            if response.rate_limit is not None:
                self.learn(token, response.rate_limit)
        except BaseException as error:
            await self.end(token, *failed_amounts(error, request, call), error)
            raise
        await self.end(token, response.usage, response.cost, None)
        return response

    async def stream(
        self, request: Request, call_next: StreamNext, call: Call
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the next layer, and count them at their end."""
        token = await self.begin(request, call)
        meter = StreamMeter()
        failure: BaseException | None = None
        try:
            async with ClosedStream(call_next(request)) as events:
                async for event in events:
                    meter.feed(event)
                    limits = event.rate_limit if type(event) is StreamStart else None
                    if limits is not None and token is not None:
                        self.learn(token, limits)
                    yield event
            if meter.finish is None:
                failure = StreamError("The stream ended without a finish event.")
        except BaseException as error:
            failure = error
            raise
        finally:
            if token is not None:
                reason = None if meter.finish is not None else failure
                await self.end(token, *meter.amounts(request, failure, call), reason)
