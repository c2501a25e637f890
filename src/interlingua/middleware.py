"""
The types of middleware: functions and objects that wrap every call of a client.

Import from here to annotate a middleware of your own.
"""

from interlingua.client.middleware.layers import Middleware
from interlingua.client.middleware.operations import OperationCall, PerformMiddleware, PerformNext

__all__ = ["Middleware", "OperationCall", "PerformMiddleware", "PerformNext"]
