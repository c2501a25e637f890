"""Vectors in JSON: lists of numbers, or 32-bit numbers in base64."""

from __future__ import annotations

import binascii
import sys
from array import array
from typing import TYPE_CHECKING, Any, TypeAlias

from interlingua.spec.errors import DecodeError

if TYPE_CHECKING:
    Vector: TypeAlias = array[float]
else:
    Vector = array  # generic only from Python 3.12
"""
The numbers of one embedding.

An `array` of typecode `f` where the provider sent 32-bit numbers, or `d` where it sent JSON, so
that nothing is rounded. It needs 4 or 8 bytes a number (a tuple needs 32), and numpy reads it
without a copy.
"""
_SWAPS = sys.byteorder == "big"  # on the wire the lowest byte comes first


def decode_vector(value: Any) -> Vector:
    """A vector, without rounding; raises `DecodeError` if `value` is none."""
    if isinstance(value, str):
        return _from_bytes(_bytes(value))
    if not isinstance(value, list):
        raise DecodeError("An embedding is neither a list of numbers nor base64.")
    try:
        return array("d", value)
    except (TypeError, OverflowError) as error:
        raise DecodeError(f"An embedding has a value that is no number: {error}.") from error


def decode_int8(value: Any) -> Vector:
    """A vector of 8-bit integers in base64."""
    if not isinstance(value, str):
        return decode_vector(value)
    return array("f", array("b", _bytes(value)))


def encode_vector(vector: Vector) -> str:
    """The vector as 32-bit numbers in base64."""
    numbers = vector if vector.typecode == "f" else array("f", vector)
    if _SWAPS:
        numbers = numbers[:]
        numbers.byteswap()
    return binascii.b2a_base64(numbers, newline=False).decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:  # not base64, or not ASCII
        raise DecodeError(f"An embedding is not base64: {error}.") from error


def _from_bytes(data: bytes) -> Vector:
    if len(data) % 4:
        raise DecodeError(f"An embedding has {len(data)} bytes, which are no 32-bit numbers.")
    numbers = array("f", data)
    if _SWAPS:
        numbers.byteswap()
    return numbers
