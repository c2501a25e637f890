"""`interlingua batch`: many requests that a provider answers within a day, at a lower price."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from interlingua.cli.files import check_writable
from interlingua.cli.output import (
    FAILED,
    Column,
    Output,
    printable,
    shown_json,
    with_output,
)
from interlingua.cli.progress import poll_option, resumable, timeout_option

if TYPE_CHECKING:
    from interlingua.batch import Batch, BatchResult
    from interlingua.sync import Client

_COLUMNS = (
    Column("batch", "batch"),
    Column("state", "state"),
    Column("total", "requests", right=True),
    Column("succeeded", "succeeded", right=True),
    Column("failed", "failed", right=True),
    Column("created", "created", rank=1),
)
_file = click.File("r", encoding="utf-8")


@click.group("batch")
def command() -> None:
    r"""
    Send many requests at once, which a provider answers within a day, at a lower price.

    \b
    interlingua batch submit prompts.jsonl -m openai:gpt-5.2 --wait -o answers.jsonl
    interlingua batch results openai:batch_68f1 > answers.jsonl
    """


@command.command("submit")
@click.argument("file", type=_file)
@click.option("-m", "--model", help="The model; needed unless each line names it.")
@click.option("-s", "--system", help="The system prompt of all prompts.")
@click.option(
    "--option", "options", nargs=2, multiple=True, metavar="NAME VALUE",
    help="An option of `generate` for all prompts: --option max_tokens 500.",
)  # fmt: skip
@click.option("--wait", "waits", is_flag=True, help="Wait for the end, and print the results.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="With --wait, write the results to this file.",
)  # fmt: skip
@poll_option
@timeout_option
@with_output
def submit(
    out: Output,
    file: TextIO,
    *,
    model: str | None,
    system: str | None,
    options: tuple[tuple[str, str], ...],
    waits: bool,
    output: Path | None,
    poll: float | None,
    timeout: float | None,
) -> int:
    r"""
    Submit the requests in FILE (`-` is stdin), and print the batch.

    Each line is JSON: a prompt ("…"), an object with `prompt` and options of that request, and
    `id` if you want to choose its id, or a request in the canonical format. Ctrl-C and --timeout
    end the waiting, not the batch.

    \b
    printf '"Translate sea."\n{"id": "b", "prompt": "Translate sky."}\n' > prompts.jsonl
    interlingua batch submit prompts.jsonl -m openai:gpt-5.2 -s "Into German."
    """
    from interlingua.cli.clients import open_client
    from interlingua.cli.prompts import read_option
    from interlingua.sync import batch

    if output is not None:
        if not waits:
            raise click.UsageError("-o needs --wait. `batch results` writes the results later.")
        check_writable(output)
    given: Any = dict(map(read_option, options))
    given |= {} if system is None else {"system": system}
    items = list(read_items(file))
    with open_client() as client:
        with out.progress("Submitting"):
            job = batch.submit(items, model, client=client, **given)
        if not waits:
            _show(out, job)
            return 0
        out.note(f"The batch is {job.reference}.")
        return _finish(out, client, job.reference, output, poll=poll, timeout=timeout)


@command.command("status")
@click.argument("batch")
@click.option("--wait", "waits", is_flag=True, help="Wait for the end.")
@poll_option
@timeout_option
@with_output
def status(
    out: Output, batch: str, *, waits: bool, poll: float | None, timeout: float | None
) -> None:
    r"""
    Print the state of BATCH, which is what `batch submit` printed.

    \b
    interlingua batch status openai:batch_68f1 --wait
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import batch as batches

    with open_client() as client:
        if waits:
            job = _wait(out, client, batch, poll=poll, timeout=timeout)
        else:
            job = batches.status(batch, client=client)
    _show(out, job)


@command.command("results")
@click.argument("batch")
@click.option(
    "--requests", type=_file, metavar="FILE",
    help="The file that was submitted: a request without a result is an error, too.",
)  # fmt: skip
@click.option("--full", is_flag=True, help="Print whole responses in the canonical format.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the results to this file.",
)  # fmt: skip
@with_output
def results(
    out: Output, batch: str, *, requests: TextIO | None, full: bool, output: Path | None
) -> int:
    r"""
    Print the results of BATCH, a JSON object on each line, in any order.

    Each has the `id` of its request and `text`, or an `error`. The exit code is 1 if a request
    has failed. With --json, they are one array.

    \b
    interlingua batch results openai:batch_68f1 | jq -r .text
    """
    from interlingua.cli.clients import open_client

    if output is not None:
        check_writable(output)
    items = None if requests is None else list(read_items(requests))
    with open_client() as client:
        return _print_results(out, client, batch, output, items=items, full=full)


@command.command("cancel")
@click.argument("batch")
@with_output
def cancel(out: Output, batch: str) -> None:
    r"""
    Cancel BATCH. What is answered by then has results, and is paid for.

    \b
    interlingua batch cancel openai:batch_68f1
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import batch as batches

    with open_client() as client:
        _show(out, batches.cancel(batch, client=client))


@command.command("list")
@click.argument("provider")
@click.option("-n", "--limit", type=click.IntRange(min=1), help="How many to list at most.")
@with_output
def list_batches(out: Output, provider: str, *, limit: int | None) -> None:
    r"""
    List the batches at PROVIDER, newest first.

    \b
    interlingua batch list openai -n 10
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import batch

    with open_client() as client, out.progress("Listing"):
        found = batch.list(provider, limit=limit, client=client)
    out.table(_COLUMNS, [_row(each) for each in found], empty="There are no batches.")


@command.command("delete")
@click.argument("batch")
@with_output
def delete(out: Output, batch: str) -> None:
    r"""
    Delete what BATCH, which has ended, has left at the provider.

    \b
    interlingua batch delete openai:batch_68f1
    """
    from interlingua.cli.clients import open_client
    from interlingua.sync import batch as batches

    with open_client() as client:
        batches.delete(batch, client=client)
    if out.json:
        out.data({"batch": batch, "deleted": True})
    else:
        out.line(f"Deleted {batch}.")


def read_items(file: TextIO) -> Iterator[Any]:
    """The requests of a file of JSON lines; an error names the line."""
    import json

    from interlingua import Request, from_json
    from interlingua.errors import SDKError

    lines = enumerate(_lines(file), 1)
    for number, line in lines:
        if not line.strip():
            continue
        where = f"{file.name}, line {number}"
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            text = f"{where}: {error}; each line must be JSON, a prompt in quotes"
            raise click.ClickException(text) from None
        if not isinstance(item, (str, dict)):
            raise click.ClickException(f"{where} is neither a text nor an object")
        if isinstance(item, dict) and "interlingua" in item:  # the mark of the canonical format
            try:
                item = from_json(line, Request)
            except SDKError as error:
                raise click.ClickException(f"{where}: {error}") from None
        yield item


def _lines(file: TextIO) -> Iterator[str]:
    try:
        yield from file
    except UnicodeDecodeError:
        raise click.ClickException(f"{file.name} is not text in UTF-8") from None


def _finish(
    out: Output,
    client: Client,
    reference: str,
    output: Path | None,
    *,
    poll: float | None,
    timeout: float | None,
) -> int:
    _wait(out, client, reference, poll=poll, timeout=timeout)
    return _print_results(out, client, reference, output)


def _wait(
    out: Output, client: Client, reference: str, *, poll: float | None, timeout: float | None
) -> Batch:
    from interlingua.api.modalities.batch import INTERVAL
    from interlingua.sync import batch

    with (
        resumable(out, "batch", f"interlingua batch results {reference}"),
        out.progress("Waiting") as progress,
    ):

        def show(state: Batch) -> None:
            counts = state.counts
            title = f"Waiting ({state.state.replace('_', ' ')})"
            progress(counts.ended, total=counts.total, title=title)

        return batch.wait(
            reference,
            poll_interval=INTERVAL if poll is None else poll,
            on_progress=show,
            client=client,
            timeout=timeout,
        )


def _print_results(
    out: Output,
    client: Client,
    reference: str,
    output: Path | None,
    *,
    items: list[Any] | None = None,
    full: bool = False,
) -> int:
    """Print results as they arrive; returns the exit code."""
    from interlingua.sync import batch
    from interlingua.wire.json_text import dump_text

    count = failed = 0
    rows: list[dict[str, object]] = []
    file = None if output is None else output.open("w", encoding="utf-8")
    try:
        with batch.results(reference, requests=items, client=client) as found:
            for result in found:
                count, failed = count + 1, failed + (result.error is not None)
                row = _result(result, full=full)
                if out.json and file is None:
                    rows.append(row)
                elif file is None:
                    out.line(shown_json(dump_text(row)))
                else:
                    file.write(f"{dump_text(row)}\n")
    finally:
        if file is not None:
            file.close()
    if out.json and file is None:
        out.data(rows)
    elif out.json:
        out.data({"path": str(output), "results": count, "failed": failed})
    elif output is not None:
        out.line(str(output))
    if failed:
        out.note(f"{failed} of {count} requests have failed.")
    return FAILED if failed else 0


def _result(result: BatchResult, *, full: bool) -> dict[str, object]:
    from interlingua.spec.json_form import to_document

    response, error = result.response, result.error
    row: dict[str, object] = {
        "id": result.id,
        "text": None if response is None else response.text,
        "error": None if error is None else str(error),
    }
    if response is None:
        return row
    if full:
        return {**row, "response": to_document(response)}
    calls = [{"name": call.name, "arguments": call.arguments} for call in response.tool_calls]
    return {
        **row,
        **({"tool_calls": calls} if calls else {}),
        "model": response.model,
        "finish_reason": response.finish_reason.reason,
        "input_tokens": response.usage.input_tokens,
        "output_tokens": response.usage.output_tokens,
        "cost": None if response.cost is None else response.cost.total,
    }


def _show(out: Output, job: Batch) -> None:
    if out.json:
        out.data(_row(job))
        return
    out.table(_COLUMNS, [_row(job)])
    for fault in job.faults[:5]:
        place = "" if fault.line is None else f"line {fault.line}: "
        sys.stderr.write(printable(f"error: {place}{fault.message or fault.code}") + "\n")


def _row(job: Batch) -> dict[str, object]:
    import time

    created = job.created_at
    return {
        "batch": job.reference,
        "state": job.state,
        "model": job.model,
        "total": job.counts.total,
        "succeeded": job.counts.succeeded,
        "failed": job.counts.failed,
        "created": None
        if created is None
        else time.strftime("%Y-%m-%d %H:%M", time.localtime(created)),
        "faults": [fault.message or fault.code for fault in job.faults],
    }
