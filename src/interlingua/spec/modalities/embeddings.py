"""
Embeddings: texts and media as vectors.

In JSON a vector is a list of numbers, or 32-bit numbers in base64.
"""

from __future__ import annotations

import binascii
import sys
from array import array
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from interlingua.spec.content import MEDIA_TYPES, Extra, Part, Text
from interlingua.spec.errors import ConfigurationError, DecodeError
from interlingua.spec.operations import OperationInput, OperationResult

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


TaskType: TypeAlias = Literal[
    "query",
    "document",
    "similarity",
    "classification",
    "clustering",
    "question_answering",
    "fact_verification",
    "code_query",
]
"""What the vectors are for."""
VectorEncoding: TypeAlias = Literal["float", "base64"]
EmbedContent: TypeAlias = str | tuple[int, ...] | tuple[Part, ...]
"""What one vector is made of: a text, the ids of its tokens, or parts."""


class EmbedInput(OperationInput, frozen=True, kw_only=True):
    """What one call embeds."""

    inputs: tuple[EmbedContent, ...] = ()
    """One vector is made for each."""
    dimensions: int | None = None
    encoding: VectorEncoding | None = None
    """How the vectors are sent; None: the smaller form, where the provider has it."""
    task: TaskType | None = None
    user: str | None = None
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""

    @property
    def rough_size(self) -> int:
        """As in `OperationInput`."""
        return sum(map(content_size, self.inputs))


def content_size(content: EmbedContent) -> int:
    """About how many bytes one content has."""
    if isinstance(content, str):
        return len(content)
    return sum(map(_part_size, content))


def _part_size(part: int | Part) -> int:
    if isinstance(part, MEDIA_TYPES):
        return len(part.data or b"")
    return len(part.text) if isinstance(part, Text) else 1


class EmbedResult(OperationResult, frozen=True, kw_only=True):
    """
    One vector for each input, in the same order.

    `raw` is the body without the vectors.
    """

    embeddings: tuple[Vector, ...] = ()
    """The vectors."""
    keys: tuple[str, ...] = ()
    """The keys of the contents, in the same order, if `embed_many` was given a dict."""
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""

    @property
    def by_key(self) -> dict[str, Vector]:
        """The vectors by the keys of a dict that was given; empty if it was a list."""
        return dict(zip(self.keys, self.embeddings, strict=False))

    @property
    def embedding(self) -> Vector:
        """The only vector; `ConfigurationError` if there are several."""
        if len(self.embeddings) != 1:
            raise ConfigurationError(
                f"There are {len(self.embeddings)} embeddings, not one. Use `embeddings`."
            )
        return self.embeddings[0]

    def __repr__(self) -> str:
        sizes = sorted({len(vector) for vector in self.embeddings})
        shape = " or ".join(map(str, sizes)) or "0"
        return (
            f"EmbedResult({len(self.embeddings)} x {shape}, model={self.model!r}, "
            f"input_tokens={self.usage.input_tokens})"
        )
