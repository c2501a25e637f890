"""Ids for tool calls that the provider sent without an id."""

from __future__ import annotations

from interlingua.spec.contracts import NewId


def counting_ids() -> NewId:
    """Deterministic ids `1`, `2`, …: the default for pure decoding. Adapters pass ULIDs."""
    count = 0

    def new_id() -> str:
        nonlocal count
        count += 1
        return str(count)

    return new_id


def call_ids(new_id: NewId) -> NewId:
    """`new_id` with the prefix `call_`."""
    return lambda: f"call_{new_id()}"
