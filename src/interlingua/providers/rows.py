"""The rows. To add a provider of a known dialect is to add one here, or by an entry point."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from interlingua.providers.provider import Provider
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "interlingua.providers"
"""The group of entry points through which other packages add rows."""

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
    Provider(
        name="openrouter",
        dialect="openai_chat",
        base_url="https://openrouter.ai/api/v1",
        key_env=("OPENROUTER_API_KEY",),
        base_url_env=("OPENROUTER_BASE_URL",),
    ),
    Provider(
        name="xai",
        dialect="openai_chat",
        base_url="https://api.x.ai/v1",
        key_env=("XAI_API_KEY",),
        base_url_env=("XAI_BASE_URL",),
    ),
    Provider(
        name="fireworks",
        dialect="openai_chat",
        base_url="https://api.fireworks.ai/inference/v1",
        key_env=("FIREWORKS_API_KEY",),
        base_url_env=("FIREWORKS_BASE_URL",),
    ),
    Provider(
        name="groq",
        dialect="openai_chat",
        base_url="https://api.groq.com/openai/v1",
        base_path="/openai/v1",  # its own SDK takes the bare host
        key_env=("GROQ_API_KEY",),
        base_url_env=("GROQ_BASE_URL",),
    ),
    Provider(
        name="mistral",
        dialect="openai_chat",
        base_url="https://api.mistral.ai/v1",
        key_env=("MISTRAL_API_KEY",),
        base_url_env=("MISTRAL_BASE_URL",),
    ),
    Provider(
        name="deepseek",
        dialect="openai_chat",
        base_url="https://api.deepseek.com",
        key_env=("DEEPSEEK_API_KEY",),
        base_url_env=("DEEPSEEK_BASE_URL",),
    ),
    Provider(
        name="together",
        dialect="openai_chat",
        base_url="https://api.together.xyz/v1",
        key_env=("TOGETHER_API_KEY",),
        base_url_env=("TOGETHER_BASE_URL",),
    ),
    Provider(
        name="cerebras",
        dialect="openai_chat",
        base_url="https://api.cerebras.ai/v1",
        key_env=("CEREBRAS_API_KEY",),
        base_url_env=("CEREBRAS_BASE_URL",),
    ),
    Provider(
        name="moonshot",
        dialect="openai_chat",
        base_url="https://api.moonshot.ai/v1",
        key_env=("MOONSHOTAI_API_KEY", "MOONSHOT_API_KEY"),
        base_url_env=("MOONSHOT_BASE_URL",),
    ),
    Provider(
        name="zai",
        dialect="openai_chat",
        base_url="https://api.z.ai/api/paas/v4",
        key_env=("ZAI_API_KEY",),
        base_url_env=("ZAI_BASE_URL",),
    ),
    Provider(
        name="azure",
        dialect="openai_chat",
        base_path="/openai/v1",  # a resource is named by its host
        signing="api-key",
        key_env=("AZURE_OPENAI_API_KEY",),
        base_url_env=("AZURE_OPENAI_ENDPOINT",),
    ),
    Provider(
        name="ollama",
        dialect="openai_chat",
        base_url="http://localhost:11434/v1",
        base_path="/v1",
        key_required=False,
        key_env=("OLLAMA_API_KEY",),
        base_url_env=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        is_local=True,
        default_port=11434,
    ),
    Provider(
        name="vllm",
        dialect="openai_chat",
        base_url="http://localhost:8000/v1",
        base_path="/v1",
        key_required=False,
        key_env=("VLLM_API_KEY",),
        base_url_env=("VLLM_BASE_URL",),
        is_local=True,
        default_port=8000,
    ),
    Provider(
        name="llamacpp",
        dialect="openai_chat",
        base_url="http://localhost:8080/v1",
        base_path="/v1",
        key_required=False,
        key_env=("LLAMACPP_API_KEY",),
        base_url_env=("LLAMACPP_BASE_URL",),
        is_local=True,
        default_port=8080,
    ),
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
    """The row of that name; `ConfigurationError` lists those there are."""
    found = _BUILTIN.get(name) or providers().get(name)
    if found is None:
        raise ConfigurationError(f"no provider {name!r}; there are {', '.join(providers())}")
    return found


@cache
def providers() -> dict[str, Provider]:
    """Every row by name: ours, then those of other packages."""
    from importlib.metadata import entry_points

    return with_installed(entry_points(group=ENTRY_POINTS))


def with_installed(points: Iterable[EntryPoint]) -> dict[str, Provider]:
    """Our rows, which cannot be replaced, then those of these entry points."""
    rows = dict(_BUILTIN)
    for point in points:
        try:
            found = rows_of(point.load(), point.name)
        except Exception as error:  # noqa: BLE001 -- it is somebody else's code
            # one package that is broken must not stop the others
            message = f"entry point {point.name!r} of {ENTRY_POINTS} is left out: {error!r}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        else:
            for row in found:
                rows.setdefault(row.name, row)
    return rows


def rows_of(loaded: object, name: str) -> tuple[Provider, ...]:
    """What an entry point gave: a row, rows, or a function that returns them."""
    found = loaded() if callable(loaded) else loaded
    rows = found if isinstance(found, (list, tuple)) else (found,)
    for row in rows:
        if not isinstance(row, Provider):
            raise ConfigurationError(
                f"entry point {name!r} of {ENTRY_POINTS} gave a {type(row).__name__}; "
                "it must give Provider rows"
            )
    return tuple(rows)
