"""
Tool calls on the wire: ids for calls without one, and arguments as text that any client can parse.

Some providers send no text, `null` or `[]` for a call without arguments, and a model may write
text that is not a JSON object. Many clients parse the text and require an object.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec

from interlingua.spec.content import ToolCall
from interlingua.spec.contracts import NewId
from interlingua.spec.messages import Message
from interlingua.wire.json_text import dump_text


def counting_ids() -> NewId:
    """Deterministic ids `1`, `2`, …: the default for pure decoding. Adapters pass ULIDs."""
    numbers = count(1)
    return lambda: str(next(numbers))


def call_ids(new_id: NewId) -> NewId:
    """`new_id` with the prefix `call_`."""
    return lambda: f"call_{new_id()}"


_NO_ARGUMENTS = ("", "null", "[]")


def plain_call(call: ToolCall) -> ToolCall:
    """The call, with `{}` as its argument text if the text was empty, `null` or `[]`."""
    raw = call.raw_arguments
    if raw is None or call.type == "custom" or call.arguments:
        return call
    if "".join(raw.split()) not in _NO_ARGUMENTS:
        return call
    return msgspec.structs.replace(call, raw_arguments="{}")


def plain_calls(message: Message) -> Message:
    """The message, with `plain_call` applied to each tool call; the same object if unchanged."""
    content = tuple(
        plain_call(part) if isinstance(part, ToolCall) else part for part in message.content
    )
    if all(new is old for new, old in zip(content, message.content, strict=True)):
        return message
    return msgspec.structs.replace(message, content=content)


def input_object(call: ToolCall) -> dict[str, Any]:
    """
    The arguments as an object, for wire formats that allow nothing else.

    Free text, and text that does not parse, becomes `{"input": text}`.
    """
    if call.type == "custom" or not (call.arguments or call.is_valid):
        return {"input": call.raw_arguments}
    return call.arguments


class ArgumentText:
    """
    The argument text of one tool call that is being streamed.

    Text that starts with `{` is passed on fragment by fragment. Any other text is held back
    until the call ends, because its replacement depends on the whole text. `wrap` says that
    the target accepts only an object; `is_free` says that the text is free text (a custom tool).
    """

    __slots__ = ("_before", "_state", "_wrap")

    def __init__(self, *, wrap: bool = False, is_free: bool = False) -> None:
        self._wrap = wrap
        self._state = "waiting"
        if is_free:
            self._state = "held" if wrap else "passing"
        self._before: list[str] = []  # white space before the first other character

    def feed(self, fragment: str) -> str:
        """The text that can be sent now."""
        if self._state == "waiting":
            self._before.append(fragment)
            text = fragment.lstrip()
            if not text:
                return ""
            self._state = "passing" if text[0] == "{" else "held"
            fragment = "".join(self._before)
        return fragment if self._state == "passing" else ""

    def end(self, call: ToolCall) -> str:
        """The text that was held back, or its replacement; empty if all was sent."""
        if self._state == "passing":
            return ""
        raw = plain_call(call).raw_arguments
        return dump_text(input_object(call)) if self._wrap or raw is None else raw
