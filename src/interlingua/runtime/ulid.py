"""ULIDs: ids that sort by the time of their creation."""

from __future__ import annotations

import os
import time
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
    high, low = now >> 20, now & 0xFFFFF
    timestamp = f"{_PAIRS[high >> 20]}{_PAIRS[high >> 10 & 1023]}{_PAIRS[high & 1023]}"
    suffix = _random.getrandbits(128).to_bytes(16, "big").translate(_LETTERS).decode()
    return f"{timestamp}{_PAIRS[low >> 10]}{_PAIRS[low & 1023]}{suffix}"
