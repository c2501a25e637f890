"""
Middleware: functions and objects that wrap every call of a client.

Import from here to annotate a middleware of your own, and to run one once per attempt.
"""

from interlingua.client.middleware.balance import Balance
from interlingua.client.middleware.circuit_breaker import CircuitBreaker
from interlingua.client.middleware.fallback import FALLBACK_ERRORS, Fallback
from interlingua.client.middleware.layers import (
    CompleteNext,
    Middleware,
    OperationCall,
    PerformMiddleware,
    PerformNext,
    StreamNext,
    per_attempt,
)
from interlingua.client.middleware.other_model import OtherModel

__all__ = [
    "FALLBACK_ERRORS",
    "Balance",
    "CircuitBreaker",
    "CompleteNext",
    "Fallback",
    "Middleware",
    "OperationCall",
    "OtherModel",
    "PerformMiddleware",
    "PerformNext",
    "StreamNext",
    "per_attempt",
]
