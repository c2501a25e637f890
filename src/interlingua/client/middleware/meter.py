"""What a call uses: an estimate before it is sent, and what is known if it did not end well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from interlingua.client.middleware.contract import Call, Progress
from interlingua.runtime.cancel import is_cancelled
from interlingua.spec.content import Text
from interlingua.spec.errors import ProviderError, RequestTimeoutError
from interlingua.spec.events import Finish, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt, Cost, Response, Usage
from interlingua.streams.grammar import DELTAS
from interlingua.tokens.bounds import bounds_of, kind_of
from interlingua.tokens.estimate import estimate_request
from interlingua.tokens.fitted import SLACK

_CHARACTERS = 4  # of a token, in short or unfinished text
_FOREIGN = 1.3  # characters of a token, where they are not ASCII
_MESSAGE = 6  # tokens around a message
_SHORT = 2_000  # characters
_last: tuple[Request, int] | None = None


def estimate_input(request: Request) -> int:
    """
    An offline estimate of the input tokens.

    That of a short text is rough: it is corrected soon, and little depends on it. The last one is
    kept: several layers ask about the same request, one after another.
    """
    global _last  # noqa: PLW0603 -- one tuple, which is replaced as a whole
    known = _last
    if known is not None and known[0] is request:
        return known[1]
    messages, characters, foreign = request.messages, 0, 0
    for message in messages:
        for part in message.content:
            if type(part) is not Text:
                characters = _SHORT
                break
            text = part.text
            characters += len(text)
            if not text.isascii():
                foreign += len(text)
        if characters >= _SHORT:
            break
    if characters >= _SHORT or request.tools:
        tokens = estimate_request(request, request.provider or "")
    else:
        tokens = _MESSAGE * len(messages) + (characters - foreign) // _CHARACTERS
        if foreign:
            tokens += int(foreign / _FOREIGN)
    _last = (request, tokens)
    return tokens


def reserve_input(request: Request) -> int:
    """
    The upper bound of the input tokens; where none holds, twice the estimate.

    That factor was chosen, not measured. That of a short request is the estimate: its bound would
    be many times as much, because a host may add instructions of its own, and little depends on it.
    """
    tokens = estimate_input(request)
    if tokens < SLACK:
        return tokens
    upper = bounds_of(tokens, kind_of(request)).upper
    return 2 * tokens if upper is None else upper


class StreamMeter:
    """Counts what has arrived of a stream, so that its usage is known wherever it ends."""

    __slots__ = ("_characters", "_deltas", "finish", "start")

    def __init__(self) -> None:
        self._characters = 0
        self._deltas = 0
        self.start: StreamStart | None = None
        self.finish: Finish | None = None

    def feed(self, event: StreamEvent) -> None:
        """Count an event."""
        kind = type(event)
        if kind in DELTAS:
            self._deltas += 1
            self._characters += len(event.delta)  # type: ignore[union-attr]
        elif kind is StreamStart:
            self.start = event  # type: ignore[assignment]
        elif kind is Finish:
            self.finish = event  # type: ignore[assignment]

    def amounts(self, request: Request, failure: BaseException | None, call: Call) -> Amounts:
        """What was reported, or an estimate of what a cut stream used."""
        if self.finish is not None:
            return self.finish.usage, self.finish.cost
        if self.start is None or call.progress.usage is not None:
            return (None, None) if failure is None else failed_amounts(failure, request, call)
        reported = self.start.usage or Usage()
        # A delta has at least one token; some hosts send many in each.
        output = max(self._deltas, -(-self._characters // _CHARACTERS), reported.output_tokens)
        usage = replace(
            reported,
            input_tokens=reported.input_tokens or estimate_input(request),
            output_tokens=output,
            estimated=True,
        )
        winner = _find_winner(call.progress, call.attempts()) if is_cancelled(failure) else None
        return usage if winner is None else with_output_of(usage, winner.usage), None


Amounts: TypeAlias = tuple[Usage | None, Cost | None]
"""A usage, None if nothing is known to be billed; and its cost, None if it is to be computed."""


def failed_amounts(error: BaseException, request: Request, call: Call) -> Amounts:
    """
    What an attempt used that failed.

    The provider may have answered before the failure. It may have read the prompt of an attempt
    that was cancelled or timed out.
    """
    progress = call.progress
    if progress.usage is not None:
        return progress.usage, progress.cost
    partial: Response | None = getattr(error, "partial", None)
    if partial is not None:
        return partial.usage, None
    if not progress.is_sent or not is_cut(error):
        return None, None
    attempts = call.attempts()
    hedged = hedged_usage(request, progress, attempts)
    return hedged or Usage(input_tokens=estimate_input(request), estimated=True), None


def is_cut(error: BaseException | None) -> bool:
    """Whether an attempt was cancelled or timed out; what it has cost is unknown then."""
    if isinstance(error, RequestTimeoutError):
        return error.phase != "connect"
    return is_cancelled(error)


def is_unanswered(error: BaseException | None, progress: Progress) -> bool:
    """Whether an attempt was cancelled or timed out after sending, and the provider may go on."""
    # An error of the provider says that there will be no answer.
    return progress.is_sent and is_cut(error) and not isinstance(error, ProviderError)


def is_lost(error: BaseException | None, call: Call) -> bool:
    """Whether a whole answer was cancelled or timed out, of which not even the length is known."""
    progress = call.progress
    return (
        is_unanswered(error, progress)
        and not progress.is_stream
        and progress.usage is None
        and getattr(error, "partial", None) is None
        and _find_winner(progress, call.attempts()) is None
    )


def hedged_usage(
    request: Request, progress: Progress, ended: Sequence[Attempt], *, is_beaten: bool = False
) -> Usage | None:
    """
    An estimate of what an attempt used that a hedge has cancelled; None if it is none.

    It is its input, and the output of the winner; of a stream, `is_beaten` says that the winner is
    still under way, and its output is added later: see `with_output_of`.
    """
    winner = _find_winner(progress, ended)
    if not progress.is_sent or not (is_beaten or winner is not None):
        return None
    usage = Usage(input_tokens=estimate_input(request), estimated=True)
    return usage if winner is None else with_output_of(usage, winner.usage)


def with_output_of(usage: Usage, winner: Usage | None) -> Usage:
    """
    The usage of the loser of a hedge: at least as much output as the winner, as an estimate.

    A provider bills what it has generated until it notices that the connection was closed. Of that
    nothing may have arrived: thinking is often hidden, and some go on to the end. The winner has
    answered the same request, so its length is the best guess. It may be too high for a stream,
    which is cut when the winner begins; a budget must not be too low.
    """
    if winner is None or winner.output_tokens <= usage.output_tokens:
        return usage
    return replace(usage, output_tokens=winner.output_tokens, estimated=True)


def _find_winner(progress: Progress, ended: Sequence[Attempt]) -> Attempt | None:
    """The attempt that has succeeded while another one of the same call was under way."""
    later = ended[progress.earlier :]
    return next((attempt for attempt in later if attempt.error_class is None), None)
