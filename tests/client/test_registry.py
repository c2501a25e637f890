"""Who serves a model: never a guess."""

import pytest

from interlingua.client.registry import ModelEntry, Registry, resolve
from interlingua.providers.catalog.models import providers_of
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request

OPUS = ModelEntry(
    id="anthropic:opus",
    adapter="anthropic",
    wire_name="claude-opus-4-6",
    tier="deep",
    aliases=("opus", "best"),
)
MINE = ModelEntry(id="house", adapter="vllm", wire_name="llama-house", tier="fast")
OURS = ModelEntry(id="house-2", adapter="vllm", wire_name="llama-house-2", tier="fast")
REGISTRY = Registry([OPUS, MINE, OURS])
CONFIGURED = ("anthropic", "openai", "vllm", "ollama")


def route(model, provider=None, configured=CONFIGURED, default=None):
    return resolve(Request(model=model, provider=provider), configured, REGISTRY, default)


@pytest.mark.parametrize(
    ("model", "provider", "expected"),
    [
        ("anything", "openai", ("openai", "anything")),
        ("opus", "openai", ("openai", "opus")),  # provider= goes before aliases
        ("opus", "anthropic", ("anthropic", "claude-opus-4-6")),
        ("openai:gpt-x", None, ("openai", "gpt-x")),
        ("openai:gpt-x", "openai", ("openai", "gpt-x")),  # said twice, meant once
        ("anthropic:opus", "anthropic", ("anthropic", "claude-opus-4-6")),
        ("anthropic:opus", "openai", ("openai", "anthropic:opus")),
        ("ollama:llama3.2:1b", None, ("ollama", "llama3.2:1b")),
        ("anthropic:opus", None, ("anthropic", "claude-opus-4-6")),
        ("opus", None, ("anthropic", "claude-opus-4-6")),
        ("best", None, ("anthropic", "claude-opus-4-6")),
        ("deep", None, ("anthropic", "claude-opus-4-6")),
        ("house", None, ("vllm", "llama-house")),
    ],
)
def test_in_order(model, provider, expected):
    """What is said outright, then what the file names."""
    assert route(model, provider) == expected


def test_the_catalog_knows_by_exact_id():
    """If one configured provider serves the model, it is that one, before the default."""
    assert "anthropic" in providers_of("claude-opus-4-6")
    assert route("claude-opus-4-6", default="openai") == ("anthropic", "claude-opus-4-6")
    assert route("claude-opus-4-6-and-a-half", default="openai").provider == "openai"


def test_the_default_takes_the_rest():
    """Also names that hold a colon but no provider."""
    assert route("llama3.2:1b", default="ollama") == ("ollama", "llama3.2:1b")
    assert route("", default="ollama") == ("ollama", "")


@pytest.mark.parametrize(
    ("model", "provider", "message"),
    [
        ("unheard-of", None, "Unknown provider for 'unheard-of'.*configured: anthropic, openai"),
        ("m", "grok", "Provider 'grok' is not configured"),
        ("groq:m", None, "'groq' is not configured. Set GROQ_API_KEY"),
        ("azure:m", None, "Set AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT"),
        ("fast", None, "Tier 'fast' has several models; name one of house, house-2"),
        ("nobody:m", None, "Unknown provider 'nobody'"),
    ],
)
def test_what_is_unclear_is_told(model, provider, message):
    """With the choices there are."""
    with pytest.raises(ConfigurationError, match=message):
        route(model, provider)


def test_a_misspelt_provider_is_not_sent_to_another():
    """Names with a colon are common only where models run on one's own machine."""
    with pytest.raises(ConfigurationError, match="Did you mean anthropic:claude"):
        route("antropic:claude", default="openai")

    assert route("ft:gpt-4o:us::1", default="openai") == ("openai", "ft:gpt-4o:us::1")
    assert route("mixtral:8x7b", default="ollama") == ("ollama", "mixtral:8x7b")


def test_nothing_configured():
    """A newcomer reads what to do."""
    with pytest.raises(ConfigurationError, match="Set a key such as OPENAI_API_KEY"):
        route("m", configured=())


def test_a_name_is_one_models():
    """Two models with one alias would make a guess of it."""
    with pytest.raises(ConfigurationError, match="'opus' is used by both") as caught:
        Registry([OPUS, ModelEntry(id="other", adapter="x", wire_name="y", aliases=("opus",))])

    assert caught.value.model == "other"


def test_by_the_names_on_the_wire():
    """Which adapter serves what."""
    assert REGISTRY.serves("anthropic", "claude-opus-4-6")
    assert not REGISTRY.serves("openai", "claude-opus-4-6")
    assert not REGISTRY.serves("anthropic", "opus")
