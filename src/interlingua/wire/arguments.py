"""
Argument text for a reader that parses it.

A call without arguments may have come with no text at all, or `null`; and a call's text may
be no object. Where the source was lenient the reader may not be.
"""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.spec.content import ToolCall
from interlingua.spec.messages import Message
from interlingua.wire.json_text import dump_text

_NOTHING = ("", "null")


def plain_call(call: ToolCall) -> ToolCall:
    """The call, its argument text an object if it says nothing."""
    raw = call.raw_arguments
    if raw is None or call.type == "custom" or call.arguments or raw.strip() not in _NOTHING:
        return call
    return msgspec.structs.replace(call, raw_arguments="{}")


def plain_calls(message: Message) -> Message:
    """The message, with each of its calls so."""
    content = tuple(
        plain_call(part) if isinstance(part, ToolCall) else part for part in message.content
    )
    if all(new is old for new, old in zip(content, message.content, strict=True)):
        return message
    return msgspec.structs.replace(message, content=content)


def input_object(call: ToolCall) -> dict[str, Any]:
    """The arguments where only an object can be said: text that is none goes in one."""
    if call.type == "custom" or not (call.arguments or call.is_valid):
        return {"input": call.raw_arguments}
    return call.arguments


class ArgumentText:
    """
    The text of one call on its way.

    Text that begins as an object goes on as it comes. Any other, and free text where the
    reader expects an object (`wrap`), is held back: only when it is whole is it known what
    to say instead.
    """

    __slots__ = ("_before", "_state", "_wrap")

    def __init__(self, *, wrap: bool = False, is_free: bool = False) -> None:
        self._wrap = wrap
        self._state = "waiting"
        if is_free:
            self._state = "held" if wrap else "passing"
        self._before: list[str] = []  # blanks before the first sign

    def feed(self, fragment: str) -> str:
        """What may go on now."""
        if self._state == "waiting":
            self._before.append(fragment)
            text = fragment.lstrip()
            if not text:
                return ""
            self._state = "passing" if text[0] == "{" else "held"
            fragment = "".join(self._before)
        return fragment if self._state == "passing" else ""

    def end(self, call: ToolCall) -> str:
        """What is left to say."""
        if self._state == "passing":
            return ""
        raw = plain_call(call).raw_arguments
        return dump_text(input_object(call)) if self._wrap or raw is None else raw
