"""The report of a job as text, and as one HTML page that loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from interlingua.bulk.report import Distribution, Report, Sample
from interlingua.wire.json_text import dump_text

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: #222; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem;
  border-bottom: 1px solid #ddd }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td.text { white-space: pre-wrap; overflow-wrap: anywhere }
.bar { background: #4a7ebb; height: .8rem; min-width: 1px }
.stopped { background: #fff3cd; padding: .5rem .8rem }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #1b1b1b } th, td { border-color: #444 }
  .stopped { background: #4d4000 } }
"""
_LONGEST = 2_000  # characters of a cell


def report_text(report: Report) -> str:
    """Return the report in a few lines."""
    left = f"{report.failed:,} failed, {report.pending:,} pending"
    spent = _dollars(report.cost)
    lines = [f"{report.done:,} of {report.rows:,} rows done, {left}; {spent} spent."]
    if report.reused:
        lines.append(f"{report.reused:,} rows share the answer of an equal row.")
    if report.changed:
        lines.append(f"{report.changed:,} rows had other settings in the run before.")
    lines += [f"Failed, {name}: {count:,}" for name, count in report.errors.items()]
    for model, cost in report.models.items():
        tokens = f"{cost.input_tokens:,} tokens in, {cost.output_tokens:,} out"
        price = _dollars(cost.cost) if cost.unpriced < cost.calls else "price unknown"
        lines.append(f"{model}: {cost.calls:,} answers, {tokens}, {price}")
    if report.stopped:
        lines.append(f"Stopped: {report.stopped}")
    return "\n".join(lines)


def report_page(report: Report) -> str:
    """Return the report as a page."""
    title = f"Bulk job {report.output}"
    facts = {
        "rows": f"{report.rows:,}",
        "done": f"{report.done:,}",
        "failed": f"{report.failed:,}",
        "pending": f"{report.pending:,}",
        "answers of equal rows": f"{report.reused:,}",
        "cost": _dollars(report.cost),
        "seconds of this run": f"{report.seconds:,.1f}",
    }
    models = [
        (model, cost.calls, cost.input_tokens, cost.output_tokens, _dollars(cost.cost))
        for model, cost in report.models.items()
    ]
    sections = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="stopped">Stopped: {escape(report.stopped)}</p>' if report.stopped else "",
        _table((), facts.items()),
        "<h2>Models</h2>",
        _table(("model", "answers", "tokens in", "tokens out", "cost"), models),
        _counts("Finish reasons", report.finish_reasons),
        _counts("Failures by class", report.errors),
        _distribution("Characters of answers", report.lengths, ""),
        _distribution("Dollars of answers", report.costs, "$"),
        _distribution("Seconds of calls", report.latencies, ""),
        _samples("Samples", report.samples),
        _samples("Failed rows", report.failures),
    ]
    body = "\n".join(section for section in sections if section)
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style>\n{body}\n'
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines = [f"<tr>{titles}</tr>"] if titles else []
    lines += [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td class="number">{value:,}</td>'
    text = str(value)
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
    return f'<td class="text">{escape(cut)}</td>'


def _counts(title: str, counts: Mapping[str, int]) -> str:
    if not counts:
        return ""
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    return f"<h2>{escape(title)}</h2>{_table((), ordered)}"


def _distribution(title: str, spread: Distribution, unit: str) -> str:
    if not spread.count:
        return ""
    most = max(count for _, count in spread.buckets)
    rows = "".join(
        f'<tr><td class="number">{unit}{start:g} and more</td><td class="number">{count:,}</td>'
        f'<td style="width: 70%"><div class="bar" style="width: {100 * count / most:.1f}%"></div>'
        "</td></tr>"
        for start, count in spread.buckets
    )
    facts = (
        f"least {unit}{spread.least:g}, mean {unit}{spread.mean:.3g}, most {unit}{spread.most:g}"
    )
    return f"<h2>{escape(title)}</h2><p>{facts}</p><table>{rows}</table>"


def _samples(title: str, samples: Iterable[Sample]) -> str:
    rows = [
        (
            sample.key,
            _values(sample.row),
            sample.answer.error or "",
            sample.answer.text if sample.answer.object is None else dump_text(sample.answer.object),
        )
        for sample in samples
    ]
    if not rows:
        return ""
    cells = [tuple("" if cell is None else cell for cell in row) for row in rows]
    return f"<h2>{escape(title)}</h2>{_table(('row', 'columns', 'error', 'answer'), cells)}"


def _values(row: Mapping[str, object]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in row.items())


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 1 or not amount else f"${amount:.4g}"
