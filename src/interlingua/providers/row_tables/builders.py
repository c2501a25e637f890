"""Short forms of rows that have much in common."""

from __future__ import annotations

from typing import Any

from interlingua.providers.provider import Provider

CHAT = "openai_chat"
RESPONSES = "openai_responses"
MESSAGES = "anthropic_messages"
GEMINI = "gemini_generate"
CONVERSE = "bedrock_converse"

LIST = ("list_models",)
MODELS = (*LIST, "retrieve_model")
COUNT = ("count_tokens",)
EMBED = ("embed",)
IMAGES = ("generate_image", "edit_image")
TRANSCRIBE = ("transcribe",)
SPEAK = ("speak", "stream_speech")
VIDEO = ("create_video", "retrieve_video", "download_video")
FILES = ("upload_file", "retrieve_file", "list_files", "delete_file", "download_file")
BATCH = (
    *("submit_batch", "retrieve_batch", "batch_results"),
    *("cancel_batch", "list_batches", "delete_batch"),
)

MB = 1024 * 1024
"""Vendors give their limits in megabytes; where they mean a million bytes, they are not reached."""
DOCS = "vendor documentation"
RECORDED = "recordings"
UNVERIFIED = "unverified"
TAGGED_IDS = r"[^/:]+:(?:latest|[0-9.x]+[bm](?:-.+)?)"
"""Ids with a tag; seen in recordings of Ollama: `deepseek-r1:latest`, `gpt-oss:20b`."""


def has(*groups: tuple[str, ...], **variants: str) -> dict[str, str]:
    """These operations in the form of the dialect, and `variants` in one of their own."""
    return dict.fromkeys((name for group in groups for name in group), "") | variants


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
