"""The command line of a group of clients: `python tests/clients/GROUP/run.py --results PATH`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import results
from environments import CACHE, NotInstalledError
from stand import Stand

SKIPPED = 77
"""The exit code of a group that cannot be installed here."""

SHOWN = 20_000
"""Characters of what a failed program has printed."""


def main(run: Callable[[Stand], Iterable[results.Result]], install: Callable[[], object]) -> int:
    """Install the group, run it before all upstreams and write its results; 1 if one failed."""
    parser = argparse.ArgumentParser(description="Run a group of clients through the gateway.")
    parser.add_argument("--results", type=Path, required=True, help="the file for the results")
    parser.add_argument("--cache", help="the folder of the environments")
    options = parser.parse_args()
    if options.cache:
        os.environ[CACHE] = options.cache
    try:
        install()
    except NotInstalledError as reason:
        print(reason, file=sys.stderr)
        return SKIPPED
    options.results.unlink(missing_ok=True)
    has_failed = False
    with Stand() as stand:
        for result in run(stand):
            results.append(options.results, [result])
            has_failed |= result["result"] == "fail"
            if result["result"] == "fail":
                print("FAILED", *result.values(), sep=" | ", flush=True)
    return int(has_failed)


def run_program(command: list[str], stand: Stand) -> Iterable[results.Result]:
    """
    Run a program that prints its results; what else it prints is shown if something failed.

    A program that fails as a whole has a failed result too.
    """
    has_failed = False
    with tempfile.TemporaryFile("w+") as log:
        program = subprocess.Popen(
            command, env=client_environment(stand), stdout=subprocess.PIPE, stderr=log, text=True
        )
        with program:
            assert program.stdout is not None
            for line in program.stdout:
                for result in results.parse([line]):
                    has_failed |= result["result"] == "fail"
                    yield result
        if program.returncode or has_failed:
            log.seek(0)
            print(log.read()[-SHOWN:], file=sys.stderr)
    if program.returncode:
        yield results.Result(
            client=Path(command[-1]).name,
            version="",
            upstream="",
            feature="run",
            result="fail",
            note=f"The program ended with exit code {program.returncode}.",
        )


def client_environment(stand: Stand) -> dict[str, str]:
    """The variables of a client's program."""
    environment = {**os.environ, **stand.environment}
    environment.pop("PYTHONPATH", None)  # the client has its own packages
    return environment
