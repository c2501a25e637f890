"""Streams: what the end of an `async with` block closes, and what is not there before the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

NOT_ENDED = "The stream has not ended. Read it to its end first."


class ClosedByAsyncWith(ABC):
    """A context manager: the end of an `async with` block closes it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """End it."""
