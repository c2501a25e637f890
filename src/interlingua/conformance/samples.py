"""Cases that a dialect writes itself, for a check without recorded exchanges."""

from __future__ import annotations

from interlingua.conformance.laws import Case, encode_events
from interlingua.conformance.probes import HELLO, ONE_TOOL, RESULTS
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.contracts import Dialect
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.wire.sse import encode_sse

_USAGE = Usage(input_tokens=12, output_tokens=5)
_TEXT = Response(
    id="r1",
    model="m",
    message=Message.assistant("Hello, \N{EARTH GLOBE EUROPE-AFRICA}."),
    finish_reason=FinishReason(reason="stop"),
    usage=_USAGE,
)
_CALL = Response(
    id="r2",
    model="m",
    message=Message(
        role="assistant",
        content=(
            Text(text="I look."),
            ToolCall(id="call_1", name="weather", arguments={"city": "Oslo"}),
        ),
    ),
    finish_reason=FinishReason(reason="tool_calls"),
    usage=_USAGE,
)
_SAMPLES = {
    "text": (HELLO, _TEXT),
    "tool call": (ONE_TOOL, _CALL),
    "tool results": (RESULTS, _TEXT),
}


def sample_cases(dialect: Dialect) -> list[Case]:
    """
    A text, a tool call and its results, as the dialect encodes them.

    They show whether a dialect agrees with itself. Whether it agrees with a server is shown by
    recorded exchanges (`read_cases`).
    """
    cases: list[Case] = []
    for name, (request, response) in _SAMPLES.items():
        frames = encode_events(dialect, events_from_response(response))
        cases.append(
            Case(
                name=name,
                call=dialect.encode_request(request),
                response=dialect.encode_response(response),
                stream=b"".join(map(encode_sse, frames)),
            )
        )
    return cases
