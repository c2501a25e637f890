"""Lets pages of other origins call the gateway (CORS), if the file names them."""

from __future__ import annotations

from collections.abc import Collection

from interlingua.serving.asgi import App, Message, Receive, Scope, Send

Headers = list[tuple[bytes, bytes]]

_DAY = b"86400"
"""Seconds that a browser remembers the answer; browsers have lower limits of their own."""


class Cors:
    """
    An ASGI application that answers the preflight requests of browsers, and passes the others on.

    A preflight has no key, so it is answered without one. The origin is no protection: a request
    still needs a key of the gateway.
    """

    def __init__(self, app: App, origins: Collection[str]) -> None:
        self._app = app
        self._allows_all = "*" in origins
        self._origins = frozenset(origin.rstrip("/").encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: the entry point of ASGI."""
        headers = dict(scope.get("headers", ()))
        origin = headers.get(b"origin")
        if scope["type"] != "http" or origin is None:
            await self._app(scope, receive, send)
            return
        own = self._headers(origin)
        wanted = headers.get(b"access-control-request-method")
        if scope["method"] == "OPTIONS" and wanted is not None:
            if own:
                own += _preflight(wanted, headers.get(b"access-control-request-headers"))
            await send({"type": "http.response.start", "status": 204, "headers": own})
            await send({"type": "http.response.body", "body": b""})
            return

        async def send_signed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *own]
            await send(message)

        await self._app(scope, receive, send_signed)

    def _headers(self, origin: bytes) -> Headers:
        """What allows an origin to read the reply; nothing if it may not."""
        if not self._allows_all and origin not in self._origins:
            return []
        shown = b"*" if self._allows_all else origin
        return [
            (b"access-control-allow-origin", shown),
            (b"access-control-expose-headers", b"*"),
            (b"vary", b"origin"),
        ]


def _preflight(method: bytes, headers: bytes | None) -> Headers:
    found = [
        (b"access-control-allow-methods", method),
        (b"access-control-max-age", _DAY),
    ]
    if headers is not None:
        found.append((b"access-control-allow-headers", headers))
    return found
