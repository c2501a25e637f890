"""Adapters by name."""

import pytest

from interlingua.providers.adapter import (
    AnthropicAdapter,
    GeminiAdapter,
    HttpAdapter,
    LocalAdapter,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
)
from interlingua.providers.rows import find_provider
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request

BASE = "https://proxy.example/v1"


@pytest.mark.parametrize(
    ("adapter", "url"),
    [
        (OpenAIAdapter("k"), "https://api.openai.com/v1/responses"),
        (AnthropicAdapter("k"), "https://api.anthropic.com/v1/messages"),
        (OpenAIAdapter("k", base_url=BASE), f"{BASE}/responses"),
        (AnthropicAdapter("k", base_url="https://proxy.example"), f"{BASE}/messages"),
        (OpenAICompatibleAdapter(base_url=BASE), f"{BASE}/chat/completions"),
        (OpenAIAdapter("k", dialect="openai_chat"), "https://api.openai.com/v1/chat/completions"),
        (
            GeminiAdapter("k"),
            "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        ),
    ],
)
def test_where_they_call(adapter, url):
    """The provider's own address, or the one given."""
    assert adapter.dry_run(Request(model="m", messages="hi")).url == url


def test_they_can_have_another_name():
    """So that a client may hold two of a kind."""
    assert OpenAIAdapter("k", name="eu").name == "eu"


VARIABLES = {
    "OPENAI_API_KEY": "o",
    "OPENAI_BASE_URL": "https://proxy.example/v1",
    "OPENAI_ORG_ID": "org-1",
    "ANTHROPIC_API_KEY": "a",
    "GEMINI_API_KEY": "g",
    "GROQ_API_KEY": "q",
    "INTERLINGUA_GGUF": "m.gguf",
}


def test_adapters_read_their_variables(monkeypatch):
    """Where a key, address or header is not given; what is given goes first."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    made = [OpenAIAdapter(), AnthropicAdapter(), GeminiAdapter(), HttpAdapter("groq")]

    assert [adapter.configuration.key for adapter in made] == ["o", "a", "g", "q"]
    call = OpenAIAdapter().dry_run(Request(model="m"))
    assert call.url == "https://proxy.example/v1/responses"
    assert call.headers["openai-organization"] == "org-1"
    given = OpenAIAdapter("k", base_url=BASE, default_headers={"OpenAI-Organization": "mine"})
    call = given.dry_run(Request(model="m"))
    assert (given.configuration.key, call.url) == ("k", f"{BASE}/responses")
    assert call.headers["openai-organization"] == "mine"
    assert LocalAdapter().server.gguf == "m.gguf"
    assert LocalAdapter("n.gguf").server.gguf == "n.gguf"
    assert HttpAdapter(find_provider("groq")).configuration.key is None  # a row has only names


def test_a_bad_address_names_its_variable(monkeypatch):
    """And not the value, which may hold a password."""
    monkeypatch.setenv("OPENAI_BASE_URL", "https://a:hunter2@b")
    with pytest.raises(ConfigurationError, match="Check OPENAI_BASE_URL") as caught:
        OpenAIAdapter("k")

    assert "hunter2" not in str(caught.value)


def test_names_and_aliases_of_rows():
    """`google` is the row `gemini`."""
    assert HttpAdapter("google", "k").name == "gemini"
