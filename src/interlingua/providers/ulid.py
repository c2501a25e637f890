"""ULIDs: ids that sort by the time they were made."""

from __future__ import annotations

import os
import time
from random import Random

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_LETTERS = (_ALPHABET * 8).encode()  # of any byte, the one its last five bits stand for

# Ids need not be secret, and asking the system for each would cost more than all the rest.
_chance = Random()  # noqa: S311
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_chance.seed)


def new_ulid() -> str:
    """26 letters and digits: 48 bits of milliseconds, then 80 of chance."""
    now = time.time_ns() // 1_000_000
    high, low = now >> 20, now & 0xFFFFF
    moment = f"{_PAIRS[high >> 20]}{_PAIRS[high >> 10 & 1023]}{_PAIRS[high & 1023]}"
    chance = _chance.randbytes(16).translate(_LETTERS).decode()
    return f"{moment}{_PAIRS[low >> 10]}{_PAIRS[low & 1023]}{chance}"
