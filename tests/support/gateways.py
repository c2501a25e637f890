"""A gateway on uvicorn, in a thread, and the vendors' clients before it."""

import contextlib
import socket
import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import anthropic
import openai
import uvicorn
from google import genai

from interlingua.client.client import Client
from interlingua.gateway.config import Gateway, guarded
from interlingua.gateway.keys import Key, hash_key, make_key
from interlingua.gateway.server import listen, make_application
from interlingua.serving.client_application import Caller, Routes
from support.patience import PATIENCE

SECRET = b"a secret of the tests only"


class Front(NamedTuple):
    """A gateway that runs."""

    url: str
    key: str
    keys: Mapping[str, str] = MappingProxyType({})
    """Of the callers, by name."""

    def openai(self, **settings):
        settings = {"api_key": self.key, "max_retries": 0, **settings}
        return openai.OpenAI(base_url=f"{self.url}/v1", **settings)

    def anthropic(self, **settings):
        settings = {"api_key": self.key, "max_retries": 0, **settings}
        return anthropic.Anthropic(base_url=self.url, **settings)

    def gemini(self, key=None):
        return genai.Client(api_key=key or self.key, http_options={"base_url": self.url})


@contextlib.contextmanager
def gateway(adapters, routes=None, *, models=None, direct=True, kept=None, others=(), callers=None):
    """
    A gateway before these adapters; its key may use `models`.

    `others` are more keys; `callers` are names with what they may use, in place of one caller.
    """
    callers = callers or {"tests": models}
    keys = {name: make_key() for name in callers}
    client = guarded(Client(adapters))
    known = [Key(hash_key(keys[name]), Caller(name, allowed)) for name, allowed in callers.items()]
    given = Gateway(client, Routes(routes, direct=direct), (*known, *others), kept=kept)
    with listen("127.0.0.1", 0) as bound, served(make_application(given, SECRET), bound):
        key = next(iter(keys.values()))
        yield Front(f"http://127.0.0.1:{bound.getsockname()[1]}", key, keys)


@contextlib.contextmanager
def served(app, bound):
    """The application on uvicorn, in a thread."""
    config = uvicorn.Config(app, http="httptools", loop="asyncio", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


def open_socket(url):
    """A plain connection to a server."""
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)
