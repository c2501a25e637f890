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
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from interlingua.spec.content import Json, Part, Record, Thinking, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError

_MAGIC = b"\xd8\xa2\x9e\xd6\x07\x02"  # the last byte is the version
MARK: str = b64encode(_MAGIC).decode()
"""How every seal begins. The text is plain base64: some clients decode the field that holds it."""
_ID_MARK = MARK.replace("+", "-").replace("/", "_")
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


def is_seal(text: str | None) -> bool:
    """Whether a text is a seal of any key."""
    return text is not None and text.startswith(MARK)


def has_seal(part: Part) -> bool:
    """Whether a part has a seal in a place where dialects have opaque fields."""
    if isinstance(part, Thinking) and (is_seal(part.signature) or is_seal(part.data)):
        return True
    if isinstance(part, (ToolCall, ToolResult)) and split_id(_id_of(part))[1] is not None:
        return True
    return any(map(_holds_seal, part.extra.values()))


def without_seal(part: Part) -> Part | None:
    """The part without its seals; None for thinking, which is nothing without them."""
    if isinstance(part, Thinking):
        return None
    if isinstance(part, (ToolCall, ToolResult)):
        part = with_own_id(part)
    extra = {name: _pruned(fields) for name, fields in part.extra.items()}
    return replace(part, extra={name: fields for name, fields in extra.items() if fields})


def _holds_seal(value: Json) -> bool:
    if isinstance(value, str):
        return value.startswith(MARK)
    if isinstance(value, dict):
        return any(map(_holds_seal, value.values()))
    if isinstance(value, list):
        texts = [item.get("data") for item in value if isinstance(item, dict)]
        return any(isinstance(text, str) and is_seal(text) for text in texts)
    return False


def _pruned(fields: Json) -> Json:
    """The fields without those that hold seals, in nested objects too."""
    if not isinstance(fields, dict) or not _holds_seal(fields):
        return fields
    kept = {
        name: _pruned(value) if isinstance(value, dict) else value
        for name, value in fields.items()
        if isinstance(value, dict) or not _holds_seal(value)
    }
    return {name: value for name, value in kept.items() if value != {} or fields[name] == {}}


# Ids of calls.

SHORTEST = 64
"""An id of at most this many characters has no seal."""
_Paired = TypeVar("_Paired", bound=ToolCall | ToolResult)


def append_to_id(id: str, text: str, most: int) -> str | None:  # noqa: A002 -- the name of the field
    """The id of a call with a seal, in letters that ids may have; None if it would be too long."""
    whole = id + text.replace("+", "-").replace("/", "_").rstrip("=")
    return whole if len(whole) <= most else None


def split_id(id: str) -> tuple[str, str | None]:  # noqa: A002 -- the name of the field
    """The id as the model made it, and its seal, if it has one."""
    place = id.rfind(_ID_MARK) if len(id) > SHORTEST else -1
    return (id, None) if place < 0 else (id[:place], id[place:])


def with_own_id(part: _Paired) -> _Paired:
    """The call or result with the id as the model made it."""
    id, text = split_id(_id_of(part))
    if text is None:
        return part
    name = "id" if isinstance(part, ToolCall) else "tool_call_id"
    return replace(part, **{name: id})


def _id_of(part: ToolCall | ToolResult) -> str:
    return part.id if isinstance(part, ToolCall) else part.tool_call_id


def seal(state: Json, key: bytes, origin: Origin, *, expires_at: float | None = None) -> str | None:
    """The seal of a state; None if the state is too large for one."""
    content = _Content(origin.dialect, origin.provider, origin.model, expires_at, state)
    plain = msgspec.json.encode(content)
    if len(plain) > _MOST:
        return None
    packer = zlib.compressobj(zdict=_COMMON)
    packed = packer.compress(plain) + packer.flush()
    return b64encode(_MAGIC + _tag(packed, key) + packed).decode()


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
    tag, packed = data[len(_MAGIC) : len(_MAGIC) + _TAG], data[len(_MAGIC) + _TAG :]
    is_exact = data.startswith(_MAGIC) and b64encode(data).decode() == usual
    is_right = hmac.compare_digest(tag, _tag(packed, key))
    return packed if is_exact and is_right else None


def _tag(packed: bytes, key: bytes) -> bytes:
    if len(key) < _LEAST_KEY:
        raise ConfigurationError(
            f"The key of seals has {len(key)} bytes. It needs at least {_LEAST_KEY}. "
            "secrets.token_bytes(32) makes one."
        )
    return hmac.new(key, _MAGIC + packed, hashlib.sha256).digest()


def _inflate(packed: bytes) -> bytes:
    inflater = zlib.decompressobj(zdict=_COMMON)
    plain = inflater.decompress(packed, _MOST + 1024)
    if inflater.unconsumed_tail or not inflater.eof:
        raise zlib.error("too large")
    return plain
