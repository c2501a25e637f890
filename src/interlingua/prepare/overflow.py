"""A history that no longer fits: without its oldest turns."""

from __future__ import annotations

from interlingua.spec.content import ToolResult
from interlingua.spec.messages import Message

PROMPTS = ("system", "developer")
"""The roles of instructions."""


def drop_oldest_turns(messages: tuple[Message, ...], keep: float = 0.5) -> tuple[Message, ...]:
    """
    The instructions, and the later turns: about that share of them, one at least.

    A turn begins with words of the user, so that calls and their results go or stay together.
    The same history if it is one turn: what is asked cannot be left out.
    """
    begin = 0
    while begin < len(messages) and messages[begin].role in PROMPTS:
        begin += 1
    turns = [at for at in range(begin, len(messages)) if _begins_turn(messages[at])]
    if len(turns) < 2:
        return messages
    kept = max(1, int(len(turns) * keep))
    return messages[:begin] + messages[turns[-kept] :]


def _begins_turn(message: Message) -> bool:
    return message.role == "user" and not any(
        isinstance(part, ToolResult) for part in message.content
    )
