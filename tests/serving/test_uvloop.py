"""The server on another event loop."""

import asyncio
import socket

import pytest
import uvloop

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.serving.server import serve
from interlingua.simulator import Simulator, cut, latency, reset, text
from interlingua.spec.errors import NetworkError, StreamError
from interlingua.spec.request import Request
from interlingua.transport import HttpTransport, HttpxTransport
from support.patience import PATIENCE
from support.simulated import DIALECTS, adapters, settled

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
every_loop = pytest.mark.parametrize("loop", LOOPS)


def run(loop, work):
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(work())


@every_loop
def test_the_simulator_serves_under_uvloop(loop):
    """Whole answers and streams of every dialect, and a clean end."""

    async def work():
        async with serve(Simulator(text("Hello."))) as server:
            async with Client(adapters(server.url)) as client:
                answers = []
                for name in DIALECTS:
                    request = Request(provider=name, model="m", messages="hi")
                    answers.append((await client.complete(request)).text)
                    async for event in client.stream(request):
                        last = event
                    answers.append(last.response.text)
            await settled(lambda: server.open_connections == 0)
            return answers, server.port

    answers, port = run(loop, work)
    assert answers == ["Hello."] * 2 * len(DIALECTS)
    with socket.socket() as probe:  # the port is free again
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@every_loop
@pytest.mark.parametrize("fault", [reset, cut])
def test_connections_are_reset_and_cut_under_uvloop(loop, fault):
    """A connection is reset or cut, before the head and in the middle."""

    async def work(place, way):
        async with (
            serve(Simulator(text("Hello. " * 20) + fault(place))) as server,
            Client({"openai": HttpAdapter("openai", "k", base_url=server.url)}) as client,
        ):
            request = Request(model="openai:m", messages="hi")
            if way == "whole":
                await client.complete(request)
            async for _ in client.stream(request):
                pass

    with pytest.raises(NetworkError):
        run(loop, lambda: work(None, "whole"))
    with pytest.raises((StreamError, NetworkError)) as caught:
        run(loop, lambda: work(2000, "stream"))
    assert caught.value.partial.text


@every_loop
def test_a_reset_is_not_the_end_of_the_body(loop):
    """The client sees RST, not the end of the body."""

    async def work():
        async with serve(Simulator(text("Hello.") + reset())) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            body = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'
            writer.write(
                b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body)
            )
            writer.write(body)
            try:
                await asyncio.wait_for(reader.read(), PATIENCE)
            finally:
                writer.close()

    with pytest.raises(ConnectionResetError):
        run(loop, work)


@every_loop
@pytest.mark.parametrize("kind", [HttpTransport, HttpxTransport])
def test_transports_work_and_close_under_uvloop(loop, kind):
    """Connections are reused, and closed as soon as a stream is left in the middle."""
    slow = text("word " * 500) + latency(between=0.02, write_bytes=40)

    async def work():
        async with serve(Simulator(text("One."), text("Two."), slow)) as server:
            settings = {"base_url": server.url, "transport": kind()}
            async with Client({"openai": HttpAdapter("openai", "k", **settings)}) as client:
                request = Request(model="openai:m", messages="hi")
                answers = [(await client.complete(request)).text for _ in range(2)]
                async for event in client.stream(request):
                    if event.type == "text_delta":
                        break
                await settled(lambda: server.open_connections == 0)
                return answers

    assert run(loop, work) == ["One.", "Two."]
