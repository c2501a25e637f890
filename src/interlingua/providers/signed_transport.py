"""A transport that signs each request with a key that is made while the program runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit

from msgspec.structs import replace

from interlingua.providers.credentials import Credentials, Secret
from interlingua.providers.endpoints import Signing
from interlingua.providers.provider import Provider, sign
from interlingua.spec.contracts import HttpReply, HttpRequest, Transport
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import ConfigurationError, UnsupportedError
from interlingua.wire.sigv4 import sign_request

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
    if signing == "sigv4" and not region:
        variables = " or ".join(row.url_env.get("region", ()))
        raise ConfigurationError(
            f"{row.name}: a signature needs the region. Set {variables}, or pass "
            'places={"region": "…"}',
            setting="places",
        )
    return SignedTransport(
        inner,
        credentials,
        row.token_signing or signing,
        origin=_origin(base_url),
        service=row.aws_service,
        region=region,
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


class SignedTransport:
    """
    Adds the key to each request to its origin, and sends it through another transport.

    A request to another host, such as a redirected download, is sent without a key.

    After a 401 the request is sent once more with another key, if its body can be sent again. A
    signature of AWS that ended is refused with a 403.
    """

    def __init__(
        self,
        inner: Transport,
        credentials: Credentials,
        signing: Signing,
        *,
        origin: str,
        service: str = "",
        region: str = "",
    ) -> None:
        self.inner = inner
        self._credentials = credentials
        self._signing: Signing = signing
        self._origin = origin
        self._service = service
        self._region = region
        self._refusals = (401, 403) if signing == "sigv4" else (401,)

    @property
    def timeouts(self) -> Timeouts | None:
        """Those of the other transport."""
        return getattr(self.inner, "timeouts", None)

    @property
    def limits(self) -> Limits | None:
        """Those of the other transport."""
        return getattr(self.inner, "limits", None)

    def send(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpReply]:
        """Sign the request and send it."""
        if _origin(request.url) != self._origin:
            return self.inner.send(request)
        return self._send(request)

    async def close(self) -> None:
        """Close the other transport."""
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
                "AwsCredentials are for a provider whose requests are signed, such as "
                "bedrock_invoke",
                setting="api_key",
            )
        if not isinstance(request.body, bytes):
            raise UnsupportedError("a streamed body cannot be signed; pass it as bytes")
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
            service=self._service,
            region=self._region,
            now=datetime.now(UTC),
        )
        del signed["host"]  # the transport writes it
        return replace(request, headers={**request.headers, **signed})
