"""Inputs for a decoder: anything, and accepted inputs in which something was changed."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from interlingua import dialects
from interlingua.spec.errors import DecodeError
from interlingua.wire.json_text import dumps, loads

_ODD_TEXTS = (
    b"9" * 5000,  # Python refuses to read it as a number
    *("²".encode(), "٤٠٠".encode(), b"-1", b"0", b"1e999", b"", b"\x00", b"\xff", b"\\ud800"),
    *(b"0001-01-01T00:00:00Z", b"9999-12-31T23:59:59-23:59", b"%ED%A0%80", b"null", b"[", b"{}"),
)
_ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 5, -1, -1.5, 1e308, 10**18, 10**40, 10**400, "", "x", "\ud800", "9" * 5000),
    *("²", "-1", "9999-12-31T23:59:59-23:59", [], {}, [None], [[]], {"type": 7}, {"type": ["x"]}),
    *([5], ["x"], [{}], {"": None}, {"\ud800": "\ud800"}),
)
_PLACES = re.compile(rb"[0-9]+|[A-Za-z_]{3,}")
_SEARCHED = 100_000
"""Bytes of an input in which places to change are looked for."""


def make_input(seeds: list[bytes], source: random.Random) -> bytes:
    """Any bytes, any JSON, or a seed with some values, words or bytes changed."""
    kind = source.random()
    if not seeds or kind < 0.05:
        data = source.randbytes(source.randrange(100))
    elif kind < 0.1:
        data = dumps(source.choice(_ODD_VALUES))
    else:
        data = source.choice(seeds)
    changes = (*[_change_value] * 4, *[_change_word] * 2, _change_bytes)
    for change in source.choices(changes, k=source.choice((0, 1, 1, 1, 2, 3))):
        data = change(data, source)
    return data


def shrink(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """The input without the pieces that it does not need to fail."""
    size = len(data) // 2
    while size:
        start = 0
        while start < len(data):
            shorter = data[:start] + data[start + size :]
            if fails(shorter):
                data = shorter
            else:
                start += size
        size //= 2
    return data


def _change_bytes(data: bytes, source: random.Random) -> bytes:
    """Some bytes, replaced, removed or repeated."""
    start = source.randrange(len(data) + 1)
    end = start + source.randrange(20)
    new = source.choice((b"", source.randbytes(8), data[start:end] * 3, dumps([None])))
    return data[:start] + new + data[end:]


def _change_word(data: bytes, source: random.Random) -> bytes:
    """One number or word of a text, replaced by an odd one."""
    places = [match.span() for match in _PLACES.finditer(data[:_SEARCHED])]
    if not places:
        return data
    start, end = source.choice(places)
    return data[:start] + source.choice(_ODD_TEXTS) + data[end:]


def _change_value(data: bytes, source: random.Random) -> bytes:
    """One value of the JSON in the input, replaced by an odd one or removed."""
    found = list(_json_spans(data))
    if not found:
        return data
    start, end = source.choice(found)
    return data[:start] + dumps(_changed(loads(data[start:end]), source)) + data[end:]


def _json_spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Where JSON is: all of it, the body after a blank line, or lines, also of an event stream."""
    starts = {0, data.find(b"\n\n") + 2}
    spans = [(start, len(data)) for start in starts]
    spans += [match.span(1) for match in re.finditer(rb"(?m)^(?:data: ?|,)?([{\[].*?),?\r?$", data)]
    for start, end in spans:
        if data[start : start + 1] in (b"{", b"[") and _is_json(data[start:end]):
            yield start, end


def _is_json(text: bytes) -> bool:
    try:
        loads(text)
    except DecodeError:
        return False
    return True


def _changed(value: Any, source: random.Random) -> Any:
    value = copy.deepcopy(value)
    places, waiting = [], [value]
    while waiting:
        node = waiting.pop()
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                waiting.append(node[key])
    objects = [node for node, _ in places if isinstance(node, dict)]
    kind = source.random()
    if objects and kind < 0.3:
        source.choice(objects)[source.choice(field_names())] = source.choice(_ODD_VALUES)
    elif places:
        node, key = source.choice(places)
        if kind < 0.4:
            del node[key]
        else:
            node[key] = source.choice(_ODD_VALUES)
    return value


@cache
def field_names() -> list[str]:
    """Every word in the code of the dialects that may be the name of a field."""
    folder = Path(dialects.__file__).parent
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))
    return sorted({word for text in texts for word in re.findall(r'"([A-Za-z_]{2,30})"', text)})
