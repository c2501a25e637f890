"""Ids for calls that came without one."""

from __future__ import annotations

from interlingua.spec.contracts import NewId


def counting_ids() -> NewId:
    """Ids that are the same each time: `1`, `2`, … An adapter passes ULIDs instead."""
    count = 0

    def new_id() -> str:
        nonlocal count
        count += 1
        return str(count)

    return new_id


def call_ids(new_id: NewId) -> NewId:
    """Ids for calls that came without one."""
    return lambda: f"call_{new_id()}"
