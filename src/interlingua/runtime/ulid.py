"""ULIDs: ids that sort by the time of their creation."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from random import Random

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_LETTERS = (_ALPHABET * 8).encode()  # maps a byte to the letter for its last five bits

# Ids are not secret, and reading randomness from the system for each one would be slow.
_random = Random()  # noqa: S311
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def new_ulid() -> str:
    """26 letters and digits: 48 bits of milliseconds, then 80 random bits."""
    now = time.time_ns() // 1_000_000
    suffix = _random.getrandbits(128).to_bytes(16, "big").translate(_LETTERS).decode()
    return f"{_high_letters(now >> 20)}{_PAIRS[now >> 10 & 1023]}{_PAIRS[now & 1023]}{suffix}"


@lru_cache(maxsize=2)
def _high_letters(high: int) -> str:
    """The first letters of an id, which stay the same for 17 minutes."""
    return f"{_PAIRS[high >> 20]}{_PAIRS[high >> 10 & 1023]}{_PAIRS[high & 1023]}"
