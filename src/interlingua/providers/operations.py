"""Operations such as `count_tokens`: lookup, exchange, pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from interlingua.providers.provider import Provider, find_dialect
from interlingua.providers.replies import LARGE, read_error, reported_error
from interlingua.providers.tariffs import Seller, Tariffs, price_answer
from interlingua.providers.usage import estimate_embedding
from interlingua.runtime.cancel import CancelScope
from interlingua.spec.content import Json
from interlingua.spec.contracts import (
    Adapter,
    Dialect,
    FormPart,
    HttpReply,
    HttpRequest,
    Transport,
    WireCall,
)
from interlingua.spec.errors import ConfigurationError, DecodeError, SDKError, UnsupportedError
from interlingua.spec.modalities.embeddings import EmbedInput, EmbedResult
from interlingua.spec.modalities.video import VideoJob
from interlingua.spec.operations import (
    InputLimits,
    ItemDecoder,
    Operation,
    OperationReply,
    OperationResult,
    Script,
    ServedModel,
)
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Usage, Warning
from interlingua.spec.warnings import check_losses
from interlingua.wire.classify import was_refused
from interlingua.wire.json_text import loads
from interlingua.wire.multipart import is_repeatable

_ADVICE = {"count_tokens": "Use estimate_input_tokens for an estimate."}
_OTHER_SERVERS = (
    " For a server that has /v1/videos as OpenAI had it, use the provider openai_compatible with "
    "`base_url=`."
)
_ERROR = b'"error"'
_PERHAPS_STARTED = (
    "not retried, because the provider may have begun: look at what is there before you try again"
)
NO_USAGE = Usage()
_UNKNOWN_LIMITS = InputLimits(items=100)
"""Of adapters of other packages, and of several adapters in one."""


def find_operation(operation: str | Operation, dialect: Dialect, row: Provider) -> Operation:
    """
    The operation of that name, in the variant of the provider.

    `UnsupportedError` if the provider or its dialect does not have it.
    """
    if isinstance(operation, Operation):
        return operation
    known = _find_variant(operation, dialect, row)
    if known is None:
        raise UnsupportedError(_unsupported(operation, row))
    return known


def _find_variant(operation: str, dialect: Dialect, row: Provider) -> Operation | None:
    table: Mapping[str, Operation] = getattr(dialect, "OPERATIONS", {})
    variants = row.operations
    variant = "" if variants is None else variants.get(operation)
    return None if variant is None else table.get(f"{operation}.{variant}".rstrip("."))


def limits_of(adapter: Adapter, operation: str, value: Any) -> InputLimits:
    """How much of a value one call of the adapter may contain."""
    row, dialect = getattr(adapter, "provider", None), getattr(adapter, "dialect", None)
    if not isinstance(row, Provider) or not isinstance(dialect, str):
        return _UNKNOWN_LIMITS
    limits = find_operation(operation, find_dialect(dialect), row).limits
    return InputLimits() if limits is None else limits(value)


def offers(row: Provider, operation: str) -> bool | None:
    """Whether a provider has an operation; None if it is unknown but its dialect has it."""
    if row.operations is not None:
        return operation in row.operations
    return None if operation in getattr(find_dialect(row.dialect), "OPERATIONS", {}) else False


def _unsupported(operation: str, row: Provider) -> str:
    from interlingua.providers.rows import providers

    if operation in (row.operations or ()):  # in another dialect of the row
        for dialect in (row.dialect, *row.other_dialects):
            if _find_variant(operation, find_dialect(dialect), row) is not None:
                advice = f"Make the adapter with dialect={dialect!r}. {_ADVICE.get(operation, '')}"
                what = f"{row.name} has no operation {operation!r} in this dialect."
                return f"{what} {advice}".rstrip()
    names = [other.name for other in providers().values() if offers(other, operation)]
    if names:
        able = f"These providers have it: {', '.join(names)}."
    else:
        table = getattr(find_dialect(row.dialect), "OPERATIONS", {})
        known = row.operations if row.operations is not None else table
        able = f"Its operations are: {', '.join(known) or 'none'}."
    more = _OTHER_SERVERS if operation == "create_video" else ""
    return f"{row.name} has no operation {operation!r}. {_ADVICE.get(operation, able)}{more}"


def name_models(models: list[ServedModel], provider: str) -> list[ServedModel]:
    """The models with the provider's name, each id once."""
    named = (replace(model, provider=provider) for model in models)
    return list({model.id: model for model in named}.values())


Exchange: TypeAlias = Callable[[WireCall], Awaitable[OperationReply]]
"""Sends one call of an operation."""


async def perform_pages(
    operation: Operation, call: WireCall, send: Exchange, limit: int | None = None
) -> Any:
    """
    The result of an operation: one reply, or all pages joined, at most `limit` items.

    Paging stops at a page that was already read: some servers report more pages for ever.
    """
    reply = await send(call)
    result = await _decode(operation, reply)
    if operation.next_page is None:
        return result
    results = list(result)
    pages = [(call.path, call.query)]
    following = operation.next_page(call, reply.headers, reply.body)
    while (
        following is not None
        and (following.path, following.query) not in pages
        and (limit is None or len(results) < limit)
    ):
        pages.append((following.path, following.query))
        reply = await send(following)
        results += await _decode(operation, reply)
        following = operation.next_page(following, reply.headers, reply.body)
    return results[:limit]


async def perform_script(script: Script, send: Exchange, *, is_large: bool = False) -> Any:
    """
    The result of an operation of several calls; an error of a call is raised at its `yield`.

    Large values (`is_large`) and large replies are encoded and decoded in a thread.
    """
    work: Callable[[], WireCall] = partial(next, script)
    try:
        while True:
            step = await asyncio.to_thread(_advance, work) if is_large else _advance(work)
            if isinstance(step, _End):
                return step.value
            try:
                reply = await send(step)
            except SDKError as error:
                work, is_large = partial(script.throw, error), False
            else:
                work, is_large = partial(script.send, reply), len(reply.body) > LARGE
    finally:
        with suppress(ValueError):  # it still runs in its thread, if the task was cancelled
            script.close()


class _End(NamedTuple):
    """A script has returned this value."""

    value: Any


def _advance(work: Callable[[], WireCall]) -> WireCall | _End:
    """The next call of a script, or its end: a `StopIteration` cannot leave a thread."""
    try:
        return work()
    except StopIteration as end:
        return _End(end.value)


async def _decode(operation: Operation, reply: OperationReply) -> Any:
    if operation.decode is None:
        raise ConfigurationError(f"The operation {operation.name!r} has no `decode`.")
    if len(reply.body) <= LARGE:
        return operation.decode(*reply)
    return await asyncio.to_thread(operation.decode, *reply)


def complete_result(
    result: Any, facts: ResultFacts, seller: Seller, tariffs: Tariffs, value: Any
) -> Any:
    """The result of an operation with the ids, the cost and the warnings of its call."""
    if isinstance(result, list):
        return [complete_result(each, facts, seller, tariffs, value) for each in result]
    if isinstance(result, ServedModel):
        return replace(result, provider=facts.provider)
    if not isinstance(result, OperationResult):
        return result
    requested = facts.requested
    if isinstance(result, VideoJob):  # later replies may have any name; prices know this one
        requested = result.requested_model or requested
        result = replace(result, requested_model=requested)
    has_no_usage = result.usage == NO_USAGE
    if has_no_usage and isinstance(result, EmbedResult) and isinstance(value, EmbedInput):
        result = estimate_embedding(result, value, facts.family)
    result = replace(
        result,
        provider=facts.provider,
        request_id=facts.request_id,
        provider_request_id=result.provider_request_id or facts.provider_request_id,
        model=result.model or requested,
        warnings=(*facts.warnings, *result.warnings),
    )
    if result.cost is not None or result.usage == NO_USAGE:
        return result
    return price_answer(result, tariffs, seller, result.model, requested)


def model_of(value: Any) -> str:
    """The model that the value of an operation names; empty if it names none."""
    model = getattr(value, "model", None)
    return model if isinstance(model, str) else ""


def check_operation_losses(
    warnings: tuple[Warning, ...], value: Any, on_loss: OnLoss = "content"
) -> None:
    """Raise `UnsupportedError` if the loss policy of the value or the adapter refuses a loss."""
    request = value if isinstance(value, Request) else Request()
    check_losses(warnings, request, getattr(value, "on_loss", None) or on_loss)


def make_decoder(operation: Operation, value: Any) -> ItemDecoder:
    """The decoder of a streamed reply."""
    if operation.stream_decoder is None:
        raise ConfigurationError(f"The operation {operation.name!r} is not streamed.")
    return operation.stream_decoder(value)


def rough_form_size(form: tuple[FormPart, ...]) -> int:
    """The size of what a form holds in memory."""
    return sum(len(part.content) for part in form if isinstance(part.content, (str, bytes)))


def rough_json_size(value: Json) -> int:
    """The size of the longest texts of a JSON value, two levels deep: data in base64, if any."""
    if isinstance(value, str):
        return len(value)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(
        len(item) if isinstance(item, (str, list)) else rough_json_size(item)
        for item in items
        if isinstance(item, (str, list, dict))
    )


class ResultFacts(NamedTuple):
    """What the adapter knows of a result besides its body."""

    provider: str
    request_id: str
    provider_request_id: str | None = None
    warnings: tuple[Warning, ...] = ()
    family: str = ""
    """The family of the models, for estimates of tokens."""
    requested: str = ""
    """The model that was asked for."""


async def exchange(
    request: HttpRequest,
    transport: Transport,
    dialect: Dialect,
    *,
    starts_job: bool = False,
    error_is_data: bool = False,
) -> OperationReply:
    """The reply. An error that the reply reports, with any status, is raised."""
    try:
        async with transport.send(request) as reply:
            if reply.status >= 300:
                raise await read_error(reply, dialect)
            body = await reply.read()
        if _ERROR in body and not error_is_data:
            _raise_reported(reply, body, dialect)
    except SDKError as error:
        _note_used_body(error, request)
        if starts_job and not was_refused(error):
            error.forbid_retry()
            error.add_facts(advice=_PERHAPS_STARTED)
        raise
    return OperationReply(reply.status, reply.headers, body)


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
        is_large = getattr(decoder, "held", 0) > LARGE
        for item in await asyncio.to_thread(decoder.finish) if is_large else decoder.finish():
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
    if "json" not in content_type:
        return
    try:
        value = loads(body)
    except DecodeError:
        return  # the operation decodes it and reports what is wrong
    error = reported_error(value, reply.headers, dialect)
    if error is not None:
        raise error
