"""Clients from the environment and from files."""

import pytest

from interlingua.client.config import adapters_from_env, read_registry
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request

FILE = """\
default_provider: claude
adapters:
  claude:
    type: anthropic
    api_key_env: MY_CLAUDE_KEY
    timeout_seconds: 30
    max_retries: 2
    extra_headers: {x-team: search}
  house:
    type: openai_compatible
    base_url: http://gpu.example:8000/v1
    options: {top_k: 5}
models:
  claude:opus:
    wire_name: claude-opus-4-6
    tier: deep
    can_delegate: true
    aliases: [opus]
  house-llama:
    adapter: house
    profile: {tools: false}
"""


@pytest.fixture
def write(tmp_path):
    def write_text(text):
        path = tmp_path / "models.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_text


def test_only_what_has_a_key_is_there():
    """In the order of the rows; nothing but the given environment is read."""
    adapters = adapters_from_env({"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b", "X": "c"})

    assert list(adapters) == ["openai", "anthropic", "local"]
    assert list(adapters_from_env({})) == ["local"]
    assert list(adapters_from_env({"OPENAI_API_KEY": ""})) == ["local"]


def test_names_of_the_environment():
    """Second names for keys, addresses, headers."""
    adapters = adapters_from_env(
        {
            "GOOGLE_API_KEY": "g",
            "OPENAI_API_KEY": "o",
            "OPENAI_BASE_URL": "https://proxy.example/v1/",
            "OPENAI_ORG_ID": "org-1",
            "OLLAMA_HOST": "127.0.0.1:11434",
        }
    )
    call = adapters["openai"].prepare(Request(model="m", messages="hi"))

    assert list(adapters) == ["openai", "gemini", "ollama", "local"]
    assert call.url == "https://proxy.example/v1/responses"
    assert call.headers["openai-organization"] == "org-1"
    local = adapters["ollama"].prepare(Request(model="m", messages="hi"))
    assert local.url == "http://127.0.0.1:11434/v1/chat/completions"


def test_a_bad_address_names_its_variable():
    """And not the value, which may be a secret."""
    with pytest.raises(ConfigurationError, match="look at OPENAI_BASE_URL") as caught:
        adapters_from_env({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://a:hunter2@b"})

    assert "hunter2" not in str(caught.value)


def test_a_registry_file(write):
    """Adapters, models, names, profiles."""
    adapters, registry, default = read_registry(write(FILE), {"MY_CLAUDE_KEY": "secret"})
    claude, house = adapters["claude"], adapters["house"]
    opus = registry.find("opus")

    assert default == "claude"
    assert (claude.name, claude.max_retries, claude.is_configured) == ("claude", 2, True)
    call = claude.prepare(Request(model="claude-opus-4-6", messages="hi"))
    assert call.url == "https://api.anthropic.com/v1/messages"
    assert call.headers["x-team"] == "search"
    assert (opus.id, opus.adapter, opus.wire_name) == ("claude:opus", "claude", "claude-opus-4-6")
    assert (opus.tier, opus.can_delegate) == ("deep", True)
    assert registry.find("deep") is opus
    llama = house.prepare(Request(model="house-llama", messages="hi"))
    assert llama.url == "http://gpu.example:8000/v1/chat/completions"
    assert llama.body["top_k"] == 5
    assert not house.profile_for("house-llama").tools
    assert house.profile_for("other").tools


def test_a_missing_key_is_told_when_it_is_used(write):
    """The file loads; the adapter names the variable that is not set."""
    adapters, _, _ = read_registry(write(FILE), {})

    assert not adapters["claude"].is_configured
    with pytest.raises(ConfigurationError, match="claude has no API key; set MY_CLAUDE_KEY"):
        adapters["claude"].initialize()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adapter: {}\n", r"models.yaml:1: unknown key 'adapter'"),
        ("adapters:\n  a:\n    type: opneai\n", r"models.yaml:3: no provider 'opneai'"),
        ("adapters:\n  a:\n    type: openai\n    base_url: x\n", r"models.yaml:4: a base URL"),
        ("adapters:\n  openai:\n    max_retries: two\n", r"models.yaml:3: 'max_retries'"),
        ("models:\n  m:\n    adapter: a\n", r"models.yaml:3: model 'm': no adapter 'a'"),
        ("models:\n  a:m: {}\n", r"models.yaml: model 'a:m': no adapter 'a'"),
        (
            "adapters: {openai: {}}\nmodels:\n  openai:m:\n    profile: {tool: false}\n",
            r"models.yaml:4: .*unknown key 'tool'",
        ),
        (
            "adapters: {openai: {}}\nmodels:\n  openai:m: {aliases: [1]}\n",
            r"models.yaml:3: aliases are texts",
        ),
        ("adapters: {}\ndefault_provider: x\n", r"models.yaml:2: no adapter 'x'"),
        (
            "adapters: {a: {type: vllm}}\nmodels: {a:m: {aliases: [b]}, a:n: {aliases: [b]}}\n",
            r"models.yaml: 'b' names both",
        ),
    ],
)
def test_mistakes_have_their_place(write, text, message):
    """File and line."""
    with pytest.raises(ConfigurationError, match=message):
        read_registry(write(text), {})
