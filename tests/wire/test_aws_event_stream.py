"""The event stream format of AWS, compared with botocore's parser."""

import json
import struct
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.contracts import Frame
from interlingua.spec.errors import (
    ConfigurationError,
    InvalidRequestError,
    ProviderTimeoutError,
    RateLimitError,
    ServerError,
    StreamError,
)
from interlingua.wire.aws_event_stream import (
    ChunkDecoder,
    Message,
    MessageDecoder,
    encode_chunk,
    encode_exception,
    encode_message,
)
from support.patterns import LINEAR, growth

NAMES = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=20)
TEXTS = st.text(st.characters(blacklist_categories=("Cs",)), max_size=40)
VALUES = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=40) | TEXTS
MESSAGES = st.builds(Message, st.dictionaries(NAMES, VALUES, max_size=4), st.binary(max_size=100))


def decode(data, size=None):
    decoder = MessageDecoder()
    step = size or len(data) or 1
    found = [
        each for at in range(0, len(data), step) for each in decoder.feed(data[at : at + step])
    ]
    decoder.finish()
    return found


def with_header(kind, content):
    """A message with one header of this type."""
    headers = b"\x01h" + bytes((kind,)) + content
    lengths = struct.pack(">II", len(headers) + 16, len(headers))
    data = lengths + struct.pack(">I", crc32(lengths)) + headers
    return data + struct.pack(">I", crc32(data))


@given(st.lists(MESSAGES, max_size=4), st.integers(1, 40))
def test_messages_survive_in_any_pieces(messages, size):
    """What is encoded is decoded, however the bytes arrive."""
    data = b"".join(map(encode_message, messages))
    assert decode(data, size) == messages


@given(st.lists(MESSAGES, max_size=3))
def test_botocore_reads_the_same(messages):
    """Its parser finds the same headers and payloads in what is encoded."""
    buffer = EventStreamBuffer()
    buffer.add_data(b"".join(map(encode_message, messages)))
    assert [(each.headers, each.payload) for each in buffer] == messages


@pytest.mark.parametrize(
    ("kind", "content"),
    [(0, b""), (1, b""), (2, b"\xfe"), (3, b"\xff\xfe"), (4, b"\0\0\1\0"), (5, bytes(7) + b"\1"),
     (6, b"\0\2ab"), (7, b"\0\2ab"), (8, bytes(6) + b"\1\0"), (9, bytes(range(16)))],
)  # fmt: skip
def test_every_type_of_header(kind, content):
    """Each is read as botocore reads it."""
    data = with_header(kind, content)
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    (theirs,) = buffer
    (ours,) = decode(data)
    assert ours.headers == theirs.headers


@pytest.mark.parametrize(
    "content", [b"\x0a", b"\x07\0\5ab", b"\x07\0\1\xff", b"\x05\0", b"\x09abc", b"\x07"]
)
def test_headers_that_cannot_be_read(content):
    """An unknown type, a length beyond the end, or text that is not UTF-8."""
    with pytest.raises(StreamError, match="headers that cannot be read"):
        decode(with_header(content[0], content[1:]))


TWO = encode_chunk(Frame(data='{"type":"ping"}')) + encode_chunk(
    Frame(data='{"type":"message_stop"}')
)


def test_a_stream_that_is_cut():
    """At any byte but between messages, its end is an error, after the whole messages."""
    boundary = len(encode_chunk(Frame(data='{"type":"ping"}')))
    for cut in range(1, len(TWO)):
        decoder = MessageDecoder()
        assert len(decoder.feed(TWO[:cut])) == (cut >= boundary)
        if cut == boundary:
            decoder.finish()
            continue
        with pytest.raises(StreamError, match="ended inside a message"):
            decoder.finish()


def test_a_flipped_bit_is_noticed():
    """Wherever it is: by a checksum, or because the message does not end."""
    for bit in range(8 * len(TWO)):
        data = bytearray(TWO)
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(StreamError):
            decode(bytes(data))


def test_after_damage_nothing_is_read():
    """Messages before it are delivered first; then every call raises."""
    decoder = MessageDecoder()
    assert len(decoder.feed(TWO + b"\xff" * 12)) == 2
    for act in (lambda: decoder.feed(TWO), decoder.finish):
        with pytest.raises(StreamError, match="checksum"):
            act()


def test_limits():
    """On the size of a message, before it is read, and on their number."""
    with pytest.raises(StreamError, match=r"larger than 50 bytes.*Limits\(event="):
        MessageDecoder(max_bytes=50).feed(TWO[:12])
    decoder = MessageDecoder(max_messages=1)
    assert len(decoder.feed(TWO)) == 1
    with pytest.raises(StreamError, match=r"more than 1 events"):
        decoder.finish()


def test_lengths_that_cannot_be():
    """Headers longer than the message, or than any message's."""
    for total, headers in ((20, 8), (1_000_000, 200_000), (3, 0)):
        lengths = struct.pack(">II", total, headers)
        with pytest.raises(StreamError, match="impossible lengths"):
            MessageDecoder().feed(lengths + struct.pack(">I", crc32(lengths)))


def test_what_cannot_be_encoded():
    """A name or value that is too long for its field."""
    for headers in ({"": 1}, {"n" * 256: 1}, {"n": "v" * 40_000}):
        with pytest.raises(ConfigurationError):
            encode_message(Message(headers, b""))


def test_a_large_message_in_small_pieces_takes_linear_time():
    """A message of twice the size takes twice the time, in pieces of 20 bytes."""

    def use(data):
        assert len(decode(data, 20)) == 1

    assert growth(use, lambda size: encode_message(Message({}, bytes(20 * size)))) < LINEAR


def test_chunks_hold_events():
    """The frame has the text of the event."""
    decoder = ChunkDecoder()
    assert decoder.feed(TWO) == [
        Frame(data='{"type":"ping"}'),
        Frame(data='{"type":"message_stop"}'),
    ]
    assert decoder.finish() == []


def test_other_events_are_ignored():
    """An event of an unknown type is no frame."""
    message = Message({":message-type": "event", ":event-type": "metadata"}, b"{}")
    assert ChunkDecoder().feed(encode_message(message)) == []


@pytest.mark.parametrize(
    "payload", [b"", b"[]", b"{}", b'{"bytes":1}', b'{"bytes":"%%"}', b'{"bytes":"/w=="}']
)
def test_a_chunk_without_an_event(payload):
    """It is an error, not an empty frame."""
    message = Message({":message-type": "event", ":event-type": "chunk"}, payload)
    with pytest.raises(StreamError, match="holds no event"):
        ChunkDecoder().feed(encode_message(message))


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("throttlingException", RateLimitError),
        ("validationException", InvalidRequestError),
        ("modelTimeoutException", ProviderTimeoutError),
        ("internalServerException", ServerError),
        ("serviceUnavailableException", ServerError),
        ("aNewException", ServerError),
    ],
)
def test_exceptions_are_typed_errors(kind, error):
    """After the frames before them, with their code and message."""
    decoder = ChunkDecoder()
    data = encode_chunk(Frame(data='{"type":"ping"}')) + encode_exception(kind, "Slow down")
    assert len(decoder.feed(data)) == 1
    for act in (decoder.finish, lambda: decoder.feed(b"")):
        with pytest.raises(error, match="Slow down") as caught:
            act()
        assert caught.value.error_code == kind


def test_an_error_message():
    """The other form, with its code and text in headers."""
    headers = {":message-type": "error", ":error-code": "500", ":error-message": "It broke"}
    with pytest.raises(ServerError, match="It broke"):
        ChunkDecoder().feed(encode_message(Message(headers, b"")))


def test_botocore_reads_chunks_and_exceptions():
    """Its parser finds the type and the payload."""
    buffer = EventStreamBuffer()
    buffer.add_data(encode_chunk(Frame(data="{}")) + encode_exception("throttlingException", "no"))
    chunk, exception = (each.to_response_dict() for each in buffer)
    assert (chunk["status_code"], exception["status_code"]) == (200, 400)
    assert json.loads(chunk["body"]) == {"bytes": "e30="}
    assert json.loads(exception["body"]) == {"message": "no"}
