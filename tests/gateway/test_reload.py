"""SIGHUP: the file is read again, while requests are under way."""

import asyncio
import json
import os
import signal
import sys

import pytest

from interlingua import Client, OpenAIAdapter
from interlingua.gateway import editions as editions_module
from interlingua.gateway.config import Gateway
from interlingua.gateway.editions import Editions
from interlingua.gateway.source import Source
from interlingua.serving.client_application import Routes
from interlingua.simulator import Script, Simulator, echo, serve_in_thread
from support.gateways import Program, file_text, wait_until
from support.wire_requests import ask

HELLO = {"messages": [{"role": "user", "content": "Hi"}]}
CHAT = "/v1/chat/completions"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def status_of(front, model):
    """The status of a request for a model."""
    return ask(front, CHAT, {**HELLO, "model": model}).status


@on_linux
@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_a_file_is_read_again(tmp_path, options):
    """Its routes count from then on; what needs a restart is told; a bad file changes nothing."""
    with (
        serve_in_thread(Simulator(Script(echo))) as upstream,
        Program(tmp_path, file_text(upstream.url, routes="a: openai:x"), *options) as front,
    ):
        before = [status_of(front, name) for name in "ab"]
        front.write(file_text(upstream.url, "  port: 4001\n", routes="b: openai:x"))
        front.send(signal.SIGHUP)
        front.said("Reloaded: 1 routes, 1 keys. Restart the gateway to change port.")
        after = [status_of(front, name) for name in "ab"]
        front.write(file_text(upstream.url, routes="c: {modle: x}"))
        front.send(signal.SIGHUP)
        front.said("interlingua.yaml:6: ")
        front.said("The gateway goes on with the configuration before.")

        assert before == [200, 404]
        assert after == [404, 200]
        assert [status_of(front, name) for name in "abc"] == [404, 200, 404]


@on_linux
def test_a_replaced_worker_serves_what_the_others_serve(tmp_path):
    """Not the file as it is now, which nobody has checked."""
    with (
        serve_in_thread(Simulator(Script(echo))) as upstream,
        Program(tmp_path, file_text(upstream.url, routes="a: openai:x"), "--workers", "2") as front,
    ):
        front.write("this is: [no file")
        for pid in front.workers():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: sum("It is replaced." in line for line in front.errors) == 2)

        assert status_of(front, "a") == 200


class Slow:
    """An application that answers when it is told to."""

    def __init__(self, name):
        self.name = name
        self.may_end = asyncio.Event()

    async def __call__(self, _scope, _receive, send):
        await self.may_end.wait()
        await send(self.name)


class Closing(Client):
    """A client that notes when it was closed."""

    is_closed = False

    async def close(self):
        await super().close()
        self.is_closed = True


def test_requests_end_with_the_configuration_with_which_they_began(monkeypatch):
    """The client of the older one is closed after its last request, not earlier."""
    applications = {}

    def make(gateway, _secret):
        return applications.setdefault(gateway.host, Slow(gateway.host))

    def read(source, _stores):
        return Gateway(Closing({"openai": OpenAIAdapter(api_key="k")}), Routes(), host=source.hash)

    monkeypatch.setattr(editions_module, "make_application", make)
    monkeypatch.setattr(Source, "read", read)

    async def run():
        app = Editions(Source(secret=b"", environ={}, hash="old"))
        old = app.gateway.client
        sent = []

        async def send(name):
            sent.append((name, old.is_closed))

        requests = [asyncio.create_task(app({}, None, send)) for _ in range(2)]
        await asyncio.sleep(0)
        app.replace(Source(secret=b"", environ={}, hash="new"))
        requests.append(asyncio.create_task(app({}, None, send)))
        await asyncio.sleep(0)
        for name in ("new", "old"):
            applications[name].may_end.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await asyncio.gather(*requests)
        await asyncio.sleep(0.01)
        assert old.is_closed
        assert not app.gateway.client.is_closed
        await app.close()
        assert app.gateway.client.is_closed
        return sent

    assert asyncio.run(run()) == [("new", False), ("old", False), ("old", False)]


def test_a_source_does_not_show_its_secrets():
    """They are in its JSON for the workers only."""
    source = Source(secret=b"secret", environ={"OPENAI_API_KEY": "k3y"}, path="a.yaml")

    assert repr(source) == "Source('a.yaml')"
    assert "k3y" not in json.dumps(str(source))
