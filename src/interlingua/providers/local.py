"""The model on this machine, started when it is first asked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Unpack

from interlingua.local import LocalServer, local_server
from interlingua.providers.adapter import AdapterSettings, HttpAdapter


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
        self.server = server or local_server(gguf)
        settings = {"base_url": "http://127.0.0.1/v1", **settings}  # until it runs
        super().__init__("local", None, **settings)

    async def _wake(self) -> None:
        url = await asyncio.to_thread(self.server.start)
        self._base_url = f"{url}/v1"
