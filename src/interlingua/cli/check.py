"""`interlingua check`: the conformance of a dialect, an adapter, or a running server."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli.output import FAILED, BadInput, Output, fold, paint, printable, with_output
from interlingua.cli.tables import GREEN, RED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from interlingua.cli.progress import Progress
    from interlingua.conformance.laws import Law
    from interlingua.conformance.report import Report

_TITLE = "Checking"
_SHOWN = 3
_match_failed = re.compile(r"  .* passed +[1-9]\d* failed").match


@click.command("check")
@click.argument("dialects", nargs=-1)
@click.option(
    "--cases",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of cases for the dialect; without it, the dialect writes its own.",
)
@click.option(
    "--recordings",
    type=click.Path(exists=True, path_type=Path),
    help="Check the dialects on a file of `interlingua record`, or on a folder of such files.",
)
@click.option("--adapter", help="Check the adapter of this provider, such as `openai`.")
@click.option("--endpoint", metavar="URL", help="Check a running server at this base URL.")
@click.option("--dialect", help="The dialect that the server claims to speak.")
@click.option("-m", "--model", default="", help="The model to ask the server or the adapter for.")
@click.option("--key-env", metavar="NAME", help="The variable that holds the key of the server.")
@click.option("--only", multiple=True, metavar="CHECK", help="Run only this check. Repeatable.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds for each request to the server.",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the result as JUnit XML.",
)
@with_output
def command(
    out: Output,
    dialects: tuple[str, ...],
    *,
    cases: Path | None,
    recordings: Path | None,
    adapter: str | None,
    endpoint: str | None,
    junit: Path | None,
    **options: Any,
) -> int:
    r"""
    Check a dialect, an adapter or a running server, and print a score for each law.

    DIALECTS are names of dialects, the wire formats of vendors; without them, all dialects are
    checked. An unknown name prints the known ones. The exit code is 1 if a law is broken.

    \b
    interlingua check DIALECT
    interlingua check --recordings calls.json
    interlingua check --adapter anthropic -m claude-haiku-4-5
    interlingua check --endpoint http://127.0.0.1:8080 --dialect DIALECT -m my-model
    """
    if (adapter is not None) + (endpoint is not None) + bool(dialects) > 1:
        raise click.UsageError("Give DIALECTS, or --adapter, or --endpoint: one of them.")
    if recordings is not None and (cases, adapter, endpoint) != (None, None, None):
        raise click.UsageError("--recordings goes with none of --cases, --adapter and --endpoint.")
    if endpoint is not None:
        reports = [_check_endpoint(out, endpoint, **options)]
    elif adapter is not None:
        reports = [_check_adapter(out, adapter, options["model"], options["only"])]
    elif recordings is not None:
        reports = _check_recordings(out, dialects, recordings, options["only"])
    else:
        reports = _check_dialects(out, dialects, cases, options["only"])
    return _show(out, reports, junit)


def _check_dialects(
    out: Output, chosen: tuple[str, ...], folder: Path | None, only: tuple[str, ...]
) -> list[Report]:
    from interlingua import dialects
    from interlingua.conformance.laws import LAWS, check, read_cases
    from interlingua.conformance.recordings import sample_cases
    from interlingua.providers.provider import find_dialect

    laws = _chosen(LAWS, only)
    found = [find_dialect(name) for name in chosen or dialects.names()]
    if folder is not None and len(found) > 1:
        raise click.UsageError("--cases are recorded in one dialect: name it.")
    cases = None if folder is None else list(read_cases(folder))
    if cases is not None and not cases:
        raise BadInput(f"--cases: there is no recorded exchange in {folder}")
    reports = []
    with out.progress(_TITLE, len(found)) as progress:
        for each in found:
            reports.append(check(each, sample_cases(each) if cases is None else cases, laws))
            progress.step()
    return reports


def _check_recordings(
    out: Output, chosen: tuple[str, ...], path: Path, only: tuple[str, ...]
) -> list[Report]:
    from interlingua.conformance.laws import check
    from interlingua.conformance.recordings import RECORDED_LAWS, read_recordings
    from interlingua.providers.provider import find_dialect

    laws = _chosen(RECORDED_LAWS, only)
    names = {find_dialect(name).NAME for name in chosen}
    cases, skipped = read_recordings(path)
    found = {name: cases[name] for name in sorted(cases) if not names or name in names}
    if skipped:
        out.note(f"{len(skipped)} exchanges have no law: {', '.join(skipped[:_SHOWN])}.")
    if not found:
        wanted = f" in {', '.join(chosen)}" if chosen else ""
        raise BadInput(f"--recordings: {path} has no exchange in which a model answers{wanted}.")
    reports = []
    with out.progress(_TITLE, len(found)) as progress:
        for name, recorded in found.items():
            reports.append(check(find_dialect(name), recorded, laws))
            progress.step()
    return reports


def _chosen(laws: Mapping[str, Law], only: tuple[str, ...]) -> dict[str, Law]:
    if unknown := set(only) - set(laws):
        raise click.UsageError(f"No law {min(unknown)!r}. There are {', '.join(laws)}.")
    return {name: law for name, law in laws.items() if not only or name in only}


def _check_adapter(out: Output, name: str, model: str, only: tuple[str, ...]) -> Report:
    from interlingua import HttpAdapter
    from interlingua.conformance.adapter import CHECKS, check_adapter

    if not model:
        raise click.UsageError("--adapter needs --model.")

    async def run(on_check: Callable[[str], None]) -> Report:
        adapter = HttpAdapter(name)
        adapter.initialize()
        try:
            return await check_adapter(adapter, model, checks=only or None, on_check=on_check)
        finally:
            await adapter.close()

    with out.progress(_TITLE, len(only or CHECKS)) as progress:
        return asyncio.run(run(_counting(progress)))


def _check_endpoint(
    out: Output,
    url: str,
    *,
    dialect: str | None,
    model: str,
    key_env: str | None,
    only: tuple[str, ...],
    timeout: float,
) -> Report:
    from interlingua.conformance.endpoint import CHECKS, check_endpoint

    if not dialect or not model:
        raise click.UsageError("--endpoint needs --dialect and --model.")
    key = os.environ.get(key_env) if key_env else None
    if key_env and not key:
        raise click.UsageError(f"{key_env} is not set. Set it to the key of the server.")
    with out.progress(_TITLE, len(only or CHECKS)) as progress:
        checking = check_endpoint(
            url,
            dialect,
            model,
            key,
            checks=only or None,
            timeout=timeout,
            on_check=_counting(progress),
        )
        return asyncio.run(checking)


def _counting(progress: Progress) -> Callable[[str], None]:
    """Called before each check: so many are done, and this one is running."""
    count = itertools.count()
    return lambda name: progress(next(count), title=f"{_TITLE} {name}")


def _painted(text: str) -> str:
    """The text with counts of failures in red, and the score of 100 % in green."""
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if line.endswith(": 100 %"):
            lines[index] = paint(sys.stdout, line, GREEN)
        elif _match_failed(line):
            lines[index] = paint(sys.stdout, line, RED)
    return "\n".join(lines)


def _show(out: Output, reports: list[Report], junit: Path | None) -> int:
    from interlingua.conformance.report import as_json, as_junit, as_text

    if out.json:
        out.data([as_json(report) for report in reports])
    else:
        text = printable("\n\n".join(map(as_text, reports)))
        out.line(_painted(fold(sys.stdout, text)))
    if junit is not None:
        junit.write_text(as_junit(reports), encoding="utf-8")
    return FAILED if any(report.violations for report in reports) else 0
