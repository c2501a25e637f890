"""What a session keeps; `document` writes it as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from interlingua.api.session.turns import Turn
from interlingua.spec.content import Record
from interlingua.spec.response import Cost, Usage
from interlingua.spec.settings import RequestSettings

HistoryMode: TypeAlias = Literal["full", "dynamic", "stateless"]
"""What of the history a turn sends: all of it, what fits into the context window, or nothing."""
_OF_A_CALL = frozenset(("request_id", "session_id"))
_OF_RUNS = frozenset(
    (
        *("limits", "max_tool_rounds", "max_validation_retries", "tool_timeout", "max_tool_output"),
        *("max_concurrent_tools", "max_retries", "retry_policy", "timeout", "on_overflow"),
        *("usage_batch_size", "caller_id"),
    )
)
SAVED = (frozenset(RequestSettings.__annotations__) - _OF_A_CALL) | _OF_RUNS
"""
The options that are saved: settings of requests, and those of runs that are plain values.

No other option is read from a file: one with a `base_url` would send the caller's key there.
"""


class SavedSession(Record, frozen=True, kw_only=True):
    """Everything that a session keeps."""

    session_id: str
    model: str | None = None
    reason: str = ""
    title: str | None = None
    parent: str | None = None
    system: str | None = None
    history: HistoryMode = "full"
    options: Mapping[str, Any] = {}
    not_saved: tuple[str, ...] = ()
    """The names of options that it has and that cannot be saved."""
    turns: tuple[Turn, ...] = ()
    tool_ids: Mapping[str, Mapping[str, str]] = {}
    usage: Usage = Usage()
    cost: Cost | None = None
    has_unknown_cost: bool = False
    data: Mapping[str, Any] = {}
    omitted: int = 0
    summary: str | None = None


def is_saved(name: str, value: object) -> bool:
    """Whether an option with this value is saved."""
    return name in SAVED and not callable(value) and getattr(value, "on_retry", None) is None
