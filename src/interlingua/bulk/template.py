"""Prompts with the names of columns in braces: `Genre of {title}?`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any

from interlingua.spec.errors import ConfigurationError
from interlingua.wire.json_text import dump_text

_BRACES = "Write {{ and }} for braces that are no column."


class RowProblem(ValueError):  # noqa: N818 -- it is a value of the row, not a failure of ours
    """Why no request can be made of a row; the row fails, the job goes on."""


class Template:
    """
    A text with the names of columns in braces.

    Everything between the braces is the name: it has no attributes, indexes or formats, so that a
    name may contain dots and colons.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._pieces: list[tuple[str, str | None]] = []
        try:
            for literal, name, form, conversion in Formatter().parse(text):
                whole = name
                if whole is not None:
                    whole += f"!{conversion}" if conversion else ""
                    whole += f":{form}" if form else ""
                self._pieces.append((literal, whole))
        except ValueError as error:
            raise ConfigurationError(f"The template {text[:60]!r}: {error}. {_BRACES}") from None
        if any(name == "" for _, name in self._pieces):
            raise ConfigurationError(f"The template {text[:60]!r} has empty braces. {_BRACES}")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names, each once."""
        return tuple(dict.fromkeys(name for _, name in self._pieces if name is not None))

    def fill(self, row: Mapping[str, Any]) -> str:
        """Return the text for a row; raise `RowProblem` if it has no value for a column."""
        pieces: list[str] = []
        for literal, name in self._pieces:
            pieces.append(literal)
            if name is not None:
                value = row.get(name)
                pieces.append(value if type(value) is str else _text_of(name, value, row))
        return "".join(pieces)


def _text_of(name: str, value: object, row: Mapping[str, Any]) -> str:
    """A value that is not a text, as a text; objects and lists as JSON."""
    if name not in row:
        raise RowProblem(f"The row has no column {name!r}.")
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise RowProblem(f"The column {name!r} is empty.")
    return dump_text(value) if isinstance(value, (dict, list, bool)) else str(value)


def check_columns(wanted: Iterable[str], known: Iterable[str]) -> None:
    """Raise `ConfigurationError` if the input has no such column at all."""
    columns = list(known)
    missing = [name for name in wanted if name not in columns]
    if missing:
        names = ", ".join(map(repr, missing))
        has = ", ".join(columns) or "none"
        raise ConfigurationError(
            f"The input has no column {names}. It has: {has}. {_BRACES}", setting="prompt"
        )
