"""
The errors of aiohttp as errors of this library.

They are not chained to ours: their texts contain URLs, and a URL may contain an API key.
"""

from __future__ import annotations

import os

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import ConfigurationError, NetworkError, SDKError, StreamError
from interlingua.transport.timeouts import host_of, timeout_error


def send_error(error: Exception, request: HttpRequest, timeouts: Timeouts) -> SDKError:
    """The error for a request that failed before the headers of the response arrived."""
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
            return NetworkError(f"The proxy refused {host}: {error.status}", retryable=retryable)
        case aiohttp.ServerDisconnectedError():
            return NetworkError(f"{host} closed the connection before it sent a response.")
        case HttpProcessingError():
            return NetworkError(f"The response from {host} is not valid HTTP.")
        case aiohttp.ClientConnectionError() | OSError():
            return NetworkError(f"The connection to {host} was lost before a response came.")
        case aiohttp.InvalidURL():
            return ConfigurationError(
                f"The request URL is invalid (host: {host}). Use http:// or https:// and a host."
            )
        case ValueError():
            # Usually an API key with a line break at its end.
            return ConfigurationError(
                f"The request to {host} has an invalid header. "
                "Check API keys and header values for line breaks."
            )
    return NetworkError(f"The request to {host} failed: {type(error).__name__}")


def _connect_error(error: aiohttp.ClientConnectorError, host: str) -> NetworkError:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        why = error.os_error.strerror
        return NetworkError(f"Cannot find the address of {host}: {why}", phase="connect")
    if isinstance(error, aiohttp.ClientSSLError):
        # a certificate error is in `certificate_error`; other TLS errors are in `os_error`
        cause = getattr(error, "certificate_error", None) or error.os_error
        reason = getattr(cause, "verify_message", None) or getattr(cause, "reason", None)
        why = reason or type(cause).__name__
        text = f"the TLS handshake with {host} failed: {why}"
        return NetworkError(text, retryable=False, phase="connect")
    number = error.os_error.errno
    why = os.strerror(number) if number else type(error.os_error).__name__
    return NetworkError(f"Cannot connect to {host}: {why}", phase="connect")


def body_error(error: Exception, request: HttpRequest, *, in_stream: bool) -> SDKError:
    """The error for an incomplete body: `StreamError` for a stream, else `NetworkError`."""
    host = host_of(request)
    if isinstance(error, (aiohttp.ClientPayloadError, EOFError)):
        text = f"the response from {host} is incomplete: it ended too early"
    elif isinstance(error, (aiohttp.ClientError, OSError, RuntimeError)):
        text = f"the connection to {host} was lost during the response"
    else:
        text = f"cannot read the response from {host}: {type(error).__name__}"
    return StreamError(text) if in_stream else NetworkError(text)
