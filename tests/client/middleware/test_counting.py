"""Layers that only count: what they are told, in which order, in both modes."""

import asyncio

import pytest

from interlingua import Client, Message, Request, Response, Usage
from interlingua.client.middleware.counting import Counting
from interlingua.spec.errors import RateLimitError, ServerError
from interlingua.spec.response import FinishReason, RateLimitInfo
from interlingua.streams.accumulate import events_from_response

LIMIT = RateLimitInfo(requests_remaining=3)
ANSWER = Response(
    message=Message.assistant("Hello."),
    finish_reason=FinishReason(reason="stop"),
    usage=Usage(input_tokens=3, output_tokens=2),
    rate_limit=LIMIT,
)


class Answering:
    """Answers, or fails."""

    name = "openai"

    def __init__(self, error=None):
        self.error = error

    async def complete(self, _):
        if self.error is not None:
            raise self.error
        return ANSWER

    async def stream(self, _):
        if self.error is not None:
            raise self.error
        for event in events_from_response(ANSWER):
            yield event


class Noting(Counting):
    """Notes what it is told; it may wait, refuse, or fail at the end."""

    def __init__(self, name, notes, *, waits=False, refusal=None, failure=None):
        self.name, self.notes, self.waits = name, notes, waits
        self.refusal, self.failure = refusal, failure

    async def begin(self, *_):
        if self.waits:
            await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        self.notes.append(f"begin {self.name}")
        return self.name

    def learn(self, token, limit):
        assert token == self.name
        self.notes.append(f"learn {self.name} {limit.requests_remaining}")

    async def end(self, token, usage, _, error):
        assert token == self.name
        self.notes.append(
            f"end {self.name} {usage and usage.output_tokens} {getattr(error, 'message', None)}"
        )
        if self.waits or self.failure:
            await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure


def call(way, layers, error=None):
    """The answer of a client with these layers around its calls."""
    client = Client({"openai": Answering(error)}, middleware=layers)

    async def main():
        request = Request(model="gpt-5.2", messages="Hi.")
        if way == "complete":
            return await client.complete(request)
        return [event async for event in client.stream(request)][-1].response

    return asyncio.run(main())


@pytest.fixture(params=["complete", "stream"])
def way(request):
    return request.param


@pytest.mark.parametrize("waits", [False, True])
def test_the_first_layer_is_the_outermost(way, waits):
    """It begins first and ends last, and all are told the usage and the limits of the provider."""
    notes = []
    layers = [Noting("a", notes, waits=waits), Noting("b", notes)]

    assert call(way, layers).text == "Hello."

    assert [note for note in notes if not note.startswith("learn")] == [
        "begin a",
        "begin b",
        "end b 2 None",
        "end a 2 None",
    ]
    if way == "complete":  # the events of this test have no limits
        assert {"learn a 3", "learn b 3"} < set(notes)


def test_an_error_ends_all_layers(way):
    """With the error of the call."""
    notes, error = [], ServerError("broken")

    with pytest.raises(ServerError):
        call(way, [Noting("a", notes), Noting("b", notes)], error)

    assert notes[2:] == ["end b None broken", "end a None broken"]


def test_a_layer_that_refuses_a_call_is_not_ended(way):
    """The layers around it are, and nothing is sent."""
    notes, refusal = [], RateLimitError("full", retryable=False)

    with pytest.raises(RateLimitError):
        call(way, [Noting("a", notes), Noting("b", notes, refusal=refusal)])

    assert notes == ["begin a", "end a None full"]


def test_a_layer_that_cannot_end_does_not_keep_the_others_from_it(way):
    """They are told its error, or in a stream the usage of the answer that was delivered."""
    notes, failure = [], ServerError("lost")

    with pytest.raises(ServerError, match="lost"):
        call(way, [Noting("a", notes), Noting("b", notes, failure=failure)])

    end = "end a None lost" if way == "complete" else "end a 2 None"
    assert [note for note in notes if note.startswith("end a")] == [end]


def test_a_stream_is_passed_on_as_it_is():
    """No event is changed, and none is added."""
    client = Client({"openai": Answering()}, middleware=[Noting("a", [])])
    bare = Client({"openai": Answering()})

    async def read(client):
        return [event async for event in client.stream(Request(model="m", messages="Hi."))]

    events, others = asyncio.run(read(client)), asyncio.run(read(bare))
    assert events[:-1] == others[:-1]
    assert events[-1].finish_reason == others[-1].finish_reason


def test_a_partial_answer_of_an_error_is_kept():
    """A layer that only counts hides nothing, so what the adapter knows stays on its error."""

    async def other(request, call_next):
        return await call_next(request)

    for middleware, is_kept in (([Noting("a", [])], True), ([other], False)):
        error = ServerError("down", partial=ANSWER)
        client = Client({"openai": Answering(error)}, middleware=middleware)
        with pytest.raises(ServerError):
            asyncio.run(client.complete(Request(model="openai:m", messages="Hi.")))
        assert (error.partial is not None) is is_kept
