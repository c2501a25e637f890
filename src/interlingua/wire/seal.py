"""
Seals: state of one provider as text that a client of another dialect sends back unchanged.

A seal is authenticated, not encrypted: what it contains, the client has seen or could not read
anyway. It is bound to its origin, so that no other provider or model is ever sent the state.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib
from base64 import b64decode, b64encode
from typing import NamedTuple

import msgspec

from interlingua.spec.content import Json, Record
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.seal_marks import MAGIC

_TAG = 32
_LEAST_KEY = 16
_MOST = 4 * 1024 * 1024
"""Bytes of the state; a larger one is not sealed."""
# What most seals contain, so that they are short enough for ids. A change of it is a new version.
_COMMON = (
    b'"redacted":true,"data":"gAAAAAB"extra":{"id":"rs_claude-haiku-sonnet-opus-4-5","gpt-5.2",'
    b'"gemini-3-pro",null,[{"fields":{"thoughtSignature":"'
    b'"},"part":"call toolu_01call_"},"part":"text 0","length":"start":"checksum":[{"whole":'
    b'{"kind":"thinking","text":"","signature":"E"},"after":1,"checksum":0,"beside":1,"number":1}]'
)


class Origin(Record, frozen=True, kw_only=True):
    """Whose state it is."""

    dialect: str
    provider: str = ""
    """The provider, as the program names it."""
    model: str = ""
    """The model, as requests name it."""


class Unsealed(NamedTuple):
    """The state in a seal; None, and the reason, if it must not be used."""

    state: Json
    problem: str = ""


class _Content(msgspec.Struct, frozen=True, array_like=True):
    dialect: str
    provider: str
    model: str
    expires_at: float | None
    state: Json


def seal(state: Json, key: bytes, origin: Origin, *, expires_at: float | None = None) -> str | None:
    """The seal of a state; None if the state is too large for one."""
    content = _Content(origin.dialect, origin.provider, origin.model, expires_at, state)
    plain = msgspec.json.encode(content)
    if len(plain) > _MOST:
        return None
    packer = zlib.compressobj(zdict=_COMMON)
    packed = packer.compress(plain) + packer.flush()
    return b64encode(MAGIC + _tag(packed, key) + packed).decode()


def unseal(text: str, key: bytes, origin: Origin, *, now: float | None = None) -> Unsealed:
    """The state in a seal of this key and origin that has not expired."""
    packed = _authentic(text, key)
    if packed is None:
        return Unsealed(None, "It is damaged, or was sealed with another key")
    try:
        content = msgspec.json.decode(_inflate(packed), type=_Content)
    except (zlib.error, msgspec.MsgspecError):
        return Unsealed(None, "It has another format")
    if (content.dialect, content.provider, content.model) != (
        origin.dialect,
        origin.provider,
        origin.model,
    ):
        owner = content.model or content.provider or content.dialect
        return Unsealed(None, f"It is the state of {owner}")
    if content.expires_at is not None and (now is None or now >= content.expires_at):
        return Unsealed(None, "It has expired")
    return Unsealed(content.state)


def in_usual_letters(text: str) -> str:
    """The seal as it was made: clients may use the alphabet for URLs, and ids have it."""
    usual = text.replace("-", "+").replace("_", "/")
    return usual + "=" * (-len(usual) % 4)


def _authentic(text: str, key: bytes) -> bytes | None:
    """The packed content, if the tag is right and the text is spelled as `seal` spells it."""
    usual = in_usual_letters(text)
    try:
        data = b64decode(usual, validate=True)
    except ValueError:
        return None
    tag, packed = data[len(MAGIC) : len(MAGIC) + _TAG], data[len(MAGIC) + _TAG :]
    is_exact = data.startswith(MAGIC) and b64encode(data).decode() == usual
    is_right = hmac.compare_digest(tag, _tag(packed, key))
    return packed if is_exact and is_right else None


def _tag(packed: bytes, key: bytes) -> bytes:
    if len(key) < _LEAST_KEY:
        raise ConfigurationError(
            f"The key of seals has {len(key)} bytes. It needs at least {_LEAST_KEY}. "
            "secrets.token_bytes(32) makes one."
        )
    return hmac.new(key, MAGIC + packed, hashlib.sha256).digest()


def _inflate(packed: bytes) -> bytes:
    inflater = zlib.decompressobj(zdict=_COMMON)
    plain = inflater.decompress(packed, _MOST + 1024)
    if inflater.unconsumed_tail or not inflater.eof:
        raise zlib.error("too large")
    return plain
