"""The only code that touches a network, or a file."""

from interlingua.transport.http import AiohttpTransport, default_transport

__all__ = ["AiohttpTransport", "default_transport"]
