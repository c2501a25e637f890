"""Thoughts <-> the fields, parts or tags in which servers show them."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_chat.marks import FIELDS, TAGS, mark_of
from interlingua.dialects.openai_chat.wire import NAME, REASONING_FIELDS
from interlingua.spec.content import Part, Text, Thinking
from interlingua.wire.shape import Fields, extra_of

DETAILS = "reasoning_details"
_OPEN, _CLOSE = "<think>", "</think>"


def decode_thinking(fields: Fields) -> Thinking | None:
    """
    The thought of a message, from whichever fields it came in.

    Two fields with the same text are one thought; a second, different one stays where it
    is. The details, which must go back unchanged, have the text only if no field has.
    """
    text = ""
    names: list[str] = []
    for name in REASONING_FIELDS:
        found = fields.left.get(name)
        if isinstance(found, str) and found and text in ("", found):
            text = found
            names.append(name)
            del fields.left[name]
    extra: dict[str, Any] = {FIELDS: names}
    details = fields.left.get(DETAILS)
    if isinstance(details, list) and details:
        extra[DETAILS] = fields.left.pop(DETAILS)
        text = text or "".join(detail_text(detail) for detail in details)
    elif not names:
        return None
    return Thinking(text=text, extra={NAME: extra})


def encode_thinking(part: Thinking, message: dict[str, Any]) -> None:
    """Put a thought into the fields it came in, after what is there already."""
    kept = extra_of(part, NAME)
    for name in text_fields(kept):
        message[name] = message.get(name, "") + part.text
    details = kept.get(DETAILS)
    if isinstance(details, list):
        message[DETAILS] = [*message.get(DETAILS, ()), *details]


def text_fields(kept: Any) -> list[str]:
    """The fields a thought's text is written to."""
    names = kept.get(FIELDS)
    if not isinstance(names, list):
        return [REASONING_FIELDS[0]]
    return [name for name in names if name in REASONING_FIELDS]


def detail_text(detail: Any) -> str:
    """What can be read of one item of `reasoning_details`."""
    if not isinstance(detail, dict):
        return ""
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""


def in_tags(part: Thinking) -> str | None:
    """A thought that came in tags, as it came; None if it did not."""
    tags = mark_of(part, TAGS)
    if not isinstance(tags, dict):
        return None
    return f"{tag_before(tags)}{part.text}{tag_after(tags)}"


def tag_before(tags: dict[str, Any]) -> str:
    """What stood before the thought."""
    return f"{tags.get('before') or ''}{_OPEN}"


def tag_after(tags: dict[str, Any]) -> str:
    """What closed the thought."""
    return _CLOSE if tags.get("closed", True) else ""


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
        self.is_past = False
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
        if close and self.tags is not None:
            self.is_past = True
            self.tags = {**self.tags, "closed": True}
            pieces = [(True, thought), (False, rest)]
        else:
            held = next(n for n in range(len(_CLOSE) - 1, -1, -1) if text.endswith(_CLOSE[:n]))
            cut = len(text) - held
            self._waiting = text[cut:]
            pieces = [(True, text[:cut])]
        return [piece for piece in pieces if piece[1]]
