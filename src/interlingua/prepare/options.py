"""Provider options: fields of one dialect, merged over the encoded body last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning, target_name
from interlingua.wire.fields import merge

AUTO_CACHE = "auto_cache"
"""A reserved option, never sent: False leaves prompt caching to the caller."""


def options_for(request: Request, dialect: str) -> dict[str, Any]:
    """The options meant for this dialect, by its own name or by the provider's."""
    merged: dict[str, Any] = {}
    given = request.provider_options
    if not given:  # as in most requests
        return merged
    for name in (dialect, request.provider):
        options = given.get(name) if name else None
        if isinstance(options, Mapping):
            merged = merge(merged, options)
    return merged


def foreign_options(
    request: Request, dialect: str, names: Callable[[], Iterable[str]]
) -> list[Warning]:
    """A warning for each other dialect, of these names, whose options this request carries."""
    if not request.provider_options:
        return []
    return [
        make_warning(
            "options_dropped",
            f"provider_options.{name}",
            owner=name,
            target=target_name(request, dialect),
            names=_names(options),
        )
        for name in names()
        if name != dialect and (options := _without_ours(request.provider_options.get(name)))
    ]


def _without_ours(options: Any) -> Any:
    """An option that no dialect sends is none that another cannot say."""
    if not isinstance(options, Mapping) or AUTO_CACHE not in options:
        return options
    return {name: value for name, value in options.items() if name != AUTO_CACHE}


def _names(options: Any) -> str:
    return ", ".join(sorted(map(str, options))) if isinstance(options, Mapping) else repr(options)


# The settings a request says, of those an encoder knows.


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
