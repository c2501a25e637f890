"""Replaying."""

import asyncio
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.runtime.ulid import new_ulid
from interlingua.spec.contracts import HttpRequest, Transport
from interlingua.spec.errors import ConfigurationError, NetworkError, StreamError
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.transport.cassette import RecordingTransport, ReplayTransport, differences
from support import virtual_time

KEY = "planted-key-0123456789"


def ask(body, path="/v1/x", **fields):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    url = f"https://api.example.com{path}?key={KEY}"
    return HttpRequest(url=url, headers={"x-api-key": KEY}, body=data, **fields)


async def collect(transport, request):
    async with transport.send(request) as got:
        chunks = [chunk async for chunk in got.chunks()]
        return got.status, got.headers, chunks


def record(path, *exchanges):
    async def main():
        transport = RecordingTransport(CannedTransport([a for _, a in exchanges]), path)
        for request, _ in exchanges:
            with contextlib.suppress(NetworkError, StreamError):
                await collect(transport, request)

    virtual_time.run(main())


def replay(path, *requests, **settings):
    async def main():
        transport: Transport = ReplayTransport(path, **settings)
        got = [await collect(transport, request) for request in requests]
        await transport.close()
        return got

    return asyncio.run(main())


@given(
    bodies=st.lists(st.lists(st.binary(min_size=1, max_size=20), max_size=5), max_size=4),
    status=st.sampled_from([200, 400, 429, 500]),
)
def test_round_trip(tmp_path_factory, bodies, status):
    """Status, headers and chunks of any bytes are replayed."""
    path = tmp_path_factory.mktemp("t") / "t.json"
    replies = [
        CannedReply(status=status, headers={"x-request-id": "r"}, body=tuple(body))
        for body in bodies
    ]
    requests = [ask({"n": number}) for number in range(len(bodies))]
    if not bodies:
        return
    record(path, *zip(requests, replies, strict=True))

    got = replay(path, *reversed(requests))

    assert got == [(status, {"x-request-id": "r"}, body) for body in reversed(bodies)]


def test_equal_requests_get_their_replies_in_order(tmp_path):
    """Two equal requests get two replies; a third one is an error."""
    path = tmp_path / "t.json"
    record(path, *((ask({}), CannedReply(body=text)) for text in (b"1", b"2")))

    assert [got[2] for got in replay(path, ask({}), ask({}))] == [[b"1"], [b"2"]]
    with pytest.raises(ConfigurationError, match="recorded 2 times"):
        replay(path, ask({}), ask({}), ask({}))


def test_repeat(tmp_path):
    """With `repeat`, the last reply to equal requests is given again and again."""
    replies = [CannedReply(body=b"1"), CannedReply(body=b"2")]
    record(tmp_path / "t.json", *((ask({"a": 1}), reply) for reply in replies))

    got = replay(tmp_path / "t.json", *[ask({"a": 1})] * 4, repeat=True)

    assert [b"".join(chunks) for _, _, chunks in got] == [b"1", b"2", b"2", b"2"]
    with pytest.raises(ConfigurationError, match="has no reply"):
        replay(tmp_path / "t.json", ask({"a": 2}), repeat=True)


def test_boundaries_of_forms_are_not_compared(tmp_path):
    """HTTP libraries choose the boundary of a form by chance; its fields are compared."""

    def form(boundary, value):
        body = f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n{value}\r\n'
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return HttpRequest(
            url="https://api.example.com/v1/x",
            headers=headers,
            body=f"{body}--{boundary}--\r\n".encode(),
        )

    path = tmp_path / "t.json"
    record(path, (form("b81a", "one"), CannedReply(body=b"1")))

    assert [chunks for _, _, chunks in replay(path, form("77f0", "one"))] == [[b"1"]]
    with pytest.raises(ConfigurationError, match="differs at"):
        replay(path, form("77f0", "two"))


def test_ignored_differences(tmp_path):
    """Host, key, order of fields, white space and ignored fields are not compared."""
    path = tmp_path / "t.json"
    record(path, (ask({"a": 1, "b": f"x {KEY}", "user": "1"}), CannedReply(body=b"ok")))

    other = HttpRequest(
        url="http://localhost:1/v1/x?key=another-key-987",
        headers={"x-api-key": KEY},
        body=b'{"b" : "x planted-key-0123456789","a":1, "user": "2"}',
    )

    assert replay(path, other, ignore=["user"])[0][2] == [b"ok"]
    with pytest.raises(ConfigurationError, match=r"body\.user"):
        replay(path, other)


@pytest.mark.parametrize(
    ("request_", "complaint"),
    [
        (ask({"a": [1, {"b": 2}]}, method="GET"), "GET /v1/x; it has replies for: POST /v1/x"),
        (ask({"a": [1, {"b": 2}]}, path="/v2"), "POST /v2; it has replies for: POST /v1/x"),
        (ask({"a": [1, {"b": 3}]}), r"body\.a\[1\]\.b: recorded 2, now 3"),
        (ask({"a": [1]}), r"body\.a: recorded 2 items, now 1"),
        (ask({}), r"body\.a: recorded \[1, {'b': 2}\], now absent"),
        (ask({"a": [1, {"b": 2}], "c": KEY}), r"body\.c: not recorded, now '\*+'"),
        (ask(b"not json"), "body"),
    ],
)
def test_no_match_says_what_differs(tmp_path, request_, complaint):
    """The error shows the most similar recording and its differences, without keys."""
    path = tmp_path / "t.json"
    record(path, (ask({"a": [1, {"b": 2}]}), CannedReply()))

    with pytest.raises(ConfigurationError, match=complaint) as caught:
        replay(path, request_)
    assert KEY not in str(caught.value)
    assert "t.json" in str(caught.value)


def test_only_a_few_differences_are_shown(tmp_path):
    """A long list of differences is cut."""
    path = tmp_path / "t.json"
    record(path, (ask({str(n): n for n in range(20)}), CannedReply()))

    with pytest.raises(ConfigurationError, match="and 15 more"):
        replay(path, ask({str(n): -n - 1 for n in range(20)}))


def test_failures_are_replayed(tmp_path):
    """A failed connection, and an error after the recorded chunks."""
    path = tmp_path / "t.json"
    record(
        path,
        (ask({"n": 1}), NetworkError("refused", retryable=False)),
        (ask({"n": 2}), CannedReply(body=(b"one", StreamError("cut")))),
    )

    with pytest.raises(NetworkError, match="refused") as caught:
        replay(path, ask({"n": 1}))
    assert not caught.value.retryable
    with pytest.raises(StreamError, match="cut"):
        replay(path, ask({"n": 2}))


def test_pauses(tmp_path):
    """Pauses are skipped unless a speed is given."""
    path = tmp_path / "t.json"
    record(path, (ask({}), CannedReply(body=(b"a", 20, b"b"))))

    async def timed(speed):
        loop = asyncio.get_running_loop()
        began = loop.time()
        await collect(ReplayTransport(path, speed=speed), ask({}))
        return loop.time() - began

    assert virtual_time.run(timed(1)) == pytest.approx(20)
    assert virtual_time.run(timed(4)) == pytest.approx(5)


def test_time_to_the_headers(tmp_path):
    """The time to the headers is replayed like a pause."""
    path = tmp_path / "t.json"
    record(path, (ask({}), CannedReply(body=b"a", after=20)))

    async def timed(speed):
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with ReplayTransport(path, speed=speed).send(ask({})):
            return loop.time() - began

    assert virtual_time.run(timed(1)) == pytest.approx(20)
    assert virtual_time.run(timed(4)) == pytest.approx(5)


def test_generated_ids(tmp_path):
    """Generated ids match by their order, not by their text."""

    def turn(first, second, answered):
        calls = [{"id": first}, {"id": second, "name": "call_now"}]
        return ask({"messages": [{"tool_calls": calls}, {"tool_call_id": answered}]})

    path = tmp_path / "t.json"
    made = [f"call_{new_ulid()}" for _ in range(4)]
    record(path, (turn(made[0], made[1], made[0]), CannedReply(body=b"ok")))

    assert replay(path, turn(made[2], made[3], made[2]))[0][2] == [b"ok"]
    with pytest.raises(ConfigurationError, match=r"tool_call_id: recorded 'id 1'"):
        replay(path, turn(made[2], made[3], made[3]))
    with pytest.raises(ConfigurationError, match="call_abc"):
        replay(path, turn("call_abc", made[3], "call_abc"))


def test_unused(tmp_path):
    """`unused` is the number of exchanges that were not replayed."""
    path = tmp_path / "t.json"
    record(path, (ask({"n": 1}), CannedReply()), (ask({"n": 2}), CannedReply()))

    async def main():
        transport = ReplayTransport(path)
        counts = [transport.unused]
        await collect(transport, ask({"n": 2}))
        return [*counts, transport.unused]

    assert asyncio.run(main()) == [2, 1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)


@given(JSON, JSON)
def test_differences(one, other):
    """There are none exactly if two values are equal."""
    assert (list(differences(one, other)) == []) is (one == other)
