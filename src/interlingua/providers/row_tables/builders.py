"""Short forms of rows that have much in common."""

from __future__ import annotations

from typing import Any

from interlingua.providers.provider import Provider

CHAT = "openai_chat"
RESPONSES = "openai_responses"
MESSAGES = "anthropic_messages"

DOCS = "vendor documentation"
RECORDED = "recordings"
UNVERIFIED = "unverified"


def chat(name: str, base_url: str = "", *sources: str, **fields: Any) -> Provider:
    """A server of Chat Completions; `NAME_API_KEY` and `NAME_BASE_URL` are its variables."""
    variables = {
        "key_env": (f"{name.upper()}_API_KEY",),
        "base_url_env": (f"{name.upper()}_BASE_URL",),
    }
    return Provider(
        name=name, dialect=CHAT, base_url=base_url, sources=sources, **(variables | fields)
    )


def local(name: str, port: int, *sources: str, **fields: Any) -> Provider:
    """A server of Chat Completions on the user's own machine."""
    fields |= {"base_path": "/v1", "key_required": False, "is_local": True, "default_port": port}
    return chat(name, f"http://localhost:{port}/v1", *sources, **fields)
