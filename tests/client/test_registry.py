"""The names of a registry file; `test_routing.py` has the rest of the order."""

import pytest

from interlingua.client.configured import Configured
from interlingua.client.registry import ModelEntry, Registry
from interlingua.client.resolve import resolve
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.errors import ConfigurationError

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
CONFIGURED = {name: HttpAdapter(name, "k") for name in ("anthropic", "openai", "vllm", "ollama")}


def route(model, provider=None):
    return resolve(provider, model, Configured(CONFIGURED, REGISTRY))[:2]


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
        ("tier:deep", None, ("anthropic", "claude-opus-4-6")),
        ("house", None, ("vllm", "llama-house")),
    ],
)
def test_in_order(model, provider, expected):
    """What is said outright, then what the file names."""
    assert route(model, provider) == expected


@pytest.mark.parametrize(
    ("model", "provider", "message"),
    [
        ("m", "grok", "Provider 'grok' is not configured. Did you mean 'xai'"),
        ("m", "gropq", "Provider 'gropq' is not configured. Did you mean 'groq'"),
        ("groq:m", None, "'groq' is not configured. Set GROQ_API_KEY"),
        ("azure:m", None, "Set AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT"),
        ("tier:slow", None, "There is no tier 'slow'. Tiers: deep, fast"),
        ("tier:deep", "openai", "'tier:deep' has no model of openai"),
    ],
)
def test_what_is_unclear_is_told(model, provider, message):
    """With the choices there are."""
    with pytest.raises(ConfigurationError, match=message):
        route(model, provider)


@pytest.mark.parametrize("name", ["fast", "tier:fast"])
def test_a_program_that_asks_for_the_model_of_a_tier(name):
    """There must be one; which of several answers depends on the request."""
    with pytest.raises(ConfigurationError, match="has several models; name one of house, house-2"):
        REGISTRY.find(name)


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
