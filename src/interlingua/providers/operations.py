"""Operations on their way: the HTTP request of a call, errors in replies, pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from interlingua.providers.answer_check import read_refusal, told_error
from interlingua.providers.call import join_headers
from interlingua.providers.provider import join_url
from interlingua.providers.ulid import new_ulid
from interlingua.spec.contracts import (
    Adapter,
    Content,
    Dialect,
    HttpReply,
    HttpRequest,
    Timeouts,
    Transport,
    WireCall,
)
from interlingua.spec.errors import DecodeError, SDKError, UnsupportedError
from interlingua.spec.operations import Operation, ServedModel
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.multipart import encode_form, is_repeatable

_ADVICE = {"count_tokens": "estimate_input_tokens makes an estimate"}
_METHODS = ("count_tokens", "list_models")
_WHOLE = {"accept": "application/json"}
_STREAM = {"accept": "text/event-stream", "accept-encoding": "identity"}
_ERROR = b'"error"'


def find_operation(operation: str | Operation, dialect: Dialect) -> Operation:
    """The operation of that name; `UnsupportedError` if the dialect has none."""
    if isinstance(operation, Operation):
        return operation
    operations: Mapping[str, Operation] = getattr(dialect, "OPERATIONS", {})
    if operation not in operations:
        known = ", ".join(operations) or "none"
        advice = _ADVICE.get(operation, f"its operations: {known}")
        raise UnsupportedError(f"{dialect.NAME} has no operation {operation!r}; {advice}")
    return operations[operation]


def find_performer(
    adapter: Adapter, operation: str | Operation, request_id: str
) -> Callable[[Any], Awaitable[Any]]:
    """
    What performs an operation for an adapter.

    An adapter of one's own may have `perform`, or only methods with the names of operations:
    `list_models()` and `count_tokens(request)`.
    """
    perform = getattr(adapter, "perform", None)
    if perform is not None:
        return lambda value: perform(operation, value, request_id=request_id)
    name = operation if isinstance(operation, str) else operation.name
    method = getattr(adapter, name, None) if operation in _METHODS else None
    if method is None:
        raise UnsupportedError(f"the adapter {adapter.name!r} has no `perform` for {name!r}")
    return lambda value: method() if value is None else method(value)


def http_request(
    call: WireCall,
    base_url: str,
    defaults: Mapping[str, str],
    key_headers: Mapping[str, str],
    timeouts: Timeouts | None,
) -> HttpRequest:
    """The call with its address and key. The caller's default headers replace the dialect's."""
    content_type, body = _encode_body(call)
    headers = join_headers(_STREAM if call.stream else _WHOLE, call.headers, defaults)
    if content_type is not None:
        headers["content-type"] = content_type
    url = join_url(base_url, call.path)
    if call.query:
        url += ("&" if "?" in url else "?") + urlencode(call.query, quote_via=quote)
    return HttpRequest(
        method=call.method,
        url=url,
        headers={**headers, **key_headers},
        body=body,
        timeouts=timeouts,
    )


def name_models(models: list[ServedModel], provider: str) -> list[ServedModel]:
    """The models with the provider's name, each id once."""
    named = (replace(model, provider=provider) for model in models)
    return list({model.id: model for model in named}.values())


async def perform_pages(
    operation: Operation,
    call: WireCall,
    send: Callable[[WireCall], Awaitable[tuple[HttpReply, bytes]]],
) -> Any:
    """
    The result of an operation: of one reply, or of all pages joined.

    A page that leads back to an earlier one is the last: some servers report for ever that there
    are more.
    """
    reply, body = await send(call)
    result = operation.decode(reply.status, reply.headers, body)
    if operation.next_page is None:
        return result
    results = list(result)
    pages = [(call.path, call.query)]
    following = operation.next_page(call, reply.headers, body)
    while following is not None and (following.path, following.query) not in pages:
        pages.append((following.path, following.query))
        reply, body = await send(following)
        results += operation.decode(reply.status, reply.headers, body)
        following = operation.next_page(following, reply.headers, body)
    return results


async def exchange(
    request: HttpRequest, transport: Transport, dialect: Dialect
) -> tuple[HttpReply, bytes]:
    """The reply and its body; an error that it reports, with any status, is raised."""
    try:
        async with transport.send(request) as reply:
            if reply.status >= 300:
                raise await read_refusal(reply, dialect)
            body = await reply.read()
        _raise_told(reply, body, dialect)
    except SDKError as error:
        note_used_body(error, request)
        raise
    return reply, body


def note_used_body(error: SDKError, request: HttpRequest) -> None:
    """Mark an error as not to be retried if what was sent cannot be read a second time."""
    if not is_repeatable(request.body):
        error.forbid_retry()


def _encode_body(call: WireCall) -> tuple[str | None, Content]:
    """The content type, where the call's own headers do not give it, and the body."""
    if call.form:
        return encode_form(call.form, new_ulid)
    if call.content is not None:
        return None, call.content
    return (None, b"") if call.body is None else ("application/json", dumps(call.body))


def _raise_told(reply: HttpReply, body: bytes, dialect: Dialect) -> None:
    """Raise the error that the JSON of a 200 reports."""
    content_type = reply.headers.get("content-type", "json")
    if "json" not in content_type or _ERROR not in body:
        return
    try:
        value = loads(body)
    except DecodeError:
        return  # it is for the operation to say what it makes of it
    error = told_error(value, reply.headers, dialect)
    if error is not None:
        raise error
