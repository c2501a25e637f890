"""What checks of servers and adapters ask, and what every answer must have."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from interlingua.spec.content import ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolChoice, ToolDefinition
from interlingua.spec.response import Response, Usage


class NotApplicableError(Exception):
    """The check does not apply; the text says why."""


class ProblemError(Exception):
    """Something is not as the dialect requires."""

    def __init__(self, required: str, received: str = "", sent: str = "") -> None:
        super().__init__(required)
        self.required = required
        self.received = received
        self.sent = sent


class Seen(Protocol):
    """One exchange, which a finding shows."""

    @property
    def received(self) -> str:
        """What came back, in short."""

    def require(self, holds: object, required: str, received: str = "") -> None:
        """Raise `ProblemError` unless the claim holds."""


ENOUGH = 256
FEW = 16  # the smallest limit that every dialect accepts
LONG = "Repeat this sentence word by word, ten times: " + "alpha beta gamma delta epsilon zeta " * 8
UNKNOWN_MODEL = "interlingua-no-such-model"
STOP = "gamma"


def _tool(name: str, field: str) -> ToolDefinition:
    schema = {
        "type": "object",
        "properties": {field: {"type": "string"}},
        "required": [field],
        "additionalProperties": False,
    }
    return ToolDefinition(
        name=name, description=f"Look up the {name} of a city.", parameters=schema
    )


_WEATHER, _TIME = _tool("weather", "city"), _tool("time", "city")
HELLO = Request(messages="Say hello in one short sentence.", max_tokens=ENOUGH)
ONE_TOOL = Request(
    messages="What is the weather in Oslo? Call the tool `weather`.",
    tools=(_WEATHER,),
    tool_choice=ToolChoice(mode="required"),
    max_tokens=ENOUGH,
)
TWO_TOOLS = Request(
    messages="Call both tools for Oslo, `weather` and `time`, in the same answer.",
    tools=(_WEATHER, _TIME),
    tool_choice=ToolChoice(mode="required"),
    parallel_tool_calls=True,
    max_tokens=ENOUGH,
)
_CALLS = (
    ToolCall(id="call_interlingua1", name="weather", arguments={"city": "Oslo"}),
    ToolCall(id="call_interlingua2", name="time", arguments={"city": "Oslo"}),
)
RESULTS = Request(
    messages=(
        Message.user("What are the weather and the time in Oslo?"),
        Message(role="assistant", content=_CALLS),
        Message.tool_result("call_interlingua1", "It rains."),
        Message.tool_result("call_interlingua2", "12:00"),
    ),
    tools=(_WEATHER, _TIME),
    tool_choice=ToolChoice(mode="none"),
    max_tokens=ENOUGH,
)


# Ollama: «registry.ollama.ai/library/gemma3:4b does not support tools», with status 400. Others say
# it in other words; a refusal that does not say it is a finding.
_lacks_tools = re.compile(
    r"\b(?:not|n't) (?:support|enable|allow)\w*\b.{0,60}\b(?:tool|function)"
    r"|\b(?:tool|function).{0,60}\b(?:not (?:supported|enabled|available)|unsupported)",
    re.IGNORECASE,
).search


def lacking(request: Request, message: str) -> str | None:
    """Why a model cannot be asked this, in the words of a refusal; None if it says nothing."""
    return message if request.tools and _lacks_tools(message) else None


def check_text(seen: Seen, response: Response) -> None:
    """It has text, the name of the model, and a usual finish reason."""
    seen.require(response.text, "answer with text")
    seen.require(response.model, "name the model that answered")
    check_reason(seen, response, "stop", "length")


def check_reason(seen: Seen, response: Response, *reasons: str) -> None:
    """Its finish reason is one of these."""
    reason = response.finish_reason
    seen.require(
        reason.reason in reasons,
        f"give the finish reason that means {' or '.join(map(repr, reasons))}",
        f"finish reason {reason.raw or reason.reason!r}; {seen.received}",
    )


def check_usage(seen: Seen, counted: Usage) -> None:
    """It counts tokens."""
    got = f"input {counted.input_tokens}, output {counted.output_tokens}"
    seen.require(
        counted.input_tokens and counted.output_tokens,
        "count the input and the output tokens",
        f"{got}; {seen.received}",
    )


def check_calls(seen: Seen, response: Response) -> None:
    """It calls tools of the request, with ids and valid arguments."""
    seen.require(response.tool_calls, "call a tool if `tool_choice` requires it")
    for call in response.tool_calls:
        seen.require(call.id, "give each call an id")
        known = call.name in ("weather", "time")
        seen.require(known, "call only tools of the request", f"called {call.name!r}")
        city = call.arguments.get("city")
        seen.require(
            call.is_valid and isinstance(city, str),
            "send arguments that fit the schema of the tool",
            f"arguments {call.raw_arguments or call.arguments!r}",
        )


def check_parallel(seen: Seen, response: Response) -> None:
    """Its calls have ids of their own; not applicable if there is only one."""
    ids = [call.id for call in response.tool_calls]
    if len(ids) < 2:
        raise NotApplicableError("The model made one call where it was asked for two.")
    seen.require(len(set(ids)) == len(ids), "give each call an id of its own", f"ids {ids}")


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
    """Parallel calls in streams: each piece belongs to one call."""
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
