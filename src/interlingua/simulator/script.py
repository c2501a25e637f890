"""Which turn answers which request, and the record of what was received."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from interlingua.simulator.dsl import Turn, text, tool_call
from interlingua.spec.content import Json, ToolResult
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request, ToolDefinition
from interlingua.wire.json_text import dump_text

Answer: TypeAlias = Turn | Callable[[Request], Turn]
"""A turn, or what makes one for a request."""

SIMULATED = "[simulated answer, no model was asked]"
"""With this the answers that are not scripted begin."""


class Exchange:
    """
    One request and what became of it.

    Times are of the monotonic clock, None for what did not happen. Keys are not kept.
    """

    def __init__(self, number: int, dialect: str, method: str, call: WireCall) -> None:
        self.number = number
        """From 1, in the order of arrival."""
        self.dialect = dialect
        self.method = method
        self.call = call
        self.request: Request | None = None
        """The same in the canonical language, if it could be read and is one."""
        self.turn: Turn | None = None
        self.error: Exception | None = None
        """Why the request could not be read, or what the script raised."""
        self.status: int | None = None
        self.sent_bytes = 0
        """Of the body."""
        self.started: float | None = None
        self.ended: float | None = None
        self.disconnected: float | None = None
        """When the client went away before its answer was sent."""
        self.over: threading.Event = threading.Event()

    def __repr__(self) -> str:
        state = "open" if self.ended is None else "over"
        return f"<Exchange {self.number} {self.dialect} {self.call.path} {self.status} {state}>"


class Script:
    """
    Turns in order, the last one again and again; each may be a function of the request.

        Script(error(500), error(500), text("third time lucky"))
        Script(echo)

    `received` is what was asked so far, of which the last `keep` are kept, if it is given.
    Safe to use from several threads.
    """

    def __init__(self, *answers: Answer, keep: int | None = None) -> None:
        given: tuple[Any, ...] = answers  # a caller without a type checker may pass a list
        for answer in given:
            if not isinstance(answer, Turn) and not callable(answer):
                kind = type(answer).__name__
                raise ConfigurationError(f"a script holds turns and functions, not a {kind}")
        self._answers: tuple[Answer, ...] = answers or (use_tools,)
        self._next = 0
        self._count = 0
        self._received: deque[Exchange] = deque(maxlen=keep)
        self._lock = threading.Lock()

    @property
    def received(self) -> tuple[Exchange, ...]:
        """Every exchange that is kept, in the order the requests came."""
        with self._lock:
            return tuple(self._received)

    @property
    def requests(self) -> tuple[Request, ...]:
        """The requests for an answer that could be read, in the order they came."""
        return tuple(each.request for each in self.received if each.request is not None)

    def record(self, dialect: str, method: str, call: WireCall) -> Exchange:
        """Begin the record of one exchange."""
        with self._lock:
            self._count += 1
            exchange = Exchange(self._count, dialect, method, call)
            self._received.append(exchange)
        return exchange

    def answer(self, request: Request) -> Turn:
        """The turn for this request; `ConfigurationError` if a function makes none."""
        with self._lock:
            place = min(self._next, len(self._answers) - 1)
            self._next += 1
            answer = self._answers[place]
        if isinstance(answer, Turn):
            return answer
        turn = answer(request)
        if not isinstance(turn, Turn):
            raise ConfigurationError(f"a script's function gave {type(turn).__name__}, not a Turn")
        return turn


# Answers that depend on the request.


def echo(request: Request) -> Turn:
    """What the user said last, after a statement that this is simulated."""
    said = next((m.text for m in reversed(request.messages) if m.role == "user" and m.text), "")
    return text(f"{SIMULATED} You said: {said}" if said else SIMULATED)


def use_tools(request: Request) -> Turn:
    """Call the tools that are offered, tell what they returned, fill in a schema, or echo."""
    returned = results(request)
    filled_in = _example_answer(request)
    if returned and filled_in is None:
        told = "; ".join(_result_text(result) for result in returned)
        return text(f"{SIMULATED} The tools returned: {told}")
    turn = Turn()
    for tool in () if returned else _callable_tools(request):
        turn += tool_call(tool.name, example(tool.parameters))
    return turn if turn.parts else filled_in or echo(request)


def _example_answer(request: Request) -> Turn | None:
    form = request.response_format
    if form is None or not isinstance(form.json_schema, dict):
        return None
    return text(dump_text(_example(form.json_schema)))


def tool_loop(calls: Turn, answer: Answer) -> Callable[[Request], Turn]:
    """Say `calls` when tools are offered, and `answer` when their results are there."""

    def next_turn(request: Request) -> Turn:
        if request.tools and not results(request):
            return calls
        return answer if isinstance(answer, Turn) else answer(request)

    return next_turn


def by_model(answers: Mapping[str, Answer], otherwise: Answer = echo) -> Callable[[Request], Turn]:
    """One answer for each model, and another for the rest."""

    def of_model(request: Request) -> Turn:
        answer = answers.get(request.model, otherwise)
        return answer if isinstance(answer, Turn) else answer(request)

    return of_model


def results(request: Request) -> tuple[ToolResult, ...]:
    """The tool results with which the request ends; none if something else was said after."""
    found: list[ToolResult] = []
    for message in reversed(request.messages):
        here = [part for part in message.content if isinstance(part, ToolResult)]
        if not here:
            break
        found = here + found
    return tuple(found)


def example(schema: Json) -> dict[str, Any]:
    """Arguments that a simple schema accepts: what it requires, each of its type."""
    value = _example(schema)
    return value if isinstance(value, dict) else {}


_EXAMPLES: dict[str, Json] = {
    "string": "simulated",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
    "array": [],
}


def _example(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return "simulated"
    for known in ("const", "default"):
        if known in schema:
            return schema[known]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    kind = kind.lower() if isinstance(kind, str) else "string"
    if kind != "object":
        return _EXAMPLES.get(kind, "simulated")
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return {}
    return {name: _example(properties.get(name)) for name in required if isinstance(name, str)}


def _callable_tools(request: Request) -> list[ToolDefinition]:
    choice = request.tool_choice
    if choice is not None and choice.mode == "none":
        return []
    tools = [tool for tool in request.tools or () if isinstance(tool, ToolDefinition)]
    if choice is not None and choice.tool_name is not None:
        return [tool for tool in tools if tool.name == choice.tool_name]
    return tools


def _result_text(result: ToolResult) -> str:
    if isinstance(result.content, str):
        return result.content
    if result.parts is not None:
        return "".join(getattr(part, "text", None) or f"[{part.kind}]" for part in result.parts)
    return dump_text(result.content)
