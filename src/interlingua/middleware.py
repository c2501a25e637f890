"""
Middleware: functions and objects that wrap every call of a client.

Import from here the middleware that the library has, and what is needed to write one.
"""

from interlingua.client.middleware.cache import Cache
from interlingua.client.middleware.layers import (
    CallInfo,
    CompleteNext,
    Middleware,
    OperationCall,
    PerformMiddleware,
    PerformNext,
    StreamNext,
    ToolMiddleware,
    ToolNext,
    per_attempt,
)
from interlingua.client.middleware.logging import Logging
from interlingua.client.middleware.redact import Redact

__all__ = [
    "Cache",
    "CallInfo",
    "CompleteNext",
    "Logging",
    "Middleware",
    "OperationCall",
    "PerformMiddleware",
    "PerformNext",
    "Redact",
    "StreamNext",
    "ToolMiddleware",
    "ToolNext",
    "per_attempt",
]
