"""A key, an address and headers for one run."""

import asyncio
import logging
import traceback

import pytest
from msgspec.structs import replace

from interlingua import execute, generate, generate_object, stream, stream_object, sync, tool
from interlingua.api.run.clients import set_default_client
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.rows import ROWS
from interlingua.simulator import Simulator, error, serve_in_thread, text, tool_call
from interlingua.spec.errors import AuthenticationError, ConfigurationError, SDKError
from interlingua.spec.request import Request
from support import virtual_time
from support.simulated import KEY, MODELS, adapters

OWN = "sk-a-key-for-one-call-only"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ANSWER = text('{"a": 1}')
PROVIDERS = sorted(MODELS)
every_provider = pytest.mark.parametrize("provider", PROVIDERS)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for row in ROWS:
        for name in (*row.key_env, *row.base_url_env):
            monkeypatch.delenv(name, raising=False)
    set_default_client(None)
    yield
    set_default_client(None)


async def _stream(model, **options):
    events = stream(model, "?", **options)
    async for _ in events:
        pass
    return events.result().text


async def _stream_object(model, **options):
    partials = stream_object(model, "?", schema=SCHEMA, **options)
    async for _ in partials:
        pass
    return partials.response().text


async def _execute(model, **options):
    result = await execute(model, "?", **options)
    if result.error is not None:
        raise result.error.exception
    return result.text


def _sync_stream(model, **options):
    events = sync.stream(model, "?", **options)
    return "".join(events.text_stream)


def _sync_stream_object(model, **options):
    partials = sync.stream_object(model, "?", schema=SCHEMA, **options)
    list(partials)
    return partials.response().text


def _sync_execute(model, **options):
    result = sync.execute(model, "?", **options)
    if result.error is not None:
        raise result.error.exception
    return result.text


async def _generate(model, **options):
    return (await generate(model, "?", **options)).text


async def _generate_object(model, **options):
    return (await generate_object(model, "?", schema=SCHEMA, **options)).text


def blocking(function):
    return lambda *args, **options: asyncio.run(function(*args, **options))


MODES = {
    "generate": blocking(_generate),
    "stream": blocking(_stream),
    "generate_object": blocking(_generate_object),
    "stream_object": blocking(_stream_object),
    "execute": blocking(_execute),
    "sync.generate": lambda model, **options: sync.generate(model, "?", **options).text,
    "sync.stream": _sync_stream,
    "sync.generate_object": lambda model, **options: (
        sync.generate_object(model, "?", schema=SCHEMA, **options).text
    ),
    "sync.stream_object": _sync_stream_object,
    "sync.execute": _sync_execute,
}
every_mode = pytest.mark.parametrize("mode", MODES)


def address(server, provider):
    return f"{server.url}/v1" if provider == "openai_compatible" else server.url


@every_provider
@every_mode
def test_a_run_may_have_its_own_key_and_address(mode, provider):
    """In every function, at every provider, with nothing configured."""
    with serve_in_thread(app := Simulator(ANSWER, key=OWN)) as server:
        options = {"base_url": address(server, provider), "headers": {"X-Team": "search"}}
        answer = MODES[mode](f"{provider}:{MODELS[provider]}", api_key=OWN, **options)

    assert "1" in answer or mode.endswith("object")
    (exchange,) = app.script.received
    assert exchange.call.headers["x-team"] == "search"


@every_mode
def test_the_key_of_a_run_goes_before_the_configured_one(mode):
    """For this run; the next one has the client's own key again."""
    with serve_in_thread(Simulator(ANSWER, key=OWN)) as server:
        client = Client(adapters(server.url, key=KEY))
        options = {"client": sync.Client.wrap(client) if mode.startswith("sync") else client}
        model = f"openai:{MODELS['openai']}"
        assert MODES[mode](model, api_key=OWN, **options)
        with pytest.raises(AuthenticationError):
            MODES[mode](model, max_retries=0, **options)


@every_mode
def test_headers_of_a_run_are_added_to_those_of_the_adapter(mode):
    """They are added to those of the adapter."""
    with serve_in_thread(app := Simulator(ANSWER)) as server:
        client = Client(adapters(server.url, default_headers={"x-own": "a", "x-both": "a"}))
        options = {"client": sync.Client.wrap(client) if mode.startswith("sync") else client}
        MODES[mode]("anthropic:claude-haiku-4-5", headers={"X-Both": "b"}, **options)

    headers = app.script.received[0].call.headers
    assert (headers["x-own"], headers["x-both"]) == ("a", "b")


def test_the_key_goes_to_the_provider_that_alone_serves_the_model():
    """The key is for the provider that alone serves the model."""
    client = Client.from_env({"ANTHROPIC_API_KEY": "k"})
    bound = client.with_access("gpt-5.2", api_key=OWN)

    assert bound.explain(Request(model="gpt-5.2", messages="hi")).provider == "openai"
    for model, message in {
        "house-model-x": None,  # the only provider that is configured
        "gpt-7-new": "Write openai:gpt-7-new",
        "openai/gpt-oss-120b": "Write groq:openai/gpt-oss-120b",
        "sagemaker:m": "'sagemaker' is not configured",
    }.items():
        if message is None:
            bound = client.with_access(model, api_key=OWN)
            assert bound.explain(Request(model=model, messages="hi")).provider == "anthropic"
        else:
            with pytest.raises(ConfigurationError, match=message):
                client.with_access(model, api_key=OWN)
    with pytest.raises(ConfigurationError, match="Set GROQ_API_KEY"):
        client.with_access("groq:m", headers={"a": "b"})  # headers alone configure nothing


def test_an_address_is_for_its_run_alone():
    """The next run without one does not go there."""
    client = Client.from_env({})
    first = client.with_access("azure:m", api_key=OWN, base_url="https://one.example/openai/v1")
    assert first.explain(Request(model="azure:m", messages="hi")).url.startswith("https://one.")
    with pytest.raises(ConfigurationError, match="'azure' has no address"):
        client.with_access("azure:m", api_key=OWN)


def test_another_provider_does_not_get_the_key():
    """A middleware that sends the request elsewhere sends it with the key from there."""

    async def elsewhere(request, call_next):
        return await call_next(replace(request, provider="anthropic", model="claude-haiku-4-5"))

    with serve_in_thread(app := Simulator(ANSWER, key=KEY)) as server:
        client = Client(adapters(server.url), middleware=[elsewhere])
        MODES["generate"]("openai:gpt-5.2", client=client, api_key=OWN, headers={"x-secret": "s"})

    (exchange,) = app.script.received
    assert exchange.dialect == "anthropic_messages"
    assert "x-secret" not in exchange.call.headers


@pytest.mark.parametrize("mode", ["generate", "stream", "execute", "sync.generate"])
def test_the_key_is_in_no_error_log_or_repr(mode, caplog):
    """Not in errors that echo it, not in logs, not in the repr of anything."""
    caplog.set_level(logging.DEBUG)
    echo = error(401, message=f"Incorrect API key provided: {OWN}, and my-secret-header")
    options = {"api_key": OWN, "headers": {"x-secret": "my-secret-header"}, "max_retries": 0}
    with serve_in_thread(Simulator(echo)) as server, pytest.raises(SDKError) as caught:
        MODES[mode]("openai:gpt-5.2", base_url=server.url, **options)

    trace = "".join(traceback.format_exception(caught.value))
    for shown in (trace, repr(caught.value), repr(vars(caught.value)), caplog.text):
        assert OWN not in shown
        assert "my-secret-header" not in shown
    bound = Client.from_env({}).with_access("openai:m", api_key=OWN)
    assert OWN not in repr(bound) + repr(bound._adapters)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"api_key": OWN.encode()}, "api_key must be a string.*not a bytes"),
        ({"headers": [OWN]}, "headers must be a mapping of strings, not a list"),
        ({"headers": {"authorization": OWN.encode()}}, "headers must be a mapping of strings"),
        ({"base_url": "ftp://x", "api_key": "k"}, "A base URL must look like"),
        ({"base_url": 5}, "base_url must be a string"),
    ],
)
@pytest.mark.parametrize("mode", ["generate", "stream_object", "execute"])
def test_mistakes_are_refused_before_anything_is_sent(mode, options, message):
    """Told before anything is sent, without the value of a secret."""
    with pytest.raises(ConfigurationError, match=message) as caught:
        MODES[mode]("openai:gpt-5.2", **options)

    assert OWN not in str(caught.value)


def test_a_custom_adapter_refuses_the_key_of_a_run():
    """It says that it has none."""

    class Plain:
        name = "plain"

        async def complete(self, _):
            raise AssertionError

        def stream(self, _):
            raise AssertionError

    with pytest.raises(ConfigurationError, match="'plain' is not an HttpAdapter"):
        MODES["generate"]("plain:m", client=Client({"plain": Plain()}), api_key=OWN)


def test_every_step_of_a_run_has_its_key():
    """The calls after a tool have the key too, and the run can be cancelled by its id."""

    @tool
    def look() -> str:
        """Look."""
        return "rain"

    with serve_in_thread(app := Simulator(tool_call("look"), text("Rain."), key=OWN)) as server:
        client = Client(adapters(server.url, key=KEY))
        options = {"client": client, "api_key": OWN, "tools": [look]}
        assert MODES["generate"]("openai:gpt-5.2", **options) == "Rain."
        assert len(app.script.received) == 2

    async def cancelled():
        adapter = HttpAdapter("openai", "k", base_url="http://127.0.0.1:9")
        client = Client({"openai": adapter}, middleware=[wait])
        running = asyncio.ensure_future(
            generate("openai:m", "?", client=client, api_key=OWN, request_id="r")
        )
        await asyncio.sleep(0.02)
        assert await client.cancel("r")
        return await asyncio.gather(running, return_exceptions=True)

    async def wait(_, __):
        await asyncio.sleep(60)

    (ended,) = virtual_time.run(cancelled())
    assert isinstance(ended, SDKError)


MISROUTED = [
    *("bedrock:claude", "cohere:command-r", "anthropic/claude-haiku-4-5", "llama3", "openai:"),
    *("unheard-of", "groq:m", "antropic:claude-haiku-4-5", "openai/gpt-oss-120b", "grok-4.3"),
]


@every_mode
@pytest.mark.parametrize("choice", [None, "anthropic"])
def test_a_model_of_no_configured_provider_is_sent_nowhere(mode, choice, monkeypatch):
    """In every function, the default client and a client of the environment."""
    with serve_in_thread(app := Simulator(ANSWER)) as server:
        for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
            monkeypatch.setenv(f"{name}_API_KEY", "k")
            monkeypatch.setenv(f"{name}_BASE_URL", server.url)
        for model in MISROUTED:
            with pytest.raises(ConfigurationError):
                MODES[mode](model)
        assert app.script.received == ()
        set_default_client(Client.from_env(default_provider=choice))
        assert MODES[mode]("claude-haiku-4-5")
        assert [exchange.dialect for exchange in app.script.received] == ["anthropic_messages"]
