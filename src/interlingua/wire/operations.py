"""Token counts and lists of models: requests and replies, with the field names of a dialect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from interlingua.spec.content import Json
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError, SDKError
from interlingua.spec.operations import Operation, Script, ServedModel
from interlingua.spec.request import Request
from interlingua.wire.fields import count
from interlingua.wire.integers import read_integer
from interlingua.wire.json_text import loads


def counted_request(
    request: Request, dialect: str, names: Collection[str] | None, options: Mapping[str, object]
) -> Request:
    """
    The request reduced to the fields that count as input.

    Of its provider options for the dialect, only those in `names` remain; None keeps all.
    """
    value = request.provider_options.get(dialect)
    every = value if isinstance(value, Mapping) else {}
    own = {name: item for name, item in every.items() if names is None or name in names}
    return Request(
        model=request.model,
        messages=request.messages,
        tools=request.tools,
        tool_choice=request.tool_choice,
        provider_options={dialect: {**own, **options}},
        request_id=request.request_id,
    )


def read_count(body: bytes, name: str) -> int:
    """The token count in the field `name`; raises `DecodeError` if there is none."""
    value = loads(body)
    tokens = count(value.get(name)) if isinstance(value, dict) else None
    if tokens is None:
        raise DecodeError(f"The provider's response has no token count in {name!r}.")
    return tokens


def change_calls(operation: Operation, change: Callable[[WireCall], WireCall]) -> Operation:
    """The operation with each of its calls changed."""
    encode, script = operation.encode, operation.script
    if encode is not None:
        operation = replace(operation, encode=lambda value, profile: change(encode(value, profile)))
    if script is not None:
        operation = replace(
            operation, script=lambda value, profile: _changed(script(value, profile), change)
        )
    return operation


def _changed(script: Script, change: Callable[[WireCall], WireCall]) -> Script:
    try:
        call = next(script)
        while True:
            try:
                reply = yield change(call)
            except SDKError as error:
                call = script.throw(error)
            else:
                call = script.send(reply)
    except StopIteration as end:
        return end.value
    finally:
        script.close()


def read_page(body: bytes) -> dict[str, Any]:
    """The page as an object, for its pagination fields; empty if it is not an object."""
    try:
        page = loads(body)
    except DecodeError:
        return {}
    return page if isinstance(page, dict) else {}


PAGE_TOKEN = "pagination_token"  # noqa: S105 -- the name of a parameter
NextPage: TypeAlias = Callable[[WireCall, Mapping[str, str], bytes], WireCall | None]
"""As in `Operation`."""


def page_after_last(parameter: str) -> NextPage:
    """For lists with `has_more` and `last_id`: this parameter has the id after which to go on."""

    def next_page(call: WireCall, _headers: Mapping[str, str], body: bytes) -> WireCall | None:
        page = read_page(body)
        last = page.get("last_id")
        if page.get("has_more") is not True or not isinstance(last, str):
            return None
        return replace(call, query={**call.query, parameter: last}, warnings=())

    return next_page


def page_by_token(call: WireCall, _headers: Mapping[str, str], body: bytes) -> WireCall | None:
    """For lists with `nextPageToken`, which the parameter `pageToken` repeats."""
    token = read_page(body).get("nextPageToken")
    if not isinstance(token, str) or not token:
        return None
    return replace(call, query={**call.query, "pageToken": token}, warnings=())


def page_by_last_token(rows: str) -> NextPage:
    """
    For lists with `pagination_token`, which the parameter of this name repeats.

    The last page may have a token as well, so a page without `rows` ends the list.
    """
    return lambda call, _headers, body: follow_token(call, read_page(body), rows)


def follow_token(call: WireCall, page: Json, rows: str) -> WireCall | None:
    """The call for the page after this one, as `page_by_last_token` makes it."""
    fields = page if isinstance(page, dict) else {}
    token = fields.get(PAGE_TOKEN)
    if not fields.get(rows) or not isinstance(token, str) or not token:
        return None
    return replace(call, query={**call.query, PAGE_TOKEN: token}, warnings=())


def page_size(query: Mapping[str, str], name: str, *, default: int, highest: int) -> int:
    """The page size that the query asks for; `InvalidRequestError` if it is not a number."""
    text = query.get(name)
    if text is None:
        return default
    size = read_integer(text, least=1)
    if size is None:
        raise InvalidRequestError(f"{name}: must be an integer greater than 0.", error_code=None)
    return min(size, highest)


def page_start(models: Sequence[ServedModel], last_id: str, name: str) -> int:
    """The index of the first model after the one with the id `last_id`."""
    for index, model in enumerate(models):
        if model.id == last_id:
            return index + 1
    raise InvalidRequestError(f"{name}: the model {last_id!r} does not exist.", error_code=None)
