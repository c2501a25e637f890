"""Damaged recordings: each is used as far as it makes sense, or refused with a clear error."""

import asyncio
import copy
import json
import random

import pytest

from interlingua import Request
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.transport import CannedReply, CannedTransport, RecordingTransport, ReplayTransport
from support.http_calls import call, collect, read

EVENTS = {"content-type": "text/event-stream"}


async def record(path):
    """Two exchanges: a whole reply, and a stream in pieces that is not text."""
    inner = CannedTransport(
        [
            CannedReply(body=b'{"a": 1}', headers={"content-type": "application/json"}),
            CannedReply(body=(b"data: 1\n\n", b"\xff\x00"), headers=EVENTS),
        ]
    )
    transport = RecordingTransport(inner, path)
    await read(transport, call("http://a.test/whole"))
    await collect(transport, call("http://a.test/stream"))
    await transport.close()


@pytest.fixture(scope="module")
def tape(tmp_path_factory):
    """A whole cassette."""
    path = tmp_path_factory.mktemp("tape") / "tape.json"
    asyncio.run(record(path))
    return path.read_bytes()


def replay(path):
    """What the two calls give; an error of ours counts as a result."""

    async def main():
        results = []
        try:
            transport = ReplayTransport(path, speed=1e9)
        except ConfigurationError as error:
            assert "tape.json" in error.message
            return [error]
        for action, name in ((read, "whole"), (collect, "stream")):
            try:
                results.append(await action(transport, call(f"http://a.test/{name}")))
            except SDKError as error:
                results.append(error)
        return results

    return asyncio.run(main())


def test_a_whole_cassette(tape, tmp_path):
    """The measure: an undamaged one gives the replies."""
    path = tmp_path / "tape.json"
    path.write_bytes(tape)

    whole, streamed = replay(path)
    assert (whole[2], streamed) == (b'{"a": 1}', b"data: 1\n\n\xff\x00")


def test_a_cassette_that_is_cut_is_refused_by_its_name(tape, tmp_path):
    """At any byte; the error names the file."""
    path = tmp_path / "tape.json"
    for size in range(0, len(tape) - 2, 7):
        path.write_bytes(tape[:size])
        (error,) = replay(path)
        assert isinstance(error, ConfigurationError)


@pytest.mark.parametrize("seed", range(4))
def test_a_cassette_with_wrong_bytes_raises_only_our_errors(tape, tmp_path, seed):
    """Nothing but our own errors escapes."""
    source, path = random.Random(seed), tmp_path / "tape.json"
    for _ in range(60):
        damaged = bytearray(tape)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        path.write_bytes(damaged)
        replay(path)


ODD = (None, 5, -1.5, "x", "", [], {}, True, [[]], [None], 10**40, "\ud83d", {"a": {"b": []}})


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_cassette_with_odd_values_raises_only_our_errors(tape, tmp_path, odd):
    """Each value in it, replaced by something else or removed."""
    path = tmp_path / "tape.json"
    whole = json.loads(tape)
    for place in list(places(whole)):
        damaged = copy.deepcopy(whole)
        *before, last = place
        node = damaged
        for key in before:
            node = node[key]
        node[last] = odd
        path.write_text(json.dumps(damaged))
        replay(path)
        if isinstance(node, dict):
            del node[last]
            path.write_text(json.dumps(damaged))
            replay(path)


def places(value, path=()):
    """The path of each value in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def test_a_cassette_that_is_nested_too_deep_is_refused(tape, tmp_path):
    """Nesting is limited."""
    path = tmp_path / "tape.json"
    path.write_bytes(tape.replace(b'"exchanges": [', b'"exchanges": ' + b"[" * 100_000))

    (error,) = replay(path)
    assert isinstance(error, ConfigurationError)


def test_a_call_that_a_damaged_cassette_lacks_says_so(tape, tmp_path):
    """A call that was not recorded says so."""
    path = tmp_path / "tape.json"
    path.write_bytes(tape)
    transport = ReplayTransport(path)
    adapter = HttpAdapter("openai_compatible", base_url="http://a.test", transport=transport)

    with pytest.raises(ConfigurationError, match=r"tape\.json"):
        asyncio.run(adapter.complete(Request(model="m", messages="Hi")))
