"""
The server side of compaction: `/responses/compact`, and the item `compaction_trigger`.

https://developers.openai.com/api/docs/guides/compaction
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from interlingua.dialects.openai_responses.facts import NAME, PATH, PREFIXES, normal_item
from interlingua.spec.compaction import CompactionForm, Summary
from interlingua.spec.content import Json, Opaque, Part
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Reason, Response

_TRIGGER = "compaction_trigger"  # of Codex; the answer has exactly one item
_COMPACTION = "compaction"
_CONTENT = "encrypted_content"
COMPACT = "/responses/compact"
"""The end of the path."""
_INTRODUCTION = "This is a summary of the conversation so far:\n\n"


def _is_compact(call: WireCall) -> bool:
    return call.path.partition("?")[0].endswith(COMPACT)


def _items(body: Json) -> list[Any]:
    items = body.get("input") if isinstance(body, dict) else None
    return items if isinstance(items, list) else []


def _is_of(kind: str, item: Json) -> bool:
    return isinstance(item, dict) and item.get("type") == kind


def _is_asked(call: WireCall) -> bool:
    return _is_compact(call) or any(_is_of(_TRIGGER, item) for item in _items(call.body))


def _values(body: Json) -> tuple[str, ...]:
    values = [item.get(_CONTENT) for item in _items(body) if _is_of(_COMPACTION, item)]
    for value in values:
        if not isinstance(value, str):
            raise InvalidRequestError(
                "A compaction item in `input` needs its `encrypted_content`.",
                error_code="missing_required_parameter",
            )
    return tuple(map(str, values))


def _replace_items(call: WireCall, open_value: Callable[[str], str | None]) -> WireCall:
    items, body = _items(call.body), call.body
    if not isinstance(body, dict) or not any(_is_of(_COMPACTION, item) for item in items):
        return call
    replaced: list[Json] = []
    for item in items:
        text = open_value(item[_CONTENT]) if _is_of(_COMPACTION, item) else None
        replaced.append(
            item if text is None else {"role": "user", "content": f"{_INTRODUCTION}{text}"}
        )
    return replace(call, body={**body, "input": replaced})


def _native(call: WireCall, request: Request) -> Request:
    if not _is_compact(call):
        return request
    own = {**request.provider_options.get(NAME, {}), "path": f"{PATH}/compact"}
    return replace(request, provider_options={**request.provider_options, NAME: own})


def _conversation(request: Request) -> Request:
    """The request without the trigger."""
    messages = [message for message in request.messages if not any(map(_asks, message.content))]
    return replace(request, messages=tuple(messages))


def _asks(part: Part) -> bool:
    return isinstance(part, Opaque) and part.dialect == NAME and _is_of(_TRIGGER, part.data)


def _answer(call: WireCall, summary: Summary) -> Response:
    """
    «A list of all user messages, followed by a single compaction item» (the SDK).

    For a trigger, the item alone.
    """
    items: list[dict[str, Json]] = []
    extra: dict[str, dict[str, Json]] = {}
    reason: Reason = "stop"
    if _is_compact(call):
        reason = "other"  # such an answer has no status
        items = _user_messages(call.body, summary.id)
        extra = {NAME: {"object": "response.compaction", "created_at": summary.now}}
    items.append({"id": f"cmp_{summary.id}", "type": _COMPACTION, _CONTENT: summary.value})
    parts = tuple(Opaque(dialect=NAME, data=item) for item in items)
    response = summary.response
    return replace(
        response,
        id=f"resp_{summary.id}",
        message=Message(role="assistant", content=parts),
        finish_reason=FinishReason(reason=reason),
        usage=replace(response.usage, raw=None),  # that of another vendor is in other words
        raw=None,
        extra=extra,
    )


def _user_messages(body: Json, id: str) -> list[dict[str, Json]]:  # noqa: A002 -- of the answer
    given: Json = body.get("input") if isinstance(body, dict) else None
    items = [{"role": "user", "content": given}] if isinstance(given, str) else _items(body)
    messages = [
        item
        for item in items
        if isinstance(item, dict)
        and item.get("type", "message") == "message"
        and item.get("role") == "user"
    ]
    made: list[dict[str, Json]] = []
    for number, item in enumerate(messages):
        whole = normal_item(item)
        own = f"{PREFIXES['message']}_{id}_{number}"
        made.append(
            {"id": own, "status": "completed", **(whole if isinstance(whole, dict) else {})}
        )
    return made


def _is_answered(response: Response) -> bool:
    return any(
        isinstance(part, Opaque) and part.dialect == NAME and _is_of(_COMPACTION, part.data)
        for part in response.message.content
    )


COMPACTION = CompactionForm(
    is_asked=_is_asked,
    values=_values,
    replace_items=_replace_items,
    native=_native,
    conversation=_conversation,
    answer=_answer,
    is_answered=_is_answered,
)
