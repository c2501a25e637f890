"""The providers. Add one of a known dialect here, or in another package with an entry point."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from interlingua.providers.provider import Provider, use_entry_points
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "interlingua.providers"
"""The group of entry points through which other packages add providers."""


def _chat(name: str, base_url: str = "", **fields: Any) -> Provider:
    """A server of Chat Completions; `NAME_API_KEY` and `NAME_BASE_URL` are its variables."""
    variables = {
        "key_env": (f"{name.upper()}_API_KEY",),
        "base_url_env": (f"{name.upper()}_BASE_URL",),
    }
    return Provider(name=name, dialect="openai_chat", base_url=base_url, **(variables | fields))


def _local(name: str, port: int, **fields: Any) -> Provider:
    """A server of Chat Completions on the user's own machine."""
    fields |= {"base_path": "/v1", "key_required": False, "is_local": True, "default_port": port}
    return _chat(name, f"http://localhost:{port}/v1", **fields)


ROWS: tuple[Provider, ...] = (
    Provider(
        name="openai",
        dialect="openai_responses",
        families=(
            *("gpt-", "chatgpt-", "o1", "o3", "o4-", "codex-", "computer-use-", "ft:"),
            *("text-embedding-", "dall-e", "whisper-", "tts-1", "sora-"),
        ),
        base_url="https://api.openai.com/v1",
        key_env=("OPENAI_API_KEY",),
        base_url_env=("OPENAI_BASE_URL",),
        headers_env={"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"},
        header_options={"organization": "openai-organization", "project": "openai-project"},
        request_id_header="x-client-request-id",
    ),
    Provider(
        name="anthropic",
        dialect="anthropic_messages",
        aliases=("claude",),
        families=("claude",),
        base_url="https://api.anthropic.com",
        signing="x-api-key",
        key_env=("ANTHROPIC_API_KEY",),
        base_url_env=("ANTHROPIC_BASE_URL",),
    ),
    Provider(
        name="gemini",
        dialect="gemini_generate",
        aliases=("google", "googleai", "google_genai"),
        families=("gemini-", "imagen-", "veo-"),
        base_url="https://generativelanguage.googleapis.com",
        signing="x-goog-api-key",
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        base_url_env=("GEMINI_BASE_URL",),
    ),
    _chat("openrouter", "https://openrouter.ai/api/v1"),
    _chat("xai", "https://api.x.ai/v1", aliases=("x-ai",), families=("grok-",)),
    _chat(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        aliases=("fireworks-ai", "fireworks_ai"),
    ),
    # Groq's own SDK takes the host without a path.
    _chat("groq", "https://api.groq.com/openai/v1", base_path="/openai/v1"),
    _chat(
        "mistral",
        "https://api.mistral.ai/v1",
        aliases=("mistralai",),
        families=(
            *("mistral-", "codestral", "ministral", "magistral", "pixtral", "devstral", "voxtral"),
            *("open-mistral", "open-mixtral"),
        ),
    ),
    _chat("deepseek", "https://api.deepseek.com", families=("deepseek-",)),
    _chat("together", "https://api.together.xyz/v1", aliases=("togetherai", "together_ai")),
    _chat("cerebras", "https://api.cerebras.ai/v1"),
    _chat(
        "moonshot",
        "https://api.moonshot.ai/v1",
        aliases=("moonshotai",),
        families=("kimi-", "moonshot-"),
        key_env=("MOONSHOTAI_API_KEY", "MOONSHOT_API_KEY"),
    ),
    _chat("zai", "https://api.z.ai/api/paas/v4", aliases=("z-ai", "zhipu"), families=("glm-",)),
    _chat(
        "azure",  # each resource has its own host, so there is no base URL
        aliases=("azure-openai", "azure_openai"),
        base_path="/openai/v1",
        signing="api-key",
        key_env=("AZURE_OPENAI_API_KEY",),
        base_url_env=("AZURE_OPENAI_ENDPOINT",),
    ),
    _local("ollama", 11434, base_url_env=("OLLAMA_BASE_URL", "OLLAMA_HOST")),
    _local("vllm", 8000),
    _local("llamacpp", 8080, aliases=("llama.cpp", "llama-cpp", "llama_cpp")),
    _local("lmstudio", 1234, aliases=("lm-studio", "lm_studio")),
    Provider(
        name="local",  # the embedded model; its address is known once it runs
        dialect="openai_chat",
        base_path="/v1",
        key_required=False,
        is_local=True,
        is_embedded=True,
    ),
    Provider(
        name="openai_compatible",
        dialect="openai_chat",
        aliases=("openai-compatible",),
        key_required=False,
    ),
)

OTHERS: Mapping[str, tuple[str, ...]] = {
    "ai21": ("jamba-",),
    "bedrock": ("nova-", "titan-"),
    "cohere": ("command-",),
    "databricks": ("dbrx-",),
    "deepinfra": (),
    "huggingface": (),
    "nvidia": ("nemotron-",),
    "perplexity": ("sonar",),
    "replicate": (),
    "sagemaker": (),
    "vertex": (),
    "vertex_ai": (),
    "watsonx": ("granite-",),
}
"""Well-known providers without a row, with the families of their models."""

OPEN_FAMILIES = ("gpt-oss", "llama", "qwen", "minimax-", "muse-")
OPEN_MODELS = "a host of open models"
"""The maker of the open families: a provider without families of its own serves them."""

_WORD_END = re.compile("[/:.@]")

_BUILTIN = {row.name: row for row in ROWS}


def find_provider(name: str) -> Provider:
    """The provider of that name or alias; `ConfigurationError` lists the known names."""
    row = _BUILTIN.get(name) or providers().get(row_name(name) or name)
    if row is None:
        raise ConfigurationError(f"no provider {name!r}; there are {', '.join(providers())}")
    return row


def row_name(name: str) -> str | None:
    """The name of the row with this name or alias, in any case; None if there is none."""
    return _names().get(name.lower())


@cache
def _names() -> dict[str, str]:
    rows = providers().values()
    aliases = {alias: row.name for row in rows for alias in row.aliases}
    return aliases | {row.name.lower(): row.name for row in rows}


def maker_of(model: str) -> str | None:
    """
    The provider that a model's name points to, by a word or a family in it; None if unclear.

        maker_of("us.anthropic.claude-opus-5"), maker_of("gpt-7"), maker_of("llama3")
        # anthropic, openai, OPEN_MODELS
    """
    name = model.lower()
    for word in _WORD_END.split(name)[:-1]:
        if word in OTHERS or row_name(word):
            return row_name(word) or word
    makers = _makers()
    families = "|".join(map(re.escape, sorted(makers, key=len, reverse=True)))
    match = re.search(f"(?:^|{_WORD_END.pattern})({families})", name)
    return None if match is None else makers[match[1]]


@cache
def _makers() -> dict[str, str]:
    """Each family with its maker."""
    rows = {row.name: row.families for row in providers().values()}
    table = {**rows, **OTHERS, OPEN_MODELS: OPEN_FAMILIES}
    return {family: maker for maker, families in table.items() for family in families}


@cache
def providers() -> dict[str, Provider]:
    """All providers by name: the built-in ones, then those of other packages."""
    from importlib.metadata import entry_points

    return with_installed(entry_points(group=ENTRY_POINTS))


def with_installed(points: Iterable[EntryPoint]) -> dict[str, Provider]:
    """The built-in providers, which cannot be replaced, then those of these entry points."""
    rows = dict(_BUILTIN)

    def add(point: EntryPoint) -> None:
        for row in rows_of(point.load(), point.name):
            rows.setdefault(row.name, row)

    use_entry_points(points, add)
    return rows


def rows_of(loaded: object, name: str) -> tuple[Provider, ...]:
    """The providers of an entry point, which is a row, rows, or a function that returns them."""
    value = loaded() if callable(loaded) else loaded
    rows = value if isinstance(value, (list, tuple)) else (value,)
    for row in rows:
        if not isinstance(row, Provider):
            raise ConfigurationError(
                f"entry point {name!r} of {ENTRY_POINTS} gave a {type(row).__name__}; "
                "it must give Provider rows"
            )
    return tuple(rows)
