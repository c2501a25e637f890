"""
What a history says, whoever says it and however it is cut.

One flat list in the order of the conversation: what is said, what is shown, which tool is
called, and which call a result answers. Calls are counted, so that a link can be compared
although the ids differ; ids, marks and message boundaries are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Part,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from interlingua.spec.messages import Message
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import parse_data_url

UNLINKED = -1
"""The call that a result answers, if there is none."""


class Utterance(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing said. Compared as a whole, but for its place."""

    path: str
    kind: str
    """`text`, `refusal`, `image`, `audio`, `document`, `call`, `result`, `thinking`, `opaque`."""
    speaker: str = ""
    """The role; of a result nobody."""
    text: str | None = None
    """What is said; of a result, its texts joined by line ends."""
    call: int | None = None
    """The number of the call that this is, or that it answers."""
    id: str | None = None
    """The id of that call."""
    name: str | None = None
    """The tool's, or of a message the speaker's."""
    arguments: Any = None
    """An object; text if it is not one. What a free-text tool is given stands under `input`."""
    is_failure: bool = False
    source: str | None = None
    """Of media, the address, the id, or a digest of the bytes."""
    shown: list[Utterance] = []
    """The media of a result."""
    said: str | None = None
    """Of a document that is text, that text."""
    is_moved: bool = False
    """It has been taken out of a result."""


def spoken(messages: tuple[Message, ...]) -> list[Utterance]:
    """What these messages say."""
    links = _Links()
    return [
        _utter(part, f"messages[{i}].content[{k}]", message, links)
        for i, message in enumerate(messages)
        for k, part in links.feed(message)
    ]


class _Links:
    """Counts calls; finds the one that a result answers."""

    def __init__(self) -> None:
        self._turn = 0
        self._count = 0
        self._waiting: dict[str, list[tuple[int, int]]] = {}

    def feed(self, message: Message) -> Iterator[tuple[int, Part]]:
        self._turn += message.role != "assistant"
        return enumerate(message.content)

    def call(self, call_id: str) -> int:
        number, self._count = self._count, self._count + 1
        self._waiting.setdefault(call_id, []).append((self._turn, number))
        return number

    def answer(self, call_id: str) -> int:
        """The first call that waits, of the nearest turn that used the id."""
        waiting = self._waiting.get(call_id)
        if not waiting:
            return UNLINKED
        nearest = max(turn for turn, _ in waiting)
        found = next(call for call in waiting if call[0] == nearest)
        waiting.remove(found)
        return found[1]


def _utter(part: Part, path: str, message: Message, links: _Links) -> Utterance:
    speaker = message.role
    match part:
        case Text() | Refusal():
            return Utterance(
                path=path, kind=part.kind, speaker=speaker, text=part.text, name=message.name
            )
        case Image() | Audio() | Document():
            return _show(part, path, speaker)
        case ToolCall():
            number = links.call(part.id)
            return Utterance(
                path=path,
                kind="call",
                speaker=speaker,
                call=number,
                id=part.id,
                name=part.name,
                arguments=_arguments(part),
            )
        case ToolResult():
            return _answer(part, path, links.answer(part.tool_call_id))
        case _:
            return Utterance(path=path, kind=part.kind, speaker=speaker)


def _arguments(call: ToolCall) -> Any:
    if call.type == "custom":
        return {"input": call.raw_arguments}
    return call.arguments if call.arguments or call.is_valid else call.raw_arguments


def _answer(result: ToolResult, path: str, number: int) -> Utterance:
    parts = result.parts
    content = result.content
    shown: list[Utterance] = []
    if parts is not None:
        texts = [part.text for part in parts if isinstance(part, (Text, Refusal))]
        content = "\n".join(texts)
        shown = [
            _show(part, f"{path}.content[{k}]", "")
            for k, part in enumerate(parts)
            if not isinstance(part, (Text, Refusal))
        ]
    text = content if isinstance(content, str) else dump_text(content)
    return Utterance(
        path=path,
        kind="result",
        call=number,
        id=result.tool_call_id,
        text=text,
        is_failure=result.is_error,
        shown=shown,
    )


def _show(part: Part, path: str, speaker: str) -> Utterance:
    said = part.text if isinstance(part, Document) else None
    kind: str = part.kind
    if isinstance(part, Document):  # a file of any kind, for some
        family = (part.media_type or "").partition("/")[0]
        kind = family if family in ("image", "audio") else kind
    return Utterance(path=path, kind=kind, speaker=speaker, source=_source(part), said=said)


def _source(part: Part) -> str | None:
    if not isinstance(part, (Image, Audio, Document)):
        return None
    data = part.data
    if isinstance(part, Document) and part.text is not None:
        data = part.text.encode("utf-8", "replace")
    if part.url is not None:
        inline = parse_data_url(part.url)
        if inline is None:
            return part.url
        data = inline[0]
    return part.file_id if data is None else hashlib.sha256(data).hexdigest()
