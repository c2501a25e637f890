"""What is asked of the whole: configuration, routes, middleware, the catalog."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from interlingua.api.execute.execution import execute
from interlingua.api.run.clients import set_default_client
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import Tool
from interlingua.catalog import get_latest_model, get_model_info, list_models
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread, text, tool_call
from interlingua.spec.content import ToolCall
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason
from support.requests import ask, every_provider, named
from support.simulated import DIALECTS, KEY, adapters, run, simulated


@every_provider
def test_options_of_a_provider(provider):
    """They reach its wire as they are, also if the provider would refuse them."""
    with simulated(text("ok"), strict=False) as peer:
        ask(peer, provider, provider_options={DIALECTS[provider]: {"my_setting": {"a": 1}}})
        (exchange,) = peer.app.script.received

    assert exchange.call.body["my_setting"] == {"a": 1}


def test_environment_and_routes():
    """From the environment, by name; a model that no provider is known for is refused."""
    with serve_in_thread(Simulator(text("hi"))) as server:
        names = {"openai": "OPENAI", "anthropic": "ANTHROPIC", "gemini": "GEMINI"}
        environ = {f"{name}_API_KEY": KEY for name in names.values()}
        environ |= {f"{name}_BASE_URL": server.url for name in names.values()}

        async def work():
            async with Client.from_env(environ) as client:
                asked = [Request(provider=name, model="m", messages="hi") for name in names]
                with pytest.raises(ConfigurationError, match="openai:m"):
                    await client.complete(Request(model="m", messages="hi"))
                return [(await client.complete(request)).provider for request in asked]

        assert asyncio.run(work()) == [*names]
        chosen = Client.from_env(environ, default_provider="openai")
        request = Request(model="m", messages="hi")
        assert asyncio.run(chosen.complete(request)).provider == "openai"
    with pytest.raises(ConfigurationError):
        Client({}).stream(Request(model="m", messages="hi"))


def test_native_apis():
    """Each vendor is spoken to in its own language."""
    paths = {
        name: HttpAdapter(name, KEY).dry_run(Request(model="m", messages="hi")).url
        for name in ("openai", "anthropic", "gemini")
    }

    assert paths["openai"].endswith("/v1/responses")
    assert paths["anthropic"].endswith("/v1/messages")
    assert paths["gemini"].endswith("/v1beta/models/m:generateContent")


def test_beta_headers():
    """Joined into one header, from either name of the option."""
    adapter = adapters("http://127.0.0.1:9")["anthropic"]
    request = Request(
        provider="anthropic",
        model="m",
        messages="hi",
        provider_options={"anthropic": {"beta_headers": ["a-1", "b-2"], "betas": ["c-3"]}},
    )
    call = adapter.dry_run(request)

    assert set(call.headers["anthropic-beta"].split(",")) == {"a-1", "b-2", "c-3"}
    assert "beta_headers" not in json.dumps(call.body)


@every_provider
def test_middleware(provider):
    """In by the order it was given, out by the reverse, in both ways."""
    seen = []

    class Note:
        def __init__(self, name):
            self.name = name

        async def complete(self, request, call):
            seen.append(f"{self.name} in")
            response = await call(request)
            seen.append(f"{self.name} out")
            return response

        async def stream(self, request, call):
            seen.append(f"{self.name} in")
            async for event in call(request):
                yield event
            seen.append(f"{self.name} out")

    async def work():
        made = adapters(server.url)
        async with Client(made, middleware=[Note("a"), Note("b")]) as client:
            request = Request(model=named(provider), messages="hi")
            await client.complete(request)
            async for _ in client.stream(request):
                pass

    with serve_in_thread(Simulator(text("hi"))) as server:
        asyncio.run(work())

    assert seen == ["a in", "b in", "b out", "a out"] * 2


async def guard(request, following):
    """Refuses a prompt, and takes a tool call out of an answer."""
    if "secret" in request.messages[-1].text:
        raise ConfigurationError("The prompt holds a secret.")
    response = await following(request)
    kept = tuple(part for part in response.message.content if not isinstance(part, ToolCall))
    message = replace(response.message, content=kept)
    return replace(response, message=message, finish_reason=FinishReason(reason="stop"))


guard.hold = True


@every_provider
def test_a_guard_of_one_function_guards_streams(provider):
    """In every way of asking: the prompt is not sent, and the tool does not run (field bug 108)."""
    ran = []
    remove = Tool(name="remove", execute=lambda: ran.append(1))

    async def ask_all(client, prompt):
        options = {"client": client, "tools": [remove]}
        result = await execute(named(provider), prompt, **options)
        assert result.error is None, result.error
        await generate(named(provider), prompt, **options)
        async for _ in stream(named(provider), prompt, **options):
            pass

    async def work():
        async with Client(adapters(server.url), middleware=[guard]) as client:
            await ask_all(client, "hi")
            for prompt in (generate, stream):
                with pytest.raises(ConfigurationError, match="secret"):
                    await collect(prompt(named(provider), "a secret", client=client))
            result = await execute(named(provider), "a secret", client=client)
            assert "secret" in result.error.message
            with pytest.raises(ConfigurationError, match="secret"):
                await collect(client.stream(Request(model=named(provider), messages="a secret")))

    app = Simulator(text("Gladly.") + tool_call("remove"))
    with serve_in_thread(app) as server:
        asyncio.run(work())

    assert ran == []
    assert len(app.script.received) == 3
    assert not any("secret" in message.text for r in app.script.requests for message in r.messages)


async def collect(call):
    """The result of a call, or the events of a stream."""
    if hasattr(call, "__aiter__"):
        return [event async for event in call]
    return await call


@every_provider
def test_the_default_client(provider):
    """It is used where none is given."""

    async def work(client):
        set_default_client(client)
        try:
            return await generate(named(provider), "hi")
        finally:
            set_default_client(None)

    with simulated(text("hi")) as peer:
        assert run(peer, work).text == "hi"


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_the_catalog(provider):
    """The models of each provider, and what is known of one."""
    models = list_models(provider)
    latest = get_latest_model(provider)

    assert latest in models
    assert get_model_info(latest.id) == latest
