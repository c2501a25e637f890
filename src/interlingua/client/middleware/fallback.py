"""`Fallback`: other models for a call that fails, or whose answer is not accepted."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
)
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from msgspec.structs import replace

from interlingua.client.middleware.contract import CompleteNext, StreamNext
from interlingua.client.middleware.other_model import OtherModel, to_model
from interlingua.lazy import Remade
from interlingua.runtime.callbacks import settle
from interlingua.runtime.fold import close_stream, in_steps
from interlingua.runtime.log import logger
from interlingua.spec.errors import (
    AbortError,
    BudgetExceededError,
    ConfigurationError,
    ContextLengthError,
    ErrorClass,
    NotFoundError,
    RunLimitError,
    SDKError,
    StoreError,
    UnsupportedError,
)
from interlingua.spec.events import Finish, StreamEvent, StreamRestart, StreamStart, ToolCallStart
from interlingua.spec.request import Request
from interlingua.spec.response import REASONS, Reason, Response, Warning
from interlingua.spec.warnings import make_warning
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.streams.grammar import is_content

Accept: TypeAlias = Callable[[Response], Any]
"""Whether an answer is accepted; sync or async."""
Midstream: TypeAlias = Literal["never", "restart-marked", "hold"]

FALLBACK_ERRORS: tuple[ErrorClass | type[SDKError], ...] = (
    ErrorClass.RATE_LIMIT,
    ErrorClass.AUTH,
    ErrorClass.SERVER_ERROR,
    ErrorClass.NETWORK,
    ErrorClass.CONTEXT_OVERFLOW,
    NotFoundError,
)
"""The errors after which another model may help."""

_FINAL = (AbortError, BudgetExceededError, RunLimitError, StoreError)
"""Errors that end the call whatever model is asked."""
_UNFIT = (UnsupportedError, ContextLengthError)
"""The request does not fit the model; another one may take it."""
_FLAG = "disable_fallbacks"
_LONGEST_REASON = 200  # characters of an error in a warning


class Fallback(Remade):
    """
    Asks other models, in order, after the requested one has failed.

        Client(adapters, middleware=[Fallback("openai:gpt-5.2", "gemini:gemini-2.5-flash")])

    An entry is the name of a model, or an `OtherModel` with settings of its own. The next model is
    asked after one of `errors` (error classes or types), after an answer with one of
    `finish_reasons`, and after an answer for which `accept(response)` is false. A model that cannot
    take the request is skipped. The warnings of the response say what became of each model.

    In a stream, the next model is asked only until a part of the answer was delivered.
    `midstream="hold"` delivers nothing before the answer is complete and accepted.
    `midstream="restart-marked"` also goes on later: `StreamRestart` tells the reader to drop what
    it has. It never does so after a tool call. A request whose `context` has
    `disable_fallbacks` is sent to its own model only.
    """

    has_other_models: ClassVar[bool] = True

    def __init__(
        self,
        *models: str | OtherModel,
        errors: Collection[ErrorClass | type[SDKError]] = FALLBACK_ERRORS,
        finish_reasons: Collection[Reason] = (),
        accept: Accept | None = None,
        midstream: Midstream = "never",
    ) -> None:
        if midstream not in get_args(Midstream):
            raise ConfigurationError(
                f"Fallback: midstream is one of {get_args(Midstream)}, not {midstream!r}."
            )
        for reason in finish_reasons:
            if reason not in REASONS:
                known = ", ".join(sorted(REASONS))
                raise ConfigurationError(f"Fallback: no finish reason {reason!r}; known: {known}.")
        _check_errors(errors)
        self.models: tuple[OtherModel, ...] = tuple(map(to_model, models))
        self._classes = frozenset(error for error in errors if isinstance(error, ErrorClass))
        self._types = tuple(error for error in errors if isinstance(error, type))
        self._finish_reasons = frozenset(finish_reasons)
        self._accept = accept
        self._midstream: Midstream = midstream

    def __repr__(self) -> str:
        return f"Fallback({', '.join(model.model for model in self.models)})"

    async def complete(self, request: Request, call_next: CompleteNext) -> Response:
        """Return the first answer that is accepted, of the models in their order."""
        if _is_disabled(request):
            return await call_next(request)
        trial, target = _Trial(self, request), request
        answer: Response | None = None
        while True:
            try:
                response = await call_next(target)
            except SDKError as error:
                if not trial.note_failure(target, error):
                    break
            else:
                reason = await self._reason_against(response)
                if reason is None:
                    return _add_warnings(response, trial.warnings)
                answer = _add_warnings(response, (_not_accepted(reason),))
                trial.note_rejection(target, reason)
            if not trial.left:
                break
            target = trial.next_request()
        if answer is None:
            raise trial.error()
        return _add_warnings(answer, trial.warnings)

    def stream(self, request: Request, call_next: StreamNext) -> AsyncIterator[StreamEvent]:
        """Return the events of the first answer that is accepted, of the models in their order."""
        return call_next(request) if _is_disabled(request) else self._stream(request, call_next)

    async def _stream(  # noqa: C901, PLR0912 -- one function: a generator would cost each delta
        self, request: Request, call_next: StreamNext
    ) -> AsyncGenerator[StreamEvent, None]:
        trial, target = _Trial(self, request), request
        delivery = _Delivery(self._midstream, trial)
        while True:
            delivery.begin()
            events = call_next(target)
            finish: Finish | None = None
            try:
                async for event in events:
                    if type(event) is Finish:
                        finish = event
                        break
                    for each in delivery.take(event):
                        yield each
            except SDKError as error:
                if not delivery.may_move:
                    raise
                if not trial.note_failure(target, error):
                    break
            else:  # an error that `accept` raises is not one of the model
                if finish is None:
                    return  # the caller of the layers reports that
                reason = await self._reason_against(finish.response)
                if reason is None or not (trial.left and delivery.may_move):
                    async for each in in_steps(delivery.end(finish, reason)):
                        yield each
                    return
                delivery.keep(finish, reason)
                trial.note_rejection(target, reason)
            finally:
                await close_stream(events)
            if not trial.left:
                break
            target = trial.next_request()
        if not delivery.last_events:
            raise trial.error()
        async for each in in_steps(delivery.take_last_events()):
            yield each

    def covers(self, error: SDKError) -> bool:
        """Tell whether another model may help after this error."""
        if isinstance(error, _FINAL):
            return False
        return error.error_class in self._classes or isinstance(error, (*self._types, *_UNFIT))

    async def _reason_against(self, response: Response | None) -> str | None:
        """Why the answer is not accepted; None if it is."""
        if response is None:
            return None
        reason = response.finish_reason.reason
        if reason in self._finish_reasons:
            return f"finish reason {reason!r}"
        if self._accept is not None and not await settle(self._accept(response)):
            return "`accept` returned false"
        return None


def _check_errors(errors: Iterable[Any]) -> None:
    """A name, say, would be no error that ever happens: no other model would be asked."""
    for error in errors:
        is_type = isinstance(error, type) and issubclass(error, SDKError)
        if not is_type and not isinstance(error, ErrorClass):
            raise ConfigurationError(
                f"Fallback: errors has ErrorClass values and types of errors, not {error!r:.60}; "
                "import them from interlingua.errors."
            )


class _Trial:
    """The models that are left for one call, and what became of the others."""

    def __init__(self, fallback: Fallback, request: Request) -> None:
        self._fallback = fallback
        self._request = request
        self.left: list[OtherModel] = [
            model for model in fallback.models if not model.is_target_of(request)
        ]
        self.warnings: list[Warning] = []
        self._failures: list[tuple[str, SDKError]] = []

    def next_request(self) -> Request:
        """The request for the next model, which says why that was chosen."""
        reason = f"fallback: {self.warnings[-1].message}"
        return replace(self.left.pop(0).apply(self._request), chosen_because=reason)

    def note_failure(self, target: Request, error: SDKError) -> bool:
        """
        Note that a model has failed; False if no other may help.

        Raises the error if nothing is to be added to it: it ends the call, or it is the first.
        """
        # A model of the list that is not configured must not hide why it was asked.
        is_misplaced = target is not self._request and isinstance(error, ConfigurationError)
        is_covered = is_misplaced or self._fallback.covers(error)
        if isinstance(error, _FINAL) or not (is_covered or self._failures):
            raise error
        self._failures.append((_name(target), error))
        if is_covered:
            code = "model_skipped" if isinstance(error, _UNFIT) else "model_failed"
            self._warn(code, target, _describe(error))
        return is_covered

    def note_rejection(self, target: Request, reason: str) -> None:
        """Note that the answer of a model was not accepted."""
        self._warn("answer_rejected", target, reason)

    def error(self) -> SDKError:
        """
        The error of the first model that failed; it names the others with theirs.

        A model that could not take the request counts only if no other failed.
        """
        errors = [error for _, error in self._failures]
        first = next((error for error in errors if not isinstance(error, _UNFIT)), errors[0])
        others = [(name, error) for name, error in self._failures if error is not first]
        if others:
            listed = "; ".join(f"{name}: {_describe(error)}" for name, error in others)
            attempts = max((error.attempts or () for error in errors), key=len)
            first.add_outcome(attempts, f"other models: {listed}")
        return first

    def _warn(self, code: str, target: Request, reason: str) -> None:
        warning = make_warning(code, target=_name(target), reason=reason)
        self.warnings.append(warning)
        logger.warning(
            "%s: %s", code, warning.message, extra={"request_id": self._request.request_id}
        )


class _Delivery:
    """What the reader of a stream has seen, over all models."""

    def __init__(self, midstream: Midstream, trial: _Trial) -> None:
        self._trial = trial
        self._holds = midstream == "hold"
        self._shown = StreamAccumulator() if midstream == "restart-marked" else None
        self._withheld: list[StreamEvent] | None = []
        self._has_shown = False
        self._has_called = False
        self.last_events: list[StreamEvent] = []
        """The rest of an answer that was not accepted, in case that no other comes."""

    @property
    def may_move(self) -> bool:
        """Whether another model may answer, given what was delivered."""
        return not self._has_shown or (self._shown is not None and not self._has_called)

    def begin(self) -> None:
        """A model is asked."""
        self._withheld = []

    def take(self, event: StreamEvent) -> list[StreamEvent]:
        """Add an event; returns those that are delivered now."""
        withheld = self._withheld
        if withheld is None:
            return self._show([event])
        if type(event) is StreamStart:
            event = replace(event, warnings=(*event.warnings, *self._trial.warnings))
        withheld.append(event)
        return [] if self._holds or not is_content(event) else self._release()

    def keep(self, finish: Finish, reason: str) -> None:
        """Keep the rest of an answer that was not accepted."""
        is_shown = self._withheld is None
        last = _mark(finish, reason)
        self.last_events = [last] if is_shown else [*(self._withheld or ()), last]

    def take_last_events(self) -> list[StreamEvent]:
        """The rest of that answer, with the warnings about the models that were asked since."""
        *events, last = self.last_events
        return [*events, replace(last, warnings=(*last.warnings, *self._trial.warnings))]  # type: ignore[union-attr]

    def end(self, finish: Finish, reason: str | None) -> list[StreamEvent]:
        """The last events of the answer that counts."""
        return [*self._release(), finish if reason is None else _mark(finish, reason)]

    def _release(self) -> list[StreamEvent]:
        """The events that were withheld, after a restart if another answer was shown before."""
        events, self._withheld = self._withheld or [], None
        if not events:
            return []
        self.last_events = []
        if not self._has_shown or self._shown is None:
            return self._show(events)
        first = events[0]
        start = first if isinstance(first, StreamStart) else StreamStart()
        reason = self._trial.warnings[-1].message if self._trial.warnings else ""
        rest = events[1:] if start is first else events
        ends = self._shown.end_segments()
        return [*ends, *self._show([StreamRestart(start=start, reason=reason), *rest])]

    def _show(self, events: list[StreamEvent]) -> list[StreamEvent]:
        self._has_shown = True
        for event in events:
            if self._shown is not None:
                self._shown.feed(event)
            if type(event) is ToolCallStart:
                self._has_called = True
        return events


def _mark(finish: Finish, reason: str) -> Finish:
    return replace(finish, warnings=(*finish.warnings, _not_accepted(reason)))


def _not_accepted(reason: str) -> Warning:
    return make_warning("answer_not_accepted", reason=reason)


def _add_warnings(response: Response, warnings: Collection[Warning]) -> Response:
    if not warnings:
        return response
    return replace(response, warnings=(*response.warnings, *warnings))


def _name(target: Request) -> str:
    provider = target.provider
    has_prefix = provider is None or target.model.startswith(f"{provider}:")
    return target.model if has_prefix else f"{provider}:{target.model}"


def _describe(error: SDKError) -> str:
    text = f"{type(error).__name__}: {error.message}"
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


def _is_disabled(request: Request) -> bool:
    """Whether the context of the request, or the `deps` in it, says so."""
    context = request.context
    if context is None:
        return False
    return any(map(_has_flag, (context, getattr(context, "deps", None))))


def _has_flag(context: Any) -> bool:
    if isinstance(context, Mapping):
        return bool(context.get(_FLAG))
    return bool(getattr(context, _FLAG, False))
