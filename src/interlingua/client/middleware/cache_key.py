"""The key of an answer in a cache: a digest of everything that can change the answer."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from interlingua.providers.identity import identity_of
from interlingua.spec.content import Part, ToolCall, ToolResult
from interlingua.spec.contracts import Adapter
from interlingua.spec.messages import Message
from interlingua.spec.operations import OperationInput
from interlingua.spec.request import Request
from interlingua.version import __version__

IGNORED: Mapping[str, str] = {
    "request_id": "the name of the call",
    "session_id": "for logs and limits; never sent",
    "chosen_because": "for events and metadata; never sent",
    "short_name": "what the caller wrote for `model`; never sent",
    "context": "an object of the program; never sent",
    "upload": "how media is sent; the answer is about the same media",
    "keep_raw": "such a request is not cached, because wire events are not stored",
}
"""The fields of a request that are not in its key, each with the reason."""

IGNORED_OF_MESSAGES: Mapping[str, str] = {
    "id": "never sent",
    "metadata": "never sent; what the rules of history repair read of it counts",
}
"""The fields of a message that are not in the key, each with the reason."""

READ_BY_RULES = ("model", "provider", "finish_reason")
"""The metadata of a message that can change what is sent."""

_FIELDS = tuple(name for name in Request.__struct_fields__ if name not in IGNORED)
_MESSAGE_FIELDS = tuple(
    name for name in Message.__struct_fields__ if name not in {"content", *IGNORED_OF_MESSAGES}
)
_NUMBERS = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_PREFIX = "cache:"


def key_of(value: Any, name: str, adapter: Adapter, tenant: str | None) -> str | None:
    """
    The key of the answer to a request, or of the result of an operation with this value.

    `tenant` stands for the API key; None if the API key itself separates tenants. The key is None
    if the value or a setting of the adapter has no JSON form.
    """
    model = getattr(value, "model", None)
    model = model if isinstance(model, str) else ""
    identity = identity_of(adapter, model, with_key=tenant is None)
    if identity is None:
        return None
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    form = request_form(value) if isinstance(value, Request) else value
    if isinstance(value, OperationInput):
        form = replace(value, request_id=None)
    try:
        text = msgspec.json.encode([__version__, name, tenant, kind, form])
    except (TypeError, ValueError, RecursionError):
        return None
    return _PREFIX + blake2b(identity + text, digest_size=32).hexdigest()


def request_form(request: Request) -> dict[str, Any]:
    """
    The fields of a request that can change its answer.

    The ids of tool calls are replaced by their order: providers choose them at random, and an
    answer depends only on which result belongs to which call.
    """
    form = {name: getattr(request, name) for name in _FIELDS}
    for name in _NUMBERS:  # 0 is 0.0
        if form[name] is not None:
            form[name] = float(form[name])
    ids: dict[str, str] = {}
    form["messages"] = [_message_form(message, ids) for message in request.messages]
    return form


def _message_form(message: Message, ids: dict[str, str]) -> list[Any]:
    form: list[Any] = [getattr(message, name) for name in _MESSAGE_FIELDS]
    metadata = message.metadata
    form.append([metadata.get(name) for name in READ_BY_RULES] if metadata else None)
    form.append([_part_form(part, ids) for part in message.content])
    return form


def _part_form(part: Part, ids: dict[str, str]) -> Part:
    if type(part) is ToolCall:
        return replace(part, id=ids.setdefault(part.id, f"call {len(ids)}"))
    if type(part) is ToolResult:
        name = ids.setdefault(part.tool_call_id, f"call {len(ids)}")
        return replace(part, tool_call_id=name)
    return part
