"""Our client against the simulator, over real HTTP on loopback."""

import asyncio
import contextlib

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, latency, serve_in_thread, stall, text
from interlingua.spec.modalities.files import FileInput, UploadInput
from interlingua.spec.request import Request
from interlingua.transport import AsgiTransport
from support import virtual_time
from support.patience import PATIENCE

DIALECTS = {
    "openai": "openai_responses",
    "openai_compatible": "openai_chat",
    "anthropic": "anthropic_messages",
    "gemini": "gemini_generate",
    "bedrock_converse": "bedrock_converse",
}
"""The row that speaks each dialect."""

MODELS = {
    "openai": "gpt-5.2",
    "openai_compatible": "house-model",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-flash",
    "bedrock_converse": "us.anthropic.claude-haiku-4-5-20251001-v1:0",
}
KEY = "sk-planted-key-of-a-test"
SLOW = text("word " * 2_000) + latency(between=0.01, write_bytes=400) + stall(8_000)
"""An answer that comes slowly and never ends, whole and streamed; its first words come soon."""


class Peer:
    """A simulator that runs, and a client with an adapter for each dialect."""

    run = staticmethod(asyncio.run)

    def __init__(self, app, server, **settings):
        self.app = app
        self.server = server
        self.client = Client(adapters(server.url, **settings))

    def ask(self, provider, messages="Weather in Oslo?", **fields):
        model = fields.pop("model", MODELS[provider])
        return Request(provider=provider, model=model, messages=messages, **fields)

    def stored(self, file_id):
        """The bytes of a file that the simulator has, also where it refuses to send them."""
        return stored(self.app, file_id)


class VirtualPeer(Peer):
    """The same without sockets and real time: a timeout takes no time, and a slow machine none."""

    run = staticmethod(virtual_time.run)

    def __init__(self, app, **settings):
        self.app = app
        transport = AsgiTransport(app)
        self.client = Client(adapters("http://simulator.invalid", transport=transport, **settings))


def in_virtual_time(*answers, **settings):
    """A simulator that answers so, in an event loop of virtual time."""
    return VirtualPeer(Simulator(*answers, strict=True), **settings)


def stored(app, file_id):
    """The bytes of a file in a simulator."""
    one = FileInput(file_id=file_id.rpartition("/")[2])
    return app._operations.files.download_file(one)


def generated(app, data):
    """The id of a file that a simulator has as if it had made it."""
    value = UploadInput(content=data, file_name="made.bin", media_type="application/octet-stream")
    return app._operations.files.add_generated(value).id


def adapters(url, *, key=KEY, **settings):
    bases = dict.fromkeys(DIALECTS, url) | {"openai_compatible": f"{url}/v1"}
    return {name: HttpAdapter(name, key, base_url=base, **settings) for name, base in bases.items()}


@contextlib.contextmanager
def simulated(*answers, key=None, strict=True, **settings):
    """A simulator that answers so, and refuses what the vendors would refuse."""
    app = Simulator(*answers, key=key, strict=strict)
    with serve_in_thread(app) as server:
        yield Peer(app, server, **settings)


def run(peer, work):
    """Run a coroutine function and close the client."""

    async def whole():
        try:
            return await work(peer.client)
        finally:
            await peer.client.close()

    return peer.run(whole())


def complete(peer, request):
    return run(peer, lambda client: client.complete(request))


def stream(peer, request):
    """The events, and the error that ended them if one did."""

    async def collect(client):
        events = []
        try:
            async for event in client.stream(request):
                events.append(event)  # noqa: PERF401 -- what came before an error is kept
        except Exception as error:  # noqa: BLE001 -- it is what we look at
            return events, error
        return events, None

    return run(peer, collect)


async def settled(condition):
    """Wait until it is so."""
    for _ in range(int(PATIENCE / 0.005)):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to be so")
