"""A client that has sent nothing yet takes no place in a limit before it can send."""

import asyncio
import json
import subprocess
import sys

import pytest

from interlingua.client.client import Client
from interlingua.errors import AuthenticationError
from interlingua.middleware import Balance, RateLimit
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.request import Request
from interlingua.stores import MemoryStore
from interlingua.transport import AsgiTransport

MODEL = "openai:gpt-5.2"


class Noting(MemoryStore):
    """A store that notes when places are taken."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    async def reserve(self, limits, *, lease=60.0):
        self.seen.append("place")
        return await super().reserve(limits, lease=lease)


class Cold(AsgiTransport):
    """A transport that needs some time before its first request, and notes what it does."""

    def __init__(self, app, seen):
        super().__init__(app)
        self.seen = seen

    async def get_ready(self, url):
        assert url.startswith("http://x")
        self.seen.append("transport")
        await asyncio.sleep(0)

    def send(self, request):
        self.seen.append("send")
        return super().send(request)


async def whole(client):
    await client.complete(Request(model=MODEL, messages="Hi."))


async def streamed(client):
    async for _ in client.stream(Request(model=MODEL, messages="Hi.")):
        pass


async def operation(client):
    await client.count_tokens(Request(model=MODEL, messages="Hi."))


def cold_client(seen, make=None, *, key=None):
    async def make_key():
        seen.append("key")
        await asyncio.sleep(0)
        return "k"

    adapter = HttpAdapter(
        "openai",
        key or make_key,
        base_url="http://x",
        transport=Cold(Simulator(text("Hi.")), seen),
    )
    limit = RateLimit(concurrency=5, store=Noting(seen))
    return Client({"openai": adapter if make is None else make(adapter)}, middleware=[limit])


@pytest.mark.parametrize("make", [None, Balance], ids=["adapter", "balance"])
@pytest.mark.parametrize("way", [whole, streamed, operation])
def test_a_place_is_taken_when_the_request_can_leave(way, make):
    """The transport is ready and the key is made before a limit counts the request."""
    seen = []
    asyncio.run(way(cold_client(seen, make)))

    assert seen == ["transport", "key", "place", "send"]


def test_the_initialization_of_an_adapter_comes_before_its_place():
    """An adapter of one's own is initialized first, and is then asked to get ready."""
    seen = []

    class Own:
        name = "own"

        async def initialize(self):
            seen.append("initialize")

        def get_ready(self):
            seen.append("get_ready")

        async def complete(self, request):
            seen.append("send")
            raise AuthenticationError(request.model)

        def stream(self, request):
            raise NotImplementedError

    client = Client({"own": Own()}, middleware=[RateLimit(concurrency=1, store=Noting(seen))])
    with pytest.raises(AuthenticationError):
        asyncio.run(client.complete(Request(model="own:m", messages="Hi.")))

    assert seen == ["initialize", "get_ready", "place", "send"]


@pytest.mark.parametrize("way", [whole, streamed, operation])
def test_a_key_that_cannot_be_made_takes_no_place(way):
    """The error is that of the call, with its provider."""
    seen = []

    def no_key():
        raise ValueError("locked")

    with pytest.raises(AuthenticationError, match="failed with ValueError") as caught:
        asyncio.run(way(cold_client(seen, key=no_key)))

    assert seen == ["transport"]
    assert caught.value.provider == "openai"


PROGRAM = """
import asyncio, json, sys
from interlingua import Client, HttpAdapter, Request, transport
from interlingua.middleware import RateLimit
from interlingua.stores import MemoryStore

url, kind, way = sys.argv[1:]
known = []

class Noting(MemoryStore):
    async def reserve(self, limits, *, lease=60.0):
        known.append(set(sys.modules))
        return await super().reserve(limits, lease=lease)

async def main():
    limit = RateLimit(concurrency=5, store=Noting())
    sender = getattr(transport, kind)()
    adapter = HttpAdapter("openai", "k", base_url=url, transport=sender)
    async with Client({"openai": adapter}, middleware=[limit]) as client:
        request = Request(model="openai:gpt-5.2", messages="Hi.")
        if way == "whole":
            await client.complete(request)
        else:
            async for _ in client.stream(request):
                pass
        print(json.dumps(sorted(set(sys.modules) - known[0])))

asyncio.run(main())
"""


@pytest.mark.parametrize("way", ["whole", "streamed"])
@pytest.mark.parametrize("kind", ["HttpTransport", "HttpxTransport"])
def test_nothing_is_imported_after_the_place_is_taken(kind, way):
    """What the first request of a program needs is loaded before."""
    with serve_in_thread(Simulator(text("Hi."))) as server:
        command = [sys.executable, "-c", PROGRAM, server.url, kind, way]
        outcome = subprocess.run(command, capture_output=True, text=True, check=True)

    assert json.loads(outcome.stdout) == []
