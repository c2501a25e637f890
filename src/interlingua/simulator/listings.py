"""The small endpoints beside the answers: models, token counts, embeddings."""

from __future__ import annotations

import base64
import hashlib
import struct
from typing import Any

from interlingua.simulator.counting import count_text, prompt_text
from interlingua.spec.content import Json
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.request import Request

DIMENSIONS = 8


def list_models(dialect: str, models: tuple[str, ...]) -> Json:
    """The models, as this vendor lists them."""
    rows = [describe_model(dialect, model) for model in models]
    if dialect == "gemini_generate":
        return {"models": rows}
    if dialect == "anthropic_messages":
        ends = {
            "first_id": models[0] if models else None,
            "last_id": models[-1] if models else None,
        }
        return {"data": rows, "has_more": False, **ends}
    return {"object": "list", "data": rows}


def describe_model(dialect: str, model: str) -> dict[str, Any]:
    """One model, as this vendor describes it."""
    if dialect == "gemini_generate":
        return {
            "name": f"models/{model}",
            "version": "simulated",
            "displayName": f"{model} (simulated)",
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }
    if dialect == "anthropic_messages":
        name = f"{model} (simulated)"
        created = "2026-01-01T00:00:00Z"
        return {"type": "model", "id": model, "display_name": name, "created_at": created}
    return {"id": model, "object": "model", "created": 0, "owned_by": "simulated"}


def count_tokens(dialect: str, request: Request) -> Json:
    """How many tokens the request has, as this vendor says it."""
    tokens = count_text(prompt_text(request))
    if dialect == "gemini_generate":
        return {"totalTokens": tokens}
    if dialect == "anthropic_messages":
        return {"input_tokens": tokens}
    return {"object": "response.input_tokens", "input_tokens": tokens}


def embed(body: Json) -> Json:
    """Vectors made from a digest of each text: equal texts have equal vectors, that is all."""
    if not isinstance(body, dict) or not isinstance(body.get("input"), (str, list)):
        raise InvalidRequestError("'input' must be text or a list", error_code="invalid_type")
    given = body["input"]
    texts = [given] if isinstance(given, str) or not all(map(_is_text, given)) else given
    size = body.get("dimensions")
    size = size if isinstance(size, int) and 0 < size <= 4096 else DIMENSIONS
    encoded = body.get("encoding_format") == "base64"
    vectors = [_vector(str(text), size) for text in texts]
    data = [
        {"object": "embedding", "index": i, "embedding": _base64(v) if encoded else v}
        for i, v in enumerate(vectors)
    ]
    tokens = sum(count_text(str(text)) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body.get("model", ""), "usage": usage}


def _is_text(item: Any) -> bool:
    return isinstance(item, (str, list))


def _vector(text: str, size: int) -> list[float]:
    """A vector of length 1."""
    digest = hashlib.shake_128(text.encode("utf-8", "replace")).digest(2 * size)
    raw = [value / 32768 - 1 for value in struct.unpack(f"<{size}H", digest)]
    length = sum(value * value for value in raw) ** 0.5 or 1.0
    return [value / length for value in raw]


def _base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
