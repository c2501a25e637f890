"""What a request asks for, and of which vendor."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import DecodeError
from interlingua.wire.json_text import loads
from interlingua.wire.secrets import redact_headers

Operation: TypeAlias = Literal["answer", "count", "embed", "models", "model", "unknown"]

_CHAT, _RESPONSES = "openai_chat", "openai_responses"
_ANTHROPIC, _GEMINI = "anthropic_messages", "gemini_generate"
_BY_HEADERS = ""  # two vendors share the path

# Only the end of a path counts: vendors and proxies put it under many prefixes.
_PATTERNS: tuple[tuple[str, str, Operation, str], ...] = (
    ("POST", r".*/chat/completions", "answer", _CHAT),
    ("POST", r".*/responses", "answer", _RESPONSES),
    ("POST", r".*/messages", "answer", _ANTHROPIC),
    ("POST", r".*/models/[^/:]+:(?:generate|streamGenerate)Content", "answer", _GEMINI),
    ("POST", r".*/responses/input_tokens", "count", _RESPONSES),
    ("POST", r".*/messages/count_tokens", "count", _ANTHROPIC),
    ("POST", r".*/models/[^/:]+:countTokens", "count", _GEMINI),
    ("POST", r".*/embeddings", "embed", _CHAT),
    ("GET", r".*/v1beta/models", "models", _GEMINI),
    ("GET", r".*/v1beta/models/(?P<model>[^:]+)", "model", _GEMINI),
    ("GET", r".*/models", "models", _BY_HEADERS),
    ("GET", r".*/models/(?P<model>.+)", "model", _BY_HEADERS),
)
_ROUTES = [(verb, re.compile(path), what, whose) for verb, path, what, whose in _PATTERNS]


class Route(NamedTuple):
    """The vendor that is meant, and what it is to do."""

    operation: Operation
    dialect: str
    model: str | None = None


def find_route(method: str, path: str, headers: Mapping[str, str]) -> Route:
    """Where a request belongs; an unknown one still has a vendor to say so."""
    for known, pattern, operation, dialect in _ROUTES:
        found = pattern.fullmatch(path) if method == known else None
        if found is not None:
            model = found.groupdict().get("model")
            return Route(operation, dialect or _guess(path, headers), model)
    return Route("unknown", _guess(path, headers))


def read_call(scope: Mapping[str, Any], body: bytes) -> WireCall:
    """The request without its key; its body is None if it is not JSON."""
    raw = scope.get("raw_path") or quote(scope["path"], safe="/:@").encode()
    path = raw.decode("latin-1").partition("?")[0]
    query = scope.get("query_string", b"").decode("latin-1")
    kept = "&".join(item for item in query.split("&") if item and not item.startswith("key="))
    try:
        value = loads(body) if body else None
    except DecodeError:
        value = None
    is_stream = isinstance(value, dict) and value.get("stream") is True
    return WireCall(
        path=f"{path}?{kept}" if kept else path,
        body=value,
        headers=redact_headers(headers_of(scope)),
        stream=is_stream or path.endswith(":streamGenerateContent"),
    )


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """The headers, names in lower case."""
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }


def _guess(path: str, headers: Mapping[str, str]) -> str:
    if "anthropic-version" in headers or "x-api-key" in headers or "/messages" in path:
        return _ANTHROPIC
    if "x-goog-api-key" in headers or "/v1beta/" in path:
        return _GEMINI
    return _RESPONSES if "/responses" in path else _CHAT
