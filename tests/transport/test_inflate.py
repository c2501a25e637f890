"""Decompression of bodies."""

import asyncio
import gzip
import os
import zlib

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.spec.defaults import Limits
from interlingua.spec.errors import DecodeError
from interlingua.transport import bodies
from interlingua.transport.bodies import Inflater, accepted_codings, inflate, inflater_for
from support.packing import zstd
from support.run_profile import examples

MAX = 1_000_000


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


FORMS = {
    gzip.compress: "gzip",
    zlib.compress: "deflate",
    raw_deflate: "deflate",
    brotli.compress: "br",
    zstd.compress: "zstd",
}
every_form = pytest.mark.parametrize("form", FORMS, ids=["gzip", "zlib", "deflate", "br", "zstd"])


def inflater(form, limit=MAX):
    """A decompressor for what this function has packed."""
    return inflater_for({"content-encoding": FORMS[form]}, Limits(inflated=limit))


def unpack(form, packed, step):
    """The data, if the packed bytes come in pieces of this size; None if they are incomplete."""
    used = inflater(form)
    pieces = [
        piece for at in range(0, len(packed), step) for piece in used.feed(packed[at : at + step])
    ]
    return b"".join(pieces) if used.is_complete else None


@settings(max_examples=examples(300))
@given(
    data=st.binary(max_size=2000) | st.binary(max_size=200).map(lambda each: each * 1000),
    form=st.sampled_from([*FORMS]),
    step=st.sampled_from([1, 2, 3, 10, 50, 1000, 1_000_000]),
)
def test_chunking_never_shows(data, form, step):
    """Any split of the compressed bytes gives the same data, in every form."""
    assert unpack(form, form(data), step) == data


@pytest.mark.parametrize("step", [100, 10_000, 1_000_000])
@every_form
def test_large_bodies(form, step):
    """Also of bytes that hardly become less, and of those that become nothing."""
    for data in (os.urandom(300_000), bytes(900_000), os.urandom(1000) * 300):
        assert unpack(form, form(data), step) == data


@settings(max_examples=examples(300))
@given(
    data=st.binary(min_size=1, max_size=500),
    form=st.sampled_from([*FORMS]),
    cut=st.integers(min_value=1),
    step=st.sampled_from([1, 1000]),
)
def test_incomplete_data(data, form, cut, step):
    """Compressed data that ends early is detected."""
    packed = form(data)
    packed = packed[: 1 + cut % (len(packed) - 1)]
    try:
        assert unpack(form, packed, step) is None
    except DecodeError:
        assert form is raw_deflate  # some of it looks like a broken header of zlib


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize("form", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
def test_several_members(form, step):
    """A gzip file may have several members, and a zstd file several frames."""
    packed = form(b"one") + form(b"") + form(b"two")

    assert unpack(form, packed, step) == b"onetwo"
    for end in range(len(form(b"one")) + 1, len(packed) - 1):
        assert unpack(form, packed[:end], step) in {None, b"one"}


@pytest.mark.parametrize("step", [1, 1000])
def test_members_that_arrive_one_by_one(step):
    """The next one may begin with the next chunk."""
    for form in (gzip.compress, zstd.compress):
        used, got = inflater(form), b""
        for word in (b"one", b"two", b"three"):
            packed = form(word)
            for at in range(0, len(packed), step):
                got += b"".join(used.feed(packed[at : at + step]))
            assert used.is_complete
        assert got == b"onetwothree"


def test_a_zstd_frame_that_is_skipped():
    """It has no data (RFC 8878, section 3.1.2)."""
    skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"

    for step in (1, 1000):
        assert unpack(zstd.compress, skipped + zstd.compress(b"one") + skipped, step) == b"one"


def test_a_zstd_window_that_is_too_large():
    """A server may ask for 8 MiB at most (RFC 9659), not for as much as the format allows."""
    option = zstd.CompressionParameter.window_log

    def pack(size):
        packer = zstd.ZstdCompressor(options={option: size})
        return packer.compress(b"x" * 100) + packer.flush()

    assert unpack(zstd.compress, pack(23), 1000) == b"x" * 100
    with pytest.raises(DecodeError, match="zstd"):
        unpack(zstd.compress, pack(24), 1000)


@pytest.mark.parametrize("step", [50, 1_000_000])
@every_form
def test_decompression_bomb(form, step):
    """Data that decompresses to more than the limit is refused, before all of it is unpacked."""
    packed, sizes = form(b"x" * 5_000_000), []
    used = inflater(form, 100_000)

    def unpack_all():
        for at in range(0, len(packed), step):
            sizes.extend(map(len, used.feed(packed[at : at + step])))

    with pytest.raises(DecodeError, match="larger than 100000 bytes after decompression"):
        unpack_all()
    assert sum(sizes) <= 100_000
    assert len(b"".join(inflater(form, 5_000_000).feed(packed))) == 5_000_000


def test_message_names_the_limit():
    """The message names the limit and the setting, also after several chunks."""
    inflater, packed = Inflater(150), gzip.compress(b"x" * 100)
    assert b"".join(inflater.feed(packed)) == b"x" * 100

    with pytest.raises(DecodeError, match=r"larger than 150 bytes.*Limits\(inflated="):
        list(inflater.feed(packed))


@given(size=st.integers(0, 3_000_000), form=st.sampled_from([*FORMS]))
def test_pieces_are_small(size, form):
    """Whatever the ratio, each step gives at most 32 KiB."""
    pieces = list(inflater(form, 3_000_000).feed(form(bytes(size))))

    assert sum(map(len, pieces)) == size
    assert max(map(len, pieces)) <= 32 * 1024


@pytest.mark.parametrize(
    ("form", "unit"),
    [
        (gzip.compress, gzip.compress(b"") * 200),
        (gzip.compress, gzip.compress(bytes(500_000)) * 200),
        (brotli.compress, brotli.compress(bytes(100_000_000))),
        (zstd.compress, zstd.compress(b"") * 200),
        (zstd.compress, zstd.compress(bytes(500_000)) * 200),
    ],
    ids=["empty gzip", "large gzip", "large br", "empty zstd", "large zstd"],
)
def test_other_tasks_run_between_the_pieces(form, unit):
    """After at most eight steps, also in a chunk of many empty members."""
    turns = steps = 0
    used = inflater(form, 200_000_000)
    step = used._step

    def counting(data):
        nonlocal steps
        steps += 1
        return step(data)

    used._step = counting

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def chunks():
        yield unit

    async def main():
        task = asyncio.ensure_future(other())
        async for _ in inflate(chunks(), used):
            pass
        task.cancel()

    asyncio.run(main())
    assert turns >= steps // 8 >= 25


@every_form
def test_invalid_data(form):
    """Bytes that are not compressed, and bytes after the end of a stream, are a DecodeError."""
    with pytest.raises(DecodeError):
        list(inflater(form).feed(b"\xff" * 100))
    if form not in {raw_deflate, zlib.compress}:
        with pytest.raises(DecodeError):
            list(inflater(form).feed(form(b"one") + b"more of it"))


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_no_compression(coding):
    """A body without compression needs no decompressor."""
    assert inflater_for({"content-encoding": coding}, Limits()) is None
    assert inflater_for({}, Limits()) is None


@pytest.mark.parametrize("coding", ["compress", "gzip, gzip", "gzip, br"])
def test_unsupported_encodings(coding):
    """An unsupported content encoding is named."""
    with pytest.raises(DecodeError, match=coding):
        inflater_for({"content-encoding": coding}, Limits())


@pytest.fixture
def installed(monkeypatch):
    """Sets which libraries there are."""
    find = bodies._library

    def install(*names):
        monkeypatch.setattr(bodies, "_library", lambda name: find(name) if name in names else None)
        bodies._inflaters.cache_clear()

    yield install
    monkeypatch.undo()
    bodies._inflaters.cache_clear()


@pytest.mark.parametrize(
    ("names", "accepted"),
    [
        ((), "gzip, deflate"),
        (("brotli",), "gzip, deflate, br"),
        ((zstd.__name__,), "gzip, deflate, zstd"),
        (("brotli", zstd.__name__), "gzip, deflate, br, zstd"),
    ],
    ids=["none", "br", "zstd", "both"],
)
def test_a_coding_is_accepted_if_its_library_is_there(installed, names, accepted):
    """Otherwise it is not asked for, and an error if it comes."""
    installed(*names)
    found = accepted_codings()

    assert found == accepted
    for coding in ("gzip", "deflate", "br", "zstd"):
        if coding in found:
            assert inflater_for({"content-encoding": coding.upper()}, Limits()) is not None
        else:
            with pytest.raises(DecodeError, match=f"'{coding}'. Only {found} was accepted"):
                inflater_for({"content-encoding": coding}, Limits())


def test_an_old_brotli_is_not_used(monkeypatch):
    """Before version 1.2 it could not limit what one step yields."""

    class Old:
        class Decompressor:
            pass

    monkeypatch.setattr(bodies, "_library", lambda name: Old if name == "brotli" else None)
    bodies._inflaters.cache_clear()
    try:
        assert accepted_codings() == "gzip, deflate"
    finally:
        monkeypatch.undo()
        bodies._inflaters.cache_clear()
