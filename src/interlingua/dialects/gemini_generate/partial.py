"""Arguments that come piece by piece, each with the path of its place."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

# RFC 9535 as far as it names one place: `$.a.b[0]`, `$['a b']`
_find_steps = re.compile(r"""\.?([^.\[\]]+)|\[(\d{1,9})\]|\[(?:'([^']*)'|"([^"]*)")\]""").finditer


class PartialArguments:
    """
    Puts the pieces of a call's arguments together.

    Text grows in lists and is joined once: the work is linear in what comes.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}  # by path; of text, the list of its pieces

    def feed(self, piece: Any) -> None:
        """One `partialArgs` item; what is no piece says nothing."""
        path = piece.get("jsonPath") if isinstance(piece, dict) else None
        if not isinstance(path, str):
            return
        text = piece.get("stringValue")
        if isinstance(text, str):
            known = self._values.get(path)
            if isinstance(known, list):
                known.append(text)
            else:
                self._values[path] = [text]
        elif "numberValue" in piece:
            self._values[path] = piece["numberValue"]
        elif "boolValue" in piece:
            self._values[path] = piece["boolValue"]
        elif "nullValue" in piece:
            self._values[path] = None

    def finish(self) -> dict[str, Any]:
        """The arguments, whole."""
        arguments: dict[str, Any] = {}
        for path, value in self._values.items():
            steps = _steps(path)
            if steps:
                _put(arguments, steps, "".join(value) if isinstance(value, list) else value)
        return arguments


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for found in _find_steps(path.removeprefix("$")):
        name, index, single, double = found.groups()
        if index is not None:
            steps.append(int(index))
        else:
            steps.append(next(word for word in (name, single, double) if word is not None))
    return steps


def _put(arguments: dict[str, Any], steps: list[str | int], value: Any) -> None:
    holder: Any = arguments
    for step, following in pairwise(steps):
        holder = _enter(holder, step, [] if isinstance(following, int) else {})
    _enter(holder, steps[-1], value, replace=True)


def _enter(holder: Any, step: str | int, fresh: Any, *, replace: bool = False) -> Any:
    """The value at a step, made if it is not there; an index too far is the next one."""
    if isinstance(holder, list):
        place = step if isinstance(step, int) and step < len(holder) else len(holder)
        if place == len(holder):
            holder.append(fresh)
        elif replace:
            holder[place] = fresh
        return holder[place]
    if not isinstance(holder, dict):
        return fresh  # a value stands where a path goes through; the path's is lost
    if replace:
        holder[str(step)] = fresh
    return holder.setdefault(str(step), fresh)
