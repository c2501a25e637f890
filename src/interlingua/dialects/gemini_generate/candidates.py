"""The answers beside the first, put together from their frames and kept."""

from __future__ import annotations

from typing import Any


def fold(known: dict[str, Any], more: dict[str, Any]) -> None:
    """The later value counts, unless it is null."""
    if None in more.values():
        more = {
            name: value
            for name, value in more.items()
            if value is not None or known.get(name) is None
        }
    known.update(more)


class OtherCandidates:
    """Candidates by their index. They have no canonical form; they are put back as they were."""

    __slots__ = ("_fields", "_odd", "_parts")

    def __init__(self) -> None:
        self._odd: list[Any] = []
        self._fields: dict[int, dict[str, Any]] = {}
        self._parts: dict[int, list[tuple[dict[str, Any], list[str]]]] = {}

    def feed(self, index: int, candidate: dict[str, Any]) -> None:
        """More of one of them."""
        known = self._fields.setdefault(index, {})
        before = known.get("content")
        fold(known, candidate)
        content = candidate.get("content")
        if not isinstance(content, dict):
            return
        merged = dict(before) if isinstance(before, dict) else {}
        fold(merged, content)
        known["content"] = merged
        parts = content.get("parts")
        if isinstance(parts, list):
            self._feed_parts(self._parts.setdefault(index, []), parts)

    def feed_odd(self, candidate: Any) -> None:
        """One that is no object, and so has no more."""
        self._odd.append(candidate)

    def finish(self) -> list[Any]:
        """Each of them, whole."""
        found: list[Any] = list(self._odd)
        for index, fields in self._fields.items():
            candidate = dict(fields)
            if index in self._parts:
                parts = [_join(part, pieces) for part, pieces in self._parts[index]]
                candidate["content"] = {**candidate["content"], "parts": parts}
            found.append(candidate)
        return found

    def _feed_parts(self, known: list[tuple[dict[str, Any], list[str]]], parts: list[Any]) -> None:
        for position, part in enumerate(parts):
            text = part.get("text") if isinstance(part, dict) else None
            if isinstance(text, str) and "thoughtSignature" not in part:
                left = {name: value for name, value in part.items() if name != "text"}
                if position == 0 and known and known[-1][1] and known[-1][0] == left:
                    known[-1][1].append(text)
                else:
                    known.append((left, [text]))
            else:
                known.append((part, []))


def _join(part: dict[str, Any], pieces: list[str]) -> dict[str, Any]:
    return {"text": "".join(pieces), **part} if pieces else part
