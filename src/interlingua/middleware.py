"""
Middleware: functions and objects that wrap every call of a client.

Import from here to annotate a middleware of your own, and to run one once per attempt.
"""

from interlingua.client.middleware.layers import (
    CompleteNext,
    Middleware,
    StreamNext,
    per_attempt,
)
from interlingua.client.middleware.operations import OperationCall, PerformMiddleware, PerformNext

__all__ = [
    "CompleteNext",
    "Middleware",
    "OperationCall",
    "PerformMiddleware",
    "PerformNext",
    "StreamNext",
    "per_attempt",
]
