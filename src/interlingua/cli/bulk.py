"""`interlingua bulk`: a table through a model, each row paid for once."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from interlingua.cli.files import check_writable
from interlingua.cli.output import (
    FAILED,
    BadInput,
    Column,
    Output,
    dollars,
    is_terminal,
    printable,
    read_text,
    with_output,
)

if TYPE_CHECKING:
    from interlingua.bulk import Progress as BulkProgress
    from interlingua.bulk import Report
    from interlingua.bulk.loop import BulkRun, Plan

_STOPPED = 3
"""The exit code of a job that was stopped before its end."""
_LINE_SECONDS = 60.0
_ASK_ABOVE = 10.0
_SHOWN = 200  # characters of an answer
_JOB = click.argument("output", type=click.Path(path_type=Path))
_COSTS = (
    Column("model", "model"),
    Column("answers", "answers", right=True),
    Column("input_tokens", "tokens in", right=True),
    Column("output_tokens", "tokens out", right=True),
    Column("cost", "cost", right=True),
)
_ROWS = (Column("row", "row"), Column("class", "class"), Column("error", "error"))


@click.group("bulk")
def command() -> None:
    r"""
    Ask a model about each row of a table; each row is paid for once.

    \b
    interlingua bulk run books.csv --prompt "Genre of {title}?" -m openai:gpt-5.2 -o genres.jsonl
    interlingua bulk status genres.jsonl
    """


@command.command("run")
@click.argument("rows", metavar="INPUT")
@click.option("-p", "--prompt", required=True, help="The prompt; columns in braces: {title}.")
@click.option("-m", "--model", help="The model. Defaults to that of `interlingua ask`.")
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write: .jsonl, .csv, .tsv or .parquet.",
)  # fmt: skip
@click.option("-s", "--system", help="The system prompt; columns in braces.")
@click.option("--schema", type=click.Path(path_type=Path), help="A file with a JSON Schema.")
@click.option("--image", "images", multiple=True, help="A column with images.")
@click.option("--document", "documents", multiple=True, help="A column with documents.")
@click.option("--id", "id_column", help="The column with the ids of rows.")
@click.option("--limit", type=click.IntRange(min=1), help="Use only the first rows.")
@click.option("--show", is_flag=True, help="Print the rows with their answers.")
@click.option("--estimate", "only_estimate", is_flag=True, help="Print what it would cost.")
@click.option(
    "--ask-above", type=float, default=_ASK_ABOVE, show_default=True, metavar="USD",
    help="Ask before a job that may cost more.",
)  # fmt: skip
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--max-usd", type=float, help="What the job may cost in all of its runs.")
@click.option("--rpm", "requests_per_minute", type=float, help="The most requests in a minute.")
@click.option("--tpm", "tokens_per_minute", type=float, help="The most tokens in a minute.")
@click.option("--concurrency", type=click.IntRange(min=1), help="The most calls at once.")
@click.option("--attempts", type=click.IntRange(min=1), help="How often a row is tried.")
@click.option("--only-failed", is_flag=True, help="Try only the rows that have failed.")
@click.option("--samples", type=click.IntRange(min=1), help="Independent answers to each row.")
@click.option("--no-dedupe", is_flag=True, help="Send equal rows each.")
@click.option("--parts", is_flag=True, help="Write numbered files as rows are done.")
@click.option("--prefix", help="What the columns of results begin with.")
@click.option("--ledger", help="Where answers are recorded: a path, or redis://…")
@click.option("--volatile", is_flag=True, help="Accept a Redis that keeps nothing on disk.")
@click.option(
    "--executor", type=click.Choice(["live", "batch"]), help="Calls, or the provider's batch API."
)
@click.option("--leftovers", is_flag=True, help="With batch: send live what has no answer.")
@click.option(
    "--option", "settings", nargs=2, multiple=True, metavar="NAME VALUE",
    help="An option of `generate`: --option max_tokens 500.",
)  # fmt: skip
@with_output
def run(out: Output, rows: str, **given: Any) -> int:
    r"""
    Ask about each row of INPUT (`-` is stdin), and write the rows with their answers.

    The same command goes on after a crash or Ctrl-C: recorded answers are never paid for again.
    Ctrl-C waits for the calls under way; a second one stops at once.

    \b
    interlingua bulk run books.csv -p "Genre of {title}?" -m openai:gpt-5.2 -o a.csv --limit 5
    interlingua bulk run books.csv -p "Genre of {title}?" -m openai:gpt-5.2 -o b.csv --max-usd 5
    """
    from interlingua.cli.prompts import read_option

    check_writable(given["output"])
    shows, estimates = given.pop("show"), given.pop("only_estimate")
    asks_above = None if given.pop("yes") else given.pop("ask_above")
    given.pop("ask_above", None)
    options = dict(map(read_option, given.pop("settings")))
    if given.pop("no_dedupe"):
        given["dedupe"] = False
    if given["schema"] is not None:
        given["schema"] = _read_schema(given["schema"])
    model = given.pop("model")
    if model is None:
        from interlingua.cli.clients import choose_model

        model, _ = choose_model()
    options |= {name: value for name, value in given.items() if value not in (None, False, ())}
    if "dedupe" in given:
        options["dedupe"] = False
    return _run(out, rows, model, options, shows=shows, estimates=estimates, asks_above=asks_above)


def _run(
    out: Output,
    rows: str,
    model: str,
    options: dict[str, Any],
    *,
    shows: bool,
    estimates: bool,
    asks_above: float | None,
) -> int:
    import asyncio

    from interlingua.bulk.loop import BulkRun
    from interlingua.bulk.page import report_page, report_text
    from interlingua.bulk.place import Place
    from interlingua.cli.clients import open_async_client

    output, prompt = options.pop("output"), options.pop("prompt")

    async def work(show: Any) -> Report:
        async with open_async_client() as client:
            job = BulkRun(
                rows, output, model=model, prompt=prompt, client=client, on_progress=show, **options
            )
            _handle_signals(job)
            return await job.run(_confirmation(out, asks_above, estimates=estimates))

    if estimates:
        asyncio.run(work(None))
        return 0
    try:
        with _Display(out) as display:
            report = asyncio.run(work(display))
    except asyncio.CancelledError:  # by a second Ctrl-C
        raise KeyboardInterrupt("the same command goes on") from None
    Place(output).report.write_text(report_page(report), encoding="utf-8")
    if out.json:
        from interlingua.bulk.report import report_json

        out.line(report_json(report).decode())
    else:
        if shows:
            _show_samples(out, report)
        out.note(report_text(report))
    return _STOPPED if report.stopped else FAILED if report.failed else 0


def _read_schema(path: Path) -> Any:
    import json

    try:
        return json.loads(read_text(path, "--schema"))
    except ValueError as error:
        raise BadInput(f"--schema: {path}: {error}") from None


def _handle_signals(job: BulkRun) -> None:
    """The first Ctrl-C drains, the second one stops at once."""
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def interrupt() -> None:
        job.stop("interrupted; the same command goes on")
        loop.remove_signal_handler(signal.SIGINT)
        if task is not None:
            loop.add_signal_handler(signal.SIGINT, task.cancel)

    try:
        loop.add_signal_handler(signal.SIGINT, interrupt)
    except NotImplementedError:  # Windows: Ctrl-C cancels the task at once
        return


def _confirmation(out: Output, asks_above: float | None, *, estimates: bool) -> Any:
    """What is asked and printed after all rows were checked, and before the first is sent."""

    def confirm(plan: Plan) -> bool:
        from interlingua.bulk.estimates import estimate

        if plan.changes.changed:
            out.note(f"{plan.changes.changed:,} rows have other settings than in the run before.")
        if not estimates and asks_above is None:
            return True
        found = estimate(plan)
        if estimates:
            if out.json:
                out.data(found)
            else:
                out.line(_estimate_text(found))
            return False
        if found.most is None or asks_above is None or found.most <= asks_above:
            return True
        out.note(_estimate_text(found))
        if not is_terminal(sys.stdin):
            raise click.UsageError(
                f"The job may cost up to {dollars(found.most)}. Pass --yes, --max-usd or a higher "
                "--ask-above."
            )
        return click.confirm("Go on?", err=True)

    return confirm


def _estimate_text(found: Any) -> str:
    cost = "the price is unknown"
    if found.least is not None:
        cost = f"{dollars(found.least)} to {dollars(found.most)}"
    seconds = "" if found.seconds is None else f"; at least {found.seconds / 60:.1f} min"
    return f"{found.rows:,} rows to send, about {found.input_tokens:,} tokens in; {cost}{seconds}"


def _show_samples(out: Output, report: Report) -> None:
    for sample in (*report.samples, *report.failures):
        columns = ", ".join(f"{name}: {value}" for name, value in sample.row.items())
        out.line(printable(f"{sample.key}  {columns[:_SHOWN]}"))
        answer = sample.answer
        text = answer.error if answer.status == "failed" else answer.object or answer.text
        out.line(printable(f"  {text}"))


class _Display:
    """The progress of a job: a bar on a terminal, else a line each minute."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._bar: Any = out.progress("Bulk")
        self._is_terminal = is_terminal(sys.stderr)
        self._next = time.monotonic() + _LINE_SECONDS

    def __enter__(self) -> Self:
        self._progress = self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(*error)

    def __call__(self, state: BulkProgress) -> None:
        if self._is_terminal:
            ended = state.done + state.failed
            self._progress(ended, total=state.rows, title=_line(state))
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + _LINE_SECONDS
            self._out.note(f"{state.done + state.failed:,} of {state.rows:,} rows; {_line(state)}")


def _line(state: BulkProgress) -> str:
    facts = [f"{state.rate:,.0f} rows/s", dollars(state.cost)]
    if state.expected:
        facts.append(f"of about {dollars(state.expected)}")
    if state.left is not None:
        facts.append(f"{state.left:,.0f} s left")
    if state.places < state.active:
        facts.append(f"waiting for limits: {state.places} at once")
    facts += [f"{count} {name}" for name, count in state.errors.items()]
    return ", ".join(facts)


@command.command("status")
@_JOB
@with_output
def status(out: Output, output: Path) -> None:
    r"""
    Print how far the job with OUTPUT is, also while it runs.

    \b
    interlingua bulk status genres.jsonl
    """
    from interlingua.bulk.page import report_text

    report = _status(output)
    if out.json:
        out.data(report)
    else:
        out.line(report_text(report))


def _status(output: Path) -> Report:
    import asyncio

    from interlingua import bulk

    return asyncio.run(bulk.status(output))


@command.command("show")
@_JOB
@click.option("--failed", is_flag=True, help="Only the rows that have failed.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True)
@with_output
def show(out: Output, output: Path, *, failed: bool, limit: int) -> None:
    r"""
    Print rows of the job with OUTPUT, and what became of them.

    \b
    interlingua bulk show genres.jsonl --failed
    """
    import asyncio

    from interlingua import bulk

    async def read() -> list[Any]:
        return [row async for row in bulk.read_rows(output, failed=failed, limit=limit)]

    found = asyncio.run(read())
    if out.json:
        out.data(found)
        return
    rows = [
        {
            "row": sample.key,
            "class": sample.answer.error_class or sample.answer.status,
            "error": sample.answer.error or (sample.answer.text or "")[:_SHOWN],
        }
        for sample in found
    ]
    out.table(_ROWS, rows, empty="There are no such rows.")


@command.command("export")
@_JOB
@click.argument("target", type=click.Path(dir_okay=False, path_type=Path))
@with_output
def export(out: Output, output: Path, target: Path) -> None:
    r"""
    Write the rows of the job with OUTPUT to TARGET, in the format of its name.

    Rows without an answer are written too, as pending.

    \b
    interlingua bulk export genres.jsonl genres.parquet
    """
    import asyncio

    from interlingua import bulk

    check_writable(target)
    count = asyncio.run(bulk.export(output, target))
    if out.json:
        out.data({"rows": count, "file": str(target)})
    else:
        out.note(f"{count:,} rows were written to {target}.")


@command.command("cost")
@_JOB
@with_output
def cost(out: Output, output: Path) -> None:
    r"""
    Print what the job with OUTPUT has cost, by model.

    \b
    interlingua bulk cost genres.jsonl
    """
    report = _status(output)
    rows = [
        {
            "model": model,
            "answers": each.calls,
            "input_tokens": each.input_tokens,
            "output_tokens": each.output_tokens,
            "cost": dollars(each.cost),
        }
        for model, each in report.models.items()
    ]
    out.table(_COSTS, rows, empty="Nothing was answered yet.")
