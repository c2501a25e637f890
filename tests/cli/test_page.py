"""The page about the command line says what the commands do."""

import re
import subprocess
import sys
from pathlib import Path

from interlingua.cli import output

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "command-line.md"


def commands():
    """Each command of the page with the output that the page shows."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = part.partition("\n")
            yield line, expected


def test_the_page_runs(program):
    """Every command prints what the page shows, where … stands for anything on its line."""
    shim = program.home / "bin" / "interlingua"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m interlingua "$@"\n')
    shim.chmod(0o755)
    env = {**program.env, "PATH": f"{shim.parent}:{program.env['PATH']}"}
    shown = list(commands())

    assert len(shown) > 10
    for line, expected in shown:
        done = subprocess.run(
            ["/bin/sh", "-c", f"{{ {line}\n}} 2>&1 </dev/null"],
            capture_output=True, text=True, check=True, env=env, cwd=program.home,
        )  # fmt: skip
        pattern = re.escape(expected.rstrip("\n")).replace("…", ".*")
        assert re.fullmatch(pattern, done.stdout.rstrip("\n")), (line, done.stdout)


def test_the_exit_codes_are_on_the_page():
    """Every code that the program may end with has a row."""
    page = PAGE.read_text(encoding="utf-8")
    rows = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    more = {0, output.FAILED, output.USAGE, output.UNEXPECTED, output.INTERRUPTED}

    assert rows == {*output.EXIT_CODES.values(), *more, output.CLOSED_PIPE}
