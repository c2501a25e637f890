"""Damaged cassettes: an error of ours, whatever is wrong with the file."""

import asyncio
import json
import random

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import SDKError
from interlingua.transport.cassette import FORMAT, ReplayTransport

GOOD = {
    "format": FORMAT,
    "exchanges": [
        {
            "request": {"method": "POST", "url": "https://h/p", "headers": {}, "json": {"a": 1}},
            "reply": {
                "after": 0.0,
                "status": 200,
                "headers": {"a": "b"},
                "chunks": [{"after": 0.0, "json": {"x": 1}}, {"base64": "aGk="}, {"text": "b"}],
            },
            "error": {"type": "NetworkError", "message": "m", "retryable": True, "phase": "read"},
        }
    ],
}
ABSENT = object()
VALUES = [ABSENT, None, 0, -1, 0.5, "x", "\ud800", [], {}, [1], {"a": 1}, True, "2" * 5000]


def paths(value, path=()):
    yield path
    items = value if isinstance(value, dict) else {}
    if isinstance(value, list):
        items = dict(enumerate(value))
    for key, inner in items.items():
        yield from paths(inner, (*path, key))


def changed(path, new):
    document = json.loads(json.dumps(GOOD))
    target = document
    for key in path[:-1]:
        target = target[key]
    if new is ABSENT:
        del target[path[-1]]
    else:
        target[path[-1]] = new
    return document


def play(path):
    """Load it and read the reply; only errors of ours may come."""

    async def work():
        transport = ReplayTransport(path, speed=1000.0)
        request = HttpRequest(url="https://h/p", headers={}, body=b'{"a":1}')
        async with transport.send(request) as reply:
            async for _ in reply.chunks():
                pass

    try:
        asyncio.run(work())
    except SDKError as error:
        return error
    return None


@pytest.mark.parametrize("path", [path for path in paths(GOOD) if path], ids=str)
def test_a_field_that_is_missing_or_of_another_type_is_our_error(path, tmp_path):
    """Each field missing, or with a value of each other kind."""
    file = tmp_path / "tape.json"
    for new in VALUES:
        file.write_text(json.dumps(changed(path, new)))
        play(file)


def test_cut_and_flipped_bytes_are_our_error(tmp_path):
    """The file cut at every place, and with any byte changed."""
    file, text, chance = tmp_path / "tape.json", json.dumps(GOOD).encode(), random.Random(1)
    for cut in range(0, len(text), 11):
        file.write_bytes(text[:cut])
        assert play(file) is not None
    for _ in range(100):
        data = bytearray(text)
        data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(bytes(data))
        play(file)
