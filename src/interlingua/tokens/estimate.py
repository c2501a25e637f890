"""
Tokens, estimated offline.

A tokenizer cuts text into words, numbers, runs of punctuation and white space, and cuts the
rarer of these again. So the segments are counted, each kind has its weight, and what a
provider adds around them (roles, tools, schemas) is a row of rates. The weights are fitted to
what OpenAI's `o200k_base` makes of many kinds of text, the rates to recorded requests whose
provider said how many tokens it had read.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any, assert_never

from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import BuiltinTool, Request
from interlingua.tokens.rates import Rates, rates_for
from interlingua.wire.json_text import dump_text

_LETTER, _UPPER, _DIGIT, _MARK, _SPACE, _LINE = (1 << bit for bit in range(6))
_CONTINUATION = bytes(range(0x80, 0xC0))  # of UTF-8; without these, a character is one byte
_ASCII = bytes(range(0x80))
_BLOCK = 4096  # integers of this many bytes stay in the processor's cache
_ONES = int.from_bytes(b"\1" * _BLOCK, "little")

_WORD = 1.03  # a capital inside a word begins another: getWeather
_LONG = 0.042  # each letter of a word after the seventh
_NUMBER, _EACH_DIGIT = 1.35, 0.25
_MARKS, _EACH_MARK = 0.487, 0.191  # a run such as `":{"` is often one token
_BREAK = 0.763  # line ends, and spaces in a row

_SCRIPTS = (
    (range(0xC3, 0xCE), 1.3),  # Latin with accents, which tell of words that are cut more often
    (range(0xCE, 0xD0), 0.4),  # Greek
    (range(0xD0, 0xD4), 0.31),  # Cyrillic
    (range(0xD4, 0xD8), 0.32),  # Armenian, Hebrew
    (range(0xD8, 0xE1), 0.4),  # Arabic, Indic, Thai
    (range(0xE1, 0xE2), 0.16),  # Vietnamese, Georgian
    (range(0xE3, 0xE4), 0.78),  # Kana
    (range(0xE4, 0xEA), 0.75),  # Han
    (range(0xEA, 0xEE), 0.75),  # Hangul
    (range(0xF0, 0xF5), 2.0),  # emoji
)
"""First bytes of characters in UTF-8, and the tokens that each of these adds."""


def _classes() -> bytes:
    table = bytearray([_MARK]) * 256
    for first, last, flags in (
        (0x30, 0x39, _DIGIT),
        (0x41, 0x5A, _LETTER | _UPPER),
        (0x61, 0x7A, _LETTER),
        (0x80, 0xFF, 0),
        (0xC2, 0xC2, _MARK),
        (0xC3, 0xCD, _LETTER),
        (0xE1, 0xE1, _LETTER),
        (0xE2, 0xE2, _MARK),
        (0xEE, 0xEF, _MARK),  # full-width forms
    ):
        table[first : last + 1] = bytes([flags]) * (last + 1 - first)
    table[0x20] = table[0x09] = _SPACE
    table[0x0A] = table[0x0D] = _LINE
    return bytes(table)


_CLASSES = _classes()


def estimate_tokens(text: str, family: str = "") -> int:
    """
    About how many tokens a text is.

    `family` is the id of a model, or the name of a provider or dialect; OpenAI's newer
    models are the default. Within 10 % for most English, code and JSON; languages written in
    Latin letters without accents may have up to a third more.
    """
    return max(1, ceil(rates_for(family).text * _count(text))) if text else 0


def estimate_request(request: Request, family: str = "") -> int:
    """
    About how many tokens a provider will read: messages, tools, schemas and media.

    The model's own id tells how they are counted; where it does not, `family` does (see
    `estimate_tokens`). What the provider adds unseen (stored turns, results of its own
    tools) is not counted, and media by a rule of thumb.
    """
    rates = rates_for(request.model, family)
    tally = _tally(request, rates)
    tokens = (
        rates.request
        + rates.text * _count(" ".join(tally.texts))
        + rates.thinking * _count(" ".join(tally.thoughts))
        + rates.signature * tally.signatures
        + rates.message * tally.messages
        + rates.call * tally.calls
        + rates.tool * tally.tools
        + rates.node * tally.nodes
        + sum(_count_media(part, rates) for part in tally.media)
    )
    if tally.tools:
        tokens += rates.tools + (rates.forced if tally.is_forced else 0)
    if tally.format_nodes:
        tokens += rates.format + rates.format_node * tally.format_nodes
    return ceil(tokens)


def _count(text: str) -> float:
    data = text.encode("utf-8", "surrogatepass")
    tokens = 0.0
    if len(data) != len(text):
        data = data.translate(None, _CONTINUATION)
        leads = data.translate(None, _ASCII)
        for script, weight in _SCRIPTS:
            tokens += weight * (len(leads) - len(leads.translate(None, bytes(script))))
    classes = data.translate(_CLASSES)
    for start in range(0, len(classes), _BLOCK):
        tokens += _count_block(classes[start : start + _BLOCK])
    return tokens


def _count_block(classes: bytes) -> float:
    # One byte a character, one bit a class: shifts and masks over a single integer find the
    # starts of all segments at once. A regular expression takes ten times as long.
    flags = int.from_bytes(classes, "little")
    starts = flags & ~(flags << 8)
    letters = flags & _ONES
    words = starts & _ONES | starts >> 1 & letters << 8 & _ONES
    in_row = letters & letters >> 8
    in_row &= in_row >> 16
    in_row &= in_row >> 32  # eight letters from here on
    breaks = starts >> 5 & _ONES | starts >> 4 & flags >> 12 & _ONES
    return (
        _WORD * words.bit_count()
        + _LONG * in_row.bit_count()
        + _NUMBER * (starts >> 2 & _ONES).bit_count()
        + _EACH_DIGIT * (flags >> 2 & _ONES).bit_count()
        + _MARKS * (starts >> 3 & _ONES).bit_count()
        + _EACH_MARK * (flags >> 3 & _ONES).bit_count()
        + _BREAK * breaks.bit_count()
    )


class _Tally:
    """What a request holds that costs tokens."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.signatures = 0
        self.messages = 0
        self.calls = 0
        self.tools = 0
        self.is_forced = False
        self.nodes = 0
        self.format_nodes = 0
        self.media: list[Image | Audio | Document] = []

    def add_part(self, part: Part, *, is_old: bool) -> None:
        match part:
            case Text() | Refusal():
                self.texts.append(part.text)
            case Thinking():
                if not is_old:
                    self.thoughts.append(part.text)
            case ToolCall():
                self.calls += 1
                self.texts += part.name, _arguments(part)
            case ToolResult():
                self.calls += 1
                self.add_result(part, is_old=is_old)
            case Image() | Audio() | Document():
                self.add_media(part)
            case Opaque():
                self.texts.append(dump_text(part.data))
            case _:
                assert_never(part)
        if not is_old:
            self.signatures += _signature(part)

    def add_result(self, result: ToolResult, *, is_old: bool) -> None:
        content = result.content
        if isinstance(content, str):
            self.texts.append(content)
        elif isinstance(content, tuple):
            for part in content:
                self.add_part(part, is_old=is_old)
        else:
            self.texts.append(dump_text(content))

    def add_media(self, part: Image | Audio | Document) -> None:
        if isinstance(part, Document):
            if part.text is not None:
                self.texts.append(part.text)
                return
            if part.data is not None and (part.media_type or "").startswith("text/"):
                self.texts.append(part.data.decode("utf-8", "replace"))
                return
        self.media.append(part)

    def add_schema(self, schema: Any) -> int:
        """The words of a JSON Schema are added; returns how many schemas it is made of."""
        nodes, todo = 0, [schema]
        while todo:
            value = todo.pop()
            if isinstance(value, list):
                todo += value
            elif isinstance(value, dict):
                nodes += 1
                todo += self.add_keywords(value)
        return nodes

    def add_keywords(self, schema: dict[str, Any]) -> list[Any]:
        """The words that stand in this schema itself; returns the schemas inside it."""
        inner: list[Any] = []
        for key, value in schema.items():
            if key in _NAMED and isinstance(value, dict):
                self.texts += value
                inner += value.values()
            elif key == "enum" and isinstance(value, list):
                self.texts += map(str, value)
            elif key == "description" and isinstance(value, str):
                self.texts.append(value)
            elif isinstance(value, (dict, list)):
                inner.append(value)
        return inner


_NAMED = frozenset(("properties", "$defs", "definitions", "patternProperties"))


def _tally(request: Request, rates: Rates) -> _Tally:
    tally = _Tally()
    last = -1
    if not rates.keeps_thinking:
        last = max((i for i, m in enumerate(request.messages) if _asks(m)), default=-1)
    tally.messages = len(request.messages)
    for index, message in enumerate(request.messages):
        if message.name:
            tally.texts.append(message.name)
        for part in message.content:
            tally.add_part(part, is_old=index < last)
    for tool in request.tools or ():
        tally.tools += 1
        if isinstance(tool, BuiltinTool):
            tally.texts.append(dump_text(tool.data))
        else:
            tally.texts += tool.name, tool.description or ""
            tally.nodes += tally.add_schema(tool.parameters)
    choice, shape = request.tool_choice, request.response_format
    tally.is_forced = choice is not None and choice.mode in ("required", "named")
    if shape is not None and shape.json_schema is not None and rates.format_node:
        tally.texts += shape.name or "", shape.description or ""
        tally.format_nodes = tally.add_schema(shape.json_schema)
    return tally


def _asks(message: Message) -> bool:
    """The user speaks here, which makes the thinking before it old."""
    return message.role == "user" and any(type(p) is not ToolResult for p in message.content)


def _arguments(call: ToolCall) -> str:
    return dump_text(call.arguments) if call.raw_arguments is None else call.raw_arguments


def _signature(part: Part) -> int:
    """Characters of a thought that only its maker can read."""
    size = 0
    if isinstance(part, Thinking):
        size = len(part.signature or "") + len(part.data or "")
    for kept in part.extra.values():
        if isinstance(kept, Mapping) and isinstance(kept.get("thoughtSignature"), str):
            size += len(kept["thoughtSignature"])
    return size


_BYTES_OF_SOUND = 16_000  # a second of it, as MP3 of common quality
_BYTES_OF_VIDEO = 250_000
_VIDEO_TO_SOUND = 8  # a second of video costs this much more
_UNSEEN = 30  # seconds, for what is only named


def _count_media(part: Image | Audio | Document, rates: Rates) -> float:
    size = len(part.data or b"")
    if isinstance(part, Image):
        return min(85, rates.image) if part.detail == "low" else rates.image
    if isinstance(part, Audio):
        return rates.second * (size / _BYTES_OF_SOUND if size else _UNSEEN)
    if (part.media_type or "").startswith("video/"):
        seconds = size / _BYTES_OF_VIDEO if size else _UNSEEN
        return rates.second * _VIDEO_TO_SOUND * seconds
    data = part.data or b""
    pages = data.count(b"/Type /Page") + data.count(b"/Type/Page") - data.count(b"/Pages")
    return rates.page * max(1, pages)
