"""
Transports: the only code that does network I/O. Each one is imported on first use.

Import from here to choose how requests are sent (another HTTP library, an ASGI app, canned
replies, a recording), to set `Timeouts` or `Limits`, or to write your own `Transport`.
"""

from typing import TYPE_CHECKING, Any

from interlingua.spec.contracts import Transport
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.transport.http1.transport import HttpTransport, default_transport

if TYPE_CHECKING:
    from interlingua.transport.asgi import AsgiTransport
    from interlingua.transport.bodies import FileBody
    from interlingua.transport.canned import CannedReply, CannedTransport
    from interlingua.transport.cassette import RecordingTransport, ReplayTransport
    from interlingua.transport.httpx2_transport import HttpxTransport

__all__ = [
    "AsgiTransport",
    "CannedReply",
    "CannedTransport",
    "FileBody",
    "HttpTransport",
    "HttpxTransport",
    "Limits",
    "RecordingTransport",
    "ReplayTransport",
    "Timeouts",
    "Transport",
    "default_transport",
]

_LAZY = {
    "AsgiTransport": "asgi",
    "CannedReply": "canned",
    "CannedTransport": "canned",
    "FileBody": "bodies",
    "HttpxTransport": "httpx2_transport",
    "RecordingTransport": "cassette",
    "ReplayTransport": "cassette",
}

if not TYPE_CHECKING:  # a type checker would accept any name if it saw `__getattr__`

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name not in _LAZY:
            raise AttributeError(f"Module 'interlingua.transport' has no attribute {name!r}.")
        return getattr(import_module(f"interlingua.transport.{_LAZY[name]}"), name)
