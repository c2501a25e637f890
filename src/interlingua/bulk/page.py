"""The report of a job as text, and as one HTML page that loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape

from interlingua.bulk.answers import Answer
from interlingua.bulk.report import Distribution, ModelCost, Report, Sample
from interlingua.wire.json_text import dump_text

_STYLE = """
:root { color-scheme: light dark; --text: #222; --soft: #667; --line: #ddd; --back: #fff;
  --bar: #4a7ebb; --warn: #fff3cd }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: var(--text); background: var(--back) }
h1 { font-size: 1.4rem; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin-top: 2rem }
p { margin: .3rem 0 } .soft { color: var(--soft) }
dl { display: flex; flex-wrap: wrap; gap: .5rem 2.5rem; margin: 1rem 0 }
dt { color: var(--soft); font-size: .85rem } dd { margin: 0; font-size: 1.3rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--line) }
th { color: var(--soft); font-weight: normal; font-size: .85rem }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.text { white-space: pre-wrap; overflow-wrap: anywhere }
.counts td, .counts th { border: 0; padding: .1rem .6rem .1rem 0; vertical-align: middle }
.counts td:first-child { width: 11rem } .counts td:nth-child(2) { width: 4rem }
.bar { background: var(--bar); height: .8rem; min-width: 1px }
.stopped { background: var(--warn); padding: .5rem .8rem }
.rows td:first-child { width: 8rem } .rows td { width: 45% }
@media (max-width: 40rem) {
  .rows tr { display: block; border-bottom: 1px solid var(--line); padding: .5rem 0 }
  .rows td, .rows td:first-child { display: block; width: auto; border: 0; padding: .1rem 0 }
  .rows th { display: none } .counts td:first-child { width: 9rem } }
@media (prefers-color-scheme: dark) {
  :root { --text: #ddd; --soft: #99a; --line: #444; --back: #1b1b1b; --bar: #6f9fd8;
    --warn: #4d4000 } }
"""
_LONGEST = 600  # characters of a cell


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
        price = _price(cost)
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
        "share an answer": f"{report.reused:,}",
        "cost": _dollars(report.cost),
        "time of this run": f"{report.seconds:,.1f} s",
    }
    models = [
        (model, cost.calls, cost.input_tokens, cost.output_tokens, _price(cost))
        for model, cost in report.models.items()
    ]
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    sections = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="stopped">Stopped: {escape(report.stopped)}</p>' if report.stopped else "",
        f"<dl>{items}</dl>",
        _models(models),
        _counts("Finish reasons", _by_count(report.finish_reasons)),
        _counts("Failures by class", _by_count(report.errors)),
        _distribution("Characters of answers", report.lengths, _characters),
        _distribution("Cost of answers", report.costs, _dollars),
        _distribution("Time of calls", report.latencies, _seconds),
        _samples("Samples", report.samples),
        _samples("Failed rows", report.failures),
    ]
    body = "\n".join(section for section in sections if section)
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_STYLE}</style>\n{body}\n"
    )


def _models(rows: Iterable[tuple[str, *tuple[int | str, ...]]]) -> str:
    names = ("answers", "tokens in", "tokens out", "cost")
    head = "<th>model</th>" + "".join(f'<th class="number">{name}</th>' for name in names)
    lines = [f"<tr>{_text(model)}{''.join(map(_number, facts))}</tr>" for model, *facts in rows]
    return f"<h2>Models</h2><table><tr>{head}</tr>{''.join(lines)}</table>" if lines else ""


def _number(value: int | str) -> str:
    return f'<td class="number">{value if isinstance(value, str) else f"{value:,}"}</td>'


def _text(text: str) -> str:
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
    return f'<td class="text">{escape(cut)}</td>'


def _by_count(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: -pair[1])


def _counts(title: str, counts: Iterable[tuple[str, int]], facts: str = "") -> str:
    """Names with their counts, and a bar for each."""
    rows = list(counts)
    if not rows:
        return ""
    most = max(count for _, count in rows)
    lines = [
        f'<tr>{_text(name)}{_number(count)}<td><div class="bar" style="width: '
        f'{100 * count / most:.1f}%"></div></td></tr>'
        for name, count in rows
    ]
    return f'<h2>{escape(title)}</h2>{facts}<table class="counts">{"".join(lines)}</table>'


def _distribution(title: str, spread: Distribution, write: Callable[[float], str]) -> str:
    """A distribution; a bucket ends where it has twice the value of its beginning."""
    rows = [
        (f"{write(start)} to {write(2 * start)}" if start else write(start), count)
        for start, count in spread.buckets
    ]
    named = {"least": spread.least, "mean": spread.mean, "most": spread.most}
    facts = ", ".join(f"{name} {write(value)}" for name, value in named.items())
    return _counts(title, rows, f'<p class="soft">{facts}</p>')


def _samples(title: str, samples: Iterable[Sample]) -> str:
    lines = [
        f"<tr>{_text(each.key)}{_text(_values(each.row))}{_text(_outcome(each.answer))}</tr>"
        for each in samples
    ]
    head = "<tr><th>row</th><th>columns</th><th>answer</th></tr>"
    table = f'<table class="rows">{head}{"".join(lines)}</table>'
    return f"<h2>{escape(title)}</h2>{table}" if lines else ""


def _values(row: Mapping[str, object]) -> str:
    return "\n".join(f"{name}: {_cut(str(value))}" for name, value in row.items())


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST // 4 else f"{text[: _LONGEST // 4]} …"


def _outcome(answer: Answer) -> str:
    text = answer.text or "" if answer.object is None else dump_text(answer.object)
    if answer.error is None:
        return text
    return f"{answer.error_class}: {answer.error}" + (f"\n\n{text}" if text else "")


def _characters(count: float) -> str:
    return f"{count:,.0f}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:,.0f} s"


def _price(cost: ModelCost) -> str:
    return _dollars(cost.cost) if cost.unpriced < cost.calls else "price unknown"


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.2g}"
