"""The checks of answers, for everything that can be asked: a server, or an adapter."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from interlingua.conformance.probes import (
    HELLO,
    ONE_TOOL,
    RESULTS,
    TWO_TOOLS,
    Seen,
    check_calls,
    check_parallel,
    check_reason,
    check_text,
    check_usage,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Response


class Asked(Protocol):
    """What is checked: it answers in both modes, with what a finding shows."""

    async def answer(self, request: Request, /) -> tuple[Response, Seen]:
        """The whole answer."""

    async def streamed(self, request: Request, /) -> tuple[Response, Seen]:
        """The answer that the events of a stream add up to."""


async def text(asked: Asked) -> None:
    """A text: a whole answer has text, the name of the model, and a known finish reason."""
    response, seen = await asked.answer(HELLO)
    check_text(seen, response)


async def stream(asked: Asked) -> None:
    """A stream: its events are in order, the text comes in pieces, and the last event ends it."""
    response, seen = await asked.streamed(HELLO)
    check_text(seen, response)


async def usage(asked: Asked) -> None:
    """Usage: a whole answer counts its input and output tokens."""
    response, seen = await asked.answer(HELLO)
    check_usage(seen, response.usage)


async def stream_usage(asked: Asked) -> None:
    """Usage of streams: a stream counts its input and output tokens when a client asks for it."""
    response, seen = await asked.streamed(HELLO)
    check_usage(seen, response.usage)


async def tools(asked: Asked) -> None:
    """Tools: a required tool is called, with an id and arguments that fit its schema."""
    _check_one_call(*await asked.answer(ONE_TOOL))


async def stream_tools(asked: Asked) -> None:
    """Tools in streams: the call arrives whole, with an id and arguments that fit its schema."""
    _check_one_call(*await asked.streamed(ONE_TOOL))


async def parallel(asked: Asked) -> None:
    """Parallel calls: several calls of one answer have ids of their own and whole arguments."""
    _check_calls(*await asked.answer(TWO_TOOLS))


async def stream_parallel(asked: Asked) -> None:
    """Parallel calls in streams: their pieces are told apart."""
    _check_calls(*await asked.streamed(TWO_TOOLS))


async def tool_results(asked: Asked) -> None:
    """Tool results: a history with calls and their results is answered with text."""
    response, seen = await asked.answer(RESULTS)
    seen.require(response.text, "answer a history that ends with tool results with text")


def _check_one_call(response: Response, seen: Seen) -> None:
    check_calls(seen, response)
    check_reason(seen, response, "tool_calls")


def _check_calls(response: Response, seen: Seen) -> None:
    check_calls(seen, response)
    check_parallel(seen, response)


ANSWER_CHECKS: Mapping[str, Callable[[Asked], Awaitable[None]]] = {
    "text": text,
    "stream": stream,
    "usage": usage,
    "usage of a stream": stream_usage,
    "tool call": tools,
    "tool call in a stream": stream_tools,
    "parallel calls": parallel,
    "parallel calls in a stream": stream_parallel,
    "tool results": tool_results,
}
"""Every check of answers, in the order in which they run."""
