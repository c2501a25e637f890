"""The certificates that connections are verified against, loaded once per process."""

from __future__ import annotations

import ssl
from functools import cache

from interlingua.spec.errors import ConfigurationError


@cache
def load() -> ssl.SSLContext:
    """
    Return a context that trusts the system's certificates, or those in `SSL_CERT_FILE`.

    It reads a file of some hundred certificates, which takes several milliseconds.
    """
    try:
        context = ssl.create_default_context()
    except OSError as error:  # such as a file in `SSLKEYLOGFILE` that cannot be written
        raise ConfigurationError(f"Cannot prepare TLS: {error}") from error
    context.set_alpn_protocols(["http/1.1"])
    return context


def is_loaded() -> bool:
    """Whether `load` returns at once."""
    return bool(load.cache_info().currsize)
