"""Replaces secrets and personal data in texts, and puts them back; also in pieces of a stream."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from interlingua.spec.errors import ConfigurationError
from interlingua.wire.personal_data import FINDERS, LONGEST, Finder, Places
from interlingua.wire.secrets import find_secrets, find_uncut

Detector: TypeAlias = str | re.Pattern[str] | Callable[[str], Iterable[tuple[int, int]]]
"""A regular expression, or a function that returns where a text has what must be removed."""

_is_name = re.compile(r"[A-Z][A-Z0-9_]{0,30}").fullmatch
_find_marks = re.compile(r"\[[A-Z][A-Z0-9_]{1,40}\]").finditer
_LONGEST_MARK = 43
_find_words = re.compile(r"\S++").finditer
_find_breaks = re.compile(r"(?!\s)[\u0250-\U0010ffff]").finditer  # in no secret; CJK has no spaces
_WORDS_OF_A_SECRET = 2  # "Bearer" and the token
_STEP = 16  # characters that must arrive before a text is looked at again
_LONG = 512


class Detectors:
    """What is removed, by name."""

    def __init__(
        self, kinds: Sequence[str], patterns: Mapping[str, Detector], *, secrets: bool
    ) -> None:
        self._finders: list[tuple[str, Finder]] = [("SECRET", find_secrets)] if secrets else []
        for kind in kinds:
            if kind not in FINDERS:
                known = ", ".join(FINDERS)
                raise ConfigurationError(f"Redact: unknown kind {kind!r}. There are {known}.")
            self._finders.append((kind.upper(), FINDERS[kind]))
        for name, detector in patterns.items():
            if _is_name(name) is None:
                raise ConfigurationError(
                    f"Redact: the name {name!r} of a pattern must be in capitals, digits and _."
                )
            self._finders.append((name, _finder_of(name, detector)))
        self._has_secrets = secrets
        self.is_bounded: bool = not patterns
        """Whether `safe_end` can be known before the end of a text."""

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """The places in order, and the name of each; places that overlap are one."""
        found = [
            (start, end, name)
            for name, find in self._finders
            for start, end in find(text)
            if start < end
        ]
        places: list[tuple[int, int, str]] = []
        for start, end, name in sorted(found, key=_start_and_length):
            if places and start < places[-1][1]:
                first, last, first_name = places[-1]
                places[-1] = (first, max(last, end), first_name)
            else:
                places.append((start, end, name))
        return places

    def safe_end(self, text: str, places: list[tuple[int, int, str]]) -> int:
        """Up to where the places in a text are final, whatever follows it."""
        if not self.is_bounded:
            return 0
        safe = 0
        for match in _find_breaks(text):
            safe = match.end()
        starts = [match.start() for match in _find_words(text, safe)][: 1 - _WORDS_OF_A_SECRET]
        for start in reversed(starts):
            if start <= len(text) - LONGEST:
                safe = start
                break
        spans = [(start, end) for start, end, _ in places]
        spans += find_uncut(text) if self._has_secrets else ()
        for start, end in sorted(spans, reverse=True):
            if start < safe and (safe < end or end == len(text)):
                safe = start
        return safe


def _finder_of(name: str, detector: Detector) -> Finder:
    if isinstance(detector, str):
        try:
            detector = re.compile(detector)
        except re.error as error:
            raise ConfigurationError(f"Redact: the pattern {name} is invalid: {error}.") from None
    if isinstance(detector, re.Pattern):
        finditer = detector.finditer
        return lambda text: [match.span() for match in finditer(text)]
    function = detector

    def find(text: str) -> Places:
        return list(function(text))

    return find


def _start_and_length(place: tuple[int, int, str]) -> tuple[int, int]:
    return place[0], -place[1]


class Marks:
    """
    The marks that stand for removed values in one call, such as `[EMAIL_1]`.

    Equal values have equal marks, numbered in the order in which they occur. `taken` are texts
    that look like marks and are the caller's own.
    """

    def __init__(self, detectors: Detectors, taken: Iterable[str] = ()) -> None:
        self._detectors = detectors
        self._taken = set(taken)
        self._counts: dict[str, int] = {}
        self._marks: dict[str, str] = {}
        self.values: dict[str, str] = {}
        """The removed values, by mark."""

    def remove(self, text: str) -> str:
        """The text with marks for what is found in it."""
        return self.replace(text, self._detectors.find(text))

    def replace(self, text: str, places: list[tuple[int, int, str]]) -> str:
        """The text with marks at these places."""
        if not places:
            return text
        pieces, at = [], 0
        for start, end, name in places:
            pieces += [text[at:start], self._mark(text[start:end], name)]
            at = end
        return "".join((*pieces, text[at:]))

    def _mark(self, value: str, name: str) -> str:
        mark = self._marks.get(value)
        while mark is None or mark in self._taken:
            self._counts[name] = self._counts.get(name, 0) + 1
            mark = f"[{name}_{self._counts[name]}]"
        self._marks[value] = mark
        self.values[mark] = value
        return mark


def own_marks(text: str) -> list[str]:
    """What looks like a mark in a text."""
    return [match.group() for match in _find_marks(text)] if "[" in text else []


def put_back(text: str, values: Mapping[str, str]) -> str:
    """The text with values in place of their marks."""
    if "[" not in text or not values:
        return text
    pieces, at = [], 0
    for match in _find_marks(text):
        value = values.get(match.group())
        if value is not None:
            pieces += [text[at : match.start()], value]
            at = match.end()
    return "".join((*pieces, text[at:])) if at else text


def edit_deep(value: Any, edit: Callable[[str], str]) -> Any:
    """A JSON value with each text edited, keys included; the same object if nothing changed."""
    try:
        return _edit_deep(value, edit)
    except RecursionError:
        raise ConfigurationError("Redact: a value is nested too deeply to be searched.") from None


def _edit_deep(value: Any, edit: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return edit(value)
    if type(value) in (list, tuple):
        items = [_edit_deep(item, edit) for item in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else type(value)(items)
    if isinstance(value, Mapping):
        pairs = {_edit_deep(key, edit): _edit_deep(item, edit) for key, item in value.items()}
        is_same = all(value.get(key) is item for key, item in pairs.items())
        return value if is_same and len(pairs) == len(value) else pairs
    return value


class StreamFilter(Protocol):
    """Edits a text that arrives in pieces."""

    def feed(self, piece: str) -> str:
        """More of the text; what can be passed on now."""

    def end(self) -> str:
        """The rest."""


class RemovingFilter:
    """
    `Marks.remove` for a text in pieces.

    What may be the beginning of a secret is held back, and looked at again when more has arrived.
    A long text must grow by half before, so that the work grows in proportion to the text.
    """

    def __init__(self, detectors: Detectors, marks: Marks) -> None:
        self._detectors = detectors
        self._marks = marks
        self._pieces: list[str] = []
        self._size = 0
        self._next_look = 0

    def feed(self, piece: str) -> str:
        """More of the text; what can be passed on now."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size < self._next_look or not self._detectors.is_bounded:
            return ""
        return self._release(is_over=False)

    def end(self) -> str:
        """The rest."""
        return self._release(is_over=True)

    def _release(self, *, is_over: bool) -> str:
        text = "".join(self._pieces)
        places = self._detectors.find(text)
        safe = len(text) if is_over else self._detectors.safe_end(text, places)
        self._pieces = [text[safe:]]
        self._size = held = len(text) - safe
        self._next_look = held + (_STEP if held < _LONG else held // 2)
        return self._marks.replace(text[:safe], [each for each in places if each[1] <= safe])


class RestoringFilter:
    """`put_back` for a text in pieces: what may be the beginning of a mark is held back."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._held = ""

    def feed(self, piece: str) -> str:
        """More of the text; what can be passed on now."""
        text = self._held + piece
        at = text.rfind("[", max(0, len(text) - _LONGEST_MARK))
        if at < 0 or "]" in text[at:]:
            at = len(text)
        self._held = text[at:]
        return put_back(text[:at], self._values)

    def end(self) -> str:
        """The rest."""
        text, self._held = self._held, ""
        return text
