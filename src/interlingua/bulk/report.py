"""What a job has done so far: counts, costs, distributions, samples and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import frexp
from typing import Any

import msgspec

from interlingua.bulk.answers import Answer
from interlingua.spec.content import Record

_SAMPLES = 5
_TOP = 12  # the most buckets of a distribution


class Spread:
    """
    A distribution in buckets that double, in little memory.

    The bucket of a value begins at the largest power of two that is not above it.
    """

    def __init__(self) -> None:
        self.count: int = 0
        self.total: float = 0.0
        self.least: float = float("inf")
        self.most: float = 0.0
        self.buckets: Counter[float] = Counter()

    def add(self, value: float) -> None:
        """Count a value."""
        self.count += 1
        self.total += value
        self.least = min(self.least, value)
        self.most = max(self.most, value)
        bucket = 2.0 ** (frexp(value)[1] - 1) if value > 0 else 0.0
        self.buckets[bucket] += 1

    def summary(self) -> Distribution:
        """Return it as plain values."""
        if not self.count:
            return Distribution()
        return Distribution(
            count=self.count,
            mean=self.total / self.count,
            least=self.least,
            most=self.most,
            buckets=tuple(sorted(self.buckets.items())[-_TOP:]),
        )


class Distribution(Record, frozen=True, kw_only=True):
    """How values are distributed."""

    count: int = 0
    """How many values there are."""
    mean: float = 0.0
    """Their mean."""
    least: float = 0.0
    """The smallest."""
    most: float = 0.0
    """The largest."""
    buckets: tuple[tuple[float, int], ...] = ()
    """Where each bucket begins, and how many values it has; each is twice as wide as the last."""


class ModelCost(Record, frozen=True, kw_only=True):
    """What one model has answered, and for how much."""

    calls: int = 0
    """How many answers were paid for."""
    input_tokens: int = 0
    """The tokens of the requests."""
    output_tokens: int = 0
    """The tokens of the answers."""
    cost: float = 0.0
    """Dollars, of the answers whose price is known."""
    unpriced: int = 0
    """How many answers have no known price."""


class Sample(Record, frozen=True, kw_only=True):
    """A row, for the report."""

    key: str
    """The row."""
    row: Mapping[str, Any] = {}
    """Its columns."""
    answer: Answer
    """What became of it."""


class Report(Record, frozen=True, kw_only=True):
    """The state of a job, at its end or before."""

    output: str = ""
    """The file of the output."""
    rows: int = 0
    """How many rows the output has."""
    done: int = 0
    """Rows with an answer."""
    failed: int = 0
    """Rows that failed."""
    pending: int = 0
    """Rows that were not answered yet."""
    changed: int = 0
    """Rows whose request is another one than in the run before."""
    reused: int = 0
    """Rows with an answer that was in the ledger, or that equal rows share."""
    cost: float = 0.0
    """Dollars that the ledger has recorded, with failed attempts."""
    stopped: str | None = None
    """Why the run ended before all rows were tried."""
    is_written: bool = False
    """Whether the output was written; it is only if no row is pending."""
    seconds: float = 0.0
    """How long this run took."""
    errors: Mapping[str, int] = {}
    """Failed rows by class of error."""
    finish_reasons: Mapping[str, int] = {}
    """Answers by the reason why they ended."""
    models: Mapping[str, ModelCost] = {}
    """What each model has answered."""
    lengths: Distribution = Distribution()
    """Characters of the answers."""
    costs: Distribution = Distribution()
    """Dollars of the answers."""
    latencies: Distribution = Distribution()
    """Seconds of the calls."""
    samples: tuple[Sample, ...] = ()
    """The first rows with answers."""
    failures: tuple[Sample, ...] = ()
    """The first rows of each class of error."""


class Survey:
    """Adds up a report, row by row."""

    def __init__(self) -> None:
        self.rows: int = 0
        self.done: int = 0
        self.failed: int = 0
        self.pending: int = 0
        self.reused: int = 0
        self._errors: Counter[str] = Counter()
        self._finish_reasons: Counter[str] = Counter()
        self._models: dict[str, ModelCost] = {}
        self._spreads = (Spread(), Spread(), Spread())
        self._samples: list[Sample] = []
        self._failures: list[Sample] = []

    def add(self, key: str, row: Mapping[str, Any], answer: Answer) -> None:
        """Count a row."""
        self.rows += 1
        if answer.status == "pending":
            self.pending += 1
            return
        if answer.status == "failed":
            self.failed += 1
            kind = answer.error_class or "other"
            self._errors[kind] += 1
            if self._errors[kind] <= _SAMPLES:
                self._failures.append(Sample(key=key, row=row, answer=answer))
            return
        self.done += 1
        self._finish_reasons[answer.finish_reason or "other"] += 1
        if len(self._samples) < _SAMPLES:
            self._samples.append(Sample(key=key, row=row, answer=answer))
        lengths, costs, latencies = self._spreads
        lengths.add(len(answer.text or ""))
        if answer.key != key:
            self.reused += 1
            return
        latencies.add(answer.seconds)
        if answer.cost is not None:
            costs.add(answer.cost)
        self._count_model(answer)

    def _count_model(self, answer: Answer) -> None:
        before = self._models.get(answer.model, ModelCost())
        self._models[answer.model] = ModelCost(
            calls=before.calls + 1,
            input_tokens=before.input_tokens + answer.input_tokens,
            output_tokens=before.output_tokens + answer.output_tokens,
            cost=before.cost + (answer.cost or 0.0),
            unpriced=before.unpriced + (answer.cost is None),
        )

    def report(self, **facts: Any) -> Report:
        """Return the report."""
        lengths, costs, latencies = (spread.summary() for spread in self._spreads)
        return Report(
            rows=self.rows,
            done=self.done,
            failed=self.failed,
            pending=self.pending,
            reused=self.reused,
            errors=dict(self._errors),
            finish_reasons=dict(self._finish_reasons),
            models=self._models,
            lengths=lengths,
            costs=costs,
            latencies=latencies,
            samples=tuple(self._samples),
            failures=tuple(self._failures),
            **facts,
        )


def report_json(report: Report) -> bytes:
    """The report as JSON."""
    return msgspec.json.encode(report, enc_hook=str)
