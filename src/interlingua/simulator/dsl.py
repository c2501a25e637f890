"""
The scripting language of the simulator: functions that make turns, which are its answers.

Each function returns a `Turn`, and turns are combined with `+`:

    text("Let me look.") + tool_call("get_weather", city="Oslo") + latency(first=0.2)
    error(429, retry_after=3) + rate_limit(requests_limit=50, requests_remaining=0)
    text("half of it") + cut(at=120)

Parts, faults and headers are joined; for everything else the last value wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from interlingua.spec.content import (
    Citation,
    Json,
    Opaque,
    Part,
    Record,
    Refusal,
    Text,
    Thinking,
    TokenLogprob,
    ToolCall,
)
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.operations import Failure
from interlingua.spec.response import FinishReason, RateLimitInfo, Reason, Usage

ANY_DIALECT = ""
"""In a part of a turn: what each dialect writes in its own form."""
SIGNATURE = "c2ltdWxhdGVk"  # "simulated" in base64, which every dialect requires


class Fault(Record, frozen=True, kw_only=True):
    """
    A fault in the delivery of an answer.

    - `cut`: the connection closes.
    - `clean_cut`: the HTTP body ends correctly, so that only the decoder can notice it.
    - `reset`: the connection is reset.
    - `stall`: nothing is sent, for `seconds` or without end.
    - `malformed`: an event of a stream, or the whole body, is invalid JSON.
    - `duplicate`: an event of a stream is sent twice.

    `at` is a number of body bytes (None: before the headers); for `malformed` and `duplicate`,
    the index of the event, which may be negative.
    """

    kind: Literal["cut", "clean_cut", "reset", "stall", "malformed", "duplicate"]
    at: int | None = None
    seconds: float | None = None


class Pace(Record, frozen=True, kw_only=True):
    """Seconds before the headers and between writes, and the maximum size of a write."""

    first: float = 0.0
    between: float = 0.0
    write_bytes: int | None = None


class Turn(Record, frozen=True, kw_only=True):
    """One answer: its content, and the faults of its delivery."""

    parts: tuple[Part, ...] = ()
    """The content of the answer."""
    finish_reason: FinishReason | None = None
    """Why it ends; by default that follows from the parts."""
    usage: Usage | None = None
    """The tokens that it reports; by default they are counted."""
    pieces: int | None = None
    """Characters per delta of a stream. By default a delta is a word."""
    failure: Failure | None = None
    """An error instead of an answer."""
    raised: SDKError | None = None
    """The same as an error of this library, which each dialect writes in its own form."""
    late_failure: Failure | None = None
    """An error after the parts of a stream; without a stream, instead of an answer."""
    pace: Pace = Pace()
    """The delays between its pieces."""
    rate_limit: RateLimitInfo | None = None
    """The rate limits in the headers."""
    headers: Mapping[str, str] = {}
    """More headers of the reply."""
    faults: tuple[Fault, ...] = ()
    """What goes wrong with its delivery."""

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


# Content.


def text(
    text: str, *, citations: Iterable[Citation] = (), logprobs: Iterable[TokenLogprob] = ()
) -> Turn:
    """Answer with this text, which rests on `citations` and has the tokens in `logprobs`."""
    part = Text(text=text, citations=tuple(citations), logprobs=tuple(logprobs))
    return Turn(parts=(part,))


def thinking(text: str, *, signature: str = SIGNATURE) -> Turn:
    """
    Add a thought of the model, with a signature if the dialect has one.

    Its text is shown as the vendor does it: several show it only to a request that asks for it.
    """
    return Turn(parts=(Thinking(text=text, signature=signature),))


def signed(turn: Turn, signature: str = SIGNATURE) -> Turn:
    """
    Sign the parts of the turn: each carries this signature of the thought before it.

    Only some dialects sign texts and tool calls; the others leave the signature out. The signature
    of a thought is an argument of `thinking`.
    """
    mark = {ANY_DIALECT: {"signature": signature}}
    parts = tuple(msgspec.structs.replace(part, extra=mark) for part in turn.parts)
    return msgspec.structs.replace(turn, parts=parts)


def refusal(text: str) -> Turn:
    """Refuse to answer, with this text."""
    return Turn(parts=(Refusal(text=text),))


def tool_call(
    name: str,
    arguments: Mapping[str, Json] | None = None,
    /,
    *,
    id: str = "",  # noqa: A002 -- the name of the field in ToolCall
    **more: Json,
) -> Turn:
    """
    Call a tool; the sum of several turns is a response with parallel tool calls.

    Arguments are a mapping, keywords, or both. Without `id`, the tool call gets an id in the
    dialect's form.
    """
    call = ToolCall(id=id, name=name, arguments={**(arguments or {}), **more})
    return Turn(parts=(call,))


def raw_tool_call(name: str, arguments: str, /, *, id: str = "") -> Turn:  # noqa: A002
    """Call a tool with arguments that are sent verbatim, even if they are not JSON."""
    return Turn(parts=(ToolCall(id=id, name=name, raw_arguments=arguments),))


def custom_call(name: str, text: str, /, *, id: str = "") -> Turn:  # noqa: A002
    """Call a `custom` tool, whose only argument is this text."""
    return Turn(parts=(ToolCall(id=id, name=name, raw_arguments=text, type="custom"),))


def hosted_call(tool: str, input: Mapping[str, Json], output: Json = None) -> Turn:  # noqa: A002
    """
    Run a tool of the provider, such as `web_search`, with this result.

    The output is text for `code_execution`, a list of names or definitions for `tool_search`
    (a name has the definition of the request), else a list of sources: objects with `url` and
    `title`. A dialect without the tool leaves the call out.
    """
    return Turn(parts=(Opaque(dialect=ANY_DIALECT, tool=tool, input=dict(input), output=output),))


def finish(reason: Reason) -> Turn:
    """Set the finish reason, which otherwise follows from the parts."""
    return Turn(finish_reason=FinishReason(reason=reason))


def usage(
    input_tokens: int,
    output_tokens: int,
    *,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
) -> Turn:
    """Set the usage that is reported, which otherwise is counted."""
    return Turn(
        usage=Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cache_read,
            cache_write_tokens=cache_write,
            reasoning_tokens=reasoning,
        )
    )


# Delivery.


def latency(*, first: float = 0.0, between: float = 0.0, write_bytes: int | None = None) -> Turn:
    """
    Wait `first` seconds before the headers, and `between` seconds between writes.

    `write_bytes` limits the size of a write.
    """
    if write_bytes is not None and write_bytes < 1:
        raise ConfigurationError("`write_bytes` must be at least 1.")
    return Turn(pace=Pace(first=first, between=between, write_bytes=write_bytes))


def pieces(characters: int) -> Turn:
    """Set the number of characters per delta of a stream."""
    if characters < 1:
        raise ConfigurationError("`pieces()` needs at least 1 character per delta.")
    return Turn(pieces=characters)


def header(name: str, value: str) -> Turn:
    """Add a header to the response."""
    return Turn(headers={name.lower(): value})


def rate_limit(
    *,
    requests_limit: int | None = None,
    requests_remaining: int | None = None,
    tokens_limit: int | None = None,
    tokens_remaining: int | None = None,
    reset_after: float | None = None,
) -> Turn:
    """Report these limits in the response headers, under the vendor's names."""
    return Turn(
        rate_limit=RateLimitInfo(
            requests_limit=requests_limit,
            requests_remaining=requests_remaining,
            tokens_limit=tokens_limit,
            tokens_remaining=tokens_remaining,
            reset_after=reset_after,
        )
    )


# Faults.


def error(
    status: int,
    message: str | None = None,
    *,
    body: Json = None,
    retry_after: float | None = None,
) -> Turn:
    """Answer with an HTTP error. The default body is the vendor's for that status."""
    return Turn(failure=_failure(status, message, body, retry_after))


def error_event(status: int, message: str | None = None, *, body: Json = None) -> Turn:
    """Send an error event in a stream that began with HTTP 200."""
    return Turn(late_failure=_failure(status, message, body, None))


def fail(error: SDKError) -> Turn:
    """Answer with an error such as `QuotaExceededError`, in the status and words of the vendor."""
    return Turn(raised=error)


def cut(at: int | None = None, *, clean: bool = False) -> Turn:
    """End the body after `at` bytes. By default the connection closes before the headers."""
    return _connection_fault("clean_cut" if clean and at is not None else "cut", at)


def reset(at: int | None = None) -> Turn:
    """Reset the connection after `at` bytes of the body, by default before the headers."""
    return _connection_fault("reset", at)


def stall(at: int | None = None, seconds: float | None = None) -> Turn:
    """Send nothing after `at` bytes (default: before the headers), for `seconds` or without end."""
    return _connection_fault("stall", at, seconds)


def malformed(event: int = 0) -> Turn:
    """Make one event of the stream, or the whole body, invalid JSON."""
    return Turn(faults=(Fault(kind="malformed", at=event),))


def duplicate(event: int = 0) -> Turn:
    """Send one event of the stream twice."""
    return Turn(faults=(Fault(kind="duplicate", at=event),))


def _failure(status: int, message: str | None, body: Json, retry_after: float | None) -> Failure:
    if not 400 <= status <= 599:
        raise ConfigurationError(f"{status} is not an HTTP error status. Use 400 to 599.")
    return Failure(status=status, message=message, body=body, retry_after=retry_after)


def _connection_fault(
    kind: Literal["cut", "clean_cut", "reset", "stall"],
    at: int | None,
    seconds: float | None = None,
) -> Turn:
    if at is not None and at < 0:
        raise ConfigurationError(f"`at=` counts bytes of the body and must not be negative: {at}.")
    return Turn(faults=(Fault(kind=kind, at=at, seconds=seconds),))
