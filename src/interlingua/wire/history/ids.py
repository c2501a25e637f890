"""Call ids as a target takes them, and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from interlingua.spec.errors import ConfigurationError

_DIGITS = "0123456789"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER = _UPPER.lower()
_ALPHABETS = (  # the richest first; the last is of a hexadecimal id
    _DIGITS + _UPPER + _LOWER,
    _DIGITS + _LOWER,
    _DIGITS + _UPPER,
    _LOWER,
    _UPPER,
    _DIGITS,
    "0123456789abcdef",
)
_DIGEST_LETTERS = 40  # the digest has 43 of the richest alphabet, more of the others
_MOST_TRIES = 100
_unusual = re.compile(r"[^A-Za-z0-9_-]").sub


def map_call_id(call_id: str, pattern: str) -> str:
    """
    The id if the whole of it matches the pattern, else one made of it that does.

    The same id always gives the same; two ids never do, but for a clash of their digests.
    """
    return call_id if re.fullmatch(pattern, call_id) else _make(call_id, pattern)


class CallIds:
    """
    Ids both ways between a history and a target.

    `to_wire` gives no two ids the same; `to_ours` turns back what it gave.
    """

    def __init__(self, pattern: str | None) -> None:
        self._pattern = pattern
        self._wire: dict[str, str] = {}
        self._ours: dict[str, str] = {}

    def to_wire(self, call_id: str) -> str:
        """The id that the target takes."""
        if self._pattern is None:
            return call_id
        known = self._wire.get(call_id)
        if known is None:
            known = self._wire[call_id] = self._find(call_id, self._pattern)
            self._ours[known] = call_id
        return known

    def to_ours(self, wire_id: str) -> str:
        """The id it was; one that never was ours stays as it is."""
        return self._ours.get(wire_id, wire_id)

    def _find(self, call_id: str, pattern: str) -> str:
        found = map_call_id(call_id, pattern)
        tries = 0
        while found in self._ours:
            tries += 1
            if tries > _MOST_TRIES:
                raise ConfigurationError(f"too few call ids match {pattern!r}")
            found = _make(f"{call_id}\0{tries}", pattern)
        return found


def _make(call_id: str, pattern: str) -> str:
    for candidate in _candidates(call_id):
        if re.fullmatch(pattern, candidate):
            return candidate
    raise ConfigurationError(f"no call id of letters and digits matches {pattern!r}")


def _candidates(call_id: str) -> Iterator[str]:
    """Readable ones first; each ends in a digest of the id."""
    digest = _digest(call_id, _ALPHABETS[0])
    readable = _unusual("_", call_id)[:40].strip("_") or "call"
    yield f"{readable}_{digest[:12]}"
    yield f"call_{digest[:24]}"
    digests = [_digest(call_id, alphabet) for alphabet in _ALPHABETS]
    for length in range(_DIGEST_LETTERS, 0, -1):  # a short one that fits by luck soon clashes
        for digest in digests:
            yield digest[:length]
            yield f"call_{digest[:length]}"


def _digest(text: str, alphabet: str) -> str:
    rest = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")
    letters: list[str] = []
    for _ in range(_DIGEST_LETTERS):
        rest, letter = divmod(rest, len(alphabet))
        letters.append(alphabet[letter])
    return "".join(letters)
