"""One adapter class for each well-known provider."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.adapter_options import AdapterSettings

if TYPE_CHECKING:  # imported only for a local model
    from interlingua.local import LocalServer


class OpenAIAdapter(HttpAdapter):
    """OpenAI, through its Responses API."""

    def __init__(self, api_key: str | None = None, **settings: Unpack[AdapterSettings]) -> None:
        super().__init__("openai", api_key, **settings)


class AnthropicAdapter(HttpAdapter):
    """Anthropic, through its Messages API."""

    def __init__(self, api_key: str | None = None, **settings: Unpack[AdapterSettings]) -> None:
        super().__init__("anthropic", api_key, **settings)


class GeminiAdapter(HttpAdapter):
    """Gemini, through its own API."""

    def __init__(self, api_key: str | None = None, **settings: Unpack[AdapterSettings]) -> None:
        super().__init__("gemini", api_key, **settings)


class OpenAICompatibleAdapter(HttpAdapter):
    """Any server that speaks Chat Completions; its `base_url` includes the version."""

    def __init__(self, api_key: str | None = None, **settings: Unpack[AdapterSettings]) -> None:
        super().__init__("openai_compatible", api_key, **settings)


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
