"""
The server side of responses that are kept, and of conversations: references and endpoints.

Messages of errors are the vendor's:
https://platform.openai.com/docs/guides/conversation-state
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from interlingua.dialects.openai_responses.facts import PREFIXES, normal_item
from interlingua.spec.content import Json
from interlingua.spec.contracts import Frame, WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.kept import (
    Items,
    KeptConversation,
    KeptForm,
    KeptKind,
    KeptQuery,
    NewKeptId,
    References,
)
from interlingua.spec.operations import Failure, ServedOperation, ServedReply
from interlingua.wire.json_text import loads
from interlingua.wire.operations import page_size

KEEPS_NONE = "This server keeps no responses. "
TO_KEEP = " Its operator can set `responses: {keep: 30d}` in the section `gateway` of its file."
_REFERENCE = "item_reference"
_COMPACTION = "compaction"
_PREVIOUS, _CONVERSATION = "previous_response_id", "conversation"
_MOST_ITEMS = 20  # «You may add up to 20 items at a time.» (the SDK)
_MOST_LISTED = 100  # «Limit can range between 1 and 100, and the default is 20.» (the SDK)
# The prefixes of the ids of items that only requests have.
_OWN_PREFIXES = {**PREFIXES, "function_call_output": "fco", _COMPACTION: "cmp"}
_WHOLE = ("response.completed", "response.incomplete")


def _read(call: WireCall) -> References:
    body = call.body if isinstance(call.body, dict) else {}
    previous, conversation = body.get(_PREVIOUS), body.get(_CONVERSATION)
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    for name, value in ((_PREVIOUS, previous), (_CONVERSATION, conversation)):
        if value is not None and not isinstance(value, str):
            raise InvalidRequestError(f"`{name}` must be the id of one.", error_code=None)
    if previous is not None and conversation is not None:
        raise InvalidRequestError(
            f"`{_PREVIOUS}` and `{_CONVERSATION}` cannot be used together. Send one of them.",
            error_code="mutually_exclusive_parameters",
        )
    ids = [item.get("id") for item in _items(body) if is_reference(item)]
    for value in ids:
        if not isinstance(value, str):
            raise InvalidRequestError(
                "An `item_reference` in `input` needs an `id`.", error_code=None
            )
    return References(
        None if previous is None else str(previous),
        None if conversation is None else str(conversation),
        tuple(map(str, ids)),
        body.get("store") is not False,
        call.path.partition("?")[0].endswith("/responses"),
    )


def _items(body: Mapping[str, Json]) -> list[Any]:
    """The items of `input`; a text is one message."""
    items = body.get("input")
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return items if isinstance(items, list) else []


def is_reference(item: Json) -> bool:
    """Whether it is a reference; with an id alone, it is one too (the SDK's `ItemReference`)."""
    if not isinstance(item, dict):
        return False
    return item.get("type") == _REFERENCE or {*item} == {"id"}


def _own_items(body: Mapping[str, Json], found: Mapping[str, Json], new_id: NewKeptId) -> Items:
    return tuple(
        (item["id"], found[item["id"]]) if is_reference(item) else (_id_of(item, new_id), item)
        for item in _items(body)
    )


def _id_of(item: Json, new_id: NewKeptId) -> str:
    known = item.get("id") if isinstance(item, dict) else None
    if isinstance(known, str) and known:
        return known
    kind = item.get("type", "message") if isinstance(item, dict) else "message"
    return new_id(f"{_OWN_PREFIXES.get(str(kind), 'item')}_")


def _resolve(
    body: Mapping[str, Json], items: Sequence[Json], references: References
) -> dict[str, Json]:
    resolved = dict(body)
    if references.previous or references.conversation or references.items:
        resolved["input"] = list(items)
    if references.conversation is not None:
        resolved[_CONVERSATION] = {"id": references.conversation}
    return resolved


def _output(body: Mapping[str, Json]) -> Items:
    items = body.get("output")
    return tuple(
        (item["id"], item)
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, dict) and isinstance(item.get("id"), str)
    )


def _history(items: Sequence[Json]) -> list[Json]:
    """A summary stands for everything before it."""
    last = 0
    for place, item in enumerate(items):
        if isinstance(item, dict) and item.get("type") == _COMPACTION:
            last = place
    return list(items[last:])


def _last_body(frame: Frame) -> dict[str, Json] | None:
    if frame.event not in _WHOLE:
        return None
    data = loads(frame.data)
    body = data.get("response") if isinstance(data, dict) else None
    return body if isinstance(body, dict) else None


def _echo(references: References) -> dict[str, Json]:
    conversation = references.conversation
    return {
        "store": references.is_kept,
        _PREVIOUS: references.previous,
        _CONVERSATION: None if conversation is None else {"id": conversation},
    }


_NO_ITEM = (
    "Item with id '{}' not found. Items are not persisted when `store` is set to false. Try again "
    "with `store` set to true, or remove this item from your input."
)
_NOT_FOUND: dict[KeptKind, tuple[int, str, str | None, str | None]] = {
    "response": (404, "Response with id '{}' not found.", None, None),
    # recorded by others: https://github.com/maximhq/bifrost/issues/2441
    "previous": (
        400,
        "Previous response with id '{}' not found.",
        _PREVIOUS,
        "previous_response_not_found",
    ),
    "conversation": (404, "Conversation with id '{}' not found.", None, None),
    "item": (404, _NO_ITEM, "input", None),
    "conversation_item": (404, "Item with id '{}' not found.", None, None),
}


def _not_found(kind: KeptKind, id: str) -> Failure:  # noqa: A002 -- the name of the field
    status, message, param, code = _NOT_FOUND[kind]
    error: dict[str, Json] = {
        "message": message.format(id[:200]),
        "type": "invalid_request_error",
        "param": param,
        "code": code,
    }
    return Failure(status=status, body={"error": error})


KEPT = KeptForm(
    response_prefix="resp_",
    conversation_prefix="conv_",
    options=frozenset(("store", _PREVIOUS, _CONVERSATION)),
    read=_read,
    own_items=_own_items,
    resolve=_resolve,
    output=_output,
    history=_history,
    last_body=_last_body,
    echo=_echo,
    not_found=_not_found,
    refusal=f"{KEEPS_NONE}Send the whole conversation in `input`.{TO_KEEP}",
)


# Endpoints.


def _query(_: WireCall, params: Mapping[str, str]) -> KeptQuery:
    return KeptQuery(id=params.get("id", ""), item_id=params.get("item", ""))


def _whole_query(call: WireCall, params: Mapping[str, str]) -> KeptQuery:
    if call.query.get("stream", "").lower() == "true":
        raise InvalidRequestError(
            "This server streams no kept responses. Send the request without `stream`.",
            error_code=None,
        )
    return _query(call, params)


def _list_query(call: WireCall, params: Mapping[str, str]) -> KeptQuery:
    order = call.query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise InvalidRequestError("`order` must be `asc` or `desc`.", error_code=None)
    return KeptQuery(
        id=params["id"],
        after=call.query.get("after"),
        limit=page_size(call.query, "limit", default=20, highest=_MOST_LISTED),
        is_ascending=order == "asc",
    )


def _conversation_query(call: WireCall, params: Mapping[str, str]) -> KeptQuery:
    body = {} if call.body is None and call.content is None else call.body
    if not isinstance(body, dict):
        message = "We could not parse the JSON body of your request."
        raise InvalidRequestError(message, error_code=None)
    items, metadata = body.get("items") or [], body.get("metadata") or {}
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidRequestError("`items` must be an array of items.", error_code=None)
    if any(map(is_reference, items)):
        raise InvalidRequestError(
            "`items` may not have references. Send the items themselves.", error_code=None
        )
    if len(items) > _MOST_ITEMS:
        raise InvalidRequestError(
            f"`items` may have at most {_MOST_ITEMS} at a time.", error_code=None
        )
    if not isinstance(metadata, dict):
        raise InvalidRequestError("`metadata` must be an object.", error_code=None)
    return KeptQuery(id=params.get("id", ""), items=tuple(items), metadata=metadata)


def _same(result: Any, _: KeptQuery) -> ServedReply:
    return ServedReply(body=result)


def _deleted_response(_: Any, value: KeptQuery) -> ServedReply:
    return ServedReply(body={"id": value.id, "object": "response", "deleted": True})


def _deleted_conversation(_: Any, value: KeptQuery) -> ServedReply:
    body = {"id": value.id, "object": "conversation.deleted", "deleted": True}
    return ServedReply(body=body)


def _refuse_cancel(_: Any, __: KeptQuery) -> ServedReply:
    # All that is kept was answered while its client waited.
    raise InvalidRequestError("Cannot cancel a synchronous response.", error_code=None)


def _conversation(made: KeptConversation, _: KeptQuery) -> ServedReply:
    return ServedReply(
        body={
            "id": made.id,
            "object": "conversation",
            "created_at": made.created_at,
            "metadata": made.metadata,
        }
    )


def _item(result: tuple[str, Json], _: KeptQuery) -> ServedReply:
    return ServedReply(body=_shown(*result))


def _added(items: Items, _: KeptQuery) -> ServedReply:
    return ServedReply(body=_page(items, has_more=False))


def _listed(items: Items, value: KeptQuery) -> ServedReply:
    """One page; the last item first, unless the query asks for the other order."""
    ordered = items if value.is_ascending else items[::-1]
    start = 0
    if value.after is not None:
        places = [place for place, (id, _) in enumerate(ordered) if id == value.after]
        if not places:
            raise InvalidRequestError(
                f"`after`: the item {value.after!r} does not exist.", error_code=None
            )
        start = places[0] + 1
    page = ordered[start : start + value.limit]
    return ServedReply(body=_page(page, has_more=start + value.limit < len(ordered)))


def _page(items: Items, *, has_more: bool) -> dict[str, Json]:
    return {
        "object": "list",
        "data": [_shown(id, item) for id, item in items],
        "first_id": items[0][0] if items else None,
        "last_id": items[-1][0] if items else None,
        "has_more": has_more,
    }


def _shown(id: str, item: Json) -> dict[str, Json]:  # noqa: A002 -- the name of the field
    """The item as the vendor lists it."""
    whole = normal_item(item)
    whole = whole if isinstance(whole, dict) else {"type": "message", "content": item}
    usual: dict[str, Json] = {"status": "completed"} if whole.get("type") == "message" else {}
    return {"id": id, **usual, **whole}


def _at(method: str, path: str, name: str, decode: Any, encode: Any) -> ServedOperation:
    pattern = re.compile(f".*{path}")
    return ServedOperation(name=name, method=method, pattern=pattern, decode=decode, encode=encode)


_RESPONSE = r"/responses/(?P<id>[^/]+)"
_ONE = r"/conversations/(?P<id>[^/]+)"
_ITEM = rf"{_ONE}/items/(?P<item>[^/]+)"
SERVED: tuple[ServedOperation, ...] = (
    _at("GET", _RESPONSE, "get_response", _whole_query, _same),
    _at("DELETE", _RESPONSE, "delete_response", _query, _deleted_response),
    _at("POST", f"{_RESPONSE}/cancel", "get_response", _query, _refuse_cancel),
    _at("GET", f"{_RESPONSE}/input_items", "list_input_items", _list_query, _listed),
    _at("POST", "/conversations", "create_conversation", _conversation_query, _conversation),
    _at("GET", _ONE, "get_conversation", _query, _conversation),
    _at("POST", _ONE, "update_conversation", _conversation_query, _conversation),
    _at("DELETE", _ONE, "delete_conversation", _query, _deleted_conversation),
    _at("POST", f"{_ONE}/items", "add_conversation_items", _conversation_query, _added),
    _at("GET", f"{_ONE}/items", "list_conversation_items", _list_query, _listed),
    _at("GET", _ITEM, "get_conversation_item", _query, _item),
    _at("DELETE", _ITEM, "delete_conversation_item", _query, _conversation),
)
"""The endpoints of what is kept; `serving.kept_responses` performs them."""
