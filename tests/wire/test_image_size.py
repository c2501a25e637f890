"""The pixel size of images, read from their bytes."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.simulator.operations.modalities import make_png
from interlingua.wire.image_size import ImageSize, read_image_size

EDGES = st.integers(1, 16_383)
SIZES = st.builds(ImageSize, EDGES, EDGES)


def jpeg(size, *, before=b"\xff\xe0\x00\x10JFIF\0\1\1\0\0\1\0\1\0\0", marker=0xC0):
    frame = struct.pack(">BBHBHH", 0xFF, marker, 17, 8, size.height, size.width)
    return b"\xff\xd8" + before + frame + bytes(10)


def riff(kind, payload):
    return b"RIFF" + bytes(4) + b"WEBP" + kind + struct.pack("<I", len(payload)) + payload


def webp_extended(size):
    edges = [(edge - 1).to_bytes(3, "little") for edge in size]
    return riff(b"VP8X", bytes(4) + b"".join(edges))


def webp_lossless(size):
    bits = (size.width - 1) | (size.height - 1) << 14
    return riff(b"VP8L", b"\x2f" + struct.pack("<I", bits))


def webp_lossy(size):
    return riff(b"VP8 ", bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", *size))


def avif(size):
    def tile(edges):
        return struct.pack(">I4sI", 20, b"ispe", 0) + struct.pack(">II", *edges)

    return struct.pack(">I4s4sI", 16, b"ftyp", b"avif", 0) + tile((1, 1)) + tile(size)


FORMS = {
    "png": lambda size: (
        make_png(ImageSize(size.width, 1), b"\0\0\0")[:16] + struct.pack(">II", *size)
    ),
    "gif": lambda size: b"GIF89a" + struct.pack("<HH", *size),
    "bmp": lambda size: b"BM" + bytes(16) + struct.pack("<ii", size.width, -size.height),
    "jpeg": jpeg,
    "jpeg, progressive": lambda size: jpeg(size, marker=0xC2),
    "jpeg, padded": lambda size: jpeg(size, before=b"\xff\xff\xff\xc4\x00\x04\xff\xc0"),
    "webp, extended": webp_extended,
    "webp, lossless": webp_lossless,
    "webp, lossy": webp_lossy,
    "avif": avif,
}
every_form = pytest.mark.parametrize("form", FORMS)


@every_form
@given(size=SIZES)
def test_every_format_shows_its_size(form, size):
    """The width and the height are read from the header of each format."""
    assert read_image_size(FORMS[form](size)) == size


@every_form
def test_a_file_that_is_cut_short_has_no_wrong_size(form):
    """Cut at any byte, a file shows its size or none."""
    whole = FORMS[form](ImageSize(640, 480))

    sizes = {read_image_size(whole[:end]) for end in range(len(whole))}

    assert sizes <= {None, ImageSize(640, 480), ImageSize(1, 1)}  # a tile of the AVIF


@given(st.sampled_from([make(ImageSize(3, 2))[:12] for make in FORMS.values()]), st.binary())
def test_any_bytes_are_read(start, rest):
    """Bytes that are no image have no size, and nothing is raised."""
    size = read_image_size(start + rest)

    assert size is None or min(size) > 0


@given(size=st.builds(ImageSize, st.integers(1, 300), st.integers(1, 300)))
def test_simulated_images_have_the_size_that_was_asked_for(size):
    """The simulator's PNG files show their size."""
    assert read_image_size(make_png(size, b"\x10\x20\x30")) == size
