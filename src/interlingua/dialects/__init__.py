"""The dialects: one folder a wire format. No dialect knows another."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from interlingua.spec.contracts import DIALECT_NAMES, Dialect
from interlingua.spec.errors import ConfigurationError

__all__ = ["get", "names"]


def names() -> tuple[str, ...]:
    """The names `get` knows."""
    return DIALECT_NAMES


def get(name: str) -> Dialect:
    """The dialect of that name; it is loaded on first use."""
    if name not in DIALECT_NAMES:
        raise ConfigurationError(f"no dialect {name!r}; there are {', '.join(DIALECT_NAMES)}")
    return cast(Dialect, import_module(f"interlingua.dialects.{name}"))
