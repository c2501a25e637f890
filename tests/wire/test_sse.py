from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlingua.spec.contracts import Frame
from interlingua.spec.errors import ConfigurationError, StreamError
from interlingua.wire import sse
from interlingua.wire.sse import SSEDecoder, encode_sse
from support.patterns import LINEAR, growth

PIECES = [
    b"data: ", b"data:", b"data", b"event: ", b"event: delta\n", b"event", b"id: 7\n", b"id:",
    b"retry: 10\n", b"retry: 1x", b"retry: " + b"9" * 30, b": comment\n", b"other: field\n",
    b":", b" ", b"  ", b"\n", b"\n\n", b"\r", b"\r\n", b"\r\n\r\n", b"\0", b"\xef\xbb\xbf",
    b"\xef", b"\xbb\xbf", b"\xff", "é€😀\u2028".encode(), "€".encode()[:2], b'{"a":1}', b"[DONE]",
    b'data: {"a":1}\n\n', b'event: delta\ndata: {"a":1}\n\n', b"data: x\nevent: late\n\n",
]  # fmt: skip
bodies = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=25).map(b"".join)
cut_lists = st.lists(st.integers(0, 200), max_size=6)
one_line = st.text(st.characters(exclude_characters="\r\n\0", codec="utf-8"), max_size=20)
frames = st.builds(
    Frame,
    data=st.text(st.characters(exclude_characters="\r", codec="utf-8"), max_size=60),
    event=st.none() | one_line.filter(bool),
    id=st.none() | one_line,
    retry=st.none() | st.integers(0, 10**17),
)


def reference(body: bytes) -> list[Frame]:
    """The WHATWG algorithm, line by line over the whole text."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    *lines, tail = re.split(r"\r\n|\r|\n", text)
    found = []
    fields = {}
    for line in lines:
        if line:
            interpret(line, fields)
        else:
            dispatch(fields, found)
            fields = {}
    interpret(tail, fields)
    if any(fields.get("data", ())) or not tail:  # our rule for a body that just ends
        dispatch(fields, found)
    return found


def interpret(line, fields):
    name, _, value = line.partition(":")
    value = value.removeprefix(" ")
    if name == "data":
        fields.setdefault("data", []).append(value)
    elif name == "event":
        fields["event"] = value or None
    elif name == "id" and "\0" not in value:
        fields["id"] = value
    elif name == "retry" and re.fullmatch("[0-9]{1,18}", value):
        fields["retry"] = int(value)


def dispatch(fields, found):
    if "data" in fields:
        found.append(Frame(**{**fields, "data": "\n".join(fields["data"])}))


def cut(body: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(at, len(body)) for at in cuts), len(body)]
    return [body[start:end] for start, end in pairwise(edges)]


def single_bytes(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


def read(chunks: list[bytes], **options) -> tuple[list[Frame], bool]:
    """The frames that come before the end or the failure, and whether it failed."""
    decoder = SSEDecoder(**options)
    found = []
    try:
        for chunk in chunks:
            found += decoder.feed(chunk)
        found += decoder.finish()
    except StreamError:
        return found, True
    return found, False


@given(bodies, cut_lists)
@example(b"data: a\n\n\n\n\ndata: b\n\n", [9, 10])
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", [8, 10])
@example(b"\xef\xbb\xbfdata: a\n\n", [1, 2])
@example(b"event: \ndata: a\n\n", [])
@example(b"data: \ndata: ", [])
def test_every_cut_gives_what_the_standard_says(body, cuts):
    """Any chunking of any bytes gives the frames of the WHATWG algorithm."""
    expected = reference(body), False
    assert read([body]) == expected
    assert read(cut(body, cuts)) == expected
    assert read(single_bytes(body)) == expected


@given(bodies, cut_lists, st.integers(1, 40))
@example(b"data: a\n\n\ndata: " + b"b" * 12 + b"\n\n", [], 18)
def test_the_limit_does_not_show_chunking(body, cuts, limit):
    """An event too large fails after the same frames, however the bytes are cut."""
    expected = read(single_bytes(body), max_event_bytes=limit)
    assert read([body], max_event_bytes=limit) == expected
    assert read(cut(body, cuts), max_event_bytes=limit) == expected


@given(st.lists(frames, max_size=5), cut_lists)
def test_decoding_undoes_encoding(sent, cuts):
    """Frames written and read again are the same frames."""
    body = b"".join(encode_sse(frame) for frame in sent)
    assert read(cut(body, cuts)) == (sent, False)


def test_fields_of_an_event():
    """Every field is read; several data lines are joined by line ends."""
    body = b": hi\nid: 7\nretry: 10\nevent: delta\ndata: one\ndata:two\ndata\nother: x\n\n"
    assert SSEDecoder().feed(body) == [Frame(data="one\ntwo\n", event="delta", id="7", retry=10)]


def test_only_one_space_is_stripped():
    """A second space after the colon belongs to the value."""
    assert SSEDecoder().feed(b"data:  a\n\n") == [Frame(data=" a")]


def test_events_without_data_are_not_frames():
    """Pings and comments give nothing and leave nothing behind."""
    assert SSEDecoder().feed(b"event: ping\n\n: keep-alive\n\ndata: a\n\n") == [Frame(data="a")]


@pytest.mark.parametrize("tail", [b"data: [DONE]", b"data: [DONE]\n", b"data: [DONE]\r"])
def test_finish_gives_the_event_no_blank_line_closed(tail):
    """A body may end without its last blank line or even its last line end."""
    decoder = SSEDecoder()
    assert decoder.feed(tail) == []
    assert decoder.finish() == [Frame(data="[DONE]")]
    assert decoder.finish() == []


@pytest.mark.parametrize("tail", [b"dat", b"data", b"data: ", b"event: message_stop\ndata:"])
def test_finish_drops_a_line_cut_before_its_data(tail):
    """A cut that left no data makes no frame: it must not look like an empty event."""
    decoder = SSEDecoder()
    decoder.feed(tail)
    assert decoder.finish() == []


def test_a_line_without_end_fails():
    """A line that outgrows the limit fails before its end comes, and stays failed."""
    decoder = SSEDecoder(max_event_bytes=10)
    with pytest.raises(StreamError, match=r"larger than 10 bytes\. To allow it"):
        decoder.feed(b"data: 12345")
    with pytest.raises(StreamError):
        decoder.feed(b"\n\n")
    with pytest.raises(StreamError):
        decoder.finish()


def test_an_event_at_the_limit_passes():
    """The limit counts the event's lines with their ends, not the blank line."""
    assert SSEDecoder(max_event_bytes=11).feed(b"data: 1234\n\n") == [Frame(data="1234")]


def test_a_long_line_byte_by_byte_takes_linear_time():
    """A line of twice the length takes twice the time, also in single bytes."""

    def feed(size):
        decoder = SSEDecoder()
        for _ in range(size):
            decoder.feed(b"x")

    assert growth(feed, lambda size: size) < LINEAR


def test_encoding_splits_lines():
    """Each line of the data gets its own field; CR and CRLF are line ends too."""
    frame = Frame(data="a\nb\r\nc", event="e")
    assert encode_sse(frame) == b"event: e\ndata: a\ndata: b\ndata: c\n\n"


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\0b", "\0"])
@pytest.mark.parametrize("field", ["event", "id"])
def test_encoding_refuses_a_line_break_or_nul_in_a_name(field, text):
    """An event name or id cannot smuggle in fields, and NUL would make clients ignore the id."""
    with pytest.raises(ConfigurationError, match=f"SSE {field}.*line break or NUL"):
        encode_sse(Frame(data="", **{field: text}))


def test_an_id_with_nul_is_ignored():
    """The standard says so; the event is read, and a name with NUL is a name."""
    body = b"id: 1\0\nevent: a\0b\ndata: x\n\n"

    for chunks in ([body], single_bytes(body)):
        assert shown(chunks) == ([Frame(data="x", event="a\0b")], None)


def test_encoding_writes_a_lone_surrogate_as_its_escape():
    """JSON text with a lone surrogate stays the same JSON."""
    assert encode_sse(Frame(data='"\ud83d"')) == b'data: "\\ud83d"\n\n'


def test_every_oddity_at_once_is_read():
    """No event line, CRLF, a comment, a BOM, several data lines and a split character.

    Field bug 60.
    """
    body = '\ufeff: hello\r\ndata: {"a":\r\ndata: "é"}\r\n\r\n'.encode()

    for cut in range(len(body)):
        decoder = SSEDecoder()
        frames = decoder.feed(body[:cut]) + decoder.feed(body[cut:]) + decoder.finish()
        assert [(frame.event, frame.data) for frame in frames] == [(None, '{"a":\n"é"}')]


@pytest.mark.parametrize("count", [1, 6, 7, 8, 9, 20])
def test_an_event_of_many_lines(count):
    """However many lines an event has, it ends at the first blank one."""
    event = b"id: 1\n" + b"data: x\n" * count + b"\n"
    expected = [Frame(data="\n".join("x" * count), id="1"), Frame(data="y")]

    assert SSEDecoder().feed(event + b"\n\ndata: y\n\n") == expected
    assert SSEDecoder().feed(b"data: y\n\n" + event * 2) == [expected[1], *expected[:1] * 2]


@pytest.mark.parametrize("piece", [b"a\n", b"\n", b"event: a\n", b"data: a\n", b": a\n\n", b"a"])
def test_hostile_repetition_takes_linear_time(piece):
    """Twice as much of the same takes twice the time, up to what is allowed."""

    def feed(body):
        with suppress(StreamError):
            SSEDecoder().feed(body)

    assert growth(feed, lambda size: piece * size + b"\n\n") < LINEAR


def shown(chunks, decoder=None, **limits):
    """The frames, and the message of the error after them."""
    decoder, frames = decoder or SSEDecoder(**limits), []
    try:
        for chunk in chunks:
            frames += decoder.feed(chunk)
        frames += decoder.finish()
    except StreamError as error:
        return frames, error.message
    return frames, None


@pytest.mark.parametrize("end", [b"", b"data: 4"])
def test_events_are_limited(end):
    """The allowed events are delivered, then there is an error; chunks do not show."""
    body = b"data: 1\n\ndata: 2\n\nid: x\ndata: 3\n\n" + end

    for chunks in ([body], single_bytes(body), cut(body, [5, 12, 30])):
        frames, message = shown(chunks, max_events=2)
        assert [frame.data for frame in frames] == ["1", "2"]
        assert "more than 2 events" in message
        assert "limits=Limits(events=" in message
    assert len(shown([body], max_events=4)[0]) == (4 if end else 3)


@given(bodies, cut_lists, st.integers(1, 12))
@example(b"data: a\n\n\ndata: b\n\n", [], 2)
@example(b": a\n: b\ndata: c\n\n", [], 2)
def test_the_limit_of_events_does_not_show_chunking(body, cuts, limit):
    """Too many events, comments and blank lines fail after the same frames, however cut."""
    expected = shown(single_bytes(body), max_events=limit)
    assert shown([body], max_events=limit) == expected
    assert shown(cut(body, cuts), max_events=limit) == expected
    for size in (12, 60):  # blocks that are longer than the quick search reads
        decoder = SSEDecoder(max_events=limit)
        decoder._searched = size
        assert shown([body], decoder=decoder) == expected


@pytest.mark.parametrize(
    ("unread", "count"),
    [
        (b"\n", 1),
        (b"\n\n\n\n", 4),
        (b": a\n\n", 1),
        (b": a\n\n: b\n\n\n", 3),
        (b": a\n: b\nunknown\n\n", 3),
        (b"event: ping\n\n", 1),
        (b": a\n: b\n", 2),  # lines of the event that follows
        (b"id: 7\n", 0),
    ],
)
def test_lines_that_add_nothing_count_as_events(unread, count):
    """Comments, unknown fields and blank lines cost time, so they count towards the limit."""
    body = b"data: 1\n\n" + unread + b"data: 2\n\n"

    assert len(shown([body], max_events=count + 2)[0]) == 2
    frames, message = shown([body], max_events=count + 1)
    assert [frame.data for frame in frames] == ["1"]
    assert "more than" in message


def test_blank_lines_are_collapsed():
    """A hundred thousand blank lines are one match of the search, not one each."""
    matches = []

    def find_events(text):
        matches.extend(original(text))
        return matches

    original = sse._find_events
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sse, "_find_events", find_events)
        assert SSEDecoder().feed(b"data: 1\n\n" + b"\n" * 60_000) == [Frame(data="1")]

    assert len(matches) == 2


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_the_lines_of_an_event_are_limited(end):
    """An event is read in one step, so it has a limit of lines."""
    most = b"data: 1\n\n" + b"\n".join([b":"] * 99_999 + [b"data: 2"])
    more = b"data: 1\n\n" + b"\n".join([b":"] * 100_000 + [b"data: 2"]) + end

    for size in (1_000, 70_000, 10_000_000):
        pieces = [more[at : at + size] for at in range(0, len(more), size)]
        frames, message = shown(pieces)
        assert [frame.data for frame in frames] == ["1"]
        assert "more than 100000 lines" in message
        pieces = [most[at : at + size] for at in range(0, len(most), size)]
        assert [frame.data for frame in shown(pieces)[0]] == ["1", "2"]


@pytest.mark.parametrize(
    ("line", "data"),
    [
        ('error: {"code":400,"message":"bad"}', '{"error":{"code":400,"message":"bad"}}'),
        ('error:{"error":{"message":"bad"}}', '{"error":{"message":"bad"}}'),
        ("error: not JSON", '{"error":"not JSON"}'),
    ],
)
def test_an_error_line_is_read(line, data):
    """llama.cpp writes an error as a field of its own, which is read."""
    body = f"{line}\n\n".encode()

    assert shown([body])[0] == shown(single_bytes(body))[0] == [Frame(data=data)]
