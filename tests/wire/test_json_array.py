from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlingua.spec.contracts import Frame
from interlingua.spec.errors import StreamError
from interlingua.wire.json_array import JSONArrayDecoder
from support.patterns import LINEAR, growth

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a"\\{}[],é😀\n')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(st.sampled_from('a"\\}{')), values, max_size=3)
gaps = st.text(st.sampled_from(" \t\r\n,"), max_size=4)
cut_lists = st.lists(st.integers(0, 300), max_size=6)
PIECES = [
    b"[", b"]", b"{", b"}", b",", b"\n", b'"', b"\\", b"{}", b'{"a":1}', b'{"a":"}"}', b"x",
    b"\xef\xbb\xbf", b"\xef", "é".encode(),
]  # fmt: skip
junk = st.lists(st.sampled_from(PIECES), max_size=15).map(b"".join)


def cut(body: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(at, len(body)) for at in cuts), len(body)]
    return [body[start:end] for start, end in pairwise(edges)]


def single_bytes(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


def read(chunks: list[bytes], **options) -> tuple[list[Frame], str | None]:
    """The frames that come before the end or the failure, and the failure's message."""
    decoder = JSONArrayDecoder(**options)
    found = []
    try:
        for chunk in chunks:
            found += decoder.feed(chunk)
        found += decoder.finish()
    except StreamError as failure:
        return found, failure.message
    return found, None


@st.composite
def streams(draw):
    """Some objects, and a body that sends them."""
    sent = draw(st.lists(objects, max_size=4))
    ascii_only = draw(st.booleans())
    texts = [json.dumps(value, ensure_ascii=ascii_only, indent=draw(gaps)) for value in sent]
    body = draw(gaps) + "".join(text + draw(gaps) for text in texts)
    if draw(st.booleans()):
        body = draw(gaps) + "[" + body + "]" + draw(gaps)
    return texts, ("\ufeff" * draw(st.booleans()) + body).encode()


@given(streams(), cut_lists)
def test_every_cut_gives_the_objects(stream, cuts):
    """Objects come out as they were written, in an array or not, however the bytes are cut."""
    texts, body = stream
    expected = [Frame(data=text) for text in texts], None
    assert read([body]) == expected
    assert read(cut(body, cuts)) == expected
    assert read(single_bytes(body)) == expected


@given(junk, cut_lists, st.integers(1, 12))
@example(b'{"a":1}x', [], 12)
@example(b'{"a":1}{"a":"}"}', [], 8)
def test_failures_do_not_show_chunking(body, cuts, limit):
    """Any bytes give the same frames and then the same failure, however they are cut."""
    expected = read(single_bytes(body), max_event_bytes=limit)
    assert read([body], max_event_bytes=limit) == expected
    assert read(cut(body, cuts), max_event_bytes=limit) == expected


@given(streams(), st.data())
def test_a_cut_array_fails(stream, data):
    """A body cut before the end of its array is never a short success."""
    texts, body = stream
    if not body.rstrip(b" \t\r\n,").endswith(b"]"):
        body = b"[" + body.removeprefix("\ufeff".encode()) + b"]"
    start = body.index(b"[")
    at = data.draw(st.integers(start + 1, len(body.rstrip(b" \t\r\n,")) - 1))
    found, failure = read([body[:at]])
    assert failure is not None
    assert [frame.data for frame in found] == texts[: len(found)]


def test_geminis_array():
    """Gemini's own layout: each object is one frame, text untouched."""
    body = b'[{\n  "a": "}{\\""\n}\n,\r\n{"b": []}\n]\n'
    expected = [Frame(data='{\n  "a": "}{\\""\n}'), Frame(data='{"b": []}')]
    assert read([body]) == (expected, None)


def test_an_empty_body_and_an_empty_array_have_no_frames():
    """Whether nothing is enough is for the dialect to say."""
    assert read([]) == ([], None)
    assert read([b" [ ] "]) == ([], None)


@pytest.mark.parametrize("body", [b"[", b"[{}", b'{"a": "}', b'[{"a": 1', b"\xef\xbb"])
def test_finish_refuses_a_cut_body(body):
    """An open array or object at the end of the body is an error."""
    decoder = JSONArrayDecoder()
    decoder.feed(body)
    with pytest.raises(StreamError, match="stream ended"):
        decoder.finish()


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"]", b"[[{}]]", b'"a"'])
def test_other_things_than_objects_fail(body):
    """What is no object is refused at once, e.g. an error page."""
    with pytest.raises(StreamError, match="Expected a JSON object"):
        JSONArrayDecoder().feed(body)


def test_frames_before_a_failure_come_first():
    """The call that finds a failure gives what came before it; the next one raises."""
    decoder = JSONArrayDecoder()
    assert decoder.feed(b"{}x") == [Frame(data="{}")]
    with pytest.raises(StreamError):
        decoder.feed(b"{}")
    with pytest.raises(StreamError):
        decoder.finish()


def test_a_large_object_fails():
    """An object over the limit is refused before its end comes."""
    with pytest.raises(StreamError, match=r"larger than 10 bytes\. To allow it"):
        JSONArrayDecoder(max_event_bytes=10).feed(b'{"a": "12345')


def test_a_long_object_byte_by_byte_takes_linear_time():
    """An object of twice the length takes twice the time, also in single bytes."""

    def feed(size):
        decoder = JSONArrayDecoder()
        decoder.feed(b'{"a": "')
        for _ in range(size):
            decoder.feed(b"x")
        assert len(decoder.feed(b'"}')) == 1

    assert growth(feed, lambda size: size) < LINEAR


def test_several_values_in_one_buffer_are_told_apart():
    """Objects that follow each other without an array are told apart, however they are cut.

    Field bug 58.
    """
    body = b'{"a": "}{"}{"b": 2}\n{"c": [{}]}'

    for cut in range(len(body)):
        decoder = JSONArrayDecoder()
        frames = decoder.feed(body[:cut]) + decoder.feed(body[cut:]) + decoder.finish()
        assert [frame.data for frame in frames] == ['{"a": "}{"}', '{"b": 2}', '{"c": [{}]}']


@pytest.mark.parametrize("count", [31, 32, 33, 63, 64, 65, 999, 1000, 1001, 2001])
def test_objects_longer_than_one_match(count):
    """However many escapes or strings there are, an object is cut out whole, in any chunks."""
    objects = [
        json.dumps({"a": '"}' * count, "b": "{"}),
        json.dumps({"a": "\\" * count}),
        json.dumps({str(n): "}" for n in range(count)}),
        json.dumps({"a": ['"'] * count, "b": []}),
        json.dumps({"a": [1] * count}),
    ]
    body = ("[" + ",".join(objects) + "]").encode()
    expected = [Frame(data=text) for text in objects], None
    assert read([body]) == expected
    for size in (1, 7, 64):
        assert read([body[at : at + size] for at in range(0, len(body), size)]) == expected


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b'{"', b"\\n"),
        (b"{", b'"",'),
        (b"{", b'"\\"",'),
        (b"{", b'"' + b"\\n" * 33 + b'"'),
        (b"", b"{["),
        (b"{", b"1,"),
        (b"{", b"\\"),
    ],
)
def test_hostile_repetition_takes_linear_time(start, piece):
    """Twice as much of the same takes twice the time, at once and in chunks."""

    def feed(body):
        JSONArrayDecoder().feed(body)
        decoder = JSONArrayDecoder()
        for at in range(0, len(body), 1000):
            decoder.feed(body[at : at + 1000])

    assert growth(feed, lambda size: start + piece * size) < LINEAR


@pytest.mark.parametrize("start", [b"[", b""], ids=["array", "bare"])
def test_objects_are_limited(start):
    """The allowed objects are delivered, then there is an error; chunks do not show."""
    body = start + b'{"a":1},\n{"a":2},\n{"a":3}'

    for chunks in ([body], single_bytes(body), cut(body, [3, 9, 20])):
        frames, message = read(chunks, max_events=2)
        assert [frame.data for frame in frames] == ['{"a":1}', '{"a":2}']
        assert "more than 2 events" in message
        assert "limits=Limits(events=" in message
    assert len(read([body], max_events=3)[0]) == 3


def test_an_object_at_the_limit_of_bytes_passes():
    """An object of exactly the allowed bytes is delivered; one byte more is an error."""
    body = b'[{"a":"12345"}]'

    for chunks in ([body], single_bytes(body)):
        assert read(chunks, max_event_bytes=13) == ([Frame(data='{"a":"12345"}')], None)
        assert "larger than 12 bytes" in read(chunks, max_event_bytes=12)[1]


def test_what_is_limited_stays_an_error():
    """After an error the decoder repeats it, whatever it is fed."""
    decoder = JSONArrayDecoder(max_events=1)
    assert len(decoder.feed(b"[{},{}")) == 1

    for step in (lambda: decoder.feed(b"{}"), decoder.finish):
        with pytest.raises(StreamError, match="more than 1 events"):
            step()
