"""A gateway on uvicorn in a thread, with a simulator behind it."""

import asyncio
import contextlib
import socket
import threading

import uvicorn

from interlingua import AnthropicAdapter, Client, GeminiAdapter, OpenAIAdapter
from interlingua.gateway.config import Gateway
from interlingua.gateway.keys import Key, hash_key, make_key
from interlingua.gateway.server import listen, make_application
from interlingua.serving import Caller, Routes
from interlingua.simulator import serve_in_thread

SECRET = b"a secret of this test only"


def make_client(url):
    """A client with an adapter of each vendor; all lead to the simulator at this address."""
    return Client(
        {
            "openai": OpenAIAdapter(api_key="k", base_url=f"{url}/v1"),
            "anthropic": AnthropicAdapter(api_key="k", base_url=url),
            "gemini": GeminiAdapter(api_key="k", base_url=url),
        }
    )


@contextlib.contextmanager
def serving(app, loop="uvloop"):
    """The address of a uvicorn server with this application, in a thread of its own."""
    sock = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        app, http="httptools", loop=loop, lifespan="off", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    ended = []

    def run():
        try:
            server.run(sockets=[sock])
        except BaseException as error:  # noqa: BLE001 -- the test raises it
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        sock.close()
    assert ended == []


@contextlib.contextmanager
def gateway(simulator, routes=None, *, models=None, loop="uvloop", **middleware):
    """The address and the key of a gateway before a simulator."""
    with serve_in_thread(simulator) as upstream:
        client = make_client(upstream.url)
        if middleware:
            client = client.with_middleware(*middleware.values())
        key = make_key()
        keys = (Key(hash_key(key), Caller("tester", models)),)
        made = Gateway(client, routes or Routes(), keys)
        with serving(make_application(made, SECRET), loop) as url:
            yield url, key
        asyncio.run(client.close())


def open_socket(url):
    """A plain connection to a server."""
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)
