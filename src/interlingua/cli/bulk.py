"""`interlingua bulk`: a table through a model, each row paid for once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
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
from interlingua.wire.json_text import dump_text

if TYPE_CHECKING:
    from interlingua.bulk import Answer, Report, Sample
    from interlingua.bulk import Progress as BulkProgress
    from interlingua.bulk.estimates import Estimate
    from interlingua.bulk.loop import BulkRun, Plan
    from interlingua.cli.progress import Progress as ProgressBar

_STOPPED = 3
"""The exit code of a job that was stopped before its end."""
_BAR_SECONDS, _LINE_SECONDS = 0.5, 60.0
"""How often progress is shown: on a terminal, and elsewhere."""
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
_ROWS = (Column("row", "row"), Column("class", "status"), Column("answer", "answer or error"))
_ROWS_SHOWN = 20


@click.group("bulk")
def command() -> None:
    r"""
    Ask a model about each row of a table; each row is paid for once.

    \b
    interlingua bulk run books.csv -p "Genre of {title}?" -o genres.jsonl
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
@click.option("--ledger", help="Where answers are recorded: a path, redis://… or postgresql://…")
@click.option("--volatile", is_flag=True, help="Accept a server that may lose the ledger.")
@click.option(
    "--executor", metavar="NAME",
    help="live: calls; batch: the provider's batch API; daft, ray or ray://HOST:PORT: an engine.",
)  # fmt: skip
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
    interlingua bulk run books.csv -p "Genre of {title}?" -o a.csv --limit 5 --show
    interlingua bulk run books.csv -p "Genre of {title}?" -o a.csv --max-usd 5
    """
    from interlingua.cli.prompts import read_option

    check_writable(given["output"])
    shows, estimates = given.pop("show"), given.pop("only_estimate")
    asks_above = None if given.pop("yes") else given.pop("ask_above")
    given.pop("ask_above", None)
    options = dict(read_option(pair, "--option") for pair in given.pop("settings"))
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
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")  # of Daft, over that of the command

    async def work(display: _Display) -> Report:
        async with open_async_client() as client:
            job = BulkRun(rows, output, model=model, prompt=prompt, client=client, **options)
            _handle_signals(out, job)
            confirm = _confirmation(out, asks_above, options, estimates=estimates)
            watching = asyncio.create_task(display.watch(job))
            try:
                return await job.run(display.around(confirm))
            finally:
                watching.cancel()

    try:
        with _Display(out, options) as display:
            report = asyncio.run(work(display))
    except asyncio.CancelledError:  # by a second Ctrl-C
        raise KeyboardInterrupt("the same command goes on") from None
    if estimates:
        return 0
    page = Place(output).report
    page.write_text(report_page(report), encoding="utf-8")
    if out.json:
        from interlingua.bulk.report import report_json

        out.line(report_json(report).decode())
    else:
        if shows:
            _show_rows(out, output, options.get("limit", _ROWS_SHOWN))
        out.note(report_text(report))
        _advise(out, report, page, only_failed="only_failed" in options)
    return _STOPPED if report.stopped else FAILED if report.failed else 0


def _advise(out: Output, report: Report, page: Path, *, only_failed: bool) -> None:
    """Say where the results are, and how to go on."""
    if report.failed:
        out.note(f"Why rows have failed: interlingua bulk show {report.output} --failed")
    if report.pending and only_failed:
        out.note("The command without --only-failed goes on with the rows that are left.")
    elif report.pending:
        out.note("The same command goes on with the rows that are left.")
    out.note(f"Report: {page}")


def _read_schema(path: Path) -> Any:
    import json

    try:
        return json.loads(read_text(path, "--schema"))
    except ValueError as error:
        raise BadInput(f"--schema: {path}: {error}") from None


def _handle_signals(out: Output, job: BulkRun) -> None:
    """The first Ctrl-C drains, the second one stops at once."""
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def interrupt() -> None:
        job.stop("interrupted")
        out.note("Waiting for the calls under way. Ctrl-C again stops at once.")
        loop.remove_signal_handler(signal.SIGINT)
        if task is not None:
            loop.add_signal_handler(signal.SIGINT, task.cancel)

    try:
        loop.add_signal_handler(signal.SIGINT, interrupt)
    except NotImplementedError:  # Windows: Ctrl-C cancels the task at once
        return


@contextmanager
def _default_ctrl_c() -> Iterator[None]:
    """Ctrl-C ends a question at once; the handler of the event loop would wait for its answer."""
    import signal

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _confirmation(
    out: Output, asks_above: float | None, options: dict[str, Any], *, estimates: bool
) -> Callable[[Plan], bool]:
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
                out.line(_estimate_text(found, options))
            return False
        if found.most is None or asks_above is None or found.most <= asks_above:
            return True
        out.note(_estimate_text(found, options))
        if not is_terminal(sys.stdin):
            raise click.UsageError(
                f"The job may cost up to {dollars(found.most)}. Pass --yes, --max-usd or a higher "
                "--ask-above."
            )
        return click.confirm("Go on?", err=True)

    return confirm


def _estimate_text(found: Estimate, options: dict[str, Any]) -> str:
    lines = [f"{found.rows:,} rows to send, about {found.input_tokens:,} tokens in"]
    if found.least is None or found.most is None:
        lines.append("cost: unknown, because the price of the model is")
    else:
        lines.append(f"cost: {dollars(found.least)} to {dollars(found.most)}")
        if "max_tokens" not in options and found.rows:
            lines[-1] += ", if all answers are as long as the model allows"
            lines.append("Set --option max_tokens for a nearer estimate.")
        if options.get("executor") == "batch":
            lines[1] += " at the prices of calls; batches cost about half"
    if found.seconds is not None:
        lines.insert(2, f"time: at least {_duration(found.seconds)}, by your limits")
    return "\n".join(lines)


def _show_rows(out: Output, output: Path, limit: int) -> None:
    for sample in _read_rows(output, limit=limit):
        columns = ", ".join(f"{name}: {value}" for name, value in sample.row.items())
        out.line(printable(f"{sample.key}  {columns[:_SHOWN]}"))
        out.line(printable(f"  {_outcome(sample.answer)}"))


def _outcome(answer: Answer) -> str:
    """What became of a row, in one text."""
    if answer.object is not None:
        return dump_text(answer.object)
    return answer.error or answer.text or answer.status


def _read_rows(output: Path, *, limit: int, failed: bool = False) -> list[Sample]:
    import asyncio

    from interlingua import bulk

    async def read() -> list[Sample]:
        return [row async for row in bulk.read_rows(output, failed=failed, limit=limit)]

    return asyncio.run(read())


class _Display:
    """The progress of a job: a bar on a terminal, else a line each minute."""

    def __init__(self, out: Output, options: dict[str, Any]) -> None:
        self._out = out
        self._options = options
        self._is_terminal = is_terminal(sys.stderr)
        self._bar: AbstractContextManager[ProgressBar] | None = None
        self._show: ProgressBar | None = None

    def __enter__(self) -> Self:
        self._open("Reading")
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def _open(self, title: str) -> None:
        self._bar = self._out.progress(title)
        self._show = self._bar.__enter__()

    def _close(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.__exit__(None, None, None)

    def around(self, confirm: Callable[[Plan], bool]) -> Callable[[Plan], bool]:
        """The function without a bar on the screen while it runs, as it may ask something."""

        def call(plan: Plan) -> bool:
            self._close()
            with _default_ctrl_c():
                is_confirmed = confirm(plan)
            if is_confirmed:
                self._open("Rows")
            return is_confirmed

        return call

    async def watch(self, job: BulkRun) -> None:
        """Show again and again how far a job is."""
        import asyncio

        while True:
            await asyncio.sleep(_BAR_SECONDS if self._is_terminal else _LINE_SECONDS)
            self.show(job.progress())

    def show(self, state: BulkProgress) -> None:
        """Show how far a job is; nothing before its rows were read."""
        if not state.rows:
            return
        ended, line = state.done + state.failed, _line(state, self._options)
        if not self._is_terminal:
            self._out.note(f"{ended:,} of {state.rows:,} rows; {line}")
        elif self._show is not None:
            self._show(ended, total=state.rows, note=line)


def _line(state: BulkProgress, options: dict[str, Any]) -> str:
    from interlingua.bulk.worker import CONCURRENCY

    facts = [_rate(state.rate), f"{dollars(state.cost)} spent"]
    if state.expected:
        facts[-1] += f" of about {dollars(state.expected)}"
    if state.left is not None:
        facts.append(f"{_duration(state.left)} left")
    facts.append(f"{state.active:,} under way")
    if 0 < state.places < options.get("concurrency", CONCURRENCY):
        facts.append(f"slowed by the provider's limits to {state.places} at once")
    limits = {"requests_per_minute": "requests/min", "tokens_per_minute": "tokens/min"}
    facts += [
        f"at most {options[name]:g} {unit}" for name, unit in limits.items() if name in options
    ]
    facts += [f"failed: {count:,} {name}" for name, count in state.errors.items()]
    return ", ".join(facts)


def _rate(rate: float) -> str:
    if rate >= 1 or not rate:
        return f"{rate:,.0f} rows/s"
    return f"{60 * rate:.1f} rows/min"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min"


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
@click.option("-n", "--limit", type=click.IntRange(min=1), default=_ROWS_SHOWN, show_default=True)
@with_output
def show(out: Output, output: Path, *, failed: bool, limit: int) -> None:
    r"""
    Print rows of the job with OUTPUT, and what became of them.

    \b
    interlingua bulk show genres.jsonl --failed
    """
    found = _read_rows(output, limit=limit, failed=failed)
    if out.json:
        out.data(found)
        return
    rows = [
        {
            "row": sample.key,
            "class": sample.answer.error_class or sample.answer.status,
            "answer": _outcome(sample.answer)[:_SHOWN],
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
            "cost": each.cost if out.json else dollars(each.cost),
        }
        for model, each in report.models.items()
    ]
    out.table(_COSTS, rows, empty="Nothing was answered yet.")
