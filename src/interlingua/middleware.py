"""
Middleware: functions and objects that wrap every call of a client.

Those that ship with the library are here, and the types to annotate one of your own.
"""

from interlingua.client.middleware.budget import Budget
from interlingua.client.middleware.layers import (
    CompleteNext,
    Middleware,
    OperationCall,
    PerformMiddleware,
    PerformNext,
    StreamNext,
    per_attempt,
)
from interlingua.client.middleware.rate_limit import RateLimit

__all__ = [
    "Budget",
    "CompleteNext",
    "Middleware",
    "OperationCall",
    "PerformMiddleware",
    "PerformNext",
    "RateLimit",
    "StreamNext",
    "per_attempt",
]
