"""Vectors on the wire."""

import base64
import struct
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.errors import DecodeError
from interlingua.spec.modalities.embeddings import decode_int8, decode_vector, encode_vector

numbers = st.floats(allow_nan=False, allow_infinity=False)
small = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(numbers))
def test_a_list_is_read_without_rounding(values):
    """JSON has 64-bit numbers."""
    assert decode_vector(values).tolist() == values


@given(st.lists(small))
def test_base64_is_32_bit_numbers_with_the_lowest_byte_first(values):
    """It is read and written without a change."""
    text = base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()

    vector = decode_vector(text)

    assert vector.tolist() == values
    assert vector.typecode == "f"
    assert encode_vector(vector) == text
    assert encode_vector(array("d", values)) == text


def test_a_vector_needs_a_fraction_of_the_memory_of_a_tuple():
    """4 or 8 bytes a number; a tuple of floats has 32."""
    assert decode_vector(encode_vector(array("f", [0.5] * 1000))).itemsize == 4
    assert decode_vector([0.5] * 1000).itemsize == 8


@given(st.binary())
def test_vectors_may_be_8_bit_integers(data):
    """As one host sends them."""
    text = base64.b64encode(data).decode()

    assert decode_int8(text).tolist() == [*struct.unpack(f"{len(data)}b", data)]


@pytest.mark.parametrize(
    "value",
    [None, 3, {}, ["a"], [None], [10**400], "a", "AAA=", "ä", "AAAA!AAA", "AAAAAAA="],
)
def test_what_is_no_vector(value):
    """A typed error."""
    with pytest.raises(DecodeError, match="embedding"):
        decode_vector(value)
