"""One adapter class for each well-known provider."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Unpack

from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.adapter_options import AdapterSettings
from interlingua.providers.credentials import Key

if TYPE_CHECKING:  # imported only for a local model
    from interlingua.local import LocalServer


class _NamedAdapter(HttpAdapter):
    _row: ClassVar[str]

    def __init__(self, api_key: Key | None = None, **settings: Unpack[AdapterSettings]) -> None:
        super().__init__(self._row, api_key, **settings)


class OpenAIAdapter(_NamedAdapter):
    """OpenAI, through its Responses API."""

    _row = "openai"


class AnthropicAdapter(_NamedAdapter):
    """Anthropic, through its Messages API."""

    _row = "anthropic"


class GeminiAdapter(_NamedAdapter):
    """Gemini, through its own API."""

    _row = "gemini"


class OpenAICompatibleAdapter(_NamedAdapter):
    """Any server that speaks Chat Completions; its `base_url` includes the version."""

    _row = "openai_compatible"


class LocalAdapter(HttpAdapter):
    """
    llama.cpp with a small model, or with any GGUF file: no key, no network.

    Its server starts with the first request.

        adapter = LocalAdapter()
        response = await adapter.complete(Request(messages="Hello"))

    The server speaks three dialects; `dialect=` chooses another one than Chat Completions.
    """

    def __init__(
        self,
        gguf: str | Path | None = None,
        *,
        server: LocalServer | None = None,
        **settings: Unpack[AdapterSettings],
    ) -> None:
        super().__init__("local", None, gguf=gguf, server=server, **settings)
