"""The certificates that connections are verified against, loaded once per process."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache


@cache
def load() -> ssl.SSLContext:
    """
    Return a context that trusts the system's certificates, or those in `SSL_CERT_FILE`.

    It reads a file of some hundred certificates, which takes several milliseconds.
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def get_ready() -> None:
    """Load the certificates in a thread, unless they are loaded."""
    if not load.cache_info().currsize:
        await asyncio.to_thread(load)
