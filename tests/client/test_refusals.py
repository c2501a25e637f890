"""Models that are sent nowhere, in every way of asking, and the advice that the error has."""

import asyncio
import re
from functools import partial

import pytest

from interlingua import (
    Session,
    embed,
    generate,
    generate_image,
    generate_many,
    set_default_client,
    speak,
    stream,
    sync,
)
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter, OpenAIAdapter, OpenAICompatibleAdapter
from interlingua.providers.catalog.search import find_short_name
from interlingua.providers.rows import ROWS, find_own_id, find_provider
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedTransport
from support.patterns import LINEAR, growth
from support.rows import variables_of

AWS = {"AWS_REGION": "us-east-1"}
AWS_KEYS = {**AWS, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}
AWS_BEARER = {**AWS, "AWS_BEARER_TOKEN_BEDROCK": "k"}
CLAUDE = "us.anthropic.claude-opus-4-1-20250805-v1:0"
SONNET = find_short_name("sonnet").id
VARIABLES = [
    name
    for row in ROWS
    for names in (row.key_env, row.token_env, row.base_url_env, *row.url_env.values())
    for name in names
]


def environment(names):
    return {k: v for name in names.split() for k, v in variables_of(find_provider(name)).items()}


def refusal(model, environ, **settings):
    """The text of the error for a model, in a client of these variables."""
    environ = environment(environ) if isinstance(environ, str) else environ
    with pytest.raises(ConfigurationError) as caught:
        Client.from_env(environ, **settings).address(Request(model=model, messages="hi"))
    return caught.value.message


# What is refused, and what to write instead.


@pytest.mark.parametrize(
    ("configured", "model", "advice"),
    [
        ("openai", "mycorp:secret-model", "write openai:mycorp:secret-model"),
        ("openai", "inhouse:gpt-5.2", "write openai:inhouse:gpt-5.2"),
        ("groq", "mycorp:secret-model", "write groq:mycorp:secret-model"),
        ("openai groq", "mycorp:m", "write openai:mycorp:m or groq:mycorp:m"),
        ("", "mycorp:m", "Write its provider before it"),
        ("openai", "gpt-5.2:online", "write openai:gpt-5.2:online"),
        ("openai", "kimi:k2", "Write moonshot:kimi-k2 and set MOONSHOTAI_API_KEY"),
        ("openai", "grok:grok-4", "Write xai:grok-4 and set XAI_API_KEY"),
        ("groq", "grok:4", "Write xai:grok-4 and set XAI_API_KEY"),
        ("xai openai", "grok:grok-4", "Write xai:grok-4."),
        ("openai", "phi4:latest", "Write ollama:phi4:latest."),
        ("openai", "deepseek-r1:7b", "Write ollama:deepseek-r1:7b."),
        ("groq", "mixtral:8x7b", "Write ollama:mixtral:8x7b."),
        ("openai", "meta-llama/llama-3:free", "Write openrouter:meta-llama/llama-3:free and set"),
        ("openai", "ft:open-mistral-7b:acme", "write openai:ft:open-mistral-7b:acme"),
    ],
)
def test_a_prefix_that_is_no_provider_is_refused(configured, model, advice):
    """A name with a colon after what is no provider goes nowhere, also with one key alone."""
    assert advice in refusal(model, configured)


@pytest.mark.parametrize(
    ("configured", "model", "advice"),
    [
        ("openai", "openai/gpt-4o", "Write openai:gpt-4o (or openrouter:openai/gpt-4o)."),
        ("openrouter", "openai/gpt-4o", "Write openai:gpt-4o (or openrouter:openai/gpt-4o)."),
        ("openai openrouter", "openai/gpt-4o", "Write openai:gpt-4o (or openrouter:openai/gpt-4o)"),
        (
            "openai",
            "anthropic/claude-haiku-4-5",
            "(or openrouter:anthropic/claude-haiku-4-5) and set ANTHROPIC_API_KEY.",
        ),
        ("openrouter", "anthropic/claude-99", "(or openrouter:anthropic/claude-99)."),
        ("openrouter", "anthropic/claude-sonnet-4.5", "Write anthropic:claude-sonnet-4.5 (or"),
        ("openai", "google/gemini-9", "Write gemini:gemini-9 (or openrouter:google/gemini-9) and"),
        ("anthropic", "ollama/llama3:8b", "Write ollama:llama3:8b."),
        ("openai", "azure/gpt-4o", "Write azure:gpt-4o and set AZURE_OPENAI_API_KEY"),
        ("openrouter", "openrouter/auto", "Write openrouter:openrouter/auto."),
        ("groq openai", "openai/gpt-oss-120b", "Write groq:openai/gpt-oss-120b."),
        ("anthropic", "openai/gpt-oss-120b", "Write groq:openai/gpt-oss-120b and set GROQ_API_KEY"),
    ],
)
def test_a_slash_after_a_provider_is_refused_with_the_right_spelling(configured, model, advice):
    """`x/y` with a provider before the slash is never sent, whatever serves such an id."""
    assert advice in refusal(model, configured)


@pytest.mark.parametrize(
    ("configured", "model", "advice"),
    [
        ("openai", "sonnet", f"Write anthropic:{SONNET} and set ANTHROPIC_API_KEY."),
        ("groq", "opus", "and set ANTHROPIC_API_KEY."),
        ("", "flash", "and set GEMINI_API_KEY or GOOGLE_API_KEY."),
        ("openai", "grok", "and set XAI_API_KEY."),
        ("openai", "nova", "Write bedrock:nova and set AWS_BEARER_TOKEN_BEDROCK"),
        ("openai", "o4-mini-high", 'Write openai:o4-mini with reasoning_effort="high".'),
        ("groq", "o4-mini-low", 'Write openai:o4-mini with reasoning_effort="low", and set OPENAI'),
    ],
)
def test_a_bare_name_of_another_vendor_is_refused(configured, model, advice):
    """A short name or a family of a vendor is not sent to another one; an effort is no name."""
    assert advice in refusal(model, configured)


@pytest.mark.parametrize(
    ("environ", "model", "advice"),
    [
        (AWS_BEARER, f"bedrock/{CLAUDE}", f"Write bedrock:{CLAUDE}."),
        (AWS_BEARER, CLAUDE, f"Write bedrock:{CLAUDE}."),
        (AWS_KEYS, f"bedrock/{CLAUDE}", f"Write bedrock:{CLAUDE}."),
        (AWS_KEYS, CLAUDE, f"Write bedrock:{CLAUDE}."),
        ({**AWS, "AWS_PROFILE": "work"}, CLAUDE, f"Write bedrock:{CLAUDE}."),
        (AWS_BEARER, "amazon.nova-pro-v1:0", "Write bedrock:amazon.nova-pro-v1:0."),
        (AWS_KEYS, "amazon.nova-pro-v1:0", "Write bedrock:amazon.nova-pro-v1:0."),
        ({}, CLAUDE, f"Write bedrock:{CLAUDE} and set AWS_BEARER_TOKEN_BEDROCK"),
    ],
)
def test_an_id_of_bedrock_is_spelled_as_it_is(environ, model, advice):
    """The row `bedrock` takes every id of AWS, with a bearer key and with the keys of AWS."""
    environ = {**environ, "OPENAI_API_KEY": "k"}
    message = refusal(model, environ)

    assert advice in message
    named = re.search(r"Write (\S+?)\.?(?: |$)", message)[1]
    if "and set" not in message:
        assert Client.from_env(environ).address(Request(model=named, messages="hi"))


@pytest.mark.parametrize("row", ["bedrock", "bedrock_invoke"])
def test_a_row_that_was_named_before_takes_no_other_names(row):
    """That Bedrock was used once does not make it a choice for names without a provider."""
    client = Client.from_env(AWS_KEYS)
    assert client.address(Request(model=f"{row}:{CLAUDE}")).provider == row
    with pytest.raises(ConfigurationError, match="Unknown provider for"):
        client.address(Request(model="my-model"))

    beside = Client.from_env({**AWS_KEYS, "OPENAI_API_KEY": "k"})
    beside.address(Request(model=f"{row}:{CLAUDE}"))
    assert beside.address(Request(model="my-model")).provider == "openai"


@pytest.mark.parametrize("model", ["amazon.nova-pro-v1:0", "us.meta.llama4-v1:0", "nova-pro"])
@pytest.mark.parametrize("row", ["bedrock_invoke", "vertex_anthropic"])
def test_a_row_that_serves_one_maker_refuses_models_of_others(row, model):
    """A row that speaks only Messages sends no Nova model, whole or streamed; `warn` does."""
    transport = CannedTransport([])
    settings = {"places": {"region": "us-east-1", "project": "p", "location": "l"}}
    adapter = HttpAdapter(find_provider(row), "k", transport=transport, **settings)
    client = Client({row: adapter})
    request = Request(model=f"{row}:{model}", messages="hi")

    async def read():
        return [event async for event in client.stream(request)]

    for work in (client.complete(request), read(), adapter.complete(Request(model=model))):
        with pytest.raises(ConfigurationError, match=f"{row} serves only models of anthropic"):
            asyncio.run(work)
    with pytest.raises(ConfigurationError, match="serves only models of anthropic"):
        client.explain(request)
    assert client.explain(Request(model=model, messages="hi", on_loss="warn")).url
    assert client.explain(Request(model=f"{row}:{CLAUDE}", messages="hi")).url
    profile = "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc"
    assert client.explain(Request(model=profile, messages="hi")).url


# A choice of the caller.


@pytest.mark.parametrize(
    "model",
    ["mycorp:m", "kimi:k2", "phi4:latest", "openai/gpt-4o", "sonnet", "o4-mini-high", CLAUDE],
)
def test_a_provider_that_the_caller_chose_gets_the_name_as_it_is(model):
    """`provider=`, `default_provider=` and the only adapter of a client are choices."""
    both = {"openai": OpenAIAdapter("k"), "groq": HttpAdapter("groq", "k")}
    named = Request(model=model, provider="groq", messages="hi")
    plain = Request(model=model, messages="hi")

    for client, request, provider in (
        (Client(both), named, "groq"),
        (Client.from_env({"GROQ_API_KEY": "k"}), named, "groq"),
        (Client(both, default_provider="openai"), plain, "openai"),
        (Client.from_env(environment("openai"), default_provider="openai"), plain, "openai"),
        (Client({"openai": both["openai"]}), plain, "openai"),
    ):
        sent = client.address(request)
        assert (sent.provider, sent.model) == (provider, model)


def test_several_adapters_without_a_choice_are_no_choice():
    """A client made by hand with several adapters refuses as one of the environment does."""
    client = Client({"openai": OpenAIAdapter("k"), "openrouter": HttpAdapter("openrouter", "k")})
    for model in ("mycorp:m", "openai/gpt-4o", "sonnet", "my-model"):
        with pytest.raises(ConfigurationError):
            client.address(Request(model=model, messages="hi"))


@pytest.mark.parametrize("model", ["openai/gpt-4o", "mycorp:m", "sonnet"])
def test_a_key_for_one_call_goes_to_no_provider_that_was_not_named(model):
    """With `api_key=` or `base_url=` an unclear name is refused too: the key would go astray."""
    for access in ({"api_key": "secret"}, {"base_url": "http://127.0.0.1:9/v1"}):
        with pytest.raises(ConfigurationError):
            Client.from_env({}).with_access(model, **access)


# Every way of asking.


async def _read(items):
    return [item async for item in items]


WAYS = {
    "generate": lambda model, options: asyncio.run(generate(model, "hi", **options)),
    "stream": lambda model, options: asyncio.run(_read(stream(model, "hi", **options))),
    "embed": lambda model, options: asyncio.run(embed(model, "hi", **options)),
    "image": lambda model, options: asyncio.run(generate_image(model, "hi", **options)),
    "speak": lambda model, options: asyncio.run(speak(model, "hi", **options)),
    "sync": lambda model, options: sync.generate(model, "hi", **options),
    "sync stream": lambda model, options: list(sync.stream(model, "hi", **options)),
    "sync embed": lambda model, options: sync.embed(model, "hi", **options),
    "session": lambda model, options: asyncio.run(Session(model, **options).send("hi")),
    "sync session": lambda model, options: sync.Session(model, **options).send("hi"),
}
REFUSED = ["mycorp:m", "openai/gpt-4o", "sonnet", "phi4:latest", "o4-mini-high", CLAUDE]


@pytest.fixture
def openai_alone(monkeypatch):
    """The environment has one key, of a server that nobody listens on."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    set_default_client(None)
    yield
    set_default_client(None)


@pytest.mark.usefixtures("openai_alone")
@pytest.mark.parametrize("is_default", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_asking_refuses(way, is_default):
    """The module-level client and one of the environment refuse before anything is sent."""
    options = {} if is_default else {"client": Client.from_env()}
    for model in REFUSED:
        with pytest.raises(ConfigurationError, match=r"\. (?:Write|If the colon)"):
            WAYS[way](model, options)


@pytest.mark.usefixtures("openai_alone")
def test_lists_of_prompts_and_callbacks_refuse_too():
    """`generate_many` and `execute` give the same error in their own form."""
    many = asyncio.run(_read(generate_many(["a", "b"], model="mycorp:m")))
    assert ["Unknown provider 'mycorp'" in str(each.error) for each in many] == [True, True]
    assert "Unknown provider 'mycorp'" in sync.execute("mycorp:m", "hi").error.message


# The words.


MESSAGES = [
    ("openai", "mycorp:m"),
    ("openai", "kimi:k2"),
    ("openai", "phi4:latest"),
    ("openai", "sonnet"),
    ("openai", "grok-4"),
    ("openai", "openai/gpt-4o"),
    ("openai", "anthropic/claude-99"),
    ("openai", "groq:m"),
    ("openai", "watsonx:m"),
    ("openai", "antropic:claude-9"),
    ("", "gtp-5.2"),
    ("openai anthropic", "unheard-of"),
    ("openai anthropic", "llama3"),
    ("anthropic", "gpt-5.2"),
    ("openai", "o4-mini-high"),
    ("openai", CLAUDE),
    ("", "unheard-of"),
]


@pytest.mark.parametrize(("configured", "model"), MESSAGES)
def test_a_refusal_is_one_sentence_and_one_thing_to_do(configured, model):
    """Sentences with a capital letter and a full stop, and no Python but a setting's value."""
    message = refusal(model, configured)
    sentences = re.split(r"(?<=[.?]) (?=[A-Z])", message)

    assert len(sentences) <= 2 + message.count("Did you mean")
    assert all(re.match("[A-Z']", each) and each[-1] in ".?" for each in sentences), message
    assert not re.search(r"\w=(?!\")|\w\(\.|Adapter\(|Client", message)


def test_forms_of_ids_are_matched_in_linear_time():
    """The regular expressions of the rows need time in proportion to the name."""
    for row in (row for row in ROWS if row.own_ids):
        for piece in ("a", "a.", "a/", "a:", "-v1", "ft:gpt-", "anthropic.", "9"):
            use = partial(find_own_id, row)
            assert growth(use, lambda size, piece=piece: piece * size + "!") < LINEAR


def test_an_adapter_of_another_name_keeps_its_own_names():
    """A gateway under a name of its own may have models with the short names of the catalog."""
    gateway = OpenAICompatibleAdapter(base_url="http://proxy.example/v1")
    openai = OpenAIAdapter("k", base_url="http://proxy.example/v1")
    client = Client({"house": gateway, "proxy": openai})

    for name in ("house:mini", "proxy:mini"):
        assert client.address(Request(model=name, messages="hi")).model == "mini"
