"""Packed bodies come out whole, and no larger than asked."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.errors import DecodeError
from interlingua.transport.inflate import Inflater, inflater_for

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
    """Any cut of the packed bytes unpacks to the same data; gzip, zlib and bare deflate."""
    packed = form(data)
    inflater = Inflater(MAX)

    pieces = [inflater.feed(packed[at : at + step]) for at in range(0, len(packed), step)]
    inflater.finish()

    assert b"".join(pieces) == data


@given(data=st.binary(min_size=1, max_size=500), cut=st.integers(min_value=1))
def test_half_is_not_whole(data, cut):
    """Packed data that stops early is known to have stopped early."""
    packed = gzip.compress(data)
    inflater = Inflater(MAX)
    inflater.feed(packed[: 1 + cut % (len(packed) - 1)])

    with pytest.raises(EOFError):
        inflater.finish()


def test_several_members():
    """A gzip file may be several, one after another."""
    assert Inflater(MAX).feed(gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"


@pytest.mark.parametrize("form", FORMS)
def test_a_bomb(form):
    """What unpacks to more than there is room for is refused; what fits is not."""
    packed = form(b"x" * 5_000_000)

    with pytest.raises(DecodeError, match="larger than 1000 bytes after decompression"):
        Inflater(1000).feed(packed)
    assert len(Inflater(5_000_000).feed(packed)) == 5_000_000


def test_what_is_left_of_the_room_is_not_the_limit():
    """The message names what can be changed, not what had been left of it."""
    with pytest.raises(DecodeError, match=r"larger than 1000000 bytes.*max_body="):
        Inflater(MAX).feed(gzip.compress(b"x" * 100), 99)


def test_noise():
    """Bytes that are not packed are an error of ours."""
    with pytest.raises(DecodeError):
        Inflater(MAX).feed(b"\xff" * 100)


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_nothing_to_unpack(coding):
    """Plain bodies cost nothing."""
    assert inflater_for({"content-encoding": coding}, MAX) is None
    assert inflater_for({}, MAX) is None


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip"])
def test_what_was_not_asked_for(coding):
    """Other packings are named."""
    with pytest.raises(DecodeError, match=coding):
        inflater_for({"content-encoding": coding}, MAX)
