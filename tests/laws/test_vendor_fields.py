"""The keys that a vendor always sends are in what a server of ours sends, whoever answered."""

import json
from collections import Counter, defaultdict

import pytest

from interlingua import dialects
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from support import corpus

pytestmark = pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")

ALWAYS = 0.9
"""The share of recordings that must have a key: the oldest lack what came later."""
ENOUGH = 20  # recordings with an object at this place
VENDORS = {
    "openai_responses": "openai",
    "openai_chat": "openai",
    "anthropic_messages": "anthropic",
    "gemini_generate": "google",
}
NOT_SENT = {
    "obfuscation": "padding that hides the lengths of pieces; a client can switch it off",
}
FREE = ("parameters", "schema", "args", "input", "arguments", "metadata")
"""Objects whose keys the caller chooses."""
LATE = ("gemini_generate", "chunk", "usageMetadata")
"""Other APIs tell their counts at the end, so only the last chunk of a stream has them."""

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}
ANSWER = Response(
    id="made-1",
    model="model-1",
    created_at=1_770_000_000.5,
    message=Message(
        role="assistant",
        content=(
            Thinking(text="I must look."),
            Text(text="I look."),
            ToolCall(id="call_1", name="get_weather", arguments={"city": "Oslo"}),
        ),
    ),
    finish_reason=FinishReason(reason="tool_calls"),
    usage=Usage(input_tokens=7, output_tokens=5),
)


def objects(value, place):
    """Every object in a JSON value with its place; an item of a list has its type as its place."""
    if isinstance(value, dict):
        yield place, value
        for name, inner in value.items():
            if name not in FREE:
                yield from objects(inner, (*place, name))
    elif isinstance(value, list):
        for item in value:
            kind = item.get("type", "") if isinstance(item, dict) else ""
            yield from objects(item, (*place, f"[{kind}]"))


def wire_objects(text):
    """The JSON of each event of a stream."""
    for line in text.splitlines():
        data = line.removeprefix("data:").strip()
        if line.startswith("data:") and data.startswith("{"):
            yield json.loads(data)


def stream_place(event):
    return (event.get("type") or "chunk",)


def recorded(dialect):
    """How many objects were recorded at each place, and how often each key was there."""
    totals, keys = Counter(), defaultdict(Counter)
    for record in corpus.records(dialect):
        if record["host_provider"] != VENDORS[dialect] or record["status"] != 200:
            continue
        roots = []
        if isinstance(record["response_body"], dict):
            roots = [(("whole",), record["response_body"])]
        elif record.get("response_format") == "sse":
            events = wire_objects(record["response_text"])
            roots = [(stream_place(event), event) for event in events]
        for root, body in roots:
            for place, value in objects(body, root):
                totals[place] += 1
                keys[place].update(value.keys())
    return totals, keys


def made(dialect):
    """Every object that a server sends, with its place, whole and streamed."""
    module = dialects.get(dialect)
    options = {"stream_options": {"include_usage": True}} if dialect == "openai_chat" else {}
    asked = Request(
        model="model-1", messages="Hi", tools=[TOOL], provider_options={dialect: options}
    )
    yield from objects(module.encode_response(ANSWER, asked), ("whole",))
    encoder = module.stream_encoder(asked)
    frames = [frame for event in events_from_response(ANSWER) for frame in encoder.feed(event)]
    for frame in [*frames, *encoder.finish()]:
        if frame.data.startswith("{"):
            event = json.loads(frame.data)
            yield from objects(event, stream_place(event))


@pytest.mark.parametrize("dialect", VENDORS)
def test_what_a_vendor_always_sends(dialect):
    """At every place of an answer and of its events, but for what is listed with a reason."""
    totals, keys = recorded(dialect)
    missing, compared = set(), 0
    for place, value in made(dialect):
        if totals[place] < ENOUGH:
            continue
        compared += 1
        for name, count in keys[place].items():
            is_known = name in value or name in NOT_SENT or (dialect, *place, name) == LATE
            if count / totals[place] >= ALWAYS and not is_known:
                missing.add((*place, name))

    assert sorted(missing) == []
    assert compared > 3


def test_the_exceptions_are_needed():
    """Each key that is not sent is one that a vendor always sends somewhere."""
    always = {
        name
        for dialect in VENDORS
        for totals, keys in [recorded(dialect)]
        for place, counts in keys.items()
        for name, count in counts.items()
        if totals[place] >= ENOUGH and count / totals[place] >= ALWAYS
    }

    assert set(NOT_SENT) <= always
