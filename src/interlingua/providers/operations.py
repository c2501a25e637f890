"""Operations such as `count_tokens`: lookup, exchange, pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from msgspec.structs import replace

from interlingua.providers.answer_check import read_error, reported_error
from interlingua.providers.cancel import CancelScope
from interlingua.providers.reading import LARGE
from interlingua.spec.contracts import (
    Adapter,
    Dialect,
    HttpReply,
    HttpRequest,
    Transport,
    WireCall,
)
from interlingua.spec.errors import DecodeError, SDKError, UnsupportedError
from interlingua.spec.operations import ItemDecoder, Operation, ServedModel
from interlingua.wire.json_text import loads
from interlingua.wire.multipart import is_repeatable

_ADVICE = {"count_tokens": "use estimate_input_tokens for an estimate"}
_METHODS = ("count_tokens", "list_models")
_ERROR = b'"error"'


def find_operation(operation: str | Operation, dialect: Dialect) -> Operation:
    """The operation of that name; `UnsupportedError` if the dialect has none."""
    if isinstance(operation, Operation):
        return operation
    operations: Mapping[str, Operation] = getattr(dialect, "OPERATIONS", {})
    if operation not in operations:
        known = ", ".join(operations) or "none"
        advice = _ADVICE.get(operation, f"its operations are: {known}")
        raise UnsupportedError(f"{dialect.NAME} has no operation {operation!r}; {advice}.")
    return operations[operation]


def find_performer(
    adapter: Adapter, operation: str | Operation, request_id: str
) -> Callable[..., Awaitable[Any]]:
    """
    The function that performs an operation for an adapter, with settings for its `perform`.

    A custom adapter may have `perform`, or only the methods `list_models()` and
    `count_tokens(request)`.
    """
    perform = getattr(adapter, "perform", None)
    if perform is not None:
        return lambda value, **settings: perform(
            operation, value, request_id=request_id, **settings
        )
    name = operation if isinstance(operation, str) else operation.name
    method = getattr(adapter, name, None) if operation in _METHODS else None
    if method is None:
        raise UnsupportedError(f"The adapter {adapter.name!r} has no `perform` for {name!r}.")
    return lambda value: method() if value is None else method(value)


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
    The result of an operation: one reply, or all pages joined.

    Paging stops at a page that was already read: some servers report more pages for ever.
    """
    reply, body = await send(call)
    result = await _decode(operation, reply, body)
    if operation.next_page is None:
        return result
    results = list(result)
    pages = [(call.path, call.query)]
    following = operation.next_page(call, reply.headers, body)
    while following is not None and (following.path, following.query) not in pages:
        pages.append((following.path, following.query))
        reply, body = await send(following)
        results += await _decode(operation, reply, body)
        following = operation.next_page(following, reply.headers, body)
    return results


async def _decode(operation: Operation, reply: HttpReply, body: bytes) -> Any:
    if len(body) <= LARGE:
        return operation.decode(reply.status, reply.headers, body)
    return await asyncio.to_thread(operation.decode, reply.status, reply.headers, body)


async def exchange(
    request: HttpRequest, transport: Transport, dialect: Dialect
) -> tuple[HttpReply, bytes]:
    """The reply and its body. An error that the reply reports, with any status, is raised."""
    try:
        async with transport.send(request) as reply:
            if reply.status >= 300:
                raise await read_error(reply, dialect)
            body = await reply.read()
        _raise_reported(reply, body, dialect)
    except SDKError as error:
        _note_used_body(error, request)
        raise
    return reply, body


async def stream_items(
    request: HttpRequest,
    transport: Transport,
    dialect: Dialect,
    decoder: ItemDecoder,
    scope: CancelScope,
) -> AsyncGenerator[Any, None]:
    """None when the reply has begun, then its items as they arrive."""
    try:
        async with transport.send(request) as reply:
            if reply.status >= 300:
                raise await read_error(reply, dialect)
            scope.replies = (reply,)
            yield None
            chunks = aiter(reply.chunks())
            while chunk := await scope.wait(anext(chunks, b"")):
                for item in decoder.feed(chunk):
                    yield item
        for item in decoder.finish():
            yield item
    except SDKError as error:
        _note_used_body(error, request)
        raise


def _note_used_body(error: SDKError, request: HttpRequest) -> None:
    """Forbid a retry if the body that was sent cannot be read a second time."""
    if not is_repeatable(request.body):
        error.forbid_retry()


def _raise_reported(reply: HttpReply, body: bytes, dialect: Dialect) -> None:
    """Raise the error that a JSON body with status 200 reports."""
    content_type = reply.headers.get("content-type", "json")
    if "json" not in content_type or _ERROR not in body:
        return
    try:
        value = loads(body)
    except DecodeError:
        return  # the operation decodes it and reports what is wrong
    error = reported_error(value, reply.headers, dialect)
    if error is not None:
        raise error
