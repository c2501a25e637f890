#!/usr/bin/env python3
"""
Fit the rates of token estimates to recorded requests, and measure their error.

    INTERLINGUA_CORPUS=<folder> scripts/token_rates.py            # prints the table of errors
    INTERLINGUA_CORPUS=<folder> scripts/token_rates.py --write    # fits, and writes the rates

A recording has a request and the number of input tokens that its provider counted. Conversations
are split by a hash of their name: three of four are fitted, and the error is measured on the rest.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import ceil, floor, sqrt
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from interlingua import dialects
from interlingua.conformance.laws import cut_frames, decode_frames, fold
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import SDKError
from interlingua.spec.request import Request
from interlingua.tokens.bounds import KINDS, bound_tokens, kind_of
from interlingua.tokens.estimate import count_items, estimate_request
from interlingua.tokens.fitted import BOUNDS
from interlingua.tokens.rates import START, Rates, find_rates

FILE = Path(__file__).parent.parent / "src/interlingua/tokens/fitted.py"
FILES = {
    "openai_responses": "openai-responses",
    "openai_chat": "openai-chat",
    "anthropic_messages": "anthropic-messages",
    "gemini_generate": "gemini",
}
LEAST = 4  # fitted requests of a row
UNKNOWN = frozenset(
    ("prompt", "previous_response_id", "conversation", "cachedContent", "functions")
)
"""Options with input that is not in the request, or not in its canonical form."""
SEARCHING = frozenset(("perplexity", "compound-beta", "compound-beta-mini"))
"""Hosts and models that search the web before they answer, and count what they found."""
MOST = 10.0
"""An upper bound above this factor is none."""
SLACK = 100.0
"""Tokens that a bound leaves beside its factor: instructions that a host adds to short requests."""


class Sample(NamedTuple):
    """A recorded request, and the input tokens that its provider counted."""

    conversation: str
    host: str
    dialect: str
    request: Request
    tokens: int

    @property
    def is_held_back(self) -> bool:
        digest = hashlib.sha256(self.conversation.encode()).digest()
        return digest[0] % 4 == 0

    @property
    def family(self) -> str:
        return dialects.get(self.dialect).FACTS.token_family


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--write", action="store_true", help="fit, and write the rates")
    write = parser.parse_args().write
    folder = os.environ.get("INTERLINGUA_CORPUS")
    if not folder:
        sys.exit("Set INTERLINGUA_CORPUS to the folder of the recordings.")
    samples = list(read_samples(Path(folder)))
    if write:
        rows = fit_rows([sample for sample in samples if not sample.is_held_back])
        FILE.write_text(render(rows, measure(samples, rows)))
        print(f"{FILE} was written. Run the script again without --write.")
        return
    print(table(samples))


def read_samples(folder: Path) -> Iterator[Sample]:
    """The requests whose input is known, and was counted."""
    for dialect, name in FILES.items():
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                sample = read_sample(dialect, record)
                if sample is not None:
                    yield sample


def read_sample(dialect: str, record: dict[str, Any]) -> Sample | None:
    """The sample of a record; None if its input or its count is not known."""
    body = record["request_body"]
    is_answer = record["status"] < 400 and not record.get("suspect")
    if not is_answer or not isinstance(body, dict) or UNKNOWN & body.keys():
        return None
    if SEARCHING & {record["host_provider"], str(body.get("model"))}:
        return None
    spoken = dialects.get(dialect)
    try:
        request = spoken.decode_request(WireCall(path=record["path"], body=body))
        tokens = counted(spoken, record)
    except SDKError:
        return None
    is_cut = record.get("trimmed") and kind_of(request) in ("documents", "sound and video")
    if tokens <= 0 or not request.messages or is_cut:  # its media had another size
        return None
    request = replace(request, provider=record["host_provider"])
    return Sample(record["conversation"], record["host_provider"], dialect, request, tokens)


def counted(spoken: Any, record: dict[str, Any]) -> int:
    """The input tokens that the provider reported; 0 if it reported none."""
    framing = record.get("response_format")
    if framing in ("sse", "json-array"):
        body = record["response_text"].encode("utf-8", "surrogatepass")
        frames = cut_frames([body], framing)
        return int(fold(decode_frames(spoken, frames)).usage.input_tokens)
    return int(spoken.decode_response(record["response_body"]).usage.input_tokens)


# The fit.

Row = tuple[str, str]
"""The host or format ("" for all), and the part of the model's name."""


def fit_rows(samples: list[Sample]) -> dict[Row, tuple[Rates, int]]:
    """The rates of each row, with the number of requests they are fitted to."""
    groups: dict[Row, list[Sample]] = defaultdict(list)
    for sample in samples:
        if kind_of(sample.request) == "hosted tools":
            continue
        for row in rows_of(sample):
            groups[row].append(sample)
    for row, members in groups.items():
        hosts = Counter(sample.host for sample in members)
        if not any(host in row[0] for host in hosts):  # the usual host stands for unknown ones
            usual = hosts.most_common(1)[0][0]
            groups[row] = [sample for sample in members if sample.host == usual]
    rows: dict[Row, tuple[Rates, int]] = {}
    for row in sorted(groups, key=lambda row: (bool(row[0]), row[0].count("/"), len(row[1]))):
        if len({sample.conversation for sample in groups[row]}) >= LEAST:
            start = parent(row, rows)
            fitted = fit(groups[row], start)
            if not row[0] or is_better(groups[row], start, fitted):
                rows[row] = fitted, len(groups[row])
    return rows


def rows_of(sample: Sample) -> list[Row]:
    """The rows that a request is fitted in; the default is that of a tokenizer, and not fitted."""
    name = plain(sample.request.model)
    key = max((key for key in START if key in name), key=len)
    if not key:
        return []
    places = ("", sample.family, sample.host, f"{sample.host}/{sample.family}")
    return [(place, key) for place in dict.fromkeys(places)]


def plain(name: str) -> str:
    return name.lower().replace(".", "-")


def parent(row: Row, rows: dict[Row, tuple[Rates, int]]) -> Rates:
    """The rates from which those of a row start: of the row that would be used without it."""
    place, key = row
    if not place:
        return START[key]
    known = {("", each): rates for each, rates in START.items()}
    known |= {each: rates for each, (rates, _) in rows.items()}
    return find_rates((key, *place.split("/")), known)


def is_better(samples: list[Sample], start: Rates, fitted: Rates) -> bool:
    """Whether a row of its own is worth it: its requests are nearer by a hundredth."""
    return mean_error(samples, start) - mean_error(samples, fitted) > 0.01


def mean_error(samples: list[Sample], rates: Rates) -> float:
    errors = [min(1.0, abs(predict(sample, rates) / sample.tokens - 1)) for sample in samples]
    return sum(errors) / len(errors)


def predict(sample: Sample, rates: Rates) -> float:
    return sum(
        getattr(rates, name) * amount for name, amount in count_items(sample.request, rates).items()
    )


TAIL = 0.015  # of the fitted requests may be outside of a bound
STRENGTH = 0.3  # of the pull towards the start values
ROUNDS = 12
LEAST_SCALE = {"text": 1.0, "thinking": 1.0, "signature": 0.2}
"""How far a rate may be from its start value, if that is about 0; 5 tokens for others."""
NOT_FITTED = frozenset(("keeps_thinking", "image", "low_image", "page", "second"))
"""In recordings media are replaced by small files, so the size of those that counted is unknown."""


def fit(samples: list[Sample], start: Rates) -> Rates:
    """
    The rates with the least sum of relative errors, near the start values where data are few.

    Least squares, repeated with weights that make it the sum of absolute errors, so that single
    requests with hidden input do not count much.
    """
    known = asdict(start)
    names = [name for name in known if name not in NOT_FITTED]
    items = [(count_items(sample.request, start), sample.tokens) for sample in samples]
    names = [name for name in names if any(amounts.get(name) for amounts, _ in items)]
    scale = {name: max(abs(known[name]), LEAST_SCALE.get(name, 5.0)) for name in names}
    rates = {name: float(known[name]) for name in names}
    fixed = [
        sum(known[n] * a for n, a in amounts.items() if n not in rates) for amounts, _ in items
    ]
    vectors = [
        [amounts.get(name, 0.0) * scale[name] / tokens for name in names]
        for amounts, tokens in items
    ]
    targets = [1 - rest / tokens for rest, (_, tokens) in zip(fixed, items, strict=True)]
    solution = [rates[name] / scale[name] for name in names]
    first = list(solution)
    for _ in range(ROUNDS):
        weights = [
            1 / max(0.02, abs(sum(x * y for x, y in zip(vector, solution, strict=True)) - target))
            for vector, target in zip(vectors, targets, strict=True)
        ]
        solution = solve(vectors, targets, weights, first)
        solution = [
            value if name == "forced" else max(0.0, value)
            for name, value in zip(names, solution, strict=True)
        ]
    for name, value in zip(names, solution, strict=True):
        rates[name] = round(value * scale[name], 3 if scale[name] <= 2 else 1)
    return replace(start, **rates)


def solve(
    vectors: list[list[float]], targets: list[float], weights: list[float], first: list[float]
) -> list[float]:
    """Weighted least squares with a pull towards `first`."""
    size = len(first)
    pull = STRENGTH * 20
    matrix = [[pull if i == j else 0.0 for j in range(size)] for i in range(size)]
    right = [pull * value for value in first]
    for vector, target, weight in zip(vectors, targets, weights, strict=True):
        for i in range(size):
            if vector[i]:
                factor = weight * vector[i]
                right[i] += factor * target
                row = matrix[i]
                for j in range(size):
                    row[j] += factor * vector[j]
    return gauss(matrix, right)


def gauss(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a positive definite system."""
    size = len(right)
    for i in range(size):
        for k in range(i + 1, size):
            factor = matrix[k][i] / matrix[i][i]
            for j in range(i, size):
                matrix[k][j] -= factor * matrix[i][j]
            right[k] -= factor * right[i]
    solution = [0.0] * size
    for i in reversed(range(size)):
        rest = sum(matrix[i][j] * solution[j] for j in range(i + 1, size))
        solution[i] = (right[i] - rest) / matrix[i][i]
    return solution


# The error.


def measure(
    samples: list[Sample], rows: dict[Row, tuple[Rates, int]]
) -> dict[str, tuple[float, float | None]]:
    """
    The factors of the lower and the upper bound of each kind.

    They are taken from the fitted requests, wider than 97 of 100 need; `table` shows whether they
    hold for the others.
    """
    fitted = {("", key): rates for key, rates in START.items()}
    fitted |= {row: rates for row, (rates, _) in rows.items()}
    ratios: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for sample in samples:
        if not sample.is_held_back:
            names = (sample.request.model, sample.family, sample.host)
            estimate = max(1.0, predict(sample, find_rates(names, fitted)))
            kind = kind_of(sample.request)
            ratios[kind].append(
                ((sample.tokens + SLACK) / estimate, (sample.tokens - SLACK) / estimate)
            )
    return {kind: (least(ratios[kind]), most(ratios[kind])) for kind in KINDS}


def least(ratios: list[tuple[float, float]]) -> float:
    values = sorted(low for low, _ in ratios)
    factor = min(1.0, values[int(len(values) * TAIL)])
    return floor(100 * factor * (1 - margin(values))) / 100


def most(ratios: list[tuple[float, float]]) -> float | None:
    values = sorted(high for _, high in ratios)
    factor = max(1.0, values[-1 - int(len(values) * TAIL)])
    factor = ceil(100 * factor * (1 + margin(values))) / 100
    return factor if factor <= MOST else None


def margin(values: list[float]) -> float:
    """The fewer requests were measured, the less they say about others."""
    return 1 / sqrt(len(values))


def table(samples: list[Sample]) -> str:
    """The error of each kind of request, on requests that no rate was fitted to."""
    lines = [
        "| kind | requests | within 15 % | lower bound | held | upper bound | held |",
        "|---|---|---|---|---|---|---|",
    ]
    held_back = [sample for sample in samples if sample.is_held_back]
    kinds = Counter(kind_of(sample.request) for sample in held_back)
    for kind in KINDS:
        chosen = [sample for sample in held_back if kind_of(sample.request) == kind]
        near = low = high = 0
        for sample in chosen:
            estimate = estimate_request(sample.request, sample.family)
            bounds = bound_tokens(sample.request, sample.family)
            near += abs(estimate / sample.tokens - 1) < 0.15
            low += bounds.lower <= sample.tokens
            high += bounds.upper is not None and sample.tokens <= bounds.upper
        total = kinds[kind] or 1
        lower, upper = ("none" if each is None else f"{each:.2f}" for each in BOUNDS[kind])
        lines.append(
            f"| {kind} | {kinds[kind]} | {near / total:.0%} | {lower} | {low / total:.1%} "
            f"| {upper} | {high / total:.1%} |"
        )
    return "\n".join(lines)


def render(
    rows: dict[Row, tuple[Rates, int]], bounds: dict[str, tuple[float, float | None]]
) -> str:
    """The module with the fitted rates."""
    lines = [
        '"""Rates of token estimates, and their bounds. Written by `scripts/token_rates.py`."""',
        "",
        "# fmt: off",
        "FITTED: dict[tuple[str, str], dict[str, float]] = {",
    ]
    for (place, key), (rates, count) in rows.items():
        changes = ", ".join(
            f'"{name}": {value!r}'
            for name, value in asdict(rates).items()
            if value != getattr(Rates(), name)
        )
        lines.append(f"    # fitted to {count} recorded requests")
        lines += textwrap.wrap(
            f'("{place}", "{key}"): {{{changes}}},',
            width=96,
            initial_indent="    ",
            subsequent_indent="        ",
        )
    lines += [
        "}",
        "# fmt: on",
        '"""By a part of the name of a host or format, and a part of the name of a model."""',
        "",
        f"SLACK = {SLACK!r}",
        '"""Tokens that a bound leaves beside its factor."""',
        "",
        "BOUNDS: dict[str, tuple[float, float | None]] = {",
        *(f"    {kind!r}: {factors!r}," for kind, factors in bounds.items()),
        "}",
        '"""The factors of the lower and the upper bound, by the kind of a request."""',
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
