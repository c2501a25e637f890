"""Which dialect a request is in, what it asks for, and the key it carries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from interlingua import dialects
from interlingua.serving.asgi import headers_of, path_of, query_of
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import ConfigurationError, DecodeError
from interlingua.spec.serve import RouteKind, Serve, ServerFacts
from interlingua.wire.json_text import loads
from interlingua.wire.secrets import redact_headers

_BEARER = "bearer "


class Route(NamedTuple):
    """What a request asks for, and the dialect that it is in."""

    kind: RouteKind
    dialect: str
    model: str | None = None


def serve_of(dialect: str) -> Serve:
    """The server side of a dialect; `ConfigurationError` if it has none."""
    serve: Serve | None = getattr(dialects.get(dialect), "serve", None)
    if serve is None:
        raise ConfigurationError(f"the dialect {dialect!r} has no module `serve`")
    return serve


def find_route(method: str, path: str, headers: Mapping[str, str]) -> Route:
    """Where a request belongs; one of no known path still has a dialect, to answer it in."""
    shared: dict[str, Route] = {}
    for name, facts in _served():
        for route in facts.routes:
            match = route.pattern.fullmatch(path) if method == route.method else None
            if match is None:
                continue
            found = Route(route.kind, name, match.groupdict().get("model"))
            if not route.is_shared:
                return found
            shared.setdefault(name, found)
    name = _recognise(path, headers, shared or dict(_served()))
    return shared.get(name) or Route("unknown", name)


def read_call(scope: Mapping[str, Any], body: bytes, route: Route | None = None) -> WireCall:
    """The request without its key; its body is None if it is not JSON."""
    method, path, headers = scope.get("method", "POST"), path_of(scope), headers_of(scope)
    server = serve_of((route or find_route(method, path, headers)).dialect).SERVER
    secrets = tuple(f"{facts.key_query}=" for _, facts in _served() if facts.key_query)
    items = [item for item in query_of(scope).split("&") if item and not item.startswith(secrets)]
    try:
        value = loads(body) if body else None
    except DecodeError:
        value = None
    is_stream = isinstance(value, dict) and value.get(server.stream_field) is True
    return WireCall(
        method=method,
        path=f"{path}?{'&'.join(items)}" if items else path,
        body=value,
        headers=redact_headers(headers),
        stream=is_stream or (bool(server.stream_path) and path.endswith(server.stream_path)),
    )


def read_key(headers: Mapping[str, str], query: str) -> str | None:
    """The key that a request carries, wherever a client of any dialect puts it."""
    served = [facts for _, facts in _served()]
    for name in dict.fromkeys(name for facts in served for name in facts.key_headers):
        value = headers.get(name)
        if value:
            return value[len(_BEARER) :] if value.lower().startswith(_BEARER) else value
    parameters = parse_qs(query)
    names = [facts.key_query for facts in served if facts.key_query]
    return next((parameters[name][0] for name in names if name in parameters), None)


def _served() -> Iterator[tuple[str, ServerFacts]]:
    """The dialects that have a server side."""
    for name in dialects.names():
        serve: Serve | None = getattr(dialects.get(name), "serve", None)
        if serve is not None:
            yield name, serve.SERVER


def _recognise(path: str, headers: Mapping[str, str], names: Mapping[str, object]) -> str:
    """One of these dialects: by the headers, else by the path, else the common one."""
    served = [(name, facts) for name, facts in _served() if name in names]
    for name, facts in served:
        if any(header in headers for header in facts.own_headers):
            return name
    for name, facts in served:
        if any(piece in path for piece in facts.own_paths):
            return name
    return next((name for name, facts in served if facts.is_common), served[0][0])
