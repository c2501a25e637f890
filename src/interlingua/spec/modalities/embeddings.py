"""Embeddings: texts and media as vectors."""

from __future__ import annotations

from typing import Literal, TypeAlias

from interlingua.spec.content import MEDIA_TYPES, Extra, Part, Text
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.modalities.vectors import Vector
from interlingua.spec.operations import OperationInput, OperationResult

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
    extra: Extra = {}
    """Other fields, by dialect, as in parts."""

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
