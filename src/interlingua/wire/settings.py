"""The settings a request says, of those an encoder knows."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from interlingua.spec.request import Request


class Settings:
    """
    Some fields of requests, read all at once: most requests say few of them.

        for name, value in Settings("seed", "user").said(request): …
    """

    __slots__ = ("_names", "_read", "_unsaid")

    def __init__(self, first: str, second: str, *others: str) -> None:
        self._names = (first, second, *others)
        self._read = attrgetter(*self._names)
        self._unsaid = (None,) * len(self._names)

    def said(self, request: Request) -> Sequence[tuple[str, Any]]:
        """The name and value of each that is said, in the order they are named here."""
        values = self._read(request)
        if values == self._unsaid:
            return ()
        pairs = zip(self._names, values, strict=True)
        return [pair for pair in pairs if pair[1] is not None]
