"""Replies that are no answers: refusals, errors told with a 200, bodies of something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from email.utils import formatdate
from typing import Any

from interlingua.prepare.options import options_for
from interlingua.spec.content import Json
from interlingua.spec.contracts import Dialect, Frame, HttpReply
from interlingua.spec.errors import DecodeError, ProviderError, SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.accumulate import events_from_response
from interlingua.wire.fields import carried_body
from interlingua.wire.json_text import dumps, loads

UNCLEAR = frozenset(("error", "other"))
"""The reasons of a response that may be no answer: only these are looked at."""

_MAX_KEYS = 8


async def read_refusal(reply: HttpReply, dialect: Dialect) -> ProviderError:
    """The error of a status; a body that cannot be read takes nothing from it."""
    try:
        body = await reply.read()
    except SDKError:
        body = b""
    return dialect.decode_error(reply.status, _dated(reply.headers), body)


def told_error(body: Json, headers: Mapping[str, str], dialect: Dialect) -> ProviderError | None:
    """The error that the body of a 200 tells, by its own code, type or status; None if none."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict) or not body.get("error"):
        return None
    return dialect.decode_error(_status_told(body) or 200, _dated(headers), dumps(body))


def check_answer(
    response: Response, body: Json, headers: Mapping[str, str], request: Request, dialect: Dialect
) -> None:
    """
    Raise what was told in place of an answer.

    An error with a 200 is the typed error it would have been with its status. Any other body
    without an answer is a `DecodeError`: it is not what was asked for, and an empty success
    would pass for one. Only a call to a path of the caller's own may bring something else.
    """
    error = told_error(body, headers, dialect) if response.finish_reason.reason == "error" else None
    if error is not None:
        if response.message.content:
            error.add_facts(partial=_what_came(response))
        raise error
    check_body(response, request, dialect.NAME)


def check_body(response: Response, request: Request, dialect: str) -> None:
    """`DecodeError` if the response only carries a body in which no answer was found."""
    body = carried_body(response, dialect)
    if body is not None and "path" not in options_for(request, dialect):
        raise DecodeError(f"the reply is no answer: {_looks(body)}")


class WholeBody:
    """Frames a reply that came whole though a stream was asked for: all of it is one frame."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        """Nothing: more may follow."""
        self._pieces.append(data)
        return []

    def finish(self) -> list[Frame]:
        """The body."""
        return [Frame(data=b"".join(self._pieces).decode("utf-8", "replace"))]


class WholeDecoder:
    """Decodes that frame: the events that the response would have had."""

    __slots__ = ("_decode",)

    def __init__(self, decode: Callable[[Json], Response]) -> None:
        self._decode = decode

    def feed(self, frame: Frame) -> list[StreamEvent]:
        """All events."""
        return events_from_response(self._decode(loads(frame.data)))

    def finish(self) -> list[StreamEvent]:
        """None are left."""
        return []


def _dated(headers: Mapping[str, str]) -> dict[str, str]:
    """A moment until which to wait is counted from the server's clock, or else from ours."""
    return {"date": formatdate(usegmt=True), **headers}


def _status_told(body: dict[str, Any]) -> int | None:
    error = body["error"]
    told = [body.get("status"), body.get("code")]
    if isinstance(error, dict):
        told = [error.get("code"), error.get("status"), error.get("status_code"), *told]
    for value in told:
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if type(number) is int and 400 <= number < 600:
            return number
    return None


def _what_came(response: Response) -> Response:
    # without `raw` and `extra`, which hold the error again
    return Response(
        id=response.id,
        model=response.model,
        message=response.message,
        finish_reason=response.finish_reason,
        usage=response.usage,
    )


def _looks(body: Json) -> str:
    keys = list(body)[:_MAX_KEYS] if isinstance(body, dict) else []
    return f"an object with {', '.join(map(repr, keys))}" if keys else "an empty object"
