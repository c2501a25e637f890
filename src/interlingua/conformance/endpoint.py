"""
Checks a running server that claims to speak a dialect, over HTTP.

Each check sends requests as a client of the dialect would, with the transport and the codecs of
this library, and reads the replies. A finding says what was sent, what came back, and what the
dialect requires.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias

from msgspec.structs import replace

from interlingua.conformance.answers import ANSWER_CHECKS
from interlingua.conformance.outcomes import choose, run_check
from interlingua.conformance.probes import (
    ENOUGH,
    FEW,
    HELLO,
    LONG,
    STOP,
    UNKNOWN_MODEL,
    NotApplicableError,
    check_reason,
)
from interlingua.conformance.report import Report, Score, Violation
from interlingua.conformance.target import (
    WRONG_KEY,
    Exchange,
    Target,
)
from interlingua.providers.provider import find_dialect
from interlingua.spec.contracts import Transport
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    InvalidRequestError,
    NetworkError,
    NotFoundError,
    SDKError,
)
from interlingua.spec.request import Request
from interlingua.wire.json_text import dumps, loads

__all__ = ["CHECKS", "EndpointCheck", "check_endpoint"]

EndpointCheck: TypeAlias = Callable[[Target], Awaitable[None]]
"""Raises `ProblemError` if the server does not meet a requirement."""


async def bad_key(target: Target) -> None:
    """A wrong key is refused, as an authentication error."""
    if not target.key:
        raise NotApplicableError("no key was given")
    http, profile = await target.make(HELLO)
    exchange = await target.send(target.signed_with(http, WRONG_KEY), profile)
    error = _refused(target, exchange, "a request with a wrong key")
    wanted = (AuthenticationError, AccessDeniedError)
    exchange.require(isinstance(error, wanted), "refuse a wrong key with status 401 or 403")


async def unknown_model(target: Target) -> None:
    """A model that there is not is refused, as not found."""
    exchange = await target.ask(replace(HELLO, model=UNKNOWN_MODEL))
    error = _refused(target, exchange, "a request for an unknown model")
    exchange.require(isinstance(error, NotFoundError), "refuse an unknown model with status 404")


async def stream_error(target: Target) -> None:
    """A stream that cannot begin is refused by its status, not with status 200."""
    exchange = await target.ask(replace(HELLO, model=UNKNOWN_MODEL), stream=True)
    _refused(target, exchange, "a stream of an unknown model")


async def bad_json(target: Target) -> None:
    """A body that is no JSON is refused, as invalid."""
    http, profile = await target.make(HELLO)
    exchange = await target.send(replace(http, body=b'{"model": '), profile)
    _check_invalid(target, exchange, "a body that is no JSON")


async def bad_body(target: Target) -> None:
    """A body whose messages are a number is refused, as invalid."""
    http, profile = await target.make(HELLO)
    body = loads(http.body if isinstance(http.body, bytes) else b"{}")
    lists = [name for name, value in body.items() if isinstance(value, list)]
    for name in lists or [name for name in ("input",) if name in body]:
        body[name] = 5
    exchange = await target.send(replace(http, body=dumps(body)), profile)
    _check_invalid(target, exchange, "a body whose messages are a number")


def _check_invalid(target: Target, exchange: Exchange, what: str) -> None:
    error = _refused(target, exchange, what)
    exchange.require(isinstance(error, InvalidRequestError), f"refuse {what} with status 400")


def _refused(target: Target, exchange: Exchange, what: str) -> SDKError:
    exchange.require(exchange.status >= 400, f"refuse {what} with an error status")
    exchange.require(exchange.status < 500, f"refuse {what} as the client's error, not with a 5xx")
    return target.read_error(exchange)


async def cancel(target: Target) -> None:
    """Cancel: after a client closes a stream in its middle, the server answers the next request."""
    http, profile = await target.make(replace(HELLO, messages=LONG), stream=True)
    begun = await target.send(http, profile, chunks=1)
    begun.require(begun.status == 200 and begun.chunks, "begin to send a stream")
    try:
        response, exchange = await target.answer(HELLO)
    except NetworkError as error:
        raise begun.problem("survive a client that closes a stream", str(error)) from None
    exchange.require(response.text, "answer as usual after a client closed a stream")


async def max_tokens(target: Target) -> None:
    """Limits: the answer ends at `max_tokens`, and its finish reason says so."""
    response, exchange = await target.answer(
        Request(messages=LONG, max_tokens=FEW, temperature=None)
    )
    count = response.usage.output_tokens
    exchange.require(
        count <= FEW,
        f"send at most {FEW} tokens if that is the limit",
        f"{count} output tokens; {exchange.received}",
    )
    check_reason(exchange, response, "length")


async def stop(target: Target) -> None:
    """Limits: the answer ends before a stop sequence."""
    request = Request(messages=LONG, max_tokens=ENOUGH, stop_sequences=(STOP,))
    response, exchange = await target.answer(request)
    exchange.require(STOP not in response.text, "end the answer before the stop sequence")
    check_reason(exchange, response, "stop", "length")


CHECKS: Mapping[str, EndpointCheck] = {
    **ANSWER_CHECKS,
    "error: wrong key": bad_key,
    "error: unknown model": unknown_model,
    "error: unknown model in a stream": stream_error,
    "error: no JSON": bad_json,
    "error: wrong type": bad_body,
    "cancel": cancel,
    "limit: max_tokens": max_tokens,
    "limit: stop sequence": stop,
}
"""Every check, in the order in which they run."""


async def check_endpoint(
    url: str,
    dialect: str,
    model: str,
    key: str | None = None,
    *,
    checks: Iterable[str] | None = None,
    transport: Transport | None = None,
    timeout: float = 60.0,  # noqa: ASYNC109 -- of each request, not of this function
    on_check: Callable[[str], object] | None = None,
) -> Report:
    """
    Check a running server that claims to speak a dialect.

    `url` is what a client would be given as its base URL. `checks` are names from `CHECKS`; all by
    default. `on_check` is called with the name of each check before it runs. Raises `NetworkError`
    if the server cannot be reached at all.
    """
    chosen = choose(CHECKS, checks)
    target = Target(url, find_dialect(dialect), model, key, transport, timeout)
    scores: list[Score] = []
    found: list[Violation] = []
    try:
        for name, check in chosen.items():
            if on_check is not None:
                on_check(name)
            score, violation = await run_check(name, check, target, is_first=not scores)
            scores.append(score)
            found += violation
    finally:
        if transport is None:
            await target.close()
    return Report(
        dialect=dialect,
        subject=target.url,
        cases=1,
        checks=len(chosen),
        violations=tuple(found),
        scores=tuple(scores),
    )
