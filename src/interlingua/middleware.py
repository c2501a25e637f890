"""
Middleware: functions and objects that wrap every call of a client.

Import from here to annotate a middleware of your own, and to run one once per attempt.
"""

from interlingua.client.middleware.layers import (
    CompleteNext,
    Middleware,
    OperationCall,
    PerformMiddleware,
    PerformNext,
    StreamNext,
    per_attempt,
)

__all__ = [
    "CompleteNext",
    "Middleware",
    "OperationCall",
    "PerformMiddleware",
    "PerformNext",
    "StreamNext",
    "per_attempt",
]
