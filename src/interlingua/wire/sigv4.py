"""
Signature Version 4 of AWS, pure: the key and the time are arguments.

Rules: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import SplitResult, quote, urlsplit

from interlingua.wire.aws_credentials import AwsCredentials

_ALGORITHM = "AWS4-HMAC-SHA256"
_CHANGING = frozenset(
    (
        *("authorization", "proxy-authenticate", "proxy-authorization", "user-agent"),
        *("connection", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
        *("baggage", "traceparent", "tracestate", "x-amzn-trace-id"),
    )
)
"""Headers that are not signed: a proxy on the way may change them."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


def sign_request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    credentials: AwsCredentials,
    service: str,
    region: str,
    now: datetime,
) -> dict[str, str]:
    """The headers with the signature and what it needs; names in lower case."""
    parts = urlsplit(url)
    time = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    signed = {name.lower(): value for name, value in headers.items()}
    signed |= {"host": _host(parts), "x-amz-date": time}
    if credentials.session_token:
        signed["x-amz-security-token"] = credentials.session_token
    names = sorted(signed.keys() - _CHANGING)
    canonical = "\n".join(
        (
            method.upper(),
            quote(_without_dots(parts.path), safe="/~"),  # it is encoded already: once more
            _canonical_query(parts.query),
            *(f"{name}:{' '.join(signed[name].split())}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(body).hexdigest(),
        )
    )
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = _signing_key(credentials.secret_access_key, time[:8], region, service)
    signature = _hmac(key, f"{_ALGORITHM}\n{time}\n{scope}\n{digest}").hex()
    signed["authorization"] = (
        f"{_ALGORITHM} Credential={credentials.access_key_id}/{scope}, "
        f"SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return signed


def _signing_key(secret: str, date: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = _hmac(key, part)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _host(url: SplitResult) -> str:
    """The host as an HTTP client sends it: without the default port of the scheme."""
    host = url.hostname or ""
    host = f"[{host}]" if ":" in host else host
    is_default = url.port in (None, _DEFAULT_PORTS.get(url.scheme))
    return host if is_default else f"{host}:{url.port}"


def _without_dots(path: str) -> str:
    """The path without `.`, `..` and empty segments."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    slash = "/" if segments and path.endswith("/") else ""
    return f"/{'/'.join(segments)}{slash}"


def _canonical_query(query: str) -> str:
    """The parameters, encoded as they are in the URL, in the order of their names and values."""
    pairs = sorted(piece.partition("=")[::2] for piece in query.split("&")) if query else []
    return "&".join(f"{name}={value}" for name, value in pairs)
