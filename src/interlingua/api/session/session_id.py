"""The ids of sessions."""

from __future__ import annotations

from typing import Any

from interlingua.spec.check import refuse
from interlingua.spec.errors import ConfigurationError


def check_id(session_id: Any) -> None:
    """Raise `ConfigurationError` if it cannot be the id of a session."""
    if not isinstance(session_id, str):
        refuse("session_id", "a string", session_id)
    if storable(session_id) != session_id:
        text = f"session_id contains a lone surrogate: {session_id!r:.60}. No store takes it."
        raise ConfigurationError(text)


def storable(text: str) -> str:
    """The text without halves of character pairs, which SQLite does not take."""
    return text.encode(errors="replace").decode()
