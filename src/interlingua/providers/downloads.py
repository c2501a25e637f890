"""Downloads of files that a provider has made: redirects, and files at other hosts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from urllib.parse import urljoin

from interlingua.providers.answer_check import read_error
from interlingua.providers.provider import is_at_loopback, is_own, join_url
from interlingua.runtime.cancel import CancelScope
from interlingua.spec.contracts import Dialect, HttpRequest, Transport
from interlingua.spec.errors import DecodeError
from interlingua.spec.operations import ItemDecoder
from interlingua.transport.media import MAX_REDIRECTS, fetch_chunks, is_public

_REDIRECTS = frozenset((301, 302, 303, 307, 308))


async def download_items(
    path: str,
    base_url: str,
    make_request: Callable[[str], Awaitable[HttpRequest]],
    transport: Transport,
    dialect: Dialect,
    decoder: ItemDecoder,
    scope: CancelScope,
) -> AsyncGenerator[Any, None]:
    """
    None when the file begins to arrive, then its items; `make_request` adds the key to a URL.

    The key is sent only to the host of the provider. A file at another host, which the reply of
    the provider names or redirects to, is fetched without it.
    """
    url = path if path.startswith(("http://", "https://")) else ""
    for _ in range(MAX_REDIRECTS + 1):
        if url and not is_own(base_url, url):
            items = _fetch_items(url, base_url, decoder, scope)
            async with aclosing(items):
                async for item in items:
                    yield item
            return
        request = await make_request(url)
        async with transport.send(request) as reply:
            if reply.status not in _REDIRECTS or "location" not in reply.headers:
                if reply.status >= 300:
                    raise await read_error(reply, dialect)
                scope.replies = (reply,)
                yield None
                chunks = aiter(reply.chunks())
                while chunk := await scope.wait(anext(chunks, b"")):
                    for item in decoder.feed(chunk):
                        yield item
                break
            url = urljoin(url or join_url(base_url, path), reply.headers["location"])
    else:
        raise DecodeError(f"the provider redirects a download more than {MAX_REDIRECTS} times")
    for item in decoder.finish():
        yield item


async def _fetch_items(
    url: str, base_url: str, decoder: ItemDecoder, scope: CancelScope
) -> AsyncGenerator[Any, None]:
    """The items of a file at another host; only a provider on this machine may name local ones."""

    def allowed(address: str) -> bool:
        return is_public(address) or is_at_loopback(base_url)

    chunks = fetch_chunks(url, allowed=allowed)
    async with aclosing(chunks):
        await scope.wait(anext(chunks))
        yield None
        while chunk := await scope.wait(anext(chunks, b"")):
            for item in decoder.feed(chunk):
                yield item
    for item in decoder.finish():
        yield item
