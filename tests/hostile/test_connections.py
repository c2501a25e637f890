"""Pooled connections: what a server does to one between two calls costs no call."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from interlingua import Client, Request
from interlingua.events import CallCompleted
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.rows import find_provider
from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import NetworkError
from support.http_calls import call, collect, read
from support.servers import CHUNKED, LAST, Server, answering, piece, reply
from support.simulated import settled

ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "whole"},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
DELTA = {
    "id": "c",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": "streamed"}, "finish_reason": "stop"}],
}
WHOLE = reply(json.dumps(ANSWER).encode(), headers=("content-type: application/json",))
STREAM = (
    CHUNKED + piece(f"data: {json.dumps(DELTA)}\n\n".encode()) + piece(b"data: [DONE]\n\n") + LAST
)


def run(transport_type, work, **settings):
    """Run `work(transport)` in a loop of its own."""

    async def main():
        transport = transport_type(**settings)
        try:
            return await work(transport)
        finally:
            await transport.close()

    return asyncio.run(main())


async def close_after_each_reply(connection):
    """As llama.cpp does after a stream: without `connection: close`."""
    request = await connection.read_request()
    if request is not None:
        await connection.send(STREAM if b'"stream":true' in request.body else WHOLE)
        connection.writer.close()


def test_a_server_that_closes_after_each_reply_costs_no_call(transport_type):
    """100 streams, each followed by a whole call, give 200 answers (field bug 105)."""

    async def work(transport):
        adapter = HttpAdapter("openai_compatible", base_url=server.url, transport=transport)
        texts = []
        for _ in range(100):
            request = Request(model="m", messages="Hi")
            events = [event async for event in adapter.stream(request)]
            texts += [event.delta for event in events if event.type == "text_delta"]
            texts.append((await adapter.complete(request)).text)
        return texts

    with Server(close_after_each_reply) as server:
        assert run(transport_type, work) == ["streamed", "whole"] * 100


def numbered(*after):
    """A script that numbers its replies on one connection, each followed by `after`."""

    async def script(connection):
        number = 0
        while (request := await connection.read_request()) is not None:
            number += 1
            body = b"%s %d" % (request.body, number)
            head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
            first, *later = after
            # the head goes first, so that the reader already waits for the body
            await connection.send(head, body + first, *later)
            connection.replies += 1

    return script


async def all_sent(server, count):
    """Wait until the server has sent all that follows its replies, and the loop has seen it."""
    await settled(lambda: sum(each.replies for each in server.connections) == count)
    await asyncio.sleep(0.01)


UNASKED = reply(b"unasked")


@pytest.mark.parametrize(
    "after",
    [
        (UNASKED,),
        (UNASKED[:20], UNASKED[20:]),
        (b"", UNASKED),
        (b"", UNASKED[:30]),
        (UNASKED[:1],),
        (UNASKED[:-1],),
    ],
    ids=[
        "same segment", "begun in the same segment", "later", "begun later", "one byte",
        "all but one byte",
    ],
)  # fmt: skip
@pytest.mark.parametrize("action", [read, collect])
def test_an_unasked_response_answers_no_call(transport_type, after, action):
    """The connection is not used again, whatever came after the reply (field bug 105)."""

    async def work(transport):
        bodies = []
        for number in range(3):
            request = HttpRequest(url=server.url, body=b"call %d" % number)
            got = await action(transport, request)
            bodies.append(got if action is collect else got[2])
            await all_sent(server, number + 1)
        return bodies

    with Server(numbered(*after)) as server:
        assert run(transport_type, work) == [b"call 0 1", b"call 1 1", b"call 2 1"]


@pytest.mark.parametrize("after", [(b"garbage",), (b"", b"garbage")], ids=["same", "later"])
def test_garbage_after_a_reply_reaches_no_call(transport_type, after):
    """
    No call gets it.

    Garbage that arrives together with a reply may spoil that reply, which is then an error.
    """

    async def work(transport):
        for number in range(5):
            request = HttpRequest(url=server.url, body=b"call %d" % number)
            try:
                assert (await read(transport, request))[2] == b"call %d 1" % number
            except NetworkError as error:
                assert error.retryable
            await all_sent(server, number + 1)

    with Server(numbered(*after)) as server:
        run(transport_type, work)

    assert all(len(connection.requests) == 1 for connection in server.connections)


def test_an_unasked_response_in_one_segment_with_its_reply_answers_no_call(transport_type):
    """The same, if the head and the body came in that segment too."""

    async def script(connection):
        request = await connection.read_request()
        if request is not None:
            await connection.send(reply(request.body) + UNASKED)
            await connection.read_request()

    async def work(transport):
        return [
            (await read(transport, HttpRequest(url=server.url, body=b"%d" % number)))[2]
            for number in range(3)
        ]

    with Server(script) as server:
        assert run(transport_type, work) == [b"0", b"1", b"2"]


def ends_on_reuse(end, *, partly=b""):
    """A script that answers the first request, and ends the connection at the second."""

    async def script(connection):
        await connection.read_request()
        await connection.send(reply(b"ok"))
        if await connection.read_request() is not None:
            if partly:
                await connection.send(partly)
            end(connection)

    return script


def close(connection):
    connection.writer.close()


def reset(connection):
    connection.reset()


@pytest.mark.parametrize("end", [close, reset])
@pytest.mark.parametrize("action", [read, collect])
def test_a_request_is_sent_again_if_a_reused_connection_ends_before_a_reply(
    transport_type, end, action
):
    """The request is sent once more, on a new connection."""
    resent = []

    async def work(transport):
        await read(transport, call(server.url))
        return await action(transport, call(server.url, on_resend=lambda: resent.append(1)))

    with Server(ends_on_reuse(end)) as server:
        got = run(transport_type, work)

    assert (got if action is collect else got[2]) == b"ok"
    assert [len(connection.requests) for connection in server.connections] == [2, 1]
    assert resent == [1]


@pytest.mark.parametrize("end", [close, reset])
def test_a_request_that_starts_a_job_is_not_sent_once_more(transport_type, end):
    """Without `may_resend`, a reused connection that ends before a reply is an error."""

    async def work(transport):
        await read(transport, call(server.url))
        with pytest.raises(NetworkError) as caught:
            await read(transport, call(server.url, may_resend=False))
        return caught.value

    with Server(ends_on_reuse(end)) as server:
        error = run(transport_type, work)

    assert error.phase is None  # it may have arrived
    assert [len(connection.requests) for connection in server.connections] == [2]


def test_a_request_is_sent_twice_at_most(transport_type):
    """Also if many pooled connections end in the same way."""

    async def script(connection):
        await connection.read_request()
        if len(server.connections) <= 5:
            while len(server.connections) < 5:  # noqa: ASYNC110 -- every call opens a connection
                await asyncio.sleep(0.001)
            await connection.send(reply(b"ok"))
            await connection.read_request()
        connection.writer.close()

    async def work(transport):
        await asyncio.gather(*(read(transport, call(server.url)) for _ in range(5)))
        with pytest.raises(NetworkError) as caught:
            await read(transport, HttpRequest(url=server.url, body=b"twice"))
        return caught.value

    with Server(script) as server:
        assert run(transport_type, work).retryable

    assert [request.body for request in server.requests].count(b"twice") == 2


@pytest.mark.parametrize("end", [close, reset])
def test_a_reply_that_began_is_not_asked_for_again(transport_type, end):
    """One byte of a reply shows that the server worked on the request."""

    async def work(transport):
        await read(transport, call(server.url))
        with pytest.raises(NetworkError):
            await read(transport, call(server.url))

    with Server(ends_on_reuse(end, partly=b"HTTP/1.1 2")) as server:
        run(transport_type, work)

    assert [len(connection.requests) for connection in server.connections] == [2]


def test_a_new_connection_that_ends_is_an_error(transport_type):
    """Only a reused connection can be out of date."""

    async def script(connection):
        await connection.read_request()
        connection.writer.close()

    async def work(transport):
        with pytest.raises(NetworkError):
            await read(transport, call(server.url))

    with Server(script) as server:
        run(transport_type, work)

    assert len(server.requests) == 1


def test_a_body_that_is_read_once_is_not_sent_again(transport_type):
    """An async generator has no second reading."""

    async def pieces():
        yield b"x"

    async def script(connection):
        await connection.read_request()
        await connection.send(reply(b"ok"))
        await connection.reader.readuntil(b"0\r\n\r\n")
        connection.writer.close()

    async def work(transport):
        await read(transport, call(server.url))
        with pytest.raises(NetworkError):
            await read(transport, HttpRequest(url=server.url, body=pieces()))

    with Server(script) as server:
        run(transport_type, work)

    assert len(server.connections) == 1


def test_the_call_event_says_that_a_request_was_sent_twice(transport_type):
    """It is not another attempt."""
    events = []

    async def script(connection):
        await connection.read_request()
        await connection.send(WHOLE)
        if await connection.read_request() is not None:
            connection.writer.close()

    async def work(transport):
        adapter = HttpAdapter("openai_compatible", base_url=server.url, transport=transport)
        client = Client({"house": adapter})
        client.subscribe(events.append)
        for _ in range(2):
            answer = await client.complete(Request(model="house:m", messages="Hi"))
            assert answer.text == "whole"
            assert len(answer.attempts) == 1

    with Server(script) as server:
        run(transport_type, work)

    ends = [event for event in events if isinstance(event, CallCompleted)]
    assert [event.resent for event in ends] == [False, True]


def test_a_row_without_keep_alive_has_a_connection_per_call(transport_type):
    """Each call has a connection of its own, and says so to the server."""
    row = replace(find_provider("openai_compatible"), keep_alive=False)

    async def work(transport):
        adapter = HttpAdapter(row, base_url=server.url, transport=transport)
        for _ in range(3):
            await adapter.complete(Request(model="m", messages="Hi"))
            await asyncio.to_thread(server.all_closed)

    with Server(answering(WHOLE)) as server:
        run(transport_type, work)

    assert [len(connection.requests) for connection in server.connections] == [1, 1, 1]
    assert all(request.headers["connection"] == "close" for request in server.requests)
