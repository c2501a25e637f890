"""
Errors of a provider, as the clients of a gateway get them.

They know the gateway, not the provider: a refused key is the gateway's and not theirs, and no
message has the address of a provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from urllib.parse import urlsplit

from interlingua.client.client import Client
from interlingua.serving.application import Incoming, error_reply, serve_of
from interlingua.serving.asgi import Reply
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    CircuitOpenError,
    DecodeError,
    NetworkError,
    ProviderTimeoutError,
    RequestTimeoutError,
    SDKError,
    ServerError,
    StoreError,
    StreamError,
)
from interlingua.wire.classify import SPENT

_UNREACHABLE = 503
_TIMED_OUT = 504
_RETRY_AFTER = 5.0
"""Seconds after which a client may ask again for a provider that cannot be reached."""
_AGAIN = "You can retry your request."
"""pi, which has only the words of an error in a stream, asks again after these."""
_ADDRESS = "[address]"
_replace_urls = re.compile(r"\b[a-z]{1,16}://[^\s\"'<>)\]]+", re.IGNORECASE).sub


def hosts_of(client: Client) -> tuple[str, ...]:
    """The hosts of the providers, the longest first, with and without their ports."""
    bases = [getattr(adapter, "base_url", None) for adapter in client.calls.adapters.values()]
    parts = [urlsplit(base) for base in bases if isinstance(base, str)]
    found = {name for part in parts for name in (part.netloc, part.hostname) if name}
    return tuple(sorted(found, key=lambda name: (-len(name), name)))


def client_reply(incoming: Incoming, error: SDKError, client: Client) -> Reply:
    """The reply with which a client of the gateway is told this error of a call of `client`."""
    reply = error_reply(incoming, for_clients(error, hosts_of(client)))
    status = serve_of(incoming.dialect).SERVER.spent_status
    if status is None or not isinstance(error, SPENT):
        return reply
    return reply._replace(status=status)


def for_clients(error: SDKError, hosts: Iterable[str] = ()) -> SDKError:
    """The error that a client of the gateway gets."""
    shown = _translated(error)
    if shown is error:
        shown = copy(error)
        shown.message = _replace_urls(_ADDRESS, error.message)
        for host in hosts:
            shown.message = shown.message.replace(host, _ADDRESS)
        shown.provider_request_id = None  # the id in the reply is that of the gateway
    shown.add_facts(request_id=error.request_id, provider=error.provider, model=error.model)
    return shown


def _translated(error: SDKError) -> SDKError:
    """The error in words of the gateway, if those of the provider are about something else."""
    provider = error.provider or "the provider"
    match error:
        case AuthenticationError() | AccessDeniedError():
            text = f"The gateway's key for {provider} was refused. Tell who runs the gateway."
            return ServerError(text, status_code=_UNREACHABLE, retryable=False)
        case CircuitOpenError():
            text = f"The gateway does not call {provider} now, because it has failed too often."
            return CircuitOpenError(text, retry_after=max(error.retry_after or 0.0, 1.0))
        case ProviderTimeoutError():
            return error
        case RequestTimeoutError():
            text = f"{provider} did not answer in time. {_AGAIN}"
            return ServerError(text, status_code=_TIMED_OUT, retry_after=_RETRY_AFTER)
        case NetworkError():
            text = f"The gateway cannot reach {provider}. {_AGAIN}"
        case StoreError():
            text = "The gateway cannot reach its store. Tell who runs the gateway."
        case StreamError():
            text = f"The answer of {provider} ended without its last part. {_AGAIN}"
        case DecodeError():
            text = f"The gateway cannot read the answer of {provider}. {_AGAIN}"
        case _ if error.error_code == "not_configured":
            text = f"The gateway has no key for {provider}."
        case _:
            return error
    return ServerError(text, status_code=_UNREACHABLE, retry_after=_RETRY_AFTER)
