"""Warnings: the list that collects them, and which of them are losses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from interlingua.spec.errors import UnsupportedError, UnsupportedToolChoiceError
from interlingua.spec.response import Warning

NOTES: frozenset[str] = frozenset(
    (
        # said in other words, with nothing left out
        "allowed_tools_narrowed",
        "arguments_wrapped",
        "call_id_made",
        "call_id_mapped",
        "custom_tool_as_function",
        "developer_as_system",
        "document_as_text",
        "effort_as_budget",
        "foreign_thinking_as_text",
        "is_error_as_text",
        "media_type_guessed",
        "refusal_as_text",
        "stale_thinking_as_text",
        "structured_output_fallback",
        "tool_error_as_text",
        "tools_withheld",
        "unsigned_call_marked",
        "unsigned_thinking_as_text",
        "zero_budget_as_effort",
        # said in another place
        "messages_merged",
        "result_media_moved",
        "result_moved",
        "results_gathered",
        "results_put_first",
        "results_reordered",
        "tool_media_moved",
        # filled in, where something was missing
        "missing_result_added",
        "placeholder_added",
        # not said, because there was nothing in it
        "blank_text_dropped",
        "empty_message_dropped",
        # not said, because the target does just that anyway
        "frequency_penalty_implied",
        "parallel_tool_calls_implied",
        "presence_penalty_implied",
        "reasoning_effort_implied",
        "strict_implied",
        "temperature_implied",
        "thinking_budget_implied",
        "tool_choice_implied",
        "top_p_implied",
        # not said, because nobody but its maker could have read it
        "foreign_thinking_dropped",
        "stale_signatures_dropped",
        "stale_thinking_dropped",
        "thinking_of_another_model_dropped",
        "thinking_only_dropped",
        "trailing_thinking_dropped",
        "unpaired_thinking_dropped",
        "unsigned_thinking_dropped",
    )
)
"""The codes of warnings that take nothing from the meaning. Every other code is a loss."""


class Losses:
    """Collects what could not be said."""

    __slots__ = ("origin", "warnings")

    def __init__(self) -> None:
        self.warnings: list[Warning] = []
        self.origin: Callable[[str], str | None] | None = None
        """Of a path in what is said, the path in what the caller gave, if they differ."""

    def add(self, code: str, message: str, path: str | None = None) -> None:
        """One more."""
        if self.origin is not None and path is not None:
            path = self.origin(path)
        self.warnings.append(Warning(code=code, message=message, path=path))

    def dropped(
        self, what: str, dialect: str, path: str | None = None, *, code: str | None = None
    ) -> None:
        """Something this dialect has no words for was left out; `code` if `what` varies."""
        code = code or what.replace(" ", "_")
        self.add(f"{code}_dropped", f"{what} cannot be said in {dialect}; it was left out", path)

    def foreign_block(self, owner: str, dialect: str, path: str) -> None:
        """A block of another dialect was left out."""
        self.dropped(f"a block of {owner}", dialect, path, code="foreign_block")

    def foreign_thinking(self, dialect: str, path: str) -> None:
        """What another model thought was left out."""
        self.dropped("thinking of another model", dialect, path, code="foreign_thinking")

    def builtin_tool(self, owner: str, dialect: str, path: str) -> None:
        """A tool that another provider runs was left out."""
        self.dropped(f"a built-in tool of {owner}", dialect, path, code="builtin_tool")


def is_loss(warning: Warning) -> bool:
    """Whether something was dropped, or means something else now."""
    return warning.code not in NOTES


def raise_on_loss(warnings: Iterable[Warning]) -> None:
    """For strict clients: `UnsupportedError` if anything was lost; it lists every loss."""
    losses = [warning for warning in warnings if is_loss(warning)]
    if not losses:
        return
    said = "; ".join(f"{warning.code}: {warning.message}" for warning in losses)
    about_choice = any(warning.code.startswith("tool_choice") for warning in losses)
    kind = UnsupportedToolChoiceError if about_choice else UnsupportedError
    raise kind(f"strict mode, and the target cannot say all of the request: {said}")
