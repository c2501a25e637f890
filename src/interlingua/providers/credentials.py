"""
Keys that are made while the program runs: the callables that make them, cached and refreshed.

`SignedTransport` adds such a key to each request. A plain text key does not pass through here.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from interlingua.providers.adapter_options import get_transport_ready
from interlingua.providers.cloud_identities import AwsSource
from interlingua.providers.keys import KeySource
from interlingua.providers.provider import Provider, Signing, sign
from interlingua.runtime.log import logger
from interlingua.spec.contracts import HttpReply, HttpRequest, Transport
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import (
    AuthenticationError,
    ConfigurationError,
    SDKError,
    UnsupportedError,
)
from interlingua.wire.aws_credentials import AwsCredentials
from interlingua.wire.sigv4 import sign_request

_TIMEOUT = 60.0
_LIFETIME = 300.0  # of a key whose end is not known; its maker often caches it itself
_MARGIN = 300.0
"""Seconds before a key expires when the next one is made, at most a fifth of its lifetime."""
_MAX_TEXTS = 16
_PAUSE = 10.0
"""Seconds between two attempts to make a key while the old one is still valid."""


class Secret(NamedTuple):
    """A key that is in use."""

    value: str | AwsCredentials
    renew_at: float
    """When the next one is made, on the monotonic clock."""
    ends_at: float


class Credentials:
    """
    The key of a source: made by one task at a time, cached, and made again before it expires.

    While it is made again, calls use the old one as long as it is valid. Event loops and threads
    share the key; each loop makes its own attempt at most once at a time.
    """

    def __init__(self, source: KeySource | AwsCredentials) -> None:
        self._source = source
        self.texts: tuple[str, ...] = ()
        """The last keys, which no error may show."""
        self._secret: Secret | None = None
        self._paused_until = 0.0
        self._tasks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Secret]]
        self._tasks = WeakKeyDictionary()

    @property
    def is_signed(self) -> bool:
        """Whether requests are signed: the source is known to make keys of AWS."""
        return isinstance(self._source, (AwsCredentials, AwsSource))

    @property
    def can_renew(self) -> bool:
        """Whether another key may come from the source."""
        return callable(self._source)

    async def get(self) -> Secret:
        """The key; waits only if there is none that is valid."""
        secret, now = self._secret, time.monotonic()
        if secret is None or now >= secret.ends_at:
            return await asyncio.shield(self._renewal())
        if now >= secret.renew_at and now >= self._paused_until:
            self._paused_until = now + _PAUSE
            self._renewal().add_done_callback(_log_failure)
        return secret

    async def renew(self, refused: Secret) -> Secret:
        """Another key after the provider refused this one; the current one if it is newer."""
        if self._secret is not None and self._secret is not refused:
            return self._secret
        return await asyncio.shield(self._renewal())

    def _renewal(self) -> asyncio.Task[Secret]:
        """The task that makes a key; one at a time in a loop."""
        loop = asyncio.get_running_loop()
        task = self._tasks.get(loop)
        if task is None or task.done():
            task = self._tasks[loop] = loop.create_task(self._make())
            task.add_done_callback(_retrieve)
        return task

    async def _make(self) -> Secret:
        made = await _call(self._source)
        secret = _secret(made)
        self.texts = tuple(dict.fromkeys((*_texts(secret.value), *self.texts)))[:_MAX_TEXTS]
        self._secret = secret
        return secret


async def _call(source: KeySource | AwsCredentials) -> object:
    """What the source makes; any failure of it is an `AuthenticationError`, or its own error."""
    if isinstance(source, AwsCredentials):
        return source
    problem = ""
    try:
        async with asyncio.timeout(_TIMEOUT) as limit:
            return await _await(source)
    except SDKError:
        raise
    except Exception as error:  # noqa: BLE001 -- the callable is the caller's
        problem = f"failed with {type(error).__name__}{_place(error)}"
        if limit.expired():
            problem = f"made no key within {_TIMEOUT:g} s"
    # Raised here, without the error as its context: its text may quote a key or a token.
    raise _failure(problem)


async def _await(source: KeySource) -> object:
    call = getattr(source, "__call__", source)  # noqa: B004 -- an object may have an async one
    if inspect.iscoroutinefunction(source) or inspect.iscoroutinefunction(call):
        made: object = source()
    else:
        made = await asyncio.to_thread(source)
    return await made if inspect.isawaitable(made) else made


def _place(error: BaseException) -> str:
    """Where an error was raised, for those who look for its cause."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    name = trace.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f" at {name}:{trace.tb_lineno}"


def _secret(made: object) -> Secret:
    key, expires_at = made, None
    if isinstance(made, AwsCredentials):
        expires_at = made.expires_at
    elif isinstance(made, tuple) and len(made) == 2:
        key, expires_at = made
    if isinstance(key, str) and (not key.strip() or not key.isprintable()):
        raise _failure("made an empty key, or one that no header can carry")
    if not isinstance(key, (str, AwsCredentials)):
        raise _failure(f"made a {type(key).__name__}; it must make a text or an ApiKey")
    now = time.monotonic()
    lifetime = _seconds_until(expires_at)
    if lifetime is None:
        is_known = isinstance(key, AwsCredentials)
        forever = float("inf")
        return Secret(key, forever if is_known else now + _LIFETIME, forever)
    if lifetime <= 0:
        raise _failure("made a key that has ended already")
    return Secret(key, now + lifetime - min(_MARGIN, lifetime / 5), now + lifetime)


def _seconds_until(moment: object) -> float | None:
    if moment is None:
        return None
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return aware.timestamp() - time.time()
    if isinstance(moment, (int, float)) and not isinstance(moment, bool):
        return moment - time.time()
    raise _failure(f"gave a {type(moment).__name__} as the end of its key, not a time")


def _texts(value: str | AwsCredentials) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return (value.secret_access_key, *filter(None, (value.session_token,)))


def _failure(what: str) -> AuthenticationError:
    return AuthenticationError(f"The callable given as api_key {what}.")


def _retrieve(task: asyncio.Task[Secret]) -> None:
    """Mark the exception as seen: those who wait for the task get it, if anybody does."""
    if not task.cancelled():
        task.exception()


def _log_failure(task: asyncio.Task[Secret]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        logger.warning("No new key was made; the old one is used until it expires: %s", error)


@lru_cache(maxsize=128)
def _shared(source: KeySource | AwsCredentials) -> Credentials:
    return Credentials(source)


def credentials_of(source: KeySource | AwsCredentials) -> Credentials:
    """The credentials of a source: the same ones each time, so that its key is made once."""
    try:
        return _shared(source)
    except TypeError:  # it has no hash
        return Credentials(source)


# The transport that signs each request.


_SIGNED = ("accept", "content-type")
"""The headers that are part of a signature of AWS, besides those that begin with `x-amz`."""


def sign_with(
    inner: Transport,
    credentials: Credentials,
    row: Provider,
    base_url: str,
    places: Mapping[str, str],
    signing: Signing,
) -> Transport:
    """A transport that signs the requests to this provider."""
    region = places.get("region", "")
    if signing == "sigv4" and not region and not credentials.can_renew:
        raise _no_region(row)
    return SignedTransport(
        inner,
        credentials,
        row,
        row.token_signing or signing,
        origin=_origin_of(base_url),
        region=region,
    )


def _no_region(row: Provider) -> ConfigurationError:
    variables = " or ".join(row.url_env.get("region", ()))
    return ConfigurationError(
        f"{row.name}: A signature needs the region. Set {variables}, or pass "
        'places={"region": "…"}.',
        setting="places",
    )


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


class SignedTransport:
    """
    Adds the key to each request to its origin, and sends it through the inner transport.

    A request to another host, such as a redirected download, is sent without a key.

    After a 401 the request is sent once more with another key, if its body can be sent again. A
    signature of AWS that ended is refused with a 403.
    """

    def __init__(
        self,
        inner: Transport,
        credentials: Credentials,
        row: Provider,
        signing: Signing,
        *,
        origin: str,
        region: str = "",
    ) -> None:
        self.inner = inner
        self._credentials = credentials
        self._row = row
        self._signing: Signing = signing
        self._origin = origin
        self._region = region
        self._refusals = (401, 403) if signing == "sigv4" else (401,)

    @property
    def timeouts(self) -> Timeouts | None:
        """The timeouts of the inner transport."""
        return getattr(self.inner, "timeouts", None)

    @property
    def limits(self) -> Limits | None:
        """The limits of the inner transport."""
        return getattr(self.inner, "limits", None)

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Sign the request and send it."""
        if _origin_of(request.url) != self._origin:
            return self.inner.send(request)
        return self._send(request)

    async def get_ready(self, url: str) -> None:
        """Make the key, and what the inner transport needs."""
        await get_transport_ready(self.inner, url)
        if _origin_of(url) == self._origin:
            await self._credentials.get()

    async def close(self) -> None:
        """Close the inner transport."""
        await self.inner.close()

    @asynccontextmanager
    async def _send(self, request: HttpRequest) -> AsyncIterator[HttpReply]:
        secret = await self._credentials.get()
        async with self.inner.send(self._sign(request, secret)) as reply:
            is_final = reply.status not in self._refusals or not self._credentials.can_renew
            if is_final or not isinstance(request.body, bytes):
                yield reply
                return
            other = await self._credentials.renew(secret)
            if other.value == secret.value:
                yield reply
                return
        async with self.inner.send(self._sign(request, other)) as reply:
            yield reply

    def _sign(self, request: HttpRequest, secret: Secret) -> HttpRequest:
        value = secret.value
        if isinstance(value, str):
            return replace(request, headers={**request.headers, **sign(self._signing, value)})
        if self._signing != "sigv4":
            raise ConfigurationError(
                "`AwsCredentials` are for a provider whose requests are signed, such as "
                "bedrock_invoke. Pass a text key.",
                setting="api_key",
            )
        if not self._region:  # a callable may also make a text, which needs none
            raise _no_region(self._row)
        if not isinstance(request.body, bytes):
            raise UnsupportedError("A streamed body cannot be signed. Pass it as bytes.")
        headers = {
            name: text
            for name, text in request.headers.items()
            if name in _SIGNED or name.startswith("x-amz")
        }
        signed = sign_request(
            request.method,
            request.url,
            headers,
            request.body,
            credentials=value,
            service=self._row.aws_service,
            region=self._region,
            now=datetime.now(UTC),
        )
        del signed["host"]  # the transport writes it
        return replace(request, headers={**request.headers, **signed})
