"""
Middleware: functions and objects that wrap every call of a client.

Those that ship with the library are here, and the types to annotate one of your own.
"""

from interlingua.client.middleware.budget import (
    Budget,
)
from interlingua.client.middleware.cache import (
    Cache,
)
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
from interlingua.client.middleware.logging import (
    Logging,
)
from interlingua.client.middleware.rate_limit import (
    RateLimit,
)

__all__ = [
    "Budget",
    "Cache",
    "CallInfo",
    "CompleteNext",
    "Logging",
    "Middleware",
    "OperationCall",
    "PerformMiddleware",
    "PerformNext",
    "RateLimit",
    "StreamNext",
    "ToolMiddleware",
    "ToolNext",
    "per_attempt",
]
