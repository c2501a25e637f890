"""
Middleware around operations, such as counting tokens or listing models.

A middleware with `perform(operation, value, call_next)` wraps every operation of its client; any
other lets them pass. A middleware that must not be passed by says `guard = True`: a client with a
guard that has no `perform` refuses operations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from interlingua.spec.errors import ConfigurationError

PerformNext: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Calls the next layer with a value, and gives the operation's result."""


class OperationCall(msgspec.Struct, frozen=True, kw_only=True):
    """Which operation is performed, and where."""

    name: str
    provider: str
    request_id: str


@runtime_checkable
class PerformMiddleware(Protocol):
    """Wraps operations."""

    async def perform(self, operation: OperationCall, value: Any, call_next: PerformNext) -> Any:
        """Call `call_next` with this value or another (or not), and give the result."""


class OperationLayers:
    """The layers of a client that wrap operations: the first registered is the outermost."""

    def __init__(self, middleware: Iterable[object] = ()) -> None:
        layers = tuple(middleware)
        self._layers = [layer for layer in layers if isinstance(layer, PerformMiddleware)]
        self._guards = [
            layer
            for layer in layers
            if getattr(layer, "guard", False) and not isinstance(layer, PerformMiddleware)
        ]

    def wrap(self, operation: OperationCall, send: PerformNext) -> PerformNext:
        """`send` within every layer; `ConfigurationError` if a guard would be passed by."""
        if self._guards:
            raise ConfigurationError(
                f"the operation {operation.name!r} is refused: the guard {self._guards[0]!r} has "
                "no `perform(operation, value, call_next)`, and would not see it"
            )
        for layer in reversed(self._layers):
            send = _wrap_one(layer, operation, send)
        return send


def _wrap_one(
    layer: PerformMiddleware, operation: OperationCall, call_next: PerformNext
) -> PerformNext:
    return lambda value: layer.perform(operation, value, call_next)
