"""ULIDs: ids that sort by the time they were made."""

from __future__ import annotations

import os
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)


def new_ulid() -> str:
    """26 letters and digits: 48 bits of milliseconds, then 80 of chance."""
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def new_call_id() -> str:
    """For a tool call that came without an id."""
    return f"call_{new_ulid()}"
