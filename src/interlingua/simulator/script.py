"""Scripts: which turn answers which request, and the record of the requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from interlingua.simulator.answer import CHARACTERS
from interlingua.simulator.dsl import Turn, fail, text, tool_call
from interlingua.simulator.operations.modalities import draw, say, wanted_image, wanted_speech
from interlingua.spec.content import Json, Text, ToolResult, UncheckedJson
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import FinishReason
from interlingua.wire.json_text import dump_text

Plain: TypeAlias = Turn | str | SDKError
"""A turn, or what stands for one: a string for `text(…)`, an error for `fail(…)`."""

Answer: TypeAlias = Plain | Callable[[Request], Plain]
"""A turn, a string, an error, or a function that makes one of them from the request."""

SIMULATED = "[simulated answer, no model was asked]"
"""The beginning of each answer that is not scripted."""


KEEP = 1000
"""How many exchanges are remembered by default; each has the whole body of its request."""
_SHOWN = 80  # characters of the last message in an error


class ScriptError(ConfigurationError):
    """The script has no turn for a request, or a function of it failed (`cause`)."""


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
        self.error: BaseException | None = None
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
    Answers in order. Each is a turn, a string, an error, or a function of the request.

        Script(error(500), error(500), "third time lucky")
        Script(echo)

    The last one is repeated; with `repeat_last=False` a request after it is a `ScriptError`.
    `received` lists the last exchanges: at most `keep`, all for None. A script may be used from
    several threads.
    """

    def __init__(self, *answers: Answer, keep: int | None = KEEP, repeat_last: bool = True) -> None:
        for answer in answers:
            if not callable(answer):
                as_turn(answer)  # refuses what is no answer now, not at the request
        self._answers: tuple[Answer, ...] = answers or (use_tools,)
        self._repeats_last = repeat_last
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
        """Return the turn for this request; `ScriptError` if there is none."""
        with self._lock:
            number, self._next = self._next, self._next + 1
        if number >= len(self._answers) and not self._repeats_last:
            raise ScriptError(
                f"The script has no turn for request {number + 1}, {_describe(request)}: it has "
                f"{len(self._answers)}. Add a turn, or end with a function, which answers the rest."
            )
        answer = self._answers[min(number, len(self._answers) - 1)]
        try:
            return turn_for(answer, request)
        except Exception as error:
            text = f"The script failed for request {number + 1}: {error!r}"
            raise ScriptError(text, cause=error) from error

    def for_operation(self) -> Turn:
        """
        Return the next turn if it has no content, such as an error; otherwise an empty turn.

        Operations other than an answer have results of their own: only turns without content, such
        as errors and latencies, apply to them.
        """
        with self._lock:
            if self._next >= len(self._answers) and not self._repeats_last:
                return Turn()
            answer = self._answers[min(self._next, len(self._answers) - 1)]
            if callable(answer) or as_turn(answer).parts:
                return Turn()
            self._next += 1
            return as_turn(answer)


def as_turn(plain: Plain) -> Turn:
    """The turn that a string or an error stands for; a turn is returned unchanged."""
    unchecked: object = plain  # a caller without a type checker may pass a list
    if isinstance(unchecked, Turn):
        return unchecked
    if isinstance(unchecked, str):
        return text(unchecked)
    if isinstance(unchecked, SDKError):
        return fail(unchecked)
    kind = type(unchecked).__name__
    raise ConfigurationError(f"A script takes turns, strings, errors and functions, not a {kind}.")


def turn_for(answer: Answer, request: Request) -> Turn:
    """The turn of an answer for this request."""
    return as_turn(answer(request) if callable(answer) else answer)


def _describe(request: Request) -> str:
    if not request.messages:
        return "which has no message"
    last = request.messages[-1]
    return f"which ends with {last.role}: {last.text[:_SHOWN]!r}"


# Answers that depend on the request.


def echo(request: Request) -> Turn:
    """Repeat the last user message, after a note that the answer is simulated."""
    users = (m.text for m in reversed(request.messages) if m.role == "user" and m.text)
    last = next(users, "")
    return text(f"{SIMULATED} You said: {last}" if last else SIMULATED)


def use_tools(request: Request) -> Turn:
    """
    Answer as the request suggests. This is the answer of a simulator without a script.

    The turn speaks or makes an image if the request asks for that. It calls the tools of the
    request, then repeats their results. With a response format it is an example for the schema.
    Otherwise it repeats the last user message.
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


def tool_loop(calls: Answer, answer: Answer) -> Callable[[Request], Turn]:
    """Answer with `calls` if the request has tools, and with `answer` if it has their results."""

    def next_turn(request: Request) -> Turn:
        if request.tools and not results(request):
            return turn_for(calls, request)
        return turn_for(answer, request)

    return next_turn


def within_limits(answer: Answer) -> Callable[[Request], Turn]:
    """Give this answer, but end its text at `max_tokens` and before a stop sequence."""

    def next_turn(request: Request) -> Turn:
        turn = turn_for(answer, request)
        if len(turn.parts) != 1 or not isinstance(turn.parts[0], Text):
            return turn
        answered, reason = turn.parts[0].text, turn.finish_reason
        for stop in request.stop_sequences or ():
            answered = answered.partition(stop)[0] if stop else answered
        if request.max_tokens is not None and len(answered) > request.max_tokens * CHARACTERS:
            answered = answered[: request.max_tokens * CHARACTERS]
            reason = FinishReason(reason="length")
        part = msgspec.structs.replace(turn.parts[0], text=answered)
        return msgspec.structs.replace(turn, parts=(part,), finish_reason=reason)

    return next_turn


def by_model(answers: Mapping[str, Answer], otherwise: Answer = echo) -> Callable[[Request], Turn]:
    """Choose the answer by the model of the request; `otherwise` is for all other models."""

    def next_turn(request: Request) -> Turn:
        answer = answers.get(request.model, otherwise)
        return turn_for(answer, request)

    return next_turn


def results(request: Request) -> tuple[ToolResult, ...]:
    """Return the tool results at the end of the request; none if another message follows them."""
    last_results: list[ToolResult] = []
    for message in reversed(request.messages):
        in_message = [part for part in message.content if isinstance(part, ToolResult)]
        if not in_message:
            break
        last_results = in_message + last_results
    return tuple(last_results)


def example(schema: UncheckedJson) -> dict[str, Json]:
    """Make arguments that match a simple schema: the required properties, with fitting values."""
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


def _example(schema: UncheckedJson) -> Json:
    if not isinstance(schema, dict):
        return "simulated"
    allowed: list[Json] = [schema[keyword] for keyword in ("const", "default") if keyword in schema]
    if isinstance(schema.get("enum"), list):
        allowed += schema["enum"]
    if allowed:
        return allowed[0]
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
