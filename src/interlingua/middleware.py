"""
Middleware: functions and objects that wrap every call of a client.

Those that ship with the library are here, and the types to annotate one of your own.
"""

from typing import TYPE_CHECKING

from interlingua.lazy import names_of

if TYPE_CHECKING:
    from interlingua.client.middleware.balance import Balance
    from interlingua.client.middleware.budget import Budget
    from interlingua.client.middleware.cache import Cache
    from interlingua.client.middleware.circuit_breaker import CircuitBreaker
    from interlingua.client.middleware.contract import (
        Call,
        CompleteNext,
        Middleware,
        PerformMiddleware,
        PerformNext,
        StreamNext,
        ToolMiddleware,
        ToolNext,
        per_attempt,
    )
    from interlingua.client.middleware.fallback import FALLBACK_ERRORS, Fallback
    from interlingua.client.middleware.hedge import Hedge
    from interlingua.client.middleware.logging import Logging
    from interlingua.client.middleware.other_model import OtherModel
    from interlingua.client.middleware.rate_limit import RateLimit
    from interlingua.client.middleware.redact import Redact
    from interlingua.client.middleware.telemetry import Telemetry

__all__ = [
    "FALLBACK_ERRORS",
    "Balance",
    "Budget",
    "Cache",
    "Call",
    "CircuitBreaker",
    "CompleteNext",
    "Fallback",
    "Hedge",
    "Logging",
    "Middleware",
    "OtherModel",
    "PerformMiddleware",
    "PerformNext",
    "RateLimit",
    "Redact",
    "StreamNext",
    "Telemetry",
    "ToolMiddleware",
    "ToolNext",
    "per_attempt",
]

if not TYPE_CHECKING:  # a type checker would accept any name if it saw `__getattr__`
    __getattr__ = names_of(
        __name__,
        {
            "interlingua.client.middleware.balance": ("Balance",),
            "interlingua.client.middleware.budget": ("Budget",),
            "interlingua.client.middleware.cache": ("Cache",),
            "interlingua.client.middleware.circuit_breaker": ("CircuitBreaker",),
            "interlingua.client.middleware.contract": (
                "Call",
                "CompleteNext",
                "Middleware",
                "PerformMiddleware",
                "PerformNext",
                "StreamNext",
                "ToolMiddleware",
                "ToolNext",
                "per_attempt",
            ),
            "interlingua.client.middleware.fallback": ("FALLBACK_ERRORS", "Fallback"),
            "interlingua.client.middleware.hedge": ("Hedge",),
            "interlingua.client.middleware.logging": ("Logging",),
            "interlingua.client.middleware.other_model": ("OtherModel",),
            "interlingua.client.middleware.rate_limit": ("RateLimit",),
            "interlingua.client.middleware.redact": ("Redact",),
            "interlingua.client.middleware.telemetry": ("Telemetry",),
        },
    )
