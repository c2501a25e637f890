"""The types of ASGI, and what every application does with its messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import quote

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class ResetConnectionError(ConnectionResetError):
    """An application raises it to have its connection reset; ASGI has no message for that."""


class CutConnectionError(ConnectionAbortedError):
    """An application raises it to have its connection closed in the middle of the reply."""


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """The headers, names in lower case."""
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }


def path_of(scope: Mapping[str, Any]) -> str:
    """The path as it was written: a slash within a model's name stays escaped."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"], safe="/:@").encode()
    return raw.decode("latin-1").partition("?")[0]


def query_of(scope: Mapping[str, Any]) -> str:
    """The query as it was written."""
    text: str = scope.get("query_string", b"").decode("latin-1")
    return text


async def read_body(receive: Receive) -> bytes | None:
    """The whole body; None if the client left before it had sent all of it."""
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


async def answer_lifespan(receive: Receive, send: Send) -> None:
    """Confirm startup and shutdown, for which there is nothing to do."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        else:
            await send({"type": "lifespan.shutdown.complete"})
            return
