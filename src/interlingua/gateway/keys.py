"""The keys of a gateway: made once, kept as hashes, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import NamedTuple

from interlingua.serving.application import Incoming, RefusedError, serve_of
from interlingua.serving.client_application import Caller

PREFIX = "il_"
"""How a key begins."""

_HASH = "sha256:"
_MISSING = "The request has no key. Send a key of this gateway, as an API key."
_WRONG = "The key of the request is not a key of this gateway."


class Key(NamedTuple):
    """A key by its hash, and whose it is."""

    hash: str
    """`sha256:` and 64 hexadecimal digits."""
    caller: Caller


def make_key() -> str:
    """A new key; it has 256 random bits, so that a plain hash of it cannot be reversed."""
    return f"{PREFIX}{secrets.token_urlsafe(32)}"


def hash_key(key: str) -> str:
    """The hash of a key, as in the file."""
    return f"{_HASH}{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def is_hash(text: str) -> bool:
    """Whether a text is the hash of a key."""
    digits = text.removeprefix(_HASH)
    return text.startswith(_HASH) and len(digits) == 64 and set(digits) <= set("0123456789abcdef")


class Keys:
    """The keys that may be used."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = tuple(keys)

    def authorize(self, incoming: Incoming) -> Caller:
        """Find the caller of a request; the dialect's own 401 if its key is missing or wrong."""
        found: Caller | None = None
        if incoming.key is not None:
            given = hash_key(incoming.key)
            for key in self._keys:  # all of them, so that the time says nothing about the key
                if hmac.compare_digest(given, key.hash):
                    found = key.caller
        if found is None:
            is_missing = incoming.key is None
            text = _MISSING if is_missing else _WRONG
            wrong_key = serve_of(incoming.dialect).wrong_key
            raise RefusedError(wrong_key(is_missing=is_missing, message=text))
        return found
