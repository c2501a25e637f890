"""The providers. Add one of a known dialect here, or in another package with an entry point."""

from __future__ import annotations

from collections.abc import Iterable
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
        base_url="https://api.openai.com/v1",
        key_env=("OPENAI_API_KEY",),
        base_url_env=("OPENAI_BASE_URL",),
        headers_env={"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"},
        request_id_header="x-client-request-id",
    ),
    Provider(
        name="anthropic",
        dialect="anthropic_messages",
        base_url="https://api.anthropic.com",
        signing="x-api-key",
        key_env=("ANTHROPIC_API_KEY",),
        base_url_env=("ANTHROPIC_BASE_URL",),
    ),
    Provider(
        name="gemini",
        dialect="gemini_generate",
        base_url="https://generativelanguage.googleapis.com",
        signing="x-goog-api-key",
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        base_url_env=("GEMINI_BASE_URL",),
    ),
    _chat("openrouter", "https://openrouter.ai/api/v1"),
    _chat("xai", "https://api.x.ai/v1"),
    _chat("fireworks", "https://api.fireworks.ai/inference/v1"),
    # Groq's own SDK takes the host without a path.
    _chat("groq", "https://api.groq.com/openai/v1", base_path="/openai/v1"),
    _chat("mistral", "https://api.mistral.ai/v1"),
    _chat("deepseek", "https://api.deepseek.com"),
    _chat("together", "https://api.together.xyz/v1"),
    _chat("cerebras", "https://api.cerebras.ai/v1"),
    _chat(
        "moonshot",
        "https://api.moonshot.ai/v1",
        key_env=("MOONSHOTAI_API_KEY", "MOONSHOT_API_KEY"),
    ),
    _chat("zai", "https://api.z.ai/api/paas/v4"),
    _chat(
        "azure",  # each resource has its own host, so there is no base URL
        base_path="/openai/v1",
        signing="api-key",
        key_env=("AZURE_OPENAI_API_KEY",),
        base_url_env=("AZURE_OPENAI_ENDPOINT",),
    ),
    _local("ollama", 11434, base_url_env=("OLLAMA_BASE_URL", "OLLAMA_HOST")),
    _local("vllm", 8000),
    _local("llamacpp", 8080),
    Provider(
        name="local",  # the embedded model; its address is known once it runs
        dialect="openai_chat",
        base_path="/v1",
        key_required=False,
        is_local=True,
        is_embedded=True,
    ),
    Provider(name="openai_compatible", dialect="openai_chat", key_required=False),
)

_BUILTIN = {row.name: row for row in ROWS}


def find_provider(name: str) -> Provider:
    """The provider of that name; `ConfigurationError` lists the known names."""
    row = _BUILTIN.get(name) or providers().get(name)
    if row is None:
        raise ConfigurationError(f"no provider {name!r}; there are {', '.join(providers())}")
    return row


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
