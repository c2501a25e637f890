"""
What the simulator answers: turns, and the words they are made of.

Each word is a turn of its own, and turns add up:

    text("Let me look.") + tool_call("get_weather", city="Oslo") + latency(first=0.2)
    error(429, retry_after=3) + rate_limit(requests_limit=50, requests_remaining=0)
    text("half of it") + cut(at=120)

Parts, faults and headers are joined; of anything else the later word counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from interlingua.spec.content import Json, Part, Refusal, Text, Thinking, ToolCall
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.response import FinishReason, RateLimit, Reason, Usage
from interlingua.spec.serve import Failure

SIGNATURE = "c2ltdWxhdGVk"  # base64, as every dialect wants it: "simulated"


class _Value(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    pass


class Cut(_Value, frozen=True, kw_only=True):
    """
    The body ends after `at` bytes; before the head if that is None.

    A clean cut ends as a whole body does, so that only its reader can tell. One that is not
    clean closes the connection in the middle of the body.
    """

    at: int | None = None
    clean: bool = False


class Reset(_Value, frozen=True, kw_only=True):
    """The connection is reset after `at` bytes of the body; before the head if that is None."""

    at: int | None = None


class Stall(_Value, frozen=True, kw_only=True):
    """Silence after `at` bytes, or before the head; for good unless `seconds` says how long."""

    at: int | None = None
    seconds: float | None = None


class Malformed(_Value, frozen=True, kw_only=True):
    """The event of that number (from 0, or from the end if below) is broken JSON; or the body."""

    event: int = 0


class Duplicate(_Value, frozen=True, kw_only=True):
    """The event of that number is sent twice."""

    event: int = 0


Fault: TypeAlias = Cut | Reset | Stall | Malformed | Duplicate


class Pace(_Value, frozen=True, kw_only=True):
    """How slow: seconds before the head and between writes, and how large a write may be."""

    first: float = 0.0
    between: float = 0.0
    write_bytes: int | None = None


class Turn(_Value, frozen=True, kw_only=True):
    """One answer: what is said, and what goes wrong on the way."""

    parts: tuple[Part, ...] = ()
    finish_reason: FinishReason | None = None
    """Taken from the parts if not given."""
    usage: Usage | None = None
    """Counted if not given."""
    pieces: int | None = None
    """Characters a delta of the stream; whole words if not given."""
    failure: Failure | None = None
    """Told instead of an answer."""
    late_failure: Failure | None = None
    """Told in the stream, after the parts; instead of an answer if there is no stream."""
    pace: Pace = Pace()
    rate_limit: RateLimit | None = None
    headers: Mapping[str, str] = {}
    faults: tuple[Fault, ...] = ()

    def __add__(self, other: Turn) -> Turn:
        if not isinstance(other, Turn):
            return NotImplemented
        changed = {
            name: value for name in _LATER_COUNTS if (value := getattr(other, name)) != _PLAIN[name]
        }
        return msgspec.structs.replace(
            self,
            parts=self.parts + other.parts,
            headers={**self.headers, **other.headers},
            faults=self.faults + other.faults,
            **changed,
        )


_PLAIN = msgspec.structs.asdict(Turn())
_LATER_COUNTS = tuple(name for name in _PLAIN if name not in ("parts", "headers", "faults"))


# What is said.


def text(text: str) -> Turn:
    """The model says this."""
    return Turn(parts=(Text(text=text),))


def thinking(text: str, *, signature: str = SIGNATURE) -> Turn:
    """The model thinks this; the signature is in the place its dialect has for one."""
    return Turn(parts=(Thinking(text=text, signature=signature),))


def refusal(text: str) -> Turn:
    """The model declines."""
    return Turn(parts=(Refusal(text=text),))


def tool_call(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    /,
    *,
    id: str = "",  # noqa: A002 -- the part's word
    **more: Any,
) -> Turn:
    """
    The model calls a tool; several added up are parallel calls.

    Arguments are a mapping, keywords, or both. A call without an id gets one in its dialect's way.
    """
    call = ToolCall(id=id, name=name, arguments={**(arguments or {}), **more})
    return Turn(parts=(call,))


def raw_tool_call(name: str, arguments: str, /, *, id: str = "") -> Turn:  # noqa: A002
    """A call whose argument text is sent as it is, JSON or not."""
    return Turn(parts=(ToolCall(id=id, name=name, raw_arguments=arguments),))


def finish(reason: Reason) -> Turn:
    """Why it ends, if not for the usual reason."""
    return Turn(finish_reason=FinishReason(reason=reason))


def usage(
    input_tokens: int,
    output_tokens: int,
    *,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
) -> Turn:
    """The tokens that are reported, instead of those counted."""
    return Turn(
        usage=Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cache_read,
            cache_write_tokens=cache_write,
            reasoning_tokens=reasoning,
        )
    )


# How it is sent.


def latency(*, first: float = 0.0, between: float = 0.0, write_bytes: int | None = None) -> Turn:
    """Seconds before the head and between writes; `write_bytes` cuts writes into small ones."""
    if write_bytes is not None and write_bytes < 1:
        raise ConfigurationError("write_bytes must be at least 1")
    return Turn(pace=Pace(first=first, between=between, write_bytes=write_bytes))


def pieces(characters: int) -> Turn:
    """How many characters a delta has."""
    if characters < 1:
        raise ConfigurationError("a delta has at least one character")
    return Turn(pieces=characters)


def header(name: str, value: str) -> Turn:
    """A header of the reply."""
    return Turn(headers={name.lower(): value})


def rate_limit(
    *,
    requests_limit: int | None = None,
    requests_remaining: int | None = None,
    tokens_limit: int | None = None,
    tokens_remaining: int | None = None,
    reset_after: float | None = None,
) -> Turn:
    """The limits that the reply's headers report, in the vendor's names."""
    return Turn(
        rate_limit=RateLimit(
            requests_limit=requests_limit,
            requests_remaining=requests_remaining,
            tokens_limit=tokens_limit,
            tokens_remaining=tokens_remaining,
            reset_after=reset_after,
        )
    )


# What goes wrong.


def error(
    status: int,
    message: str | None = None,
    *,
    body: Json = None,
    retry_after: float | None = None,
) -> Turn:
    """An HTTP error, with the vendor's own body for that status unless another is given."""
    return Turn(failure=_failure(status, message, body, retry_after))


def error_event(status: int, message: str | None = None, *, body: Json = None) -> Turn:
    """An error told in a stream that had begun well (HTTP 200)."""
    return Turn(late_failure=_failure(status, message, body, None))


def cut(at: int | None = None, *, clean: bool = False) -> Turn:
    """The body ends after that many bytes; without a number the connection closes at once."""
    return Turn(faults=(Cut(at=_place(at), clean=clean),))


def reset(at: int | None = None) -> Turn:
    """The connection is reset after that many bytes of the body, or before the head."""
    return Turn(faults=(Reset(at=_place(at)),))


def stall(at: int | None = None, seconds: float | None = None) -> Turn:
    """Nothing more comes after that many bytes, or before the head, for good or for a while."""
    return Turn(faults=(Stall(at=_place(at), seconds=seconds),))


def malformed(event: int = 0) -> Turn:
    """One event of the stream, or the whole body, is not JSON."""
    return Turn(faults=(Malformed(event=event),))


def duplicate(event: int = 0) -> Turn:
    """One event of the stream comes twice."""
    return Turn(faults=(Duplicate(event=event),))


def _failure(status: int, message: str | None, body: Json, retry_after: float | None) -> Failure:
    if not 400 <= status <= 599:
        raise ConfigurationError(f"{status} is not the status of an error; use one of 400 to 599")
    return Failure(status=status, message=message, body=body, retry_after=retry_after)


def _place(at: int | None) -> int | None:
    if at is not None and at < 0:
        raise ConfigurationError(f"a fault happens after some bytes, not after {at}")
    return at
