"""Probabilities of tokens <-> the lists of both APIs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from interlingua.spec.content import Json, TokenLogprob
from interlingua.wire.fields import is_number

_TOP = "top_logprobs"


def read_tokens(items: Json) -> tuple[TokenLogprob, ...]:
    """The tokens of a list; none of them if an item is something else."""
    # A list with gaps would no longer fit the text.
    return _read_all(items, _read_with_top)


def write_tokens(tokens: Sequence[TokenLogprob], *, with_bytes: bool) -> list[Json]:
    """The list of tokens; `with_bytes` writes bytes also where they are not known."""
    return [
        {
            **_write(token, with_bytes=with_bytes),
            _TOP: [_write(each, with_bytes=with_bytes) for each in token.top],
        }
        for token in tokens
    ]


def _read_all(items: Json, read: Callable[[Json], TokenLogprob | None]) -> tuple[TokenLogprob, ...]:
    tokens = [read(item) for item in items] if isinstance(items, list) else []
    return tuple([token for token in tokens if token]) if all(tokens) else ()


def _read_with_top(item: Json) -> TokenLogprob | None:
    token = _read(item)
    top = item.get(_TOP) if isinstance(item, dict) else None
    if token is None or not top:
        return token
    alternatives = _read_all(top, _read)
    return replace(token, top=alternatives) if alternatives else None


def _read(item: Json) -> TokenLogprob | None:
    if not isinstance(item, dict):
        return None
    token, logprob = item.get("token"), item.get("logprob")
    if not isinstance(token, str) or not is_number(logprob):
        return None
    return TokenLogprob(token=token, logprob=logprob, bytes=_read_bytes(item.get("bytes")))


def _read_bytes(numbers: Json) -> bytes | None:
    try:
        return bytes(numbers) if isinstance(numbers, list) else None
    except (TypeError, ValueError):
        return None


def _write(token: TokenLogprob, *, with_bytes: bool) -> dict[str, Json]:
    # Required in the SDK's types of Responses, null at Chat Completions.
    data = token.bytes
    if data is None and with_bytes:
        data = token.token.encode("utf-8", "replace")
    numbers = None if data is None else list(data)
    return {"token": token.token, "logprob": token.logprob, "bytes": numbers}
