"""Replies that are not answers: error statuses, errors with status 200, unrelated bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from interlingua.prepare.options import options_for
from interlingua.spec.content import UncheckedJson
from interlingua.spec.contracts import Dialect, HttpReply
from interlingua.spec.errors import (
    DecodeError,
    ProviderError,
    SDKError,
    StreamError,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.wire.fields import carried_body
from interlingua.wire.integers import read_integer
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.ratelimit_headers import reports_limits

UNCLEAR = frozenset(("error", "other"))
"""Finish reasons of responses that may not be an answer; only these are checked."""

UNREADABLE = (StreamError, DecodeError)
"""The errors of a body that is not JSON, or not a stream of events."""

_MAX_KEYS = 8


def find_request_id(headers: Mapping[str, str]) -> str | None:
    """The provider's id of a request, under any of the names that providers have for it."""
    for name in ("x-request-id", "request-id", "x-amzn-requestid"):
        if name in headers:
            return headers[name]
    return None


async def read_error(reply: HttpReply, dialect: Dialect) -> ProviderError:
    """The error for an HTTP status; a body that cannot be read counts as empty."""
    try:
        body = await reply.read()
    except SDKError:
        body = b""
    decode = partial(dialect.decode_error, reply.status, dated(reply.headers), body)
    return await asyncio.to_thread(decode) if len(body) > STEP else decode()


def reported_error(
    body: UncheckedJson, headers: Mapping[str, str], dialect: Dialect
) -> ProviderError | None:
    """The error that a body with status 200 reports by its code, type or status; None if none."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict) or not body.get("error"):
        return None
    return dialect.decode_error(_reported_status(body) or 200, dated(headers), dumps(body))


def check_answer(
    response: Response,
    body: UncheckedJson,
    headers: Mapping[str, str],
    request: Request,
    dialect: Dialect,
) -> None:
    """
    Raise an error if the reply is not an answer.

    An error with status 200 is raised as the typed error of its own status. Any other body
    without an answer is a `DecodeError`, because it would look like an empty success. Calls to a
    path that the caller chose are not checked.
    """
    is_error = response.finish_reason.reason == "error"
    error = reported_error(body, headers, dialect) if is_error else None
    if error is not None:
        if response.message.content:
            error.add_facts(partial=_partial(response))
        raise error
    check_body(response, request, dialect.NAME)


def check_body(response: Response, request: Request, dialect: str) -> None:
    """Raise `DecodeError` if the body of the response holds no answer."""
    body = carried_body(response, dialect)
    if body is not None and "path" not in options_for(request, dialect):
        raise DecodeError(f"The reply is not an answer of {dialect}: {_describe(body)}.")


def read_json(body: bytes, headers: Mapping[str, str]) -> UncheckedJson:
    """The JSON value of a reply; `DecodeError` says what came instead."""
    try:
        return loads(body)
    except DecodeError as error:
        raise unreadable(error, headers) from None


def unreadable(error: SDKError, headers: Mapping[str, str]) -> SDKError:
    """
    The error for a reply with status 200 that is no answer at all, such as a page of a proxy.

    The same for a whole answer and for a stream. A stream of events that is cut is another error.
    """
    from interlingua.wire.framing import AWS_EVENT_STREAM  # only for an error

    content_type = headers.get("content-type", "")
    if "event-stream" in content_type or content_type.startswith(AWS_EVENT_STREAM):
        return error
    kind = f"the content type {content_type!r}" if content_type else "no content type"
    return DecodeError(
        f"The reply is not an answer: it has {kind} ({error.message.rstrip('.')}). Check the "
        "base_url."
    )


def dated(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with a date, the server's or ours, from which waits and resets are counted."""
    from email.utils import formatdate  # nearly every server sends a date

    return {"date": formatdate(usegmt=True), **headers}


def answer_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers of an answer: `dated`, if they are about limits, of which only resets need it."""
    return dated(headers) if "date" not in headers and reports_limits(headers) else headers


def _reported_status(body: dict[str, UncheckedJson]) -> int | None:
    error = body["error"]
    codes = [body.get("status"), body.get("code")]
    if isinstance(error, dict):
        codes = [error.get("code"), error.get("status"), error.get("status_code"), *codes]
    for code in codes:
        number = read_integer(code, least=400, most=599)
        if number is not None:
            return number
    return None


def _partial(response: Response) -> Response:
    # Without `raw` and `extra`, which hold the error again.
    return Response(
        id=response.id,
        model=response.model,
        message=response.message,
        finish_reason=response.finish_reason,
        usage=response.usage,
    )


def _describe(body: object) -> str:
    keys = list(body)[:_MAX_KEYS] if isinstance(body, dict) else []
    return f"an object with {', '.join(map(repr, keys))}" if keys else "an empty object"


# Large ones are read in threads, so that they do not hold up the event loop.


LARGE = 1024 * 1024
"""Bytes from which a request of the caller is encoded in a thread."""
STEP = 32 * 1024
"""
Bytes of a reply that are read in one step of the event loop; more are read in a thread.

A server may send thousands of tool calls or items in them, and each takes some microseconds.
"""
