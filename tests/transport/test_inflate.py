"""Decompression of bodies."""

import asyncio
import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.defaults import Limits
from interlingua.spec.errors import DecodeError
from interlingua.transport.bodies import Inflater, inflate, inflater_for

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

    pieces = [
        piece
        for at in range(0, len(packed), step)
        for piece in inflater.feed(packed[at : at + step])
    ]

    assert inflater.is_complete
    assert b"".join(pieces) == data


@given(data=st.binary(min_size=1, max_size=500), cut=st.integers(min_value=1))
def test_incomplete_data(data, cut):
    """Compressed data that ends early is detected."""
    packed = gzip.compress(data)
    inflater = Inflater(MAX)
    list(inflater.feed(packed[: 1 + cut % (len(packed) - 1)]))

    assert not inflater.is_complete


def test_several_members():
    """A gzip file may have several members."""
    packed = gzip.compress(b"one") + gzip.compress(b"two")

    assert b"".join(Inflater(MAX).feed(packed)) == b"onetwo"


@pytest.mark.parametrize("form", FORMS)
def test_decompression_bomb(form):
    """Data that decompresses to more than the limit is refused."""
    packed = form(b"x" * 5_000_000)

    with pytest.raises(DecodeError, match="larger than 1000 bytes after decompression"):
        list(Inflater(1000).feed(packed))
    assert len(b"".join(Inflater(5_000_000).feed(packed))) == 5_000_000


def test_message_names_the_limit():
    """The message names the limit and the setting, also after several chunks."""
    inflater, packed = Inflater(150), gzip.compress(b"x" * 100)
    assert b"".join(inflater.feed(packed)) == b"x" * 100

    with pytest.raises(DecodeError, match=r"larger than 150 bytes.*Limits\(inflated="):
        list(inflater.feed(packed))


@given(size=st.integers(0, 3_000_000), form=st.sampled_from(FORMS))
def test_pieces_are_small(size, form):
    """Whatever the ratio, each step gives at most 32 KiB."""
    pieces = list(Inflater(3_000_000).feed(form(bytes(size))))

    assert sum(map(len, pieces)) == size
    assert max(map(len, pieces)) <= 32 * 1024


@pytest.mark.parametrize(
    "unit", [gzip.compress(b""), gzip.compress(bytes(500_000))], ids=["empty", "large"]
)
def test_other_tasks_run_between_the_pieces(unit):
    """After at most eight steps, also in a chunk of many empty members."""
    turns = steps = 0

    class Counting(Inflater):
        def _step(self, data):
            nonlocal steps
            steps += 1
            return super()._step(data)

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def chunks():
        yield unit * 200

    async def main():
        task = asyncio.ensure_future(other())
        async for _ in inflate(chunks(), Counting(200_000_000)):
            pass
        task.cancel()

    asyncio.run(main())
    assert turns >= steps // 8 >= 25


def test_invalid_data():
    """Bytes that are not compressed are a DecodeError."""
    with pytest.raises(DecodeError):
        list(Inflater(MAX).feed(b"\xff" * 100))


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_no_compression(coding):
    """A body without compression needs no decompressor."""
    assert inflater_for({"content-encoding": coding}, Limits()) is None
    assert inflater_for({}, Limits()) is None


@pytest.mark.parametrize("coding", ["compress", "snappy", "gzip, gzip"])
def test_unsupported_encodings(coding):
    """An unsupported content encoding is named."""
    with pytest.raises(DecodeError, match=coding):
        inflater_for({"content-encoding": coding}, Limits())
