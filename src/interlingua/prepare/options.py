"""Provider options: fields of one dialect, merged into the encoded body last."""

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
    if not request.provider_options:  # the usual request
        return merged
    for name in (dialect, request.provider):
        options = request.provider_options.get(name) if name else None
        if isinstance(options, Mapping):
            merged = merge(merged, options)
    return merged


def foreign_options(
    request: Request, dialect: str, names: Callable[[], Iterable[str]]
) -> list[Warning]:
    """A warning for each other dialect, of these names, whose options this request carries."""
    if not request.provider_options:
        return []
    target = target_name(request, dialect)
    warnings = []
    for name in names():
        options = request.provider_options.get(name)
        if not options or name == dialect:
            continue
        if isinstance(options, Mapping):
            keys = sorted(str(key) for key in options if key != AUTO_CACHE)
        else:
            keys = [repr(options)]
        if keys:
            path, listed = f"provider_options.{name}", ", ".join(keys)
            warnings.append(
                make_warning("options_dropped", path, owner=name, target=target, names=listed)
            )
    return warnings


class Settings:
    """
    Some fields of requests, read all at once, because most requests set few of them.

        for name, value in Settings("seed", "user").said(request): …
    """

    __slots__ = ("_names", "_read", "_unset")

    def __init__(self, first: str, second: str, *others: str) -> None:
        self._names = (first, second, *others)
        self._read = attrgetter(*self._names)
        self._unset = (None,) * len(self._names)

    def said(self, request: Request) -> Sequence[tuple[str, Any]]:
        """The names and values of the fields that are set, in the order of the constructor."""
        values = self._read(request)
        if values == self._unset:
            return ()
        pairs = zip(self._names, values, strict=True)
        return [pair for pair in pairs if pair[1] is not None]
