"""What a run would cost and take, before anything is sent."""

from __future__ import annotations

from itertools import islice

from interlingua.bulk.loop import Plan
from interlingua.bulk.template import RowProblem
from interlingua.spec.content import Record
from interlingua.spec.errors import SDKError
from interlingua.spec.request import Request

_SAMPLE = 200


class Estimate(Record, frozen=True, kw_only=True):
    """What a run would cost and take; the sums are from a sample of the rows."""

    rows: int = 0
    """How many rows would be sent."""
    input_tokens: int = 0
    """The tokens of their requests."""
    least: float | None = None
    """Dollars, if all answers are empty; None if the price is unknown."""
    most: float | None = None
    """Dollars, if all answers are as long as `max_tokens` or the model allows."""
    seconds: float | None = None
    """The time at the limits that were set; None if there are none."""


def estimate(plan: Plan) -> Estimate:
    """Estimate a run from up to 200 rows, which are spread over the input."""
    pending = plan.survey.pending
    step = max(1, plan.changes.rows // _SAMPLE)
    base = plan.job.base_request()
    requests: list[Request] = []
    for row in islice(plan.source, 0, None, step):
        try:
            requests.append(plan.job.ask(row.data, row.key, b"").request(base))
        except RowProblem:
            continue
    if not requests or not pending:
        return Estimate(rows=pending)
    factor = pending / len(requests)
    tokens = sum(map(plan.client.estimate_input_tokens, requests)) * factor
    costs = [_cost(plan, request) for request in requests]
    known = [cost for cost in costs if cost is not None]
    is_known = len(known) == len(costs)
    return Estimate(
        rows=pending,
        input_tokens=round(tokens),
        least=sum(low for low, _ in known) * factor if is_known else None,
        most=sum(high for _, high in known) * factor if is_known else None,
        seconds=_seconds(plan, pending, tokens),
    )


def _cost(plan: Plan, request: Request) -> tuple[float, float] | None:
    try:
        found = plan.client.estimate_cost(request)
    except SDKError:
        return None
    return None if found is None else (found.low, found.high)


def _seconds(plan: Plan, rows: int, tokens: float) -> float | None:
    settings = plan.settings
    times = [
        60 * amount / limit
        for amount, limit in (
            (rows, settings.requests_per_minute),
            (tokens, settings.tokens_per_minute),
        )
        if limit is not None
    ]
    return max(times, default=None)
