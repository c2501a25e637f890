"""A transport that answers requests from a recorded file."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.spec.content import Json
from interlingua.spec.contracts import HttpReply, HttpRequest
from interlingua.spec.errors import ConfigurationError, DecodeError
from interlingua.transport.bodies import with_whole_body
from interlingua.transport.canned import CannedReply, Piece, open_reply
from interlingua.transport.cassette.tape import (
    decode_data,
    decode_error,
    encode_data,
    load_exchanges,
)
from interlingua.wire.json_text import loads
from interlingua.wire.secrets import Redactor, redact_url, target_of

# An id that this library generated: words and a ULID.
_is_generated_id = re.compile(r"(?:[a-z]+_)+[0-7][0-9A-HJKMNP-TV-Z]{25}").fullmatch
_MAX_DIFFERENCES = 5  # in a message
_MAX_VALUE = 60  # characters of a value in a message


class _RequestKey(NamedTuple):
    """The properties of a request that must match the recording."""

    method: str
    target: str
    body: Json


class ReplayTransport:
    """
    Answers each request with the recorded exchange of the same method, path, query and body.

    JSON bodies are compared as values, without the top-level fields in `ignore`. Hosts, API keys
    and ids that this library generated are not compared. Equal requests get their replies in
    recorded order. `speed` 1 keeps the recorded pauses, 2 halves them, 0 (the default) skips them.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        speed: float = 0.0,
        ignore: Collection[str] = (),
        secrets: Collection[str] = (),
    ) -> None:
        self._path = Path(path)
        self._speed = speed
        self._ignore = frozenset(ignore)
        self._secrets = secrets
        self._exchanges = load_exchanges(self._path)
        self._keys = [self._recorded_key(exchange) for exchange in self._exchanges]
        self._used: set[int] = set()

    @property
    def unused(self) -> int:
        """The number of recorded exchanges that were not replayed."""
        return len(self._exchanges) - len(self._used)

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Replay the exchange that was recorded for this request."""
        if not isinstance(request.body, bytes):
            return self._send_streamed(request)
        redactor = Redactor(self._secrets)
        redactor.learn(request)
        target = target_of(redactor.redact_text(redact_url(request.url)))
        key = _RequestKey(request.method, target, self._body(redactor.redact(request.body)))
        for index, recorded in enumerate(self._keys):
            if index not in self._used and recorded == key:
                self._used.add(index)
                return open_reply(self._answer(self._exchanges[index]))
        raise ConfigurationError(self._explain_miss(key))

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""

    @asynccontextmanager
    async def _send_streamed(self, request: HttpRequest) -> AsyncIterator[HttpReply]:
        async with self.send(await with_whole_body(request)) as reply:
            yield reply

    def _recorded_key(self, exchange: dict[str, Any]) -> _RequestKey:
        request = exchange["request"]
        target = target_of(request["url"])
        return _RequestKey(request["method"], target, self._body(decode_data(request)))

    def _body(self, data: bytes) -> Json:
        try:
            value = loads(data)
        except DecodeError:
            return encode_data(data)
        if isinstance(value, dict) and self._ignore:
            value = {name: item for name, item in value.items() if name not in self._ignore}
        return number_ids(value, {})

    def _answer(self, exchange: dict[str, Any]) -> CannedReply | Exception:
        failure = decode_error(exchange["error"]) if "error" in exchange else None
        reply = exchange.get("reply")
        if reply is None:
            return failure or ConfigurationError(
                f"{str(self._path)!r} has an exchange without a reply; record it again"
            )
        body: list[Piece] = []
        for chunk in reply["chunks"]:
            if self._speed > 0 and chunk.get("after"):
                body.append(float(chunk["after"]) / self._speed)
            body.append(decode_data(chunk))
        if failure is not None:
            body.append(failure)
        pause = float(reply.get("after", 0)) / self._speed if self._speed > 0 else 0.0
        return CannedReply(
            status=reply["status"], headers=reply["headers"], body=tuple(body), after=pause
        )

    def _explain_miss(self, key: _RequestKey) -> str:
        miss = f"the cassette {str(self._path)!r} has no reply for {key.method} {key.target}"
        if key in self._keys:
            count = self._keys.count(key)
            return f"{miss}: it was recorded {count} times and requested {count + 1} times"
        candidates = [recorded for recorded in self._keys if recorded[:2] == key[:2]]
        if not candidates:
            known = sorted({f"{recorded.method} {recorded.target}" for recorded in self._keys})
            return f"{miss}; it has replies for: {', '.join(known) or 'nothing'}"
        nearest = min((list(differences(one.body, key.body)) for one in candidates), key=len)
        lines = "\n".join(f"  {line}" for line in nearest[:_MAX_DIFFERENCES])
        rest = len(nearest) - _MAX_DIFFERENCES
        more = f"\n  and {rest} more" if rest > 0 else ""
        return f"{miss}; the most similar recorded request differs at\n{lines}{more}"


def number_ids(value: Json, known: dict[str, str]) -> Json:
    """The value with generated ids, which differ in each run, replaced by `id 1`, `id 2`, …"""
    if isinstance(value, str):
        if _is_generated_id(value) is None:
            return value
        return known.setdefault(value, f"id {len(known) + 1}")
    if isinstance(value, dict):
        return {name: number_ids(item, known) for name, item in value.items()}
    return [number_ids(item, known) for item in value] if isinstance(value, list) else value


def differences(recorded: Json, actual: Json, path: str = "body") -> Iterator[str]:
    """The differences between two JSON values, one line each."""
    if isinstance(recorded, dict) and isinstance(actual, dict):
        for name in [*recorded, *(name for name in actual if name not in recorded)]:
            inner = f"{path}.{name}"
            if name not in actual:
                yield f"{inner}: recorded {_show(recorded[name])}, now absent"
            elif name not in recorded:
                yield f"{inner}: not recorded, now {_show(actual[name])}"
            else:
                yield from differences(recorded[name], actual[name], inner)
    elif isinstance(recorded, list) and isinstance(actual, list):
        if len(recorded) != len(actual):
            yield f"{path}: recorded {len(recorded)} items, now {len(actual)}"
        for index, (one, other) in enumerate(zip(recorded, actual, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
    elif recorded != actual:
        yield f"{path}: recorded {_show(recorded)}, now {_show(actual)}"


def _show(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…"
