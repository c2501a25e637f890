"""
Offline token estimates.

A tokenizer splits text into words, numbers, runs of punctuation and white space, and splits the
rare ones again. The estimate counts these segments and multiplies each kind by a weight. What a
provider adds around the text (roles, tools, schemas) comes from a table of rates. The weights are
fitted to OpenAI's `o200k_base` tokenizer on many kinds of text; the rates are fitted to recorded
requests whose provider reported the number of input tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import assert_never

from msgspec.structs import replace

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
from interlingua.spec.response import Usage
from interlingua.tokens.rates import Rates, rates_for
from interlingua.wire.json_text import dump_text

_LETTER, _UPPER, _DIGIT, _MARK, _SPACE, _LINE = (1 << bit for bit in range(6))
_CONTINUATION = bytes(range(0x80, 0xC0))  # UTF-8; without these, each character is one byte
_ASCII = bytes(range(0x80))
_BLOCK = 4096  # integers of this size stay in the processor's cache
_ONES = int.from_bytes(b"\1" * _BLOCK, "little")

# Tokens per segment, or per character where the name says "each".
_WORD = 1.03  # an upper-case letter inside a word starts a new one: getWeather
_LONG = 0.042  # for each letter of a word after the seventh
_NUMBER, _EACH_DIGIT = 1.35, 0.25
_MARKS, _EACH_MARK = 0.487, 0.191  # a run of punctuation such as `":{"` is often one token
_BREAK = 0.763  # for line ends and for runs of spaces

_SCRIPTS = (
    (range(0xC3, 0xCE), 1.3),  # Latin with accents: such words are split more often
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
"""First bytes of UTF-8 characters, and the tokens that each such character adds."""


ESTIMATE_ERROR = 0.15
"""The estimates of most recorded requests are within this share; `bounds` has what holds."""


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
    An estimate of the number of tokens in a text.

    `family` is a model id, or the name of a provider or dialect; the default is OpenAI's newer
    models. The error is below 10 % for most English, code and JSON. Other languages in Latin
    letters without accents may have up to a third more tokens.
    """
    return max(1, ceil(rates_for(family).text * _count(text))) if text else 0


def estimate_request(request: Request, family: str = "", *, only_known: bool = False) -> int:
    """
    An estimate of the input tokens of a request: messages, tools, schemas and media.

    The rates are chosen by the model id, or by `family` if the id is unknown (see
    `estimate_tokens`). Media are estimated roughly. Input that only the provider knows (stored
    turns, results of its own tools) is not counted; with `only_known`, neither are media whose
    bytes are not known.
    """
    rates = rates_for(request.model, family, request.provider or "")
    amounts = count_items(request, rates, only_known=only_known)
    tokens = sum(float(getattr(rates, name)) * amount for name, amount in amounts.items())
    return max(0, ceil(tokens))


def count_items(request: Request, rates: Rates, *, only_known: bool = False) -> dict[str, float]:
    """How much of each item a request has that `Rates` has a rate for, by its name."""
    tally = _tally(request, rates)
    has_tools, has_format = bool(tally.tools), bool(tally.format_nodes)
    amounts = {
        "request": 1.0,
        "text": _count(" ".join(tally.texts)),
        "thinking": _count(" ".join(tally.thoughts)),
        "signature": tally.signatures,
        "message": tally.messages,
        "call": tally.calls,
        "tool": tally.tools,
        "node": tally.nodes,
        "tools": has_tools,
        "forced": has_tools and tally.is_forced,
        "format": has_format,
        "format_node": tally.format_nodes,
    }
    for part in tally.media:
        if part.data is not None or not only_known:
            name, amount = _count_media(part)
            amounts[name] = amounts.get(name, 0.0) + amount
    return amounts


def estimate_usage(usage: Usage, request: Request, message: Message, family: str = "") -> Usage:
    """
    The usage with an estimate of each total that was not reported, marked as `estimated`.

    `message` is the answer to the request. An output total below the estimate is raised to it.
    """

    def estimate(message: Message) -> int:
        return estimate_request(Request(model=request.model, messages=(message,)), family)

    output = estimate(message) - estimate(replace(message, content=()))
    input_tokens = usage.input_tokens or estimate_request(request, family)
    output_tokens = max(usage.output_tokens, output)
    if (input_tokens, output_tokens) == (usage.input_tokens, usage.output_tokens):
        return usage
    return replace(usage, input_tokens=input_tokens, output_tokens=output_tokens, estimated=True)


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
    # Each character is one byte and each character class one bit, so shifts and masks on one
    # large integer find the starts of all segments at once. A regular expression takes ten times
    # as long.
    flags = int.from_bytes(classes, "little")
    starts = flags & ~(flags << 8)
    letters = flags & _ONES
    words = starts & _ONES | starts >> 1 & letters << 8 & _ONES
    in_row = letters & letters >> 8
    in_row &= in_row >> 16
    in_row &= in_row >> 32  # positions where at least eight letters follow each other
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
    """The contents of a request that cost tokens."""

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

    def add_schema(self, schema: object) -> int:
        """Adds the texts of a JSON Schema; returns the number of schemas in it, itself included."""
        nodes, todo = 0, [schema]
        while todo:
            value = todo.pop()
            if isinstance(value, list):
                todo += value
            elif isinstance(value, dict):
                nodes += 1
                todo += self.add_keywords(value)
        return nodes

    def add_keywords(self, schema: dict[str, object]) -> list[object]:
        """Adds the texts of this schema alone; returns the values inside it, still to be read."""
        inner: list[object] = []
        for key, value in schema.items():
            if key in _KEYED_BY_NAME and isinstance(value, dict):
                self.texts += value
                inner += value.values()
            elif key == "enum" and isinstance(value, list):
                self.texts += map(str, value)
            elif key == "description" and isinstance(value, str):
                self.texts.append(value)
            elif isinstance(value, (dict, list)):
                inner.append(value)
        return inner


_KEYED_BY_NAME = frozenset(("properties", "$defs", "definitions", "patternProperties"))


def _tally(request: Request, rates: Rates) -> _Tally:
    tally = _Tally()
    last = -1  # the user's last message; thinking before it is not read again
    if not rates.keeps_thinking:
        last = max((i for i, m in enumerate(request.messages) if _is_user_turn(m)), default=-1)
    tally.messages = len(request.messages)
    for index, message in enumerate(request.messages):
        if message.name:
            tally.texts.append(message.name)
        for part in message.content:
            tally.add_part(part, is_old=index < last)
    for tool in request.tools:
        tally.tools += 1
        if isinstance(tool, BuiltinTool):
            tally.texts.append(dump_text(tool.data))
        else:
            tally.texts += tool.name, tool.description or ""
            tally.nodes += tally.add_schema(tool.parameters)
    choice, response_format = request.tool_choice, request.response_format
    tally.is_forced = choice is not None and choice.mode in ("required", "named")
    if (
        response_format is not None
        and response_format.json_schema is not None
        and rates.format_node
    ):
        tally.texts += response_format.name or "", response_format.description or ""
        tally.format_nodes = tally.add_schema(response_format.json_schema)
    return tally


def _is_user_turn(message: Message) -> bool:
    """Whether the user wrote it; some APIs also send tool results with the role `user`."""
    return message.role == "user" and any(type(p) is not ToolResult for p in message.content)


def _arguments(call: ToolCall) -> str:
    return dump_text(call.arguments) if call.raw_arguments is None else call.raw_arguments


def _signature(part: Part) -> int:
    """The number of characters of encrypted or signed thinking."""
    size = 0
    if isinstance(part, Thinking):
        size = len(part.signature or "") + len(part.data or "")
    for extra in part.extra.values():
        if isinstance(extra, Mapping) and isinstance(extra.get("thoughtSignature"), str):
            size += len(extra["thoughtSignature"])
    return size


_AUDIO_BYTES_PER_SECOND = 16_000  # an MP3 of common quality
_VIDEO_BYTES_PER_SECOND = 250_000
_VIDEO_FACTOR = 8  # a second of video costs this many times a second of audio
_DEFAULT_SECONDS = 30  # for media given by URL or file id, whose size is unknown


def _count_media(part: Image | Audio | Document) -> tuple[str, float]:
    """The rate of a medium, and how much of it there is."""
    size = len(part.data or b"")
    if isinstance(part, Image):
        return "low_image" if part.detail == "low" else "image", 1
    if isinstance(part, Audio):
        return "second", size / _AUDIO_BYTES_PER_SECOND if size else _DEFAULT_SECONDS
    if (part.media_type or "").startswith("video/"):
        seconds = size / _VIDEO_BYTES_PER_SECOND if size else _DEFAULT_SECONDS
        return "second", _VIDEO_FACTOR * seconds
    data = part.data or b""
    pages = data.count(b"/Type /Page") + data.count(b"/Type/Page") - data.count(b"/Pages")
    return "page", max(1, pages)
