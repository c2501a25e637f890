"""Embeddings: texts as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from interlingua.spec.operations import OperationInput, OperationResult

Vector: TypeAlias = tuple[float, ...]
TaskType: TypeAlias = Literal["query", "document", "similarity", "classification", "clustering"]
"""What the vectors are for; providers without task types ignore it."""


class EmbedInput(OperationInput, frozen=True, kw_only=True):
    """The texts of one call."""

    inputs: tuple[str | Sequence[int], ...] = ()
    """Texts, or lists of token ids."""
    dimensions: int | None = None
    encoding: Literal["float", "base64"] | None = None
    """How the vectors are sent; the result is the same."""
    task: TaskType | None = None
    user: str | None = None

    @property
    def rough_size(self) -> int:
        """As in `OperationInput`."""
        return sum(map(len, self.inputs))


class EmbedResult(OperationResult, frozen=True, kw_only=True):
    """One vector for each input, in the same order."""

    embeddings: tuple[Vector, ...] = ()
