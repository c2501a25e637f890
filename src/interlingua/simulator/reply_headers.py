"""Request ids and rate-limit headers of the simulated replies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from interlingua.spec.response import RateLimit
from interlingua.spec.serve import ServerFacts


def request_id(number: int) -> str:
    """The id of a request, which says that it is simulated."""
    return f"req_simulated{number:06d}"


def limit_headers(
    facts: ServerFacts, limit: RateLimit, now: datetime | None = None
) -> dict[str, str]:
    """The vendor's headers for these limits; none where it has none."""
    values: dict[str, object] = {
        name: getattr(limit, name)
        for name in ("requests_limit", "requests_remaining", "tokens_limit", "tokens_remaining")
    }
    if limit.reset_after is not None:
        reset = f"{limit.reset_after:g}s"
        if facts.resets_at:
            moment = (now or datetime.now(UTC)) + timedelta(seconds=limit.reset_after)
            reset = moment.isoformat().replace("+00:00", "Z")
        for bucket in ("requests", "tokens"):
            if values[f"{bucket}_limit"] is not None or values[f"{bucket}_remaining"] is not None:
                values[f"{bucket}_reset"] = reset
    return {
        header: str(values[name])
        for name, header in facts.limit_headers.items()
        if values.get(name) is not None
    }
