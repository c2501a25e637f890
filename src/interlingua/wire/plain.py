"""The short way for what most of a long conversation is made of."""

from __future__ import annotations

from interlingua.spec.content import Text
from interlingua.spec.messages import Message


def plain_text(message: Message) -> str | None:
    """What a message says, if it is one text and nothing is told beside it; else None."""
    if len(message.content) == 1 and not message.extra and message.name is None:
        part = message.content[0]
        if type(part) is Text and not part.extra:
            return part.text
    return None
