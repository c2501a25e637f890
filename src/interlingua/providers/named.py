"""Adapters by the name of their provider."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.adapter_options import AdapterSettings

if TYPE_CHECKING:  # only a local model loads it
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


# The model on this machine, started when it is first asked.


class LocalAdapter(HttpAdapter):
    """
    llama.cpp with a small model, or with any GGUF file; no key, no network.

        adapter = LocalAdapter()
        response = await adapter.complete(Request(messages="Hello"))

    Its server speaks three dialects; `dialect=` chooses another than the one of the row.
    """

    def __init__(
        self,
        gguf: str | Path | None = None,
        *,
        server: LocalServer | None = None,
        **settings: Unpack[AdapterSettings],
    ) -> None:
        super().__init__("local", None, gguf=gguf, server=server, **settings)
