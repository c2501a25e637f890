"""A turn in each dialect: whole and streamed it says the same."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua import Request, dialects
from interlingua.conformance.laws import decode_frames
from interlingua.conformance.strategies import json_objects, names, words
from interlingua.errors import ServerError, StreamError
from interlingua.serving.application import frames_reply, read_request
from interlingua.simulator import (
    Simulator,
    Turn,
    duplicate,
    error_event,
    finish,
    malformed,
    pieces,
    refusal,
    text,
    thinking,
    tool_call,
    usage,
)
from interlingua.simulator.answer import (
    PrefixCache,
    make_frames,
    make_response,
)
from interlingua.wire.json_array import JSONArrayDecoder
from interlingua.wire.sse import encode_sse
from support.run_profile import examples
from support.simulator_calls import ask, decode_stream, hello, read

DIALECTS = dialects.names()
FAILING = {
    "openai_responses": 2,
    "openai_chat": 1,
    "anthropic_messages": 1,
    "gemini_generate": 1,
    "bedrock_converse": 1,
}
"""How many frames tell an error."""

said = st.lists(
    st.one_of(words.map(text), st.builds(tool_call, names, json_objects)), min_size=1, max_size=4
).map(lambda turns: sum(turns, Turn()))


def frames_of(dialect, turn):
    request = hello()
    response = make_response(turn, request, dialect, 1, PrefixCache())
    return make_frames(turn, response, request, dialect, 1)


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=examples(40))
@given(turn=said, size=st.none() | st.integers(1, 5))
def test_a_turn_is_read_as_it_was_written(dialect, turn, size):
    """Whole and streamed, in pieces of any size: the same text, calls and usage."""
    if size is not None:
        turn += pieces(size)
    turn += usage(30, 20, cache_read=10)
    whole = read(dialect, ask(Simulator(turn), dialect, hello()))
    streamed = read(dialect, ask(Simulator(turn), dialect, hello(), stream=True), stream=True)

    expected = [(part.name, part.arguments) for part in turn.parts if part.kind == "tool_call"]
    for response in (whole, streamed):
        assert response.text == "".join(p.text for p in turn.parts if p.kind == "text")
        assert [(call.name, call.arguments) for call in response.tool_calls] == expected
        assert len({call.id for call in response.tool_calls}) == len(expected)
        assert (response.usage.input_tokens, response.usage.output_tokens) == (30, 20)
        assert response.usage.cache_read_tokens == 10
        assert response.model == ("m" if dialects.get(dialect).FACTS.names_model else "")
        assert response.finish_reason.reason == ("tool_calls" if expected else "stop")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_thinking_comes_back_signed(dialect):
    """What the maker wants back is where a client looks for it."""
    request = hello(include_thinking=True, thinking_budget=2000)
    response = read(dialect, ask(Simulator(thinking("hm") + text("x")), dialect, request))
    part = response.message.content[0]

    assert (part.kind, part.text, dialect in part.extra) == ("thinking", "hm", True)
    mark = {"openai_responses": part.data, "openai_chat": "c2ltdWxhdGVk"}
    assert mark.get(dialect, part.signature) == "c2ltdWxhdGVk"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_finish_reason_can_be_given(dialect):
    """Instead of the one that follows from the parts."""
    turn = text("and so o") + finish("length")

    assert read(dialect, ask(Simulator(turn), dialect, hello())).finish_reason.reason == "length"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_is_read(dialect):
    """Its words are not lost in any dialect."""
    response = read(dialect, ask(Simulator(refusal("No.")), dialect, hello()))

    assert [part.text for part in response.message.content] == ["No."]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_event_comes_in_the_middle_of_a_part(dialect):
    """What was said before it is not closed, as when a real stream fails."""
    turn = text("one two three") + error_event(529, "busy")
    frames = frames_of(dialect, turn)
    decoder = dialects.get(dialect).stream_decoder()
    events = [event for frame in frames[: -FAILING[dialect]] for event in decoder.feed(frame)]
    with pytest.raises(ServerError, match="busy"):
        decoder.feed(frames[-FAILING[dialect]])

    kinds = [event.type for event in events]
    assert "".join(e.delta for e in events if e.type == "text_delta") == "one two three"
    assert "text_end" not in kinds
    assert "finish" not in kinds


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_event_may_come_first(dialect):
    """Before a word was said."""
    with pytest.raises(ServerError, match="busy"):
        decode_frames(dialects.get(dialect), frames_of(dialect, error_event(503, "busy")))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_event_is_malformed(dialect):
    """The one that was named, counted from either end; a client cannot read it."""
    plain = frames_of(dialect, text("one two three"))
    for number in (0, 2, -2):
        broken = frames_of(dialect, text("one two three") + malformed(number))

        assert [a == b for a, b in zip(plain, broken, strict=True)].count(False) == 1
        assert broken[number] != plain[number]
        with pytest.raises(json.JSONDecodeError):
            json.loads(broken[number].data)
        with pytest.raises(StreamError):
            decode_stream(dialect, map(encode_sse, broken))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_event_comes_twice(dialect):
    """Right after itself."""
    plain = frames_of(dialect, text("one two three"))
    for number in (0, 2, -1):
        place = number % len(plain)
        twice = frames_of(dialect, text("one two three") + duplicate(number))

        assert twice == [*plain[:place], plain[place], *plain[place:]]


@pytest.mark.parametrize("fault", [malformed(99), duplicate(99), malformed(-99), duplicate(-99)])
def test_an_event_that_never_comes_cannot_go_wrong(fault):
    """A fault beyond the stream changes nothing."""
    assert frames_of("openai_chat", text("a") + fault) == frames_of("openai_chat", text("a"))


def test_only_anthropic_has_pings():
    """One, after the first part has begun."""
    names_of = [frame.event for frame in frames_of("anthropic_messages", text("a b"))]

    assert names_of[:3] == ["message_start", "content_block_start", "ping"]
    for dialect in set(DIALECTS) - {"anthropic_messages"}:
        assert "ping" not in str(frames_of(dialect, text("a b")))


def test_an_array_holds_the_same_objects():
    """Gemini's other framing: each frame an item, and the whole is JSON."""
    frames = frames_of("gemini_generate", text("a b c"))
    body = array_of(frames)
    decoder = JSONArrayDecoder()

    assert json.loads(body) == [json.loads(frame.data) for frame in frames]
    assert [frame.data for frame in decoder.feed(body)] == [frame.data for frame in frames]
    assert array_of([]) == b"[]"


def array_of(frames):
    """The body of a reply to a client that asks for one array."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1beta/models/m:streamGenerateContent",
        "query_string": b"",
        "headers": [],
    }
    reply = frames_reply(read_request(scope, b"{}"), frames)

    async def join():
        return b"".join([chunk async for chunk in reply.chunks])

    return asyncio.run(join())


def test_ids_are_the_vendors():
    """Of responses and of calls; one that was given stays."""
    turn = tool_call("f") + tool_call("f", id="mine")
    found = {}
    for dialect in DIALECTS:
        response = make_response(turn, Request(model="m"), dialect, 7, PrefixCache())
        found[dialect] = (response.id, *(call.id for call in response.tool_calls))

    assert found == {
        "openai_responses": ("resp_simulated000007", "call_simulated000700", "mine"),
        "openai_chat": ("chatcmpl-simulated000007", "call_simulated000700", "mine"),
        "anthropic_messages": ("msg_simulated000007", "toolu_simulated000700", "mine"),
        "gemini_generate": ("simulated000007", "simulated000700", "mine"),
        "bedrock_converse": ("simulated000007", "tooluse_simulated000700", "mine"),
    }
