"""Runs one check and says how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from interlingua.conformance.probes import NotApplicableError, ProblemError
from interlingua.conformance.report import Score, Violation
from interlingua.spec.errors import ConfigurationError, NetworkError

T = TypeVar("T")


def choose(
    checks: Mapping[str, Callable[[T], Awaitable[None]]], names: Iterable[str] | None
) -> Mapping[str, Callable[[T], Awaitable[None]]]:
    """The checks of these names; `ConfigurationError` for an unknown name."""
    if names is None:
        return checks
    chosen = list(names)
    for name in chosen:
        if name not in checks:
            raise ConfigurationError(f"no check {name!r}; there are {', '.join(checks)}")
    return {name: checks[name] for name in chosen}


async def run_check(
    name: str, check: Callable[[T], Awaitable[None]], subject: T, *, is_first: bool = False
) -> tuple[Score, list[Violation]]:
    """
    The score of a check, and what it found.

    If the first check cannot connect, nothing is there to be checked: `NetworkError` is raised.
    """
    case = (check.__doc__ or "").strip()
    try:
        await check(subject)
    except NotApplicableError as error:
        return Score(law=name, not_applicable=1, reason=str(error)), []
    except ProblemError as problem:
        violation = Violation(
            law=name,
            case=case,
            details=(problem.received,),
            sent=problem.sent,
            required=problem.required,
        )
    except Exception as error:
        if is_first and isinstance(error, NetworkError):
            raise
        violation = Violation(
            law=name,
            case=case,
            details=(f"{type(error).__name__}: {error}",),
            required="reply completely, without an exception",
        )
    else:
        return Score(law=name, passed=1), []
    return Score(law=name, failed=1), [violation]
