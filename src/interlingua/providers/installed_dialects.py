"""Dialects by name, those of other packages included (the registry itself does no I/O)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from interlingua import dialects
from interlingua.spec.contracts import Dialect
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "interlingua.dialects"
"""The group of entry points through which other packages add dialects: each names a module."""


def find_dialect(name: str) -> Dialect:
    """The dialect of that name; `ConfigurationError` lists those there are."""
    check_dialect(name)
    return dialects.get(name)


def check_dialect(name: str) -> None:
    """`ConfigurationError` if there is no such dialect; a shipped one is not loaded for that."""
    if name not in dialects.names():
        _register_installed()
    if name not in dialects.names():
        known = ", ".join(dialects.names())
        raise ConfigurationError(f"no dialect {name!r}; there are {known}")


@cache
def _register_installed() -> None:
    from importlib.metadata import entry_points

    register_points(entry_points(group=ENTRY_POINTS))


def register_points(points: Iterable[EntryPoint]) -> None:
    """Register what these entry points name."""
    for point in points:
        try:
            dialects.register(point.load())
        except Exception as error:  # noqa: BLE001 -- it is somebody else's code
            # one package that is broken must not stop the others
            message = f"entry point {point.name!r} of {ENTRY_POINTS} is left out: {error!r}"
            warnings.warn(message, RuntimeWarning, stacklevel=2)
