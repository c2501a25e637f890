"""Callbacks of programs, which may be sync or async."""

from __future__ import annotations

import inspect
from typing import Any


async def settle(outcome: Any) -> Any:
    """What a callback returned; awaited if it is awaitable."""
    return await outcome if inspect.isawaitable(outcome) else outcome
