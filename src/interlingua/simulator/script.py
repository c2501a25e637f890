"""Scripts: which turn answers which request, and the record of the requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from interlingua.simulator.answer import CHARACTERS
from interlingua.simulator.dsl import Turn, text, tool_call
from interlingua.simulator.operations.images import draw, wanted_image
from interlingua.simulator.operations.speech import say, wanted_speech
from interlingua.spec.content import Json, Text, ToolResult
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import FinishReason
from interlingua.wire.json_text import dump_text

Answer: TypeAlias = Turn | Callable[[Request], Turn]
"""A turn, or a function that makes one from the request."""

SIMULATED = "[simulated answer, no model was asked]"
"""The beginning of each answer that is not scripted."""


class Exchange:
    """
    One request and its outcome.

    Times are of the monotonic clock; None means that the event did not happen. Keys are redacted.
    """

    def __init__(self, number: int, dialect: str, method: str, call: WireCall) -> None:
        self.number = number
        """The number of the request, from 1 in the order of arrival."""
        self.dialect = dialect
        self.method = method
        self.call = call
        self.request: Request | None = None
        """The canonical request; None if it could not be decoded or asks for something else."""
        self.turn: Turn | None = None
        self.error: Exception | None = None
        """Why the request could not be decoded, or what the script raised."""
        self.status: int | None = None
        self.sent_bytes = 0
        """Bytes of the body that were sent."""
        self.started: float | None = None
        self.ended: float | None = None
        self.disconnected: float | None = None
        """When the client disconnected, if that was before the whole answer was sent."""
        self.over: threading.Event = threading.Event()

    def __repr__(self) -> str:
        state = "open" if self.ended is None else "over"
        return f"<Exchange {self.number} {self.dialect} {self.call.path} {self.status} {state}>"


class Script:
    """
    Answers in order; the last one is repeated. Each is a turn or a function of the request.

        Script(error(500), error(500), text("third time lucky"))
        Script(echo)

    `received` lists the exchanges so far; `keep` limits it to the last ones. A script may be used
    from several threads.
    """

    def __init__(self, *answers: Answer, keep: int | None = None) -> None:
        unchecked: tuple[Any, ...] = answers  # a caller without a type checker may pass a list
        for answer in unchecked:
            if not isinstance(answer, Turn) and not callable(answer):
                kind = type(answer).__name__
                raise ConfigurationError(f"a script takes turns and functions, not a {kind}")
        self._answers: tuple[Answer, ...] = answers or (use_tools,)
        self._next = 0
        self._count = 0
        self._received: deque[Exchange] = deque(maxlen=keep)
        self._lock = threading.Lock()

    @property
    def received(self) -> tuple[Exchange, ...]:
        """The exchanges, in the order in which the requests arrived."""
        with self._lock:
            return tuple(self._received)

    @property
    def requests(self) -> tuple[Request, ...]:
        """The decoded requests for an answer, in the order in which they arrived."""
        return tuple(item.request for item in self.received if item.request is not None)

    def record(self, dialect: str, method: str, call: WireCall) -> Exchange:
        """Add a new exchange to `received`."""
        with self._lock:
            self._count += 1
            exchange = Exchange(self._count, dialect, method, call)
            self._received.append(exchange)
        return exchange

    def answer(self, request: Request) -> Turn:
        """The turn for this request; `ConfigurationError` if a function does not return one."""
        with self._lock:
            index = min(self._next, len(self._answers) - 1)
            self._next += 1
            answer = self._answers[index]
        if isinstance(answer, Turn):
            return answer
        turn = answer(request)
        if not isinstance(turn, Turn):
            raise ConfigurationError(
                f"a function of the script returned a {type(turn).__name__}, not a Turn"
            )
        return turn

    def for_operation(self) -> Turn:
        """
        The next turn if it has no content, such as an error or a latency; otherwise an empty one.

        Operations other than an answer have results of their own: only such turns apply to them.
        """
        with self._lock:
            turn = self._answers[min(self._next, len(self._answers) - 1)]
            if not isinstance(turn, Turn) or turn.parts:
                return Turn()
            self._next += 1
            return turn


# Answers that depend on the request.


def echo(request: Request) -> Turn:
    """Repeat the last user message, after a note that the answer is simulated."""
    users = (m.text for m in reversed(request.messages) if m.role == "user" and m.text)
    last = next(users, "")
    return text(f"{SIMULATED} You said: {last}" if last else SIMULATED)


def use_tools(request: Request) -> Turn:
    """
    The default answer, which depends on the request.

    It speaks or makes an image if the request asks for that. It calls the tools of the request,
    then repeats their results. With a response format it answers with an example for the schema.
    Otherwise it echoes.
    """
    speech, image = wanted_speech(request), wanted_image(request)
    if speech is not None:
        return say(speech)
    if image is not None:
        return draw(image)
    tool_results = results(request)
    example_answer = _example_answer(request)
    if tool_results and example_answer is None:
        listed = "; ".join(_result_text(result) for result in tool_results)
        return text(f"{SIMULATED} The tools returned: {listed}")
    turn = Turn()
    for tool in () if tool_results else _callable_tools(request):
        turn += tool_call(tool.name, example(tool.parameters))
    return turn if turn.parts else example_answer or echo(request)


def _example_answer(request: Request) -> Turn | None:
    response_format = request.response_format
    if response_format is None or not isinstance(response_format.json_schema, dict):
        return None
    return text(dump_text(_example(response_format.json_schema)))


def tool_loop(calls: Turn, answer: Answer) -> Callable[[Request], Turn]:
    """Answer with `calls` if the request has tools, and with `answer` if it has their results."""

    def next_turn(request: Request) -> Turn:
        if request.tools and not results(request):
            return calls
        return answer if isinstance(answer, Turn) else answer(request)

    return next_turn


def within_limits(answer: Answer) -> Callable[[Request], Turn]:
    """The same answer, but its text ends at `max_tokens` and before a stop sequence."""

    def next_turn(request: Request) -> Turn:
        turn = answer if isinstance(answer, Turn) else answer(request)
        if len(turn.parts) != 1 or not isinstance(turn.parts[0], Text):
            return turn
        spoken, reason = turn.parts[0].text, turn.finish_reason
        for stop in request.stop_sequences or ():
            spoken = spoken.partition(stop)[0] if stop else spoken
        if request.max_tokens is not None and len(spoken) > request.max_tokens * CHARACTERS:
            spoken = spoken[: request.max_tokens * CHARACTERS]
            reason = FinishReason(reason="length")
        part = msgspec.structs.replace(turn.parts[0], text=spoken)
        return msgspec.structs.replace(turn, parts=(part,), finish_reason=reason)

    return next_turn


def by_model(answers: Mapping[str, Answer], otherwise: Answer = echo) -> Callable[[Request], Turn]:
    """Choose the answer by the model of the request; `otherwise` is for all other models."""

    def next_turn(request: Request) -> Turn:
        answer = answers.get(request.model, otherwise)
        return answer if isinstance(answer, Turn) else answer(request)

    return next_turn


def results(request: Request) -> tuple[ToolResult, ...]:
    """The tool results at the end of the request; none if another message follows them."""
    last_results: list[ToolResult] = []
    for message in reversed(request.messages):
        in_message = [part for part in message.content if isinstance(part, ToolResult)]
        if not in_message:
            break
        last_results = in_message + last_results
    return tuple(last_results)


def example(schema: Json) -> dict[str, Any]:
    """Arguments that match a simple schema: the required properties, with values of their type."""
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
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
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
    tools = [tool for tool in request.tools if isinstance(tool, ToolDefinition)]
    if choice is not None and choice.tool_name is not None:
        return [tool for tool in tools if tool.name == choice.tool_name]
    return tools


def _result_text(result: ToolResult) -> str:
    if isinstance(result.content, str):
        return result.content
    if result.parts is not None:
        return "".join(getattr(part, "text", None) or f"[{part.kind}]" for part in result.parts)
    return dump_text(result.content)
