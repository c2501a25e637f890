"""Law 4 fails where something is lost in silence."""

from types import SimpleNamespace

import msgspec

from interlingua import dialects
from interlingua.conformance.canonical import request_survives, response_survives
from interlingua.spec.content import Audio, Refusal, Text, ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.response import Response, Usage

GOOD = dialects.get("anthropic_messages")
REQUEST = Request(
    model="m",
    messages=[Message.user([Text(text="a"), Audio(data=b"x")]), Message.assistant("b")],
    tools=[ToolDefinition(name="f")],
    seed=1,
    top_k=3,
)


def silent(**changes):
    """A dialect that swallows its warnings."""

    def encode_request(request, *, stream):
        call = GOOD.encode_request(msgspec.structs.replace(request, **changes), stream=stream)
        return msgspec.structs.replace(call, warnings=())

    return SimpleNamespace(encode_request=encode_request, decode_request=GOOD.decode_request)


def test_warned_losses_are_fine():
    """Audio and seed are lost here, and said to be."""
    assert request_survives(GOOD, REQUEST) == []


def test_silent_losses_are_found():
    """The same without warnings is two violations, and each lost field one more."""
    assert [found.split(":")[0] for found in request_survives(silent(), REQUEST)] == [
        "seed",
        "parts",
    ]
    assert [
        found.split(":")[0] for found in request_survives(silent(top_k=None, tools=()), REQUEST)
    ] == [
        "top_k",
        "seed",
        "tools",
        "parts",
    ]


def test_order_counts():
    """Parts must come back in order."""
    swapped = silent(messages=REQUEST.messages[::-1])

    assert any(found.startswith("parts") for found in request_survives(swapped, REQUEST))


def test_responses():
    """Text (or a refusal said as text), calls and totals must come back."""
    call = ToolCall(id="t", name="f", arguments={"a": 1})
    response = Response(
        message=Message.assistant([Refusal(text="no"), call]),
        usage=Usage(input_tokens=5, output_tokens=2),
    )
    deaf = SimpleNamespace(
        encode_response=GOOD.encode_response, decode_response=lambda _: Response()
    )

    assert response_survives(GOOD, response) == []
    assert len(response_survives(deaf, response)) == 5
