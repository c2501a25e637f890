"""`interlingua log`: the calls that were made."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from interlingua.cli.calls_log import back_up, find_calls, log_path, read
from interlingua.cli.files import check_writable
from interlingua.cli.output import (
    FAILED,
    Column,
    Output,
    dollars,
    fold,
    is_terminal,
    paint,
    printable,
    shown,
    shown_json,
    terminal_width,
    with_output,
)
from interlingua.cli.prompts import is_hash
from interlingua.cli.tables import BOLD, one_line, room_beside, shorten

_COLUMNS = (
    Column("id", "id", right=True),
    Column("time", "time", rank=1),
    Column("model", "model"),
    Column("cost", "$", right=True, is_money=True, rank=2),
    Column("prompt", "prompt", wraps=True),
)
_COSTS = (
    Column("day", "day"),
    Column("model", "model"),
    Column("calls", "calls", right=True, rank=1),
    Column("tokens", "tokens", right=True, rank=2),
    Column("cost", "$", right=True, is_money=True),
    Column("bar", "", rank=3),
)
_BY_DAY = """
SELECT date(at, 'unixepoch', 'localtime') AS day, model, count(*) AS calls,
  sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) AS tokens,
  total(cost) AS cost, sum(cost IS NULL) AS unknown
FROM calls WHERE at >= strftime('%s', 'now', ?) GROUP BY day, model ORDER BY day, model
"""
_PARTS = (
    "SELECT hash, source, content FROM call_fragments JOIN fragments USING (hash) "
    "WHERE call = ? ORDER BY position"
)
_COUNTS = (
    "SELECT count(*) AS calls, count(DISTINCT session) AS conversations, min(at) AS first "
    "FROM calls"
)
_WIDTH = 40  # of the longest bar
_NARROWEST = 8
_SHORT = 20  # columns that a prompt has at least


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
@click.option("-m", "--model", help="Only calls of models with this in their names.")
@click.option("--cid", metavar="ID", help="Only calls of this conversation.")
@click.option("--schema", metavar="ID", help="Only calls with this schema of `schemas list`.")
@click.option("--data", is_flag=True, help="Print only the answers with a schema, one a line.")
@with_output
def list_calls(
    out: Output,
    *,
    limit: int,
    model: str | None,
    cid: str | None,
    schema: str | None,
    data: bool,
) -> int:
    r"""
    List the last calls: on a terminal the newest last, elsewhere the newest first.

    With -m or --cid, the exit code is 1 if there is none.

    \b
    interlingua log list -n 5
    interlingua log list -m haiku
    interlingua log list --schema 3f2a81c09d4e --data > dogs.jsonl
    """
    if schema is not None and not is_hash(schema):
        raise click.BadParameter("`interlingua schemas list` has the ids", param_hint="--schema")
    wanted = {
        "instr(lower(coalesce(model, '')), lower(?))": model,
        "session = ?": cid,
        "id IN (SELECT call FROM call_schemas WHERE hash GLOB ? || '*')": schema,
    }
    if data:
        wanted["error IS NULL AND id IN (SELECT call FROM call_schemas WHERE hash != ?)"] = ""
    given = {condition: value for condition, value in wanted.items() if value is not None}
    found = find_calls(" AND ".join(given) or "1", [*given.values()], limit)
    if data and found:
        _print_data(out, found)
        return 0
    empty = "No call in the log is such a one." if given else "No call is in the log."
    _print(out, found, empty=empty)
    return FAILED if given and not found else 0


def _print_data(out: Output, calls: list[dict[str, Any]]) -> None:
    """Print the objects that were answered: one a line, the oldest first, or as JSON."""
    from interlingua.wire.json_text import dump_text

    values = []
    for call in reversed(calls):
        try:
            values.append(json.loads(call["answer"]))
        except ValueError:  # it was interrupted
            continue
    out.data(values) if out.json else out.line(shown_json("\n".join(map(dump_text, values))))


@command.command("search")
@click.argument("text")
@click.option("-n", "--limit", default=20, type=click.IntRange(min=1), help="How many (20).")
@with_output
def search(out: Output, text: str, limit: int) -> int:
    r"""
    List calls with TEXT in a prompt, fragment or answer; the exit code is 1 if there is none.

    \b
    interlingua log search pelican
    """
    where = (
        "instr(lower(coalesce(prompt, '') || char(0) || coalesce(answer, '')), lower(?)) OR id IN "
        "(SELECT call FROM call_fragments JOIN fragments USING (hash) "
        "WHERE instr(lower(content), lower(?)))"
    )
    found = find_calls(where, (text, text), limit)
    _print(out, found, empty=f"No call in the log has {text!r} in its prompt or answer.")
    return 0 if found else FAILED


@command.command("show")
@click.argument("number", type=int, required=False)
@click.option("-r", "--response", is_flag=True, help="Print only the answer.")
@click.option("-x", "--extract", is_flag=True, help="Print only its first code block.")
@click.option(
    "--xl", "--extract-last", "extract_last", is_flag=True, help="Print only its last code block."
)
@with_output
def show(out: Output, number: int | None, **only: bool) -> None:
    r"""
    Show the call with this NUMBER in full; without one, the last call.

    \b
    interlingua log show 3
    interlingua log show -r > answer.md
    """
    found = find_calls("1" if number is None else "id = ?", () if number is None else (number,), 1)
    if not found:
        text = f"the log has no call {number}; `interlingua log` lists the last ones"
        raise click.UsageError("the log is empty" if number is None else text)
    (call,) = found
    call["fragments"] = [
        {"hash": each["hash"], "source": each["source"], "characters": len(each["content"])}
        for each in read(_PARTS, (call["id"],))
    ]
    if out.json:
        out.data(call)
        return
    if any(only.values()):
        from interlingua.cli.ask import code_block

        answer = call["answer"] or ""
        is_whole = not (only["extract"] or only["extract_last"])
        part = answer if is_whole else code_block(answer, is_last=only["extract_last"])
        out.line(shown(part.rstrip("\n")))
        return
    is_drawn = is_terminal(sys.stdout)
    lines = [_facts(call), f"conversation {call['session']}"] if call["session"] else [_facts(call)]
    for part in call["fragments"]:
        source = printable(one_line(part["source"]))
        lines.append(f"fragment {part['hash'][:12]} · {source} · {part['characters']:,} characters")
    for name in ("system", "prompt", "reasoning", "answer", "error"):
        if call[name]:
            lines += ["", paint(sys.stdout, f"{name}:", BOLD)]
            lines.append(fold(sys.stdout, printable(call[name])) if is_drawn else call[name])
    out.line("\n".join(lines))


def _facts(call: dict[str, Any]) -> str:
    """The number, time, model, tokens, cost and duration of a call; what is known of them."""
    tokens = None
    if call["input_tokens"] is not None:
        tokens = f"{call['input_tokens']:,} tokens in, {call['output_tokens']:,} out"
    cost = "cost unknown" if call["cost"] is None else dollars(call["cost"])
    seconds = f"{call['seconds']:.1f} s"
    known = (f"#{call['id']}", _time(call["at"]), call["model"], tokens, cost, seconds)
    return " · ".join(filter(None, known))


@command.command("cost")
@click.option("--days", default=30, type=click.IntRange(min=1), help="How many days back (30).")
@with_output
def cost(out: Output, days: int) -> None:
    r"""
    Show calls, tokens and dollars by day and model, with a bar for the dollars.

    \b
    interlingua log cost
    """
    rows = read(_BY_DAY, (f"-{days} days",))
    for row in rows:
        if row["unknown"] == row["calls"]:
            row["cost"] = None
    if not out.json:
        _add_bars(rows)
    out.table(_COSTS, rows, empty=f"No call of the last {days} days is in the log.")
    if rows and not out.json:
        unknown = sum(row["unknown"] for row in rows)
        more = f", of which {unknown:,} of unknown cost" if unknown else ""
        calls = sum(row["calls"] for row in rows)
        noun = "call" if calls == 1 else "calls"
        total = sum(row["cost"] or 0.0 for row in rows)
        out.note(f"Total: {dollars(total)} for {calls:,} {noun}{more}")


def _add_bars(rows: list[dict[str, Any]]) -> None:
    """Draw the costs as bars, in the width that the other columns leave."""
    room = room_beside(_COSTS[:-1], rows, terminal_width(sys.stdout))
    width = max(_NARROWEST, min(_WIDTH, room))
    highest = max((row["cost"] or 0.0 for row in rows), default=0.0)
    for row in rows:
        length = width * (row["cost"] or 0.0) / highest if highest else 0.0
        row["bar"] = "█" * round(length) or ("▏" if length else "")


@command.command("status")
@with_output
def status(out: Output) -> None:
    r"""
    Say whether calls are logged, why, where, and how many are there.

    \b
    interlingua log status
    """
    from interlingua.cli.config import describe_log

    is_on, reason = describe_log()
    (counts,) = read(_COUNTS) or [{"calls": 0, "conversations": 0, "first": None}]
    size = log_path().stat().st_size if log_path().exists() else 0
    facts = {"on": is_on, "reason": reason, "path": str(log_path()), "bytes": size, **counts}
    if out.json:
        out.data(facts)
        return
    since = f", since {_time(counts['first'])}" if counts["first"] else ""
    out.line(f"The log is {'on' if is_on else 'off'} ({reason}).")
    out.line(f"{facts['path']}: {size:,} bytes")
    out.line(f"{counts['calls']:,} calls in {counts['conversations']:,} conversations{since}")


@command.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@with_output
def backup(out: Output, file: Path) -> None:
    r"""
    Copy the log to FILE, which only you can read; it must not be there yet.

    \b
    interlingua log backup calls.db
    """
    if file.exists():
        raise click.BadParameter(f"{file} is there already", param_hint="FILE")
    check_writable(file, "FILE")
    if not log_path().exists():
        raise click.UsageError("There is no log yet.")
    back_up(file)
    out.data({"path": str(file)}) if out.json else out.note(f"The log was copied to {file}.")


@command.command("path")
@with_output
def path(out: Output) -> None:
    r"""
    Print the path of the log.

    \b
    sqlite3 "$(interlingua log path)" 'SELECT prompt FROM calls'
    """
    out.data({"path": str(log_path())}) if out.json else out.line(str(log_path()))


def _print(
    out: Output, calls: list[dict[str, Any]], *, empty: str = "No call is in the log."
) -> None:
    if not out.json:
        if is_terminal(sys.stdout):
            calls.reverse()  # the newest is next to where the user types
        for call in calls:
            call["time"] = _time(call["at"])
            call["prompt"] = one_line(call["prompt"] or "")
            call["model"] = f"{call['model']}{' (failed)' if call['error'] else ''}"
        room = room_beside(_COLUMNS[:-1], calls, terminal_width(sys.stdout)) if calls else 0
        for call in calls:
            call["prompt"] = shorten(call["prompt"], max(_SHORT, room))
    out.table(_COLUMNS, calls, empty=empty)


def _time(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
