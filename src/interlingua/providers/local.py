"""The model on this machine, started when it is first asked."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from interlingua.local import LocalServer
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.settings import AdapterSettings


class LocalAdapter(HttpAdapter):
    """
    llama.cpp with a small model, or with any GGUF file; no key, no network.

        adapter = LocalAdapter()
        response = await adapter.complete(Request(messages="Hello"))

    It also speaks `dialect="openai_responses"` and `"anthropic_messages"`.
    """

    def __init__(
        self,
        gguf: str | Path | None = None,
        *,
        server: LocalServer | None = None,
        **settings: Unpack[AdapterSettings],
    ) -> None:
        super().__init__("local", None, gguf=gguf, server=server, **settings)
