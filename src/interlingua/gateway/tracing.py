"""Lets the spans of a request belong to the trace of its client, as `traceparent` names it."""

from __future__ import annotations

from typing import Any

from interlingua.serving.asgi import App, Receive, Scope, Send, headers_of
from interlingua.spec.errors import ConfigurationError


class Traced:
    """An ASGI application whose requests run in the context of their clients' spans."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._context, self._extract = _load()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request: the entry point of ASGI."""
        token = self._context.attach(self._extract(headers_of(scope)))
        try:
            await self._app(scope, receive, send)
        finally:
            self._context.detach(token)


def _load() -> tuple[Any, Any]:
    try:
        from opentelemetry import context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError:
        raise ConfigurationError(
            "`telemetry` needs OpenTelemetry. Run `pip install 'interlingua[telemetry]'`."
        ) from None
    return context, TraceContextTextMapPropagator().extract
