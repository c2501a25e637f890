"""Thinking <-> the fields, parts or tags in which servers show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from interlingua.dialects.openai_chat.facts import DETAILS, NAME, REASONING_FIELDS
from interlingua.dialects.openai_chat.marks import FIELDS, SENT_AS, TAGS, complete, mark_of, text_of
from interlingua.spec.content import Json, Part, Text, Thinking
from interlingua.spec.events import ReasoningEnd
from interlingua.streams.segments import ReasoningSegment
from interlingua.wire.fields import Fields, extra_of, merge

_OPEN, _CLOSE = "<think>", "</think>"


def decode_thinking(fields: Fields) -> Thinking | None:
    """
    The thought of a message, from whichever fields it came in.

    The details, which must go back unchanged, have the text only if no field has.
    """
    text, names = find_text(fields.left)
    for name in names:
        del fields.left[name]
    extra: dict[str, Any] = {FIELDS: names}
    details = fields.left.get(DETAILS)
    if isinstance(details, list) and details:
        extra[DETAILS] = fields.take(DETAILS)
        text = text or _details_text(details)
    elif not names:
        return None
    return Thinking(text=text, extra={NAME: extra})


def find_text(message: Mapping[str, Any]) -> tuple[str, list[str]]:
    """
    The text of a thought, and the fields it is in.

    Two fields with the same text are one thought; a second, different one stays where it is.
    """
    text = ""
    names: list[str] = []
    for name in REASONING_FIELDS:
        found = message.get(name)
        if found and isinstance(found, str) and text in ("", found):
            text = found
            names.append(name)
    return text, names


def decode_thinking_part(fields: Fields) -> Part | None:
    """A thought among the content; None if it holds more than text."""
    chunks = fields.take("thinking")
    texts: list[str] = []
    for chunk in chunks if isinstance(chunks, list) else [chunks]:
        match chunk:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case str(text) if chunk is chunks:
                texts.append(text)
            case _:
                return None
    text = "".join(texts)
    odd = {} if chunks == thought_chunks(text) else {"thinking": chunks}
    return Thinking(text=text, extra={NAME: {SENT_AS: "part", **fields.left, **odd}})


def encode_thinking(part: Thinking, message: dict[str, Any]) -> list[Json]:
    """Put a thought into the fields it came in, after what is there; or the content it is."""
    kept = extra_of(part, NAME)
    tagged = in_tags(part)
    if tagged is not None:
        return [{"type": "text", "text": tagged}]
    if kept.get(SENT_AS) == "part":
        return [encode_thinking_part(part)]
    for name in text_fields(kept):
        message[name] = message.get(name, "") + part.text
    if isinstance(kept.get(DETAILS), list):
        message[DETAILS] = [*message.get(DETAILS, ()), *kept[DETAILS]]
    return []


def encode_thinking_part(part: Thinking) -> dict[str, Any]:
    """A thought as a content part."""
    chunks = extra_of(part, NAME).get("thinking", thought_chunks(part.text))
    return complete({"type": "thinking", "thinking": chunks}, part)


def thought_chunks(text: str) -> list[dict[str, Any]]:
    """The usual form of a thought in a content part."""
    return [{"type": "text", "text": text}]


def text_fields(kept: Mapping[str, Any]) -> list[str]:
    """The fields a thought's text is written to."""
    names = kept.get(FIELDS)
    if not isinstance(names, list):
        return [REASONING_FIELDS[0]]
    return [name for name in names if name in REASONING_FIELDS]


def in_tags(part: Thinking) -> str | None:
    """A thought that came in tags, as it came; None if it did not."""
    tags = mark_of(part, TAGS)
    if not isinstance(tags, dict):
        return None
    before, after = around(tags)
    return f"{before}{part.text}{after}"


def around(tags: dict[str, Any]) -> tuple[str, str]:
    """What stood before a thought in tags, and after it."""
    return f"{tags.get('before') or ''}{_OPEN}", _CLOSE if tags.get("closed", True) else ""


def split_tags(text: str) -> list[Part]:
    """Text that begins with a thought in tags: the thought, and the rest."""
    splitter = TagSplitter()
    pieces = [*splitter.feed(text), *splitter.finish()]
    thought = "".join(piece for is_thought, piece in pieces if is_thought)
    rest = "".join(piece for is_thought, piece in pieces if not is_thought)
    parts: list[Part] = []
    if splitter.tags is not None:
        parts.append(Thinking(text=thought, extra={NAME: {TAGS: splitter.tags}}))
    if rest or not parts:
        parts.append(Text(text=rest))
    return parts


class TagSplitter:
    """
    Tells thought from text in text that may begin with `<think>`.

    Each piece comes with whether it is thought. A tag may be cut anywhere.
    """

    def __init__(self) -> None:
        self._waiting = ""
        self._inside = False
        self.is_past: bool = False
        """All that follows is text."""
        self.tags: dict[str, Any] | None = None
        """What must be remembered of the tags; None if there were none."""

    def feed(self, text: str) -> list[tuple[bool, str]]:
        if self.is_past:
            return [(False, text)]
        text, self._waiting = self._waiting + text, ""
        if not self._inside:
            bare = text.lstrip()
            if _OPEN.startswith(bare):
                self._waiting = text
                return []
            if not bare.startswith(_OPEN):
                self.is_past = True
                return [(False, text)]
            self._inside = True
            self.tags = {"before": text[: len(text) - len(bare)], "closed": False}
            text = bare[len(_OPEN) :]
        return self._feed_thought(text)

    def finish(self) -> list[tuple[bool, str]]:
        """What was held back in case it was a tag."""
        text, self._waiting = self._waiting, ""
        return [(self._inside and not self.is_past, text)] if text else []

    def _feed_thought(self, text: str) -> list[tuple[bool, str]]:
        thought, close, rest = text.partition(_CLOSE)
        if close:
            self.is_past = True
            self.tags = {**(self.tags or {}), "closed": True}
        else:
            held = next(n for n in range(len(_CLOSE) - 1, -1, -1) if text.endswith(_CLOSE[:n]))
            cut = len(text) - held
            thought, self._waiting = text[:cut], text[cut:]
        return [piece for piece in ((True, thought), (False, rest)) if piece[1]]


class Thought:
    """A thought on its way, and where it came from: its fields, its part or its tags."""

    def __init__(self, index: int, about: Mapping[str, Any]) -> None:
        self._about = dict(about)
        self._details: list[list[Any]] = []  # the fragments of each
        self.segment: ReasoningSegment = ReasoningSegment(index, {NAME: about})

    def learn(self, text: str, about: Mapping[str, Any], details: Sequence[Any]) -> str:
        """Take in a fragment; the text it adds."""
        if about != self._about:
            names = dict.fromkeys((*self._about.get(FIELDS, ()), *about.get(FIELDS, ())))
            self._about.update(about)
            if FIELDS in self._about:
                self._about[FIELDS] = list(names)
        if not details:
            return text
        earlier = {_detail_key(found[0]): found for found in self._details}
        for detail in details:
            key = _detail_key(detail)
            if key is not None and key in earlier:
                earlier[key].append(detail)
            else:
                self._details.append([detail])
        return text if self._about.get(FIELDS) else _details_text(details)

    def end(self) -> ReasoningEnd:
        extra = dict(self._about)
        if self._details:
            extra[DETAILS] = [_join_detail(fragments) for fragments in self._details]
        self.segment.extra = {NAME: extra}
        return self.segment.end()


def _details_text(details: Sequence[Any]) -> str:
    """What can be read of `reasoning_details`."""
    return "".join(
        text_of(detail.get("text") or detail.get("summary"))
        for detail in details
        if isinstance(detail, dict)
    )


def _detail_key(detail: Any) -> tuple[str, int] | None:
    """What a detail that comes in fragments is known by."""
    match detail:
        case {"type": "reasoning.text" | "reasoning.summary" as kind, "index": int(index)}:
            return kind, index
    return None


def _join_detail(fragments: list[Any]) -> Any:
    """A detail put together: its text or summary grows, for the rest the last word counts."""
    if len(fragments) == 1:
        return fragments[0]
    field = fragments[0]["type"].rpartition(".")[2]
    texts = [text_of(fragment.get(field)) for fragment in fragments]
    whole = reduce(merge, fragments)
    return {**whole, field: "".join(texts)} if any(texts) else whole
