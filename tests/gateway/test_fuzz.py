"""Damaged requests on every path: only the client's own errors, and the gateway goes on."""

import asyncio
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.wire.json_text import dumps, loads
from support.run_profile import examples

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
from fuzzing import gateway as fuzzing

SEEDS = fuzzing.seeds()
ODD = st.sampled_from(
    (
        *(None, True, -1, 0, 1.5, 10**40, "", "x", "\ud800", "\x00", "x" * 100_000),
        *([], {}, [None], [[[]]], {"type": 7}, {"": None}, {"\ud800": "\ud800"}, ["x"] * 1_000),
    )
)
RAW = st.sampled_from(
    (
        *(b"", b"{", b"[]", b"null", b'"x"', b"NaN", b"Infinity", b"\xff\xfe{}", b"\x00" * 50),
        *(b"[" * 5_000, b'{"a":' * 5_000, b'{"a":1}{"b":2}', "{}".encode("utf-16")),
        *(b'{"model": NaN}', b'{"model": 1e999}', b'{"model": "\xff"}', b'{"model": "\\ud800"}'),
        b'{"model": "chat", "model": "chat", "messages": [], "messages": 5}',
    )
)
TYPES = st.sampled_from(
    (
        *(b"", b"text/plain", b"application/xml", b"multipart/form-data", b"\xff\xff"),
        *(b"multipart/form-data; boundary=", b"application/json; charset=utf-16", b"x" * 5_000),
    )
)
QUERIES = st.sampled_from(
    (
        *("limit=x", "limit=-1", "limit=" + "9" * 5_000, "after=", "after=%00", "pageToken=%ff"),
        *("pageSize=1e9", "&&&", "=", "%", "%ED%A0%80", "alt=json", "key=", "upload_id=%2F"),
    )
)
ENDS = st.sampled_from(("/", "//", "/..", "%2F", "%00", "%ff", ":", ":x", "x" * 10_000, "/\\", ";"))
METHODS = st.sampled_from(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"))
HEADERS = st.sampled_from(
    (
        *((b"authorization", b"Basic x"), (b"authorization", b""), (b"x-api-key", b"\xff")),
        *((b"anthropic-version", b"x"), (b"anthropic-beta", b"\x00,,"), (b"upgrade", b"websocket")),
        *((b"x-request-id", b"\xff" * 300), (b"x-goog-upload-command", b"upload")),
        *((b"x-goog-upload-offset", b"-1"), (b"x-goog-upload-offset", b"9" * 5_000)),
        *((b"content-encoding", b"gzip"), (b"content-length", b"-1"), (b"host", b"\x00")),
        *((b"x-interlingua-provider", b"openai"), (b"x-interlingua-provider", b"\xff")),
        *((b"x-forwarded-proto", b"javascript"), (b"session-id", b"\xff" * 9_000)),
    )
)


def places(value, path=()):
    """The way to every value in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, each in items:
        yield from places(each, (*path, key))


def changed(value, path, change):
    """The value with what is at the end of the path changed; removed if `change` gives `...`."""
    if not path:
        return change(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    new = changed(copy[path[0]], path[1:], change)
    if new is ...:
        del copy[path[0]]
    else:
        copy[path[0]] = new
    return copy


def nested(value):
    """The value, deep in other values."""
    for _ in range(500):
        value = {"content": [value]}
    return value


@st.composite
def damaged_bodies(draw, body):
    """A body with one value removed, doubled, replaced or nested; or other bytes."""
    try:
        value = loads(body)
    except Exception:  # noqa: BLE001 -- a form
        value = None
    if not isinstance(value, dict) or draw(st.integers(0, 5)) == 0:
        cut = draw(st.integers(0, len(body)))
        return draw(st.one_of(RAW, st.just(body[:cut]), st.just(body[:cut] + b"\xff" + body[cut:])))
    path = draw(st.sampled_from([each for each in places(value) if each] or [()]))
    odd = draw(ODD)
    kinds = (lambda _: ..., lambda _: odd, lambda old: [old, old], lambda old: [old, odd], nested)
    change = draw(st.sampled_from(kinds))
    new = changed(value, path, change)
    return b"" if new is ... else dumps(new)


@st.composite
def requests(draw):
    """A valid request with one to three damages."""
    asked = draw(st.sampled_from(SEEDS))
    kinds = st.sampled_from(("body", "query", "path", "method", "header"))
    for kind in draw(st.lists(kinds, min_size=1, max_size=3, unique=True)):
        match kind:
            case "body":
                asked = asked._replace(body=draw(damaged_bodies(asked.body)))
            case "query":
                mark = "&" if "?" in asked.path else "?"
                asked = asked._replace(path=f"{asked.path}{mark}{draw(QUERIES)}")
            case "path":
                path, mark, query = asked.path.partition("?")
                at = draw(st.one_of(st.just(len(path)), st.integers(1, len(path))))
                path = f"{path[:at]}{draw(ENDS)}{path[at:]}"
                asked = asked._replace(path=f"{path}{mark}{query}")
            case "method":
                asked = asked._replace(method=draw(METHODS))
            case _:
                name, value = draw(st.one_of(HEADERS, st.tuples(st.just(b"content-type"), TYPES)))
                kept = [each for each in asked.headers if each[0] != name]
                asked = asked._replace(headers=(*kept, (name, value)))
    return asked


@pytest.fixture(scope="module")
def gateway():
    """A gateway, and an event loop for it."""
    with asyncio.Runner() as runner:
        yield runner, fuzzing.FuzzedGateway()


def test_every_path_has_a_request():
    """So that each is damaged."""
    assert fuzzing.uncovered() == []


def test_the_requests_are_valid(gateway):
    """None fails before it is damaged, but those that name what does not exist."""
    runner, front = gateway
    statuses = {asked: runner.run(front.check(asked)).status for asked in SEEDS}
    refused = [asked.path for asked, status in statuses.items() if status in (401, 405, 413)]

    assert refused == []
    assert sum(status == 200 for status in statuses.values()) > len(SEEDS) / 3


def test_damaged_requests(gateway):
    """The reply is an answer or an error in the client's own form; nothing is told or left open."""
    runner, front = gateway

    @settings(max_examples=examples(3_000), deadline=None)
    @given(requests())
    def check(asked):
        runner.run(front.check(asked))

    check()
    runner.run(front.check_rest())


@pytest.mark.parametrize(
    "body", [b'{"type":"error"}', b"Traceback", b"", b'{"error":"x"}', b'{"error":{"message":""}}']
)
def test_a_wrong_error_is_noticed(body):
    """The check of error bodies can fail."""
    asked = fuzzing.Asked("POST", "/v1/messages", (), b"")
    with pytest.raises(AssertionError, match="no error of"):
        fuzzing.check_error(asked, fuzzing.Answered(400, {}, body))
