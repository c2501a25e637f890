"""Calls answered from a recording."""

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
from interlingua.transport.canned import CannedReply, Piece, give
from interlingua.transport.cassette.tape import (
    decode_data,
    decode_error,
    encode_data,
    load_exchanges,
)
from interlingua.wire.json_text import loads
from interlingua.wire.secrets import Redactor, redact_url, target_of

_MADE_ID = re.compile(r"(?:[a-z]+_)+[0-7][0-9A-HJKMNP-TV-Z]{25}").fullmatch  # words and a ULID
_SHOWN = 5  # differences in a message
_WIDTH = 60  # characters of a value in it


class _Asked(NamedTuple):
    """What of a request decides which recording answers it."""

    method: str
    target: str
    body: Json


class ReplayTransport:
    """
    Answers each call with the recorded exchange of the same method, path, query and body.

    JSON bodies are compared as values, without the fields named in `ignore`; hosts, keys and the
    ids we make for what came without one do not count. Equal requests get their replies in the
    order they were recorded. `speed` 1 keeps the recorded pauses, 2 halves them, 0 leaves them
    out.
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
        self._asked = [self._recorded(exchange) for exchange in self._exchanges]
        self._used: set[int] = set()

    @property
    def unused(self) -> int:
        """How many exchanges have not been asked for."""
        return len(self._exchanges) - len(self._used)

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Answer with the exchange that was recorded for this request."""
        if not isinstance(request.body, bytes):
            return self._send_streamed(request)
        redactor = Redactor(self._secrets)
        redactor.learn(request)
        target = target_of(redactor.redact_text(redact_url(request.url)))
        asked = _Asked(request.method, target, self._body(redactor.redact(request.body)))
        for index, recorded in enumerate(self._asked):
            if index not in self._used and recorded == asked:
                self._used.add(index)
                return give(self._answer(self._exchanges[index]))
        raise ConfigurationError(self._complaint(asked))

    async def close(self) -> None:
        """There is nothing to release."""

    @asynccontextmanager
    async def _send_streamed(self, request: HttpRequest) -> AsyncIterator[HttpReply]:
        async with self.send(await with_whole_body(request)) as reply:
            yield reply

    def _recorded(self, exchange: dict[str, Any]) -> _Asked:
        request = exchange["request"]
        target = target_of(request["url"])
        return _Asked(request["method"], target, self._body(decode_data(request)))

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
                f"{str(self._path)!r} has an exchange with no reply"
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

    def _complaint(self, asked: _Asked) -> str:
        what = f"{str(self._path)!r} has no reply for {asked.method} {asked.target}"
        if asked in self._asked:
            times = self._asked.count(asked)
            return f"{what}: it was recorded {times} times, and is asked for once more"
        like = [recorded for recorded in self._asked if recorded[:2] == asked[:2]]
        if not like:
            known = sorted({f"{recorded.method} {recorded.target}" for recorded in self._asked})
            return f"{what}; recorded are: {', '.join(known) or 'none'}"
        nearest = min((list(differences(one.body, asked.body)) for one in like), key=len)
        shown = "\n".join(f"  {line}" for line in nearest[:_SHOWN])
        more = f"\n  and {len(nearest) - _SHOWN} more" if len(nearest) > _SHOWN else ""
        return f"{what}; the nearest one that was recorded differs at\n{shown}{more}"


def number_ids(value: Json, known: dict[str, str]) -> Json:
    """The value with the ids that are new in each run as their numbers, in order of appearance."""
    if isinstance(value, str):
        if _MADE_ID(value) is None:
            return value
        return known.setdefault(value, f"id {len(known) + 1}")
    if isinstance(value, dict):
        return {name: number_ids(item, known) for name, item in value.items()}
    return [number_ids(item, known) for item in value] if isinstance(value, list) else value


def differences(recorded: Json, asked: Json, path: str = "body") -> Iterator[str]:
    """Where two JSON values differ, a line each."""
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for name in [*recorded, *(name for name in asked if name not in recorded)]:
            inner = f"{path}.{name}"
            if name not in asked:
                yield f"{inner}: was recorded as {_show(recorded[name])}, is not there now"
            elif name not in recorded:
                yield f"{inner}: was not recorded, is {_show(asked[name])} now"
            else:
                yield from differences(recorded[name], asked[name], inner)
    elif isinstance(recorded, list) and isinstance(asked, list):
        if len(recorded) != len(asked):
            yield f"{path}: was recorded with {len(recorded)} items, has {len(asked)} now"
        for index, (one, other) in enumerate(zip(recorded, asked, strict=False)):
            yield from differences(one, other, f"{path}[{index}]")
    elif recorded != asked:
        yield f"{path}: was recorded as {_show(recorded)}, is {_show(asked)} now"


def _show(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
