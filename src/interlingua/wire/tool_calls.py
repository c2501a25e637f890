"""
Tool calls on the wire: ids for calls without one, and arguments as text that any client can parse.

Some providers send no text, `null` or `[]` for a call without arguments, and a model may write
text that is not a JSON object. Many clients parse the text and require an object.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Any

import msgspec

from interlingua.spec.content import Part, ToolCall
from interlingua.spec.contracts import NewId
from interlingua.spec.messages import Message
from interlingua.spec.response import Reason
from interlingua.wire.json_text import dump_text, loads

_match_input = re.compile(r'\s*\{\s*"input"\s*:\s*"').match
_LONGEST_START = 64
"""Characters before the text of `input`, if it is the first argument."""


def counting_ids() -> NewId:
    """Deterministic ids `1`, `2`, …: the default for pure decoding. Adapters pass ULIDs."""
    numbers = count(1)
    return lambda: str(next(numbers))


def call_ids(new_id: NewId) -> NewId:
    """`new_id` with the prefix `call_`."""
    return lambda: f"call_{new_id()}"


_NO_ARGUMENTS = ("", "null", "[]")


def plain_call(call: ToolCall) -> ToolCall:
    """The tool call, with `{}` as its argument text if the text was empty, `null` or `[]`."""
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
    is_text = bool(call.raw_arguments) and not (call.arguments or call.is_valid)
    if call.type == "custom" or is_text:
        return {"input": call.raw_arguments}
    return call.arguments


def mark_cut(content: tuple[Part, ...], reason: Reason) -> tuple[Part, ...]:
    """The parts of an answer; a last tool call that a limit cut before its arguments is marked."""
    last = content[-1] if content and reason == "length" else None
    if not isinstance(last, ToolCall) or last.arguments or last.raw_arguments:
        return content
    return (*content[:-1], msgspec.structs.replace(last, is_cut=True))


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


# The text of a custom tool, in the arguments of the function that was sent in its place.


def text_argument(call: ToolCall) -> str:
    """
    The text in the arguments: that of `input`, or else of the only argument.

    Of arguments that do not parse, it is what can be read. A model that ignores the schema may
    send anything: then it is the whole argument text.
    """
    from interlingua.wire.partial_json import parse_partial

    raw = call.raw_arguments
    arguments = call.arguments
    if not arguments and raw is not None:
        partial = parse_partial(raw)
        arguments = partial if isinstance(partial, dict) else {}
    value = arguments.get("input")
    if not isinstance(value, str) and len(arguments) == 1:
        value = next(iter(arguments.values()))
    if isinstance(value, str):
        return value
    return dump_text(arguments) if raw is None else raw


class TextArgument:
    """
    The text of the argument `input` of a call that is being streamed.

    It is passed on as it arrives if `input` is the first argument, else at the end. In `text` is
    what was passed on.
    """

    __slots__ = ("_pieces", "_rest", "_state")

    def __init__(self) -> None:
        self._state = "before"
        self._rest = ""  # not yet read
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def feed(self, fragment: str) -> str:
        """The text that this fragment of the arguments adds."""
        if self._state == "after":
            return ""
        self._rest += fragment
        if self._state == "before":
            match = _match_input(self._rest)
            if match is None:
                if len(self._rest) > _LONGEST_START:
                    self._state = "after"
                return ""
            self._rest = self._rest[match.end() :]
            self._state = "within"
        return self._pass(self._read())

    def end(self, call: ToolCall) -> str:
        """The text that was not passed on yet."""
        self._state = "after"
        whole, sent = text_argument(call), self.text
        return self._pass(whole[len(sent) :]) if whole.startswith(sent) else ""

    def _pass(self, text: str) -> str:
        if text:
            self._pieces.append(text)
        return text

    def _read(self) -> str:
        from interlingua.wire.partial_json import skip_string_text

        text, end = self._rest, 0
        while (match := skip_string_text(text, end)) is not None and match.end() > end:
            end = match.end()
        self._rest = text[end:]
        if self._rest[:1] not in ("", "\\"):  # the closing quote, or what no JSON string contains
            self._state = "after"
        piece: str = loads(f'"{text[:end]}"')
        return piece
