"""The onion."""

import asyncio

import pytest

from interlingua.client.middleware.layers import Onion
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.events import StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Response


class Layer:
    """Notes when a request goes in and an answer comes out."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    async def complete(self, request, call_next):
        self.log.append(f"{self.name} in")
        response = await call_next(request)
        self.log.append(f"{self.name} out")
        return response

    async def stream(self, request, call_next):
        self.log.append(f"{self.name} in")
        async for event in call_next(request):
            self.log.append(f"{self.name} event")
            yield event
        self.log.append(f"{self.name} out")


async def answer(request):
    return Response(model=request.model)


async def events(request):
    yield StreamStart(model=request.model)


def complete(*layers):
    return asyncio.run(Onion(layers).wrap_complete(answer)(Request(model="m")))


def stream(*layers):
    async def run():
        return [event async for event in Onion(layers).wrap_stream(events)(Request(model="m"))]

    return asyncio.run(run())


def test_in_by_order_and_out_by_the_reverse():
    """In both modes the first registered is the outermost."""
    log = []
    layers = Layer("a", log), Layer("b", log)

    assert complete(*layers).model == "m"
    assert log == ["a in", "b in", "b out", "a out"]
    log.clear()
    assert stream(*layers) == [StreamStart(model="m")]
    assert log == ["a in", "b in", "b event", "a event", "b out", "a out"]


def test_functions_are_middleware_too():
    """A coroutine function for whole answers, an async generator function for streams."""

    async def rename(request, following):
        response = await following(request)
        return Response(model=response.model.upper())

    async def repeat(request, following):
        async for event in following(request):
            yield event
            yield event

    assert complete(rename, repeat).model == "M"
    assert len(stream(rename, repeat)) == 2


def test_a_layer_may_answer_itself():
    """The call behind it is then never made."""

    class Cached:
        async def complete(self, request, call_next):  # noqa: ARG002 -- that is the point
            return Response(model="cached")

    def never(request):
        raise AssertionError(request)

    onion = Onion([Cached()])

    assert asyncio.run(onion.wrap_complete(never)(Request())).model == "cached"
    assert onion.wrap_stream(events) is events


def test_what_is_no_middleware_is_refused():
    """At once, not at the first call."""
    with pytest.raises(ConfigurationError, match="is no middleware"):
        Onion([object()])
