"""The HTTP requests of operations: headers, addresses, bodies. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from interlingua.providers.http_requests import ACCEPT, ACCEPT_STREAM, join_headers
from interlingua.providers.provider import join_url
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.contracts import Content, HttpRequest, WireCall
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.wire.json_text import dumps
from interlingua.wire.multipart import encode_form


def operation_request(
    call: WireCall,
    base_url: str,
    defaults: Mapping[str, str],
    key_headers: Mapping[str, str],
    timeouts: Timeouts | None,
    *,
    limits: Limits | None = None,
    keep_alive: bool = True,
    may_resend: bool = True,
) -> HttpRequest:
    """
    The HTTP request of an operation, with its address and key.

    The caller's default headers replace the dialect's.
    """
    content_type, body = _encode_body(call)
    headers = join_headers(ACCEPT_STREAM if call.stream else ACCEPT, call.headers, defaults)
    if content_type is not None:
        headers["content-type"] = content_type
    url = join_url(base_url, call.path)
    if call.query:
        url += ("&" if "?" in url else "?") + urlencode(
            call.query, quote_via=quote, errors="replace"
        )
    return HttpRequest(
        method=call.method,
        url=url,
        headers={**headers, **key_headers},
        body=body,
        timeouts=timeouts,
        limits=limits,
        keep_alive=keep_alive,
        may_resend=may_resend,
    )


def _encode_body(call: WireCall) -> tuple[str | None, Content]:
    """The body and its content type; None if the call's own headers give the type."""
    if call.form:
        return encode_form(call.form, new_ulid)
    if call.content is not None:
        return None, call.content
    return (None, b"") if call.body is None else ("application/json", dumps(call.body))
