"""The short way for what most of a long conversation is made of."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.spec.content import (
    MEDIA_TYPES,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from interlingua.spec.messages import Message


def plain_text(message: Message) -> str | None:
    """What a message says, if it is one text and nothing is told beside it; else None."""
    if len(message.content) == 1 and not message.extra and message.name is None:
        part = message.content[0]
        if type(part) is Text and not part.extra:
            return part.text
    return None


def plain_turn(message: Message) -> tuple[Text | ToolCall, ...] | None:
    """What the model made, if it is texts and calls and nothing is told beside them; else None."""
    if message.role != "assistant" or message.extra or message.name is not None:
        return None
    for part in message.content:
        if (type(part) is not ToolCall and type(part) is not Text) or part.extra:
            return None
    return message.content  # type: ignore[return-value]  # as was seen


def plain_result(message: Message) -> ToolResult | None:
    """The result that a message is, if it is a text of success and nothing is told beside it."""
    if message.role == "tool" and len(message.content) == 1 and not message.extra:
        part = message.content[0]
        if type(part) is ToolResult and type(part.content) is str:
            return None if part.extra or part.is_error or message.name is not None else part
    return None


def parts_of(messages: Sequence[Message]) -> list[Part]:
    """All parts, those in results aside."""
    return [part for message in messages for part in message.content]


def may_hold_media(messages: Sequence[Message]) -> bool:
    """Whether any part is of media, or a result made of parts; quick, as most is text."""
    kinds = {type(part) for message in messages for part in message.content}
    if not kinds.isdisjoint(MEDIA_TYPES):
        return True
    if ToolResult not in kinds:
        return False
    results = [part for part in parts_of(messages) if type(part) is ToolResult]
    return any(type(result.content) is tuple for result in results)
