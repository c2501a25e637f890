"""Callbacks of programs, which may be sync or async."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

if sys.version_info >= (3, 14):
    from annotationlib import Format


async def settle(outcome: Any) -> Any:
    """The value that a callback returned, which is awaited if it is awaitable."""
    return await outcome if inspect.isawaitable(outcome) else outcome


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function; unknown names in its annotations are no error here."""
    if sys.version_info >= (3, 14):  # annotations are evaluated when they are asked for
        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)
