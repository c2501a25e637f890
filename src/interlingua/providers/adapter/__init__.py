"""`HttpAdapter`, and the three parts that it is made of: configuration, generation, operations."""

from interlingua.providers.adapter.http_adapter import (
    AnthropicAdapter,
    GeminiAdapter,
    HttpAdapter,
    LocalAdapter,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
)

__all__ = [
    "AnthropicAdapter",
    "GeminiAdapter",
    "HttpAdapter",
    "LocalAdapter",
    "OpenAIAdapter",
    "OpenAICompatibleAdapter",
]
