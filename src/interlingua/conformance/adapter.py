"""Checks an adapter: what every program relies on, whatever the adapter speaks to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from copy import deepcopy
from typing import Any, TypeAlias

from msgspec.structs import replace

from interlingua.conformance import probes
from interlingua.conformance.laws import fold
from interlingua.conformance.probes import (
    HELLO,
    LONG,
    ONE_TOOL,
    UNKNOWN_MODEL,
    NotApplicableError,
    ProblemError,
    lacking,
)
from interlingua.conformance.report import Report, Score, Violation, choose, run_check
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import InvalidRequestError, SDKError, UnsupportedError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.json_form import to_document
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.spec.warnings import LOSSES

__all__ = ["CHECKS", "AdapterCheck", "check_adapter"]

AdapterCheck: TypeAlias = Callable[["Subject"], Awaitable[None]]
"""Raises `ProblemError` if the adapter does not meet a requirement."""

_SHOWN = 400


class Subject:
    """An adapter under test, and the model that it is asked for."""

    def __init__(self, adapter: Adapter, model: str) -> None:
        self.adapter = adapter
        self.model = model

    def _own(self, request: Request) -> Request:
        """The request for the model; a copy, because a broken adapter may damage it."""
        return deepcopy(replace(request, model=request.model or self.model))

    async def answer(self, request: Request) -> tuple[Response, Result]:
        """The whole answer."""
        request = self._own(request)
        with _refusals(request):
            response: Any = await self.adapter.complete(request)
        result = Result(request, response)
        result.require(isinstance(response, Response), "return a `Response` from `complete`")
        return response, result

    async def events(self, request: Request) -> tuple[list[StreamEvent], Result]:
        """All events of the answer."""
        request = self._own(request)
        with _refusals(request):
            events = [event async for event in self.adapter.stream(request)]
        return events, Result(request, events)

    async def streamed(self, request: Request) -> tuple[Response, Result]:
        """The events of the answer, added up; they must obey the grammar."""
        events, result = await self.events(request)
        try:
            return fold(events), result
        except SDKError as error:
            required = "yield events in the order of the grammar, up to `Finish`"
            raise ProblemError(required, f"{error}; {result.received}", result.sent) from None


@contextmanager
def _refusals(request: Request) -> Iterator[None]:
    """Raise `NotApplicableError` for what the model lacks, as the adapter or the server says."""
    try:
        yield
    except UnsupportedError as error:
        raise NotApplicableError(_reason(error)) from None
    except InvalidRequestError as error:
        reason = lacking(request, error.message)
        if reason is None:
            raise
        raise NotApplicableError(reason) from None


def _reason(error: UnsupportedError) -> str:
    """What the model lacks; of an error about losses, only what would be lost."""
    return error.message.rpartition(LOSSES)[2].partition(" [")[0]


class Result:
    """A request and what the adapter returned for it."""

    def __init__(self, request: Request, value: object) -> None:
        self.sent = repr(request)[:_SHOWN]
        self.received = repr(value)[:_SHOWN]

    def require(self, holds: object, required: str, received: str = "") -> None:
        """Raise the error unless the claim holds."""
        if not holds:
            raise ProblemError(required, received or self.received, self.sent)


async def stream(subject: Subject) -> None:
    """A stream: its events obey the grammar, and the last one is `Finish`."""
    events, result = await subject.events(HELLO)
    result.require(
        events and isinstance(events[-1], Finish),
        "end a stream with `Finish`",
        f"the last of {len(events)} events is {events[-1:]!r}"[:_SHOWN],
    )
    await probes.stream(subject)


async def errors(subject: Subject) -> None:
    """Errors: a request that fails raises an error of this library, and nothing else."""
    request = replace(HELLO, model=UNKNOWN_MODEL)
    try:
        await subject.answer(request)
    except SDKError:
        return
    except ProblemError:
        raise
    except Exception as error:  # noqa: BLE001 -- that is the finding
        required = "raise only errors of `interlingua.errors`"
        raise ProblemError(required, repr(error), repr(request)[:_SHOWN]) from None
    raise NotApplicableError("The adapter answers for every model.")


async def cancel(subject: Subject) -> None:
    """Cancel: after a stream is closed in its middle, the adapter answers the next request."""
    request = replace(HELLO, messages=LONG, model=subject.model)
    events: Any = subject.adapter.stream(request)
    async with aclosing(events):
        async for _ in events:
            break
    response, result = await subject.answer(HELLO)
    result.require(response.text, "answer as usual after a stream was closed")


async def at_once(subject: Subject) -> None:
    """Concurrency: requests at the same time each get their own answer."""
    answers = await asyncio.gather(*(subject.answer(HELLO) for _ in range(3)))
    for response, result in answers:
        result.require(response.text, "answer requests that run at the same time")


async def unchanged(subject: Subject) -> None:
    """Purity: the adapter does not change the request that it is given."""
    request = deepcopy(replace(ONE_TOOL, model=subject.model))
    before = deepcopy(to_document(request))
    try:
        value: object = await subject.adapter.complete(request)
    except (UnsupportedError, InvalidRequestError) as error:
        value = error  # the model may have no tools
    result = Result(request, value)
    result.require(to_document(request) == before, "leave the request as it is", repr(request))


CHECKS: Mapping[str, AdapterCheck] = {
    **probes.ANSWER_CHECKS,
    "stream": stream,
    "errors": errors,
    "cancel": cancel,
    "at the same time": at_once,
    "request unchanged": unchanged,
}
"""Every check, in the order in which they run."""


async def check_adapter(
    adapter: Adapter,
    model: str,
    *,
    checks: Iterable[str] | None = None,
    on_check: Callable[[str], object] | None = None,
) -> Report:
    """
    Check an adapter by asking it for a model. It is not closed.

    `checks` are names from `CHECKS`; all by default. Raises `NetworkError` if the first check
    cannot connect.
    """
    chosen = choose(CHECKS, checks)
    subject = Subject(adapter, model)
    scores: list[Score] = []
    found: list[Violation] = []
    for name, check in chosen.items():
        if on_check is not None:
            on_check(name)
        score, violations = await run_check(name, check, subject, is_first=not scores)
        scores.append(score)
        found += violations
    return Report(
        dialect=str(getattr(adapter, "dialect", "adapter")),
        subject=adapter.name,
        cases=1,
        checks=len(chosen),
        violations=tuple(found),
        scores=tuple(scores),
    )
