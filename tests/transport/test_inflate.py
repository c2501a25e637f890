"""Decompression of bodies."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.errors import DecodeError
from interlingua.transport.bodies import Inflater, inflater_for

MAX = 1_000_000


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


FORMS = [gzip.compress, zlib.compress, raw_deflate]


@given(
    data=st.binary(max_size=2000),
    form=st.sampled_from(FORMS),
    step=st.integers(min_value=1, max_value=50),
)
def test_chunking_never_shows(data, form, step):
    """Any split of the compressed bytes gives the same data; gzip, zlib and raw deflate."""
    packed = form(data)
    inflater = Inflater(MAX)

    pieces = [inflater.feed(packed[at : at + step]) for at in range(0, len(packed), step)]
    inflater.finish()

    assert b"".join(pieces) == data


@given(data=st.binary(min_size=1, max_size=500), cut=st.integers(min_value=1))
def test_incomplete_data(data, cut):
    """Compressed data that ends early is detected."""
    packed = gzip.compress(data)
    inflater = Inflater(MAX)
    inflater.feed(packed[: 1 + cut % (len(packed) - 1)])

    with pytest.raises(EOFError):
        inflater.finish()


def test_several_members():
    """A gzip file may have several members."""
    assert Inflater(MAX).feed(gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"


@pytest.mark.parametrize("form", FORMS)
def test_decompression_bomb(form):
    """Data that decompresses to more than the limit is refused."""
    packed = form(b"x" * 5_000_000)

    with pytest.raises(DecodeError, match="larger than 1000 bytes after decompression"):
        Inflater(1000).feed(packed)
    assert len(Inflater(5_000_000).feed(packed)) == 5_000_000


def test_message_names_the_limit():
    """The message names the configurable limit, not the remaining size."""
    with pytest.raises(DecodeError, match=r"larger than 1000000 bytes.*max_body="):
        Inflater(MAX).feed(gzip.compress(b"x" * 100), 99)


def test_invalid_data():
    """Bytes that are not compressed are a DecodeError."""
    with pytest.raises(DecodeError):
        Inflater(MAX).feed(b"\xff" * 100)


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_no_compression(coding):
    """A body without compression needs no decompressor."""
    assert inflater_for({"content-encoding": coding}, MAX) is None
    assert inflater_for({}, MAX) is None


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip"])
def test_unsupported_encodings(coding):
    """An unsupported content encoding is named."""
    with pytest.raises(DecodeError, match=coding):
        inflater_for({"content-encoding": coding}, MAX)
