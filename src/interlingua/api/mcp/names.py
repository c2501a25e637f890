"""Names of MCP tools -> names every provider takes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

Source: TypeAlias = tuple[str, str]
"""The prefix of a server (empty for none) and the name it gives a tool."""

_VALID = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_OTHERS = re.compile(r"[^A-Za-z0-9_-]+")
_DIGITS = 8
_LONGEST = 64


def safe_names(sources: Iterable[Source]) -> dict[Source, str]:
    """
    A name for each tool, no two alike.

    A name that is valid and wanted once stays as it is. Any other keeps what it can and ends in
    a digest of the tool's prefix and name, so that it is the same in every run, whatever other
    tools there are.
    """
    wanted = {source: _join(source) for source in sources}
    asked = Counter(wanted.values())
    plain = {name for name, times in asked.items() if times == 1 and _VALID.fullmatch(name)}
    named = {source: name for source, name in wanted.items() if name in plain}
    taken = set(plain)
    for source in sorted(wanted.keys() - named.keys()):
        named[source] = _digested(source, taken)
        taken.add(named[source])
    return {source: named[source] for source in wanted}


def _join(source: Source) -> str:
    prefix, name = source
    return f"{prefix}_{name}" if prefix else name


def _digested(source: Source, taken: set[str]) -> str:
    stem = _OTHERS.sub("_", _join(source))
    if not stem[:1].isalpha():
        stem = f"t{stem}" if stem[:1] in ("_", "-") else f"t_{stem}"
    stem = stem[: _LONGEST - _DIGITS - 1].rstrip("_-")
    seed = "\0".join(source)
    while True:
        digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        name = f"{stem}_{digest}"
        if name not in taken:
            return name
        seed += "\0"  # somebody really calls a tool by the digest of another
