"""One page of a list, as a server sends it."""

from __future__ import annotations

from collections.abc import Sequence

from interlingua.spec.content import Json


def list_body(rows: Sequence[dict[str, Json]], *, has_more: bool) -> dict[str, Json]:
    """The page with these rows, each of which has an `id`."""
    ids = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
    return {"object": "list", "data": list(rows), "has_more": has_more, **ids}
