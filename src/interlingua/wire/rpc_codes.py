"""The codes of google.rpc.Code, by number and by word, and the HTTP statuses that go with them."""

from __future__ import annotations

from interlingua.spec.content import Json
from interlingua.wire.integers import read_integer

# https://cloud.google.com/apis/design/errors; the first word of a status is the default.
_WORDS = {
    400: ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"),
    401: ("UNAUTHENTICATED",),
    403: ("PERMISSION_DENIED",),
    404: ("NOT_FOUND",),
    409: ("ABORTED", "ALREADY_EXISTS"),
    429: ("RESOURCE_EXHAUSTED",),
    499: ("CANCELLED",),
    500: ("INTERNAL", "UNKNOWN", "DATA_LOSS"),
    501: ("UNIMPLEMENTED",),
    503: ("UNAVAILABLE",),
    504: ("DEADLINE_EXCEEDED",),
}
STATUSES = {word: status for status, words in _WORDS.items() for word in words}
"""HTTP statuses by word."""
WORDS = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND"),
    *("ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION"),
    *("ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"),
    "UNAUTHENTICATED",
)
"""The words, by number."""


def word_for(status: int) -> str:
    """The word that goes with an HTTP status."""
    if status == 402:  # no word of its own
        status = 429
    return _WORDS.get(status, _WORDS[500 if status >= 500 else 400])[0]


def code_for(status: int) -> int:
    """The number that goes with an HTTP status."""
    return WORDS.index(word_for(status))


def status_of_code(code: Json) -> int:
    """The HTTP status of a code: a word, a number of google.rpc.Code, or a status itself."""
    number = read_integer(code, least=0, most=999)
    if number is None:
        return STATUSES.get(code.upper(), 500) if isinstance(code, str) else 500
    if number >= 400:
        return number
    return STATUSES.get(WORDS[number], 500) if number < len(WORDS) else 500
