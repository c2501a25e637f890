"""`interlingua log`: the calls that were made."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import click

from interlingua.cli.calls_log import find_calls, log_path, read
from interlingua.cli.output import Column, Output, is_terminal, printable, with_output

_COLUMNS = (
    Column("id", "id", right=True),
    Column("time", "time"),
    Column("model", "model"),
    Column("cost", "$", right=True),
    Column("prompt", "prompt"),
)
_COSTS = (
    Column("day", "day"),
    Column("model", "model"),
    Column("calls", "calls", right=True),
    Column("tokens", "tokens", right=True),
    Column("cost", "$", right=True),
    Column("bar", ""),
)
_BY_DAY = """
SELECT date(at, 'unixepoch', 'localtime') AS day, model, count(*) AS calls,
  sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) AS tokens,
  total(cost) AS cost, sum(cost IS NULL) AS unknown
FROM calls WHERE at >= strftime('%s', 'now', ?) GROUP BY day, model ORDER BY day, model
"""
_WIDTH = 24
_SHORT = 60


@click.group("log", invoke_without_command=True)
@with_output
def command(out: Output) -> None:
    r"""
    Read the calls that `ask` and `chat` have made; by default the last ones.

    They are in a file that only you can read, on this machine. `--no-log` of a command, or
    INTERLINGUA_NO_LOG=1, keeps nothing.

    \b
    interlingua log
    interlingua log search pelican
    interlingua log show 12
    interlingua log cost --days 7
    """
    if click.get_current_context().invoked_subcommand is None:
        _print(out, find_calls(limit=20))


@command.command("list")
@click.option("-n", "--limit", default=20, type=click.IntRange(min=1), help="How many (20).")
@with_output
def list_calls(out: Output, limit: int) -> None:
    """List the last calls, the newest first."""
    _print(out, find_calls(limit=limit))


@command.command("search")
@click.argument("text")
@click.option("-n", "--limit", default=20, type=click.IntRange(min=1), help="How many (20).")
@with_output
def search(out: Output, text: str, limit: int) -> None:
    """List calls with TEXT in the prompt or the answer."""
    where = "instr(lower(coalesce(prompt, '') || char(0) || coalesce(answer, '')), lower(?))"
    _print(out, find_calls(where, (text,), limit))


@command.command("show")
@click.argument("number", type=int, required=False)
@with_output
def show(out: Output, number: int | None) -> None:
    """Show the call with this NUMBER in full; without one, the last call."""
    found = find_calls("1" if number is None else "id = ?", () if number is None else (number,), 1)
    if not found:
        raise click.UsageError("the log has no such call" if number else "the log is empty")
    (call,) = found
    if out.json:
        out.data(call)
        return
    head = (
        f"#{call['id']}  {_time(call['at'])}  {call['model']}  {call['seconds']} s",
        f"tokens: {call['input_tokens']} in, {call['output_tokens']} out; cost: {_cost(call)}",
        f"conversation: {call['session']}",
    )
    lines = [*head]
    for name in ("system", "prompt", "reasoning", "answer", "error"):
        if call[name]:
            lines += ["", f"{name}:", call[name]]
    text = "\n".join(lines)
    out.line(printable(text) if is_terminal(sys.stdout) else text)


@command.command("cost")
@click.option("--days", default=30, type=click.IntRange(min=1), help="How many days back (30).")
@with_output
def cost(out: Output, days: int) -> None:
    """Show calls, tokens and dollars by day and model, with a bar for the dollars."""
    rows = read(_BY_DAY, (f"-{days} days",))
    highest = max((row["cost"] for row in rows), default=0.0)
    for row in rows:
        row["bar"] = "█" * round(_WIDTH * row["cost"] / highest) if highest else ""
        if row["unknown"]:
            row["bar"] = f"{row['bar']} + {row['unknown']} of unknown cost".strip()
    out.table(_COSTS, rows, empty="The log is empty.")
    if rows and not out.json:
        out.note(f"Together: ${sum(row['cost'] for row in rows):.4f}")


@command.command("path")
@with_output
def path(out: Output) -> None:
    """Print the path of the log."""
    out.data({"path": str(log_path())}) if out.json else out.line(str(log_path()))


def _print(out: Output, calls: list[dict[str, Any]]) -> None:
    if not out.json:
        for call in calls:
            call["time"] = _time(call["at"])
            call["prompt"] = _shorten(call["prompt"] or "")
            call["model"] = call["model"] + (" (failed)" if call["error"] else "")
    out.table(_COLUMNS, calls, empty="No call is in the log.")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")


def _cost(call: dict[str, Any]) -> str:
    return "unknown" if call["cost"] is None else f"${call['cost']:.6f}"
