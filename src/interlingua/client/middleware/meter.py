"""What a call uses: an estimate before it is sent, and what is known if it did not end well."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from interlingua.spec.content import Text
from interlingua.spec.errors import RequestTimeoutError
from interlingua.spec.events import Finish, StreamEvent, StreamStart
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, Response, Usage
from interlingua.streams.grammar import DELTAS
from interlingua.tokens.estimate import estimate_request

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

    @property
    def cost(self) -> Cost | None:
        """The cost of the whole answer, if the stream has ended and the price is known."""
        return None if self.finish is None else self.finish.cost

    def usage(self, request: Request, failure: BaseException | None) -> Usage | None:
        """The reported usage, or an estimate of what a cut stream used; None if it is unknown."""
        if self.finish is not None:
            return self.finish.usage
        if self.start is None:
            return None if failure is None else failed_usage(failure, request)
        reported = self.start.usage or Usage()
        # A delta has at least one token; some hosts send many in each.
        output = max(self._deltas, -(-self._characters // _CHARACTERS), reported.output_tokens)
        return replace(
            reported,
            input_tokens=reported.input_tokens or estimate_input(request),
            output_tokens=output,
            estimated=True,
        )


def failed_usage(error: BaseException, request: Request) -> Usage | None:
    """
    What an attempt used that failed without an answer; None if nothing is known to be billed.

    A provider may have read the prompt of an attempt that was cancelled or timed out.
    """
    partial: Response | None = getattr(error, "partial", None)
    if partial is not None:
        return partial.usage
    is_cut = isinstance(error, (asyncio.CancelledError, GeneratorExit))
    if is_cut or (isinstance(error, RequestTimeoutError) and error.phase != "connect"):
        return Usage(input_tokens=estimate_input(request), estimated=True)
    return None
