"""What can go wrong in aiohttp -> our errors."""

from __future__ import annotations

import os

import aiohttp

from interlingua.spec.contracts import HttpRequest, Timeouts
from interlingua.spec.errors import (
    ConfigurationError,
    NetworkError,
    SDKError,
    StreamError,
)
from interlingua.transport.limits import host_of, timeout_error

# The errors of aiohttp are not chained: their texts hold URLs, and so perhaps keys.


def send_error(error: Exception, request: HttpRequest, timeouts: Timeouts) -> SDKError:
    """The error for a call that failed before the head of a reply came."""
    host = host_of(request)
    match error:
        case SDKError():
            return error
        case aiohttp.ConnectionTimeoutError():
            return timeout_error("connect", request, timeouts)
        case aiohttp.ClientConnectorError():
            return _connect_error(error, host)
        case aiohttp.ClientHttpProxyError():
            retryable = error.status >= 500
            return NetworkError(f"the proxy refused {host}: {error.status}", retryable=retryable)
        case aiohttp.ServerDisconnectedError():
            return NetworkError(f"{host} closed the connection before it replied")
        case aiohttp.ClientResponseError():
            return NetworkError(f"{host} answered with something that is not HTTP")
        case aiohttp.ClientConnectionError() | OSError():
            return NetworkError(f"the connection to {host} was lost before it replied")
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return ConfigurationError(f"not a URL that a request can go to (host: {host})")
        case ValueError():
            # of a key with a line break at its end, mostly
            return ConfigurationError(
                f"the request to {host} has a header that cannot be sent; "
                "look for line breaks in keys and header values"
            )
    return NetworkError(f"the call to {host} failed: {type(error).__name__}")


def _connect_error(error: aiohttp.ClientConnectorError, host: str) -> NetworkError:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return NetworkError(f"cannot find the address of {host}: {error.os_error.strerror}")
    if isinstance(error, aiohttp.ClientSSLError):
        # the one for certificates has no other cause than this
        cause = getattr(error, "certificate_error", None) or error.os_error
        reason = getattr(cause, "verify_message", None) or getattr(cause, "reason", None)
        why = reason or type(cause).__name__
        return NetworkError(f"no TLS with {host}: {why}", retryable=False)
    number = error.os_error.errno
    why = os.strerror(number) if number else type(error.os_error).__name__
    return NetworkError(f"cannot connect to {host}: {why}")


def body_error(error: Exception, request: HttpRequest, *, in_stream: bool) -> SDKError:
    """The error for a body that stopped; of a stream that is a `StreamError`."""
    host = host_of(request)
    if isinstance(error, (aiohttp.ClientPayloadError, EOFError)):
        text = f"the reply of {host} ended in the middle"
    elif isinstance(error, (aiohttp.ClientError, OSError, RuntimeError)):
        text = f"the connection to {host} was lost in the middle of the reply"
    else:
        text = f"the reply of {host} cannot be read: {type(error).__name__}"
    return StreamError(text) if in_stream else NetworkError(text)
