"""Adapters by name."""

import pytest

from interlingua.providers.named import (
    AnthropicAdapter,
    GeminiAdapter,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
)
from interlingua.spec.request import Request

BASE = "https://proxy.example/v1"


@pytest.mark.parametrize(
    ("adapter", "url"),
    [
        (OpenAIAdapter("k"), "https://api.openai.com/v1/responses"),
        (AnthropicAdapter("k"), "https://api.anthropic.com/v1/messages"),
        (OpenAIAdapter("k", base_url=BASE), f"{BASE}/responses"),
        (AnthropicAdapter("k", base_url="https://proxy.example"), f"{BASE}/messages"),
        (OpenAICompatibleAdapter(base_url=BASE), f"{BASE}/chat/completions"),
        (OpenAIAdapter("k", dialect="openai_chat"), "https://api.openai.com/v1/chat/completions"),
        (
            GeminiAdapter("k"),
            "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        ),
    ],
)
def test_where_they_call(adapter, url):
    """The provider's own address, or the one given."""
    assert adapter.dry_run(Request(model="m", messages="hi")).url == url


def test_they_can_have_another_name():
    """So that a client may hold two of a kind."""
    assert OpenAIAdapter("k", name="eu").name == "eu"
