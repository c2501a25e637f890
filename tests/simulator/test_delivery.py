"""How a reply is sent: pace, faults, and clients that leave."""

import asyncio
import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua import SDKError, dialects
from interlingua.simulator import (
    SimulatedCutError,
    SimulatedResetError,
    Simulator,
    cut,
    latency,
    reset,
    stall,
    text,
)
from support.run_profile import examples
from support.simulator_calls import (
    BASE,
    ask,
    call_async,
    decode_stream,
    encode,
    hello,
    read,
    read_stream,
)

DIALECTS = dialects.names()
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
PATH = "/v1/chat/completions"


SPARE = {  # bytes at the end that may be missing without anything being lost
    "openai_responses": 2,  # the last two line ends
    "openai_chat": len("data: [DONE]\n\n") + 2,
    "anthropic_messages": 2,
    "gemini_generate": 2,
    "bedrock_converse": 0,  # a message has a length and a checksum
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_cut_cleanly_at_every_byte_of_a_stream(dialect):
    """Exactly so many bytes come, and no cut passes for a whole answer."""
    turn = text("Wö")
    wire = encode(dialect, hello(), stream=True)
    whole = ask(Simulator(turn), dialect, hello(), stream=True).body

    async def replies():
        for place in range(len(whole) + 1):
            app = Simulator(turn + cut(place, clean=True))
            yield await call_async(app, BASE.get(dialect, "") + wire.path, wire.body, wire.headers)

    async def sweep():
        return [reply async for reply in replies()]

    taken = []
    for place, reply in enumerate(asyncio.run(sweep())):
        assert (reply.error, reply.body) == (None, whole[:place])
        with contextlib.suppress(SDKError):
            read_stream(dialect, reply.chunks)
            taken.append(place)

    assert (taken[0], taken[-1]) == (len(whole) - SPARE[dialect], len(whole))


@settings(max_examples=examples(60))
@given(
    st.sampled_from(DIALECTS), st.integers(0, 3000), st.none() | st.integers(1, 70), st.booleans()
)
def test_a_connection_breaks_after_exactly_so_many_bytes(dialect, place, size, is_reset):
    """However the body is written; beyond its end nothing happens."""
    turn = text("one two three") + latency(write_bytes=size)
    whole = ask(Simulator(turn), dialect, hello(), stream=True).body
    fault = reset(place) if is_reset else cut(place)
    reply = ask(Simulator(turn + fault), dialect, hello(), stream=True)

    assert reply.status == 200
    assert reply.body == whole[:place]
    kind = SimulatedResetError if is_reset else SimulatedCutError
    assert type(reply.error) is (kind if place <= len(whole) else type(None))


@pytest.mark.parametrize("fault", [cut(), reset(), cut(clean=True)])
def test_a_connection_breaks_before_the_head(fault):
    """Then there is no reply at all."""
    simulator = Simulator(text("hi") + fault)
    reply = ask(simulator, "openai_chat", hello())

    assert (reply.status, reply.body) == (0, b"")
    assert isinstance(reply.error, ConnectionError)
    assert simulator.script.received[0].over.is_set()


def test_a_whole_body_is_cut():
    """A clean cut has the length it tells; the other tells the length it should have had."""
    whole = ask(Simulator(text("hi")), "openai_chat", hello())
    clean = ask(Simulator(text("hi") + cut(10, clean=True)), "openai_chat", hello())
    broken = ask(Simulator(text("hi") + cut(10)), "openai_chat", hello())

    assert whole.headers["content-length"] == str(len(whole.body))
    assert (clean.body, clean.headers["content-length"]) == (whole.body[:10], "10")
    assert (broken.body, broken.headers["content-length"]) == (
        whole.body[:10],
        whole.headers["content-length"],
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_size_of_writes_does_not_show(dialect):
    """One byte at a time is the same stream."""
    turn = text("some words, ☀") + latency(write_bytes=1)
    reply = ask(Simulator(turn), dialect, hello(), stream=True)

    assert all(len(chunk) <= 1 for chunk in reply.chunks)
    assert read(dialect, reply, stream=True).text == "some words, ☀"


def test_latency_is_waited():
    """Before the head and between writes."""
    turn = text("a b") + latency(first=0.02, between=0.01)
    begun = time.monotonic()
    reply = ask(Simulator(turn), "openai_chat", hello(), stream=True)

    assert time.monotonic() - begun >= 0.02 + 0.01 * (len(reply.chunks) - 2)
    assert decode_stream("openai_chat", reply.chunks)


@pytest.mark.parametrize("place", [None, 0, 50])
def test_a_stall_may_end(place):
    """Then the rest comes, and nothing is missing."""
    reply = ask(
        Simulator(text("hello") + stall(place, seconds=0.01)), "openai_chat", hello(), stream=True
    )

    assert read("openai_chat", reply, stream=True).text == "hello"


@pytest.mark.parametrize("place", [None, 0, 50])
def test_a_client_that_leaves_is_noticed(place):
    """In the middle of a stall, at once; and the exchange is over."""
    simulator = Simulator(text("hello") + stall(place))

    async def leave():
        gone = asyncio.Event()
        asking = asyncio.ensure_future(call_async(simulator, PATH, BODY, gone=gone))
        for _ in range(50):  # until it stands at the stall
            await asyncio.sleep(0)
        before = time.monotonic()
        gone.set()
        return before, await asking

    before, reply = asyncio.run(leave())
    exchange = simulator.script.received[0]
    assert len(reply.body) == (place or 0) == exchange.sent_bytes
    assert exchange.disconnected >= before
    assert exchange.ended is not None
    assert exchange.over.is_set()


def test_a_client_that_stays_is_not_said_to_have_left():
    """`disconnected` is None after a good answer."""
    simulator = Simulator(text("hello"))
    ask(simulator, "openai_chat", hello(), stream=True)

    assert simulator.script.received[0].disconnected is None


def test_a_server_may_say_that_the_client_is_gone():
    """By an error when it is told to send, as the ASGI specification has it."""
    simulator = Simulator(text("hello"))

    waiting = [b""]
    sent = []

    async def receive():
        if waiting:
            return {"type": "http.request", "body": waiting.pop()}
        return await asyncio.Event().wait()

    async def send(message):
        sent.append(message)
        raise BrokenPipeError

    scope = {"type": "http", "method": "GET", "path": "/v1/models", "headers": []}
    asyncio.run(simulator(scope, receive, send))

    assert simulator.script.received[0].disconnected is not None
    assert len(sent) == 1
