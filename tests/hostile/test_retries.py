"""What a server says about waiting."""

import asyncio
import json

import pytest

from interlingua import Client, Request, RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from support.servers import CHUNKED, LAST, Server, piece, reply

DELTA = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "ok"}}]}
ANSWER = {
    "id": "c",
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    ],
}
STREAM = CHUNKED + piece(f"data: {json.dumps(DELTA)}\n\ndata: [DONE]\n\n".encode()) + LAST
WHOLE = reply(json.dumps(ANSWER).encode(), headers=("content-type: application/json",))


@pytest.mark.parametrize(
    "header",
    [
        "retry-after: 0", "retry-after-ms: 0", "retry-after: -5", "retry-after: 0.0",
        "retry-after: Wed, 21 Oct 2015 07:28:00 GMT",
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_server_that_asks_for_no_wait_gets_the_backoff(transport_type, header, is_stream):
    """A server that says "at once" does not get all attempts at once (field bug 109)."""
    waits = []
    policy = RetryPolicy(
        base_delay=0.01, jitter=False, on_retry=lambda *said: waits.append(said[2])
    )
    busy = reply(b"{}", status="429 Too Many Requests", headers=(header,))

    async def script(connection):
        while (request := await connection.read_request()) is not None:
            answer = STREAM if b'"stream":true' in request.body else WHOLE
            await connection.send(busy if len(server.requests) < 3 else answer)

    async def main():
        transport = transport_type()
        adapter = HttpAdapter("openai_compatible", base_url=server.url, transport=transport)
        client = Client({"house": adapter})
        request = Request(model="house:m", messages="Hi")
        try:
            if not is_stream:
                return (await client.complete(request, retry=policy)).text
            events = [event async for event in client.stream(request, retry=policy)]
            return events[-1].response.text
        finally:
            await client.close()

    with Server(script) as server:
        assert asyncio.run(main()) == "ok"

    assert waits == [0.01, 0.02]
