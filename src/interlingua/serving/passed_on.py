"""What a provider is told of a client's request besides the canonical fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from interlingua.providers.adapter_options import EXTRA_HEADERS, HEADER_OPTIONS
from interlingua.providers.provider import Provider
from interlingua.serving.application import Incoming, serve_of
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning

_OURS = ("path", EXTRA_HEADERS, *HEADER_OPTIONS)
"""Options that say where a request goes and who pays: they are not for clients."""
_MAX_SESSION = 256  # characters
TRACE = ("traceparent", "tracestate")
"""The headers that name the trace of a request: https://www.w3.org/TR/trace-context/."""
_is_trace = re.compile(r"[0-9a-f]{2}(-[0-9a-f]+){3}.{0,256}").fullmatch


def options_of(incoming: Incoming, asked: Request) -> dict[str, Mapping[str, Any]]:
    """The options for a provider that speaks the dialect of the client: its fields and headers."""
    server, given = serve_of(incoming.dialect).SERVER, asked.provider_options
    options = {
        name: value for name, value in given.get(incoming.dialect, {}).items() if name not in _OURS
    }
    names = (*server.session_headers, *server.passed_headers)
    headers = {name: incoming.call.headers[name] for name in names if name in incoming.call.headers}
    headers = {name: value for name, value in headers.items() if value.isprintable()}
    if headers:
        options[EXTRA_HEADERS] = headers
    return {incoming.dialect: options} if options else {}


def with_trace(
    incoming: Incoming, options: dict[str, Mapping[str, Any]], upstream: str | None
) -> dict[str, Mapping[str, Any]]:
    """The options with the trace of the request, for a provider that speaks this dialect."""
    headers = incoming.call.headers
    if upstream is None or not _is_trace(headers.get(TRACE[0], "")):
        return options  # as for most requests; a state without a parent means nothing
    found = {name: headers.get(name, "") for name in TRACE}
    trace = {name: value for name, value in found.items() if value and value.isprintable()}
    known = options.get(upstream, {})
    extra = {**known.get(EXTRA_HEADERS, {}), **trace}
    return {**options, upstream: {**known, EXTRA_HEADERS: extra}}


def session_of(incoming: Incoming, asked: Request) -> str | None:
    """
    The conversation of a request, as its client names it; None if it does not.

    A `Balance` keeps the requests of a conversation at one place, where its prompt is cached.
    """
    server = serve_of(incoming.dialect).SERVER
    for name in server.session_headers:
        if value := incoming.call.headers.get(name):
            return value[:_MAX_SESSION]
    value = asked.provider_options.get(incoming.dialect, {}).get(server.session_field)
    return value[:_MAX_SESSION] if isinstance(value, str) and value else None


def without_refused_flags(
    request: Request, dialect: str, row: Provider | None
) -> tuple[Request, list[Warning]]:
    """The request without the flags that its provider refuses, and a warning for each."""
    endpoint = None if row is None else row.endpoints.get(dialect)
    options = request.provider_options.get(dialect)
    if row is None or endpoint is None or endpoint.flags is None or not options:
        return request, []
    kept, warnings = dict(options), []
    for name in serve_of(dialect).SERVER.flag_options:
        given = options.get(name) or ()
        flags = [given] if isinstance(given, str) else list(given)
        if accepted := [flag for flag in flags if flag in endpoint.flags]:
            kept[name] = accepted
        else:
            kept.pop(name, None)
        warnings += [
            make_warning("setting_dropped", name, target=row.name, setting=str(flag), when="")
            for flag in flags
            if flag not in endpoint.flags
        ]
    options = {**request.provider_options, dialect: kept}
    return replace(request, provider_options=options), warnings
