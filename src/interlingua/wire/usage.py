"""Token counts of a host -> `Usage`, where the parts may contradict the whole."""

from __future__ import annotations

from interlingua.spec.content import Json
from interlingua.spec.response import Usage
from interlingua.spec.warnings import WarningList


def make_usage(
    *,
    input_tokens: int,
    output_tokens: int,
    reasoning: int | None,
    cache_read: int | None,
    cache_write: int | None = None,
    raw: Json,
    notes: WarningList | None = None,
) -> Usage:
    """
    Counts in which no part is larger than its whole.

    Reasoning above the output is counted beside it, so it is added. Cached tokens above the
    input are limited to it: the input is what the host bills. Reads and writes are compared each
    alone, because some hosts count the same tokens in both.
    """
    if reasoning is not None and reasoning > output_tokens:
        output_tokens += reasoning
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        reasoning_tokens=reasoning,
        cache_read_tokens=_limited("cache_read", cache_read, input_tokens, notes),
        cache_write_tokens=_limited("cache_write", cache_write, input_tokens, notes),
        raw=raw,
    )


def _limited(name: str, part: int | None, whole: int, notes: WarningList | None) -> int | None:
    if part is None or part <= whole:
        return part
    if notes is not None:
        notes.add("usage_limited", f"usage.{name}_tokens", name=name, part=part, whole=whole)
    return whole
