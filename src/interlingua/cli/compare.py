"""`interlingua compare`: one prompt to several models, side by side."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.output import (
    FAILED,
    INTERRUPTED,
    Output,
    dollars,
    in_options,
    is_terminal,
    paint,
    printable,
    terminal_width,
    with_output,
)
from interlingua.cli.tables import BOLD, DIM, RED, cell_width, wrap

if TYPE_CHECKING:
    from interlingua.cli.progress import Progress

_NARROWEST = 36  # columns of the terminal for one answer beside others
_GAP = " │ "
_strip_styles = re.compile(r"\x1b\[[0-9;]*m").sub
_INTERRUPTED = "interrupted"


@click.command("compare")
@click.argument("prompt", nargs=-1)
@click.option("-m", "--model", "models", multiple=True, required=True, help="A model. Repeatable.")
@click.option("-s", "--system", help="The system prompt.")
@click.option(
    "--max-tokens", type=click.IntRange(min=1), help="The maximum number of tokens of each answer."
)
@click.option("--plain", is_flag=True, help="Print answers as they are, not rendered as Markdown.")
@click.option("-n", "--no-log", is_flag=True, help="Do not keep the calls.")
@with_output
def command(
    out: Output,
    prompt: tuple[str, ...],
    models: tuple[str, ...],
    system: str | None,
    max_tokens: int | None,
    *,
    plain: bool,
    no_log: bool,
) -> int:
    r"""
    Ask several models the same question, at once, and print their answers side by side.

    Each answer has its time, tokens and cost. The exit code is 1 if a model failed. Without
    PROMPT, stdin is read. Ctrl-C ends all answers and prints what has arrived.

    \b
    interlingua compare -m openai:gpt-5.2 -m anthropic:claude-haiku-4-5 "Why is the sky blue?"
    """
    from interlingua.cli.calls_log import start_log
    from interlingua.cli.prompts import read_stdin

    question = " ".join(prompt) or ("" if is_terminal(sys.stdin) else read_stdin())
    if not question.strip():
        raise click.UsageError("There is no prompt. Write one, or pipe it in.")
    is_logged = start_log(out, wanted=not no_log)
    rows = [_empty_row(model) for model in models]
    given = {"system": system, "max_tokens": max_tokens}
    options = {name: value for name, value in given.items() if value is not None}
    try:
        with out.progress("Asking", len(models)) as progress:
            asyncio.run(_ask_all(rows, question, options, progress))
    except KeyboardInterrupt:
        pass
    finally:
        if is_logged:
            _log(out, rows, question, system)
    _print(out, rows, is_plain=plain)
    if any(row["error"] == _INTERRUPTED for row in rows):
        out.note(_INTERRUPTED)
        return INTERRUPTED
    return FAILED if any(row["error"] for row in rows) else 0


def _empty_row(model: str) -> dict[str, Any]:
    """The outcome of a model that has not answered yet."""
    names = ("input_tokens", "output_tokens", "cost", "seconds")
    return {"model": model, "answer": "", "error": _INTERRUPTED, **dict.fromkeys(names)}


async def _ask_all(
    rows: list[dict[str, Any]], prompt: str, options: Any, progress: Progress
) -> None:
    from interlingua.cli.clients import open_async_client

    async with open_async_client() as client:

        async def ask(row: dict[str, Any]) -> None:
            await _ask(client, row, prompt, options)
            progress.step()

        await asyncio.gather(*map(ask, rows))


async def _ask(client: Any, row: dict[str, Any], prompt: str, options: Any) -> None:
    """Fill the row of a model; what has arrived is in it when this is cancelled, too."""
    from interlingua import stream
    from interlingua.errors import SDKError

    began = time.perf_counter()
    pieces: list[str] = []
    try:
        async with stream(row["model"], prompt, client=client, **options) as events:
            async for piece in events.text_stream:
                pieces.append(piece)  # noqa: PERF401 -- one by one, for when it is cancelled
            result = events.result()
    except SDKError as error:
        row |= {"error": type(error).__name__, "message": in_options(str(error), error)}
    else:
        usage, cost = result.total_usage, result.total_cost
        row |= {"error": None, "cost": None if cost is None else cost.total}
        row |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    finally:
        seconds = round(time.perf_counter() - began, 3)
        row |= {"answer": "".join(pieces), "seconds": seconds}


def _log(out: Output, rows: list[dict[str, Any]], prompt: str, system: str | None) -> None:
    from interlingua.cli.calls_log import add_call

    names = ("model", "answer", "input_tokens", "output_tokens", "cost", "seconds")
    for row in rows:
        error = row.get("message") or row["error"]
        facts = {"command": "compare", "system": system, "prompt": prompt, "error": error}
        add_call(out, {**{name: row[name] for name in names}, **facts})


# What is printed.


def _print(out: Output, rows: list[dict[str, Any]], *, is_plain: bool) -> None:
    if out.json:
        out.data(rows)
    elif not is_terminal(sys.stdout):
        for row in rows:
            out.line(f"## {row['model']} ({_facts(row)})")
            out.line("\n".join(filter(None, (row["answer"], _problem(row)))) + "\n")
    else:
        _print_on_terminal(out, rows, _plain_lines if is_plain else _renderer())


def _print_on_terminal(
    out: Output, rows: list[dict[str, Any]], render: Callable[[str, int], list[str]]
) -> None:
    width = terminal_width(sys.stdout)
    column = (width - len(_GAP) * (len(rows) - 1)) // len(rows)
    if len(rows) > 1 and column >= _NARROWEST:
        out.line("\n".join(_side_by_side([_head(row, column) for row in rows], column)))
        rule = paint(sys.stdout, "─" * column, DIM)
        bodies = [[rule, *_body(row, column, render)] for row in rows]
        out.line("\n".join(_side_by_side(bodies, column)))
        return
    rule = paint(sys.stdout, "─" * width, DIM)
    for row in rows:
        out.line("\n".join([*_head(row, width), rule, *_body(row, width, render), ""]))


def _head(row: dict[str, Any], width: int) -> list[str]:
    """The name and the facts of a model, in this width."""
    name = [paint(sys.stdout, line, BOLD) for line in wrap(printable(row["model"]), width)]
    return [*name, *(paint(sys.stdout, line, DIM) for line in wrap(_facts(row), width))]


def _body(row: dict[str, Any], width: int, render: Callable[[str, int], list[str]]) -> list[str]:
    """The answer, and what went wrong."""
    problem = [paint(sys.stdout, line, RED) for line in wrap(_problem(row), width) if line]
    return [*render(row["answer"], width), *problem]


def _side_by_side(cards: Sequence[list[str]], width: int) -> Iterator[str]:
    gap = paint(sys.stdout, _GAP, DIM)
    for lines in zip_longest(*cards, fillvalue=""):
        cells = [line + " " * (width - cell_width(_strip_styles("", line))) for line in lines]
        yield gap.join(cells).rstrip()


def _plain_lines(text: str, width: int) -> list[str]:
    return [part for line in printable(text).split("\n") for part in wrap(line, width)]


def _renderer() -> Callable[[str, int], list[str]]:
    from interlingua.cli.markdown import MarkdownRenderer

    return MarkdownRenderer().lines


def _facts(row: dict[str, Any]) -> str:
    """The time, tokens and cost, as far as they are known."""
    tokens = None
    if row["input_tokens"] is not None:
        tokens = f"{row['input_tokens']:,} in · {row['output_tokens']:,} out"
    cost = None if row["error"] else "cost unknown"
    cost = cost if row["cost"] is None else dollars(row["cost"])
    seconds = None if row["seconds"] is None else f"{row['seconds']:.2f} s"
    return " · ".join(filter(None, (seconds, tokens, cost)))


def _problem(row: dict[str, Any]) -> str:
    message = row.get("message") or row["error"]
    return f"error: {printable(message)}" if message else ""
