"""Replies of HTTP/1.1 as a server may write them, with what a client must make of each."""

from itertools import pairwise
from typing import NamedTuple

from hypothesis import strategies as st

FRAMING = {"connection", "content-encoding", "content-length", "transfer-encoding", "upgrade"}
"""Headers that say where a reply ends, or what its body is; `replies` writes its own."""


class Written(NamedTuple):
    """A reply in bytes, and its meaning."""

    wire: bytes
    status: int
    headers: dict[str, str]
    """Names in lower case; the values of a repeated name are joined by commas."""
    body: bytes
    method: str = "POST"
    """The method of the request to which this is the reply."""
    is_until_close: bool = False
    is_reusable: bool = True
    """Whether the connection serves another request."""
    size_of_head: int = 0
    """Bytes of the wire until the end of the headers, with the responses before the reply."""


def _ends(wire, is_lf):
    return wire.replace(b"\r\n", b"\n") if is_lf else wire


TOKENS = st.text(
    "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_.!#$%&'*+^`|~", min_size=1, max_size=12
)
_VALUES = st.one_of(
    st.sampled_from(["", "a", "a, b", 'W/"x"', "text/event-stream; charset=utf-8", "ä", "日本"]),
    st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=30),
    st.text(
        st.characters(
            min_codepoint=0x20, exclude_characters="\x7f", exclude_categories=["Cs", "Cc"]
        ),
        max_size=20,
    ),
)
_BLANKS = st.sampled_from(["", " ", " ", " ", "\t", "  \t "])


@st.composite
def _lines(draw, max_size=8):
    """Header lines that decide nothing, and their meaning."""
    names = [
        name for name in draw(st.lists(TOKENS, max_size=max_size)) if name.lower() not in FRAMING
    ]
    if names and draw(st.booleans()):
        names.append(names[0].swapcase())
    lines, meaning = b"", {}
    for name in names:
        value = draw(_VALUES)
        coding = draw(st.sampled_from(["utf-8", "utf-8", "latin-1"]))
        try:
            raw = value.encode(coding)
        except UnicodeEncodeError:
            raw = value.encode()
        lines += b"%b:%b%b%b\r\n" % (
            name.encode(),
            draw(_BLANKS).encode(),
            raw,
            draw(_BLANKS).encode(),
        )
        _add(meaning, name, read_value(raw))
    return lines, meaning


def _add(meaning, name, value):
    key = name.lower()
    meaning[key] = f"{meaning[key]}, {value}" if key in meaning else value


def read_value(raw):
    """A value as UTF-8, or else as Latin-1."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return text.strip(" \t")


@st.composite
def _chunked(draw, body):
    """A body in chunks, with extensions, blanks and trailers."""
    wire, at = b"", 0
    while at < len(body):
        size = draw(st.integers(1, len(body) - at))
        wire += draw(_chunk_heads(size)) + body[at : at + size] + b"\r\n"
        at += size
    trailers, _ = draw(_lines(max_size=2))
    return wire + draw(_chunk_heads(0)) + trailers + b"\r\n"


_EXTENSIONS = st.sampled_from(["", "", "", " ", "  ", ";a", ";a=b", ';a="b;c"', ";a=b;c=d"])


@st.composite
def _chunk_heads(draw, size):
    digits = draw(st.sampled_from(["{:x}", "{:X}", "{:04x}"])).format(size)
    # h11 accepts no blanks before an extension.
    return f"{digits}{draw(_EXTENSIONS)}\r\n".encode()


@st.composite
def _interim(draw):
    """Responses before the reply."""
    wire = b""
    for status in draw(st.lists(st.sampled_from([100, 102, 103, 104]), max_size=2)):
        wire += b"HTTP/1.1 %d Early\r\n%b\r\n" % (status, draw(_lines(max_size=2))[0])
    return wire


@st.composite
def replies(draw, *, method=None, ends=("length", "chunked", "close"), max_body=400):
    """A reply that is valid, whatever its form."""
    method = method or draw(st.sampled_from(["POST", "POST", "POST", "GET", "HEAD"]))
    status = draw(st.sampled_from([200, 200, 200, 201, 204, 304, 400, 429, 500, 599]))
    body = draw(st.binary(max_size=max_body))
    end = draw(st.sampled_from(ends))
    has_body = method != "HEAD" and status not in {204, 304}
    lines, meaning = draw(_lines())
    rest, is_until_close = b"", False
    if end == "length":
        lines += b"Content-Length: %d\r\n" % len(body)
        _add(meaning, "content-length", str(len(body)))
        rest = body
    elif end == "chunked":
        coding = draw(st.sampled_from(["chunked", "Chunked"]))
        lines = b"Transfer-Encoding: %b\r\n" % coding.encode() + lines
        meaning = {"transfer-encoding": coding, **meaning}
        rest = draw(_chunked(body))
    else:
        is_until_close, rest = has_body, body
    version, wish = draw(st.sampled_from([("1.1", ""), ("1.1", "keep-alive"), ("1.1", "close")]))
    if end != "chunked" and draw(st.integers(0, 9)) == 0:
        version, wish = "1.0", draw(st.sampled_from(["", "Keep-Alive"]))
    if wish:
        lines += b"Connection: %b\r\n" % wish.encode()
        _add(meaning, "connection", wish)
    is_lf = draw(st.integers(0, 9)) == 0
    reason = draw(st.sampled_from([" OK", " Not Really", " ", ""]))
    head = draw(_interim()) + f"HTTP/{version} {status}{reason}\r\n".encode() + lines + b"\r\n"
    head = _ends(head, is_lf)
    is_kept = wish.lower() == "keep-alive" or (version == "1.1" and wish != "close")
    return Written(
        wire=head + (rest if has_body else b""),
        status=status,
        headers=meaning,
        body=body if has_body else b"",
        method=method,
        is_until_close=is_until_close,
        # The parser is not told that a reply to HEAD has no body, so it can read no other.
        is_reusable=is_kept and not is_until_close and method != "HEAD",
        size_of_head=len(head),
    )


def cuts(wire):
    """Any way to cut these bytes into pieces that are not empty."""
    if len(wire) < 2:
        return st.just([wire])
    places = st.lists(st.integers(1, len(wire) - 1), max_size=12, unique=True)
    return st.one_of(
        places.map(lambda at: pieces_at(wire, sorted(at))),
        st.just([wire[at : at + 1] for at in range(len(wire))]),
    )


def pieces_at(wire, places):
    """The bytes, cut at these places."""
    edges = [0, *places, len(wire)]
    return [wire[start:end] for start, end in pairwise(edges)]
