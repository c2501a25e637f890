"""Integers in text that somebody else wrote: a server, a model, a client."""

from __future__ import annotations

import re
import sys

_is_integer = re.compile(r"-?[0-9]+").fullmatch
_DIGITS = 19
"""As many as a 64-bit integer has."""
ANY_LIMIT = sys.int_info.str_digits_check_threshold
"""As many digits as Python reads whatever `sys.set_int_max_str_digits` says."""


def read_integer(
    value: object, *, least: int = 0, most: int | None = None, digits: int = _DIGITS
) -> int | None:
    """
    The integer that a text in ASCII digits stands for; an integer is returned as it is.

    None for anything else, for more digits than `digits`, and for an integer below `least` or
    above `most`. `int()` would read the digits of every script, underscores and spaces, and raises
    `ValueError` for a few thousand digits.
    """
    if isinstance(value, str):
        if len(value) > digits + 1 or not _is_integer(value):
            return None
        value = int(value) if len(value.lstrip("-")) <= digits else None
    if type(value) is not int or value < least or (most is not None and value > most):
        return None
    return value
