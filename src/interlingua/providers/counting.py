"""Token counts that the provider itself gives, where it has a way to ask for them."""

from __future__ import annotations

from msgspec.structs import replace

from interlingua.spec.content import Json
from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import DecodeError, UnsupportedError
from interlingua.spec.request import Request
from interlingua.wire.fields import count
from interlingua.wire.json_text import dumps, loads

_PATHS = {
    "anthropic_messages": "/v1/messages/count_tokens",
    "openai_responses": "/v1/responses/input_tokens",
    "gemini_generate": "/v1beta/models/{model}:countTokens",
}
_GEMINI = ":countTokens"
_COUNTS = ("input_tokens", "totalTokens")


def counted(request: Request, dialect: str) -> Request:
    """What of a request counts, addressed to whoever counts."""
    path = _PATHS.get(dialect)
    if path is None:
        raise UnsupportedError(
            f"{dialect} has no way to ask for a count; estimate_input_tokens makes a guess"
        )
    return Request(
        model=request.model,
        messages=request.messages,
        tools=request.tools,
        tool_choice=request.tool_choice,
        provider_options={dialect: {"path": path, "auto_cache": False}},
        request_id=request.request_id,
    )


def counting_call(call: HttpRequest, model: str) -> HttpRequest:
    """The call as the counter wants it: Gemini's takes a whole request inside its body."""
    if not call.url.endswith(_GEMINI):
        return call
    inner = {"model": f"models/{model}", **loads(call.body)}
    return replace(call, body=dumps({"generateContentRequest": inner}))


def read_count(body: Json) -> int:
    """The count, under the name each has for it."""
    if isinstance(body, dict):
        for name in _COUNTS:
            found = count(body.get(name))
            if found is not None:
                return found
    raise DecodeError("the provider's answer holds no token count")
