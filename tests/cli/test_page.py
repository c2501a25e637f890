"""The page about the command line says what the commands do."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.cli import output
from interlingua.cli.commands import COMMANDS
from support.cli import KEY

HOWTO = Path(__file__).resolve().parents[2] / "docs" / "howto"
PAGE = HOWTO / "command-line.md"


def commands(page):
    """Each command of a page with the output that it shows."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = part.partition("\n")
            yield line, expected


@pytest.mark.parametrize("page", [PAGE, HOWTO / "recording.md"], ids=lambda page: page.stem)
def test_the_page_runs(program, page):
    """Every command prints what the page shows, where … stands for anything on its line."""
    folder = program.home / "bin"
    folder.mkdir()
    for name, options in {"interlingua": "-m interlingua ", "python": ""}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {options}"$@"\n')
        (folder / name).chmod(0o755)
    env = {**program.env, "PATH": f"{folder}:{program.env['PATH']}"}
    env |= {"GEMINI_API_KEY": KEY, "GEMINI_BASE_URL": program.env["ANTHROPIC_BASE_URL"]}
    shown = list(commands(page))

    assert len(shown) > 3
    for line, expected in shown:
        done = subprocess.run(
            ["/bin/sh", "-c", f"{{ {line}\n}} 2>&1 </dev/null"],
            capture_output=True, text=True, check=True, env=env, cwd=program.home,
        )  # fmt: skip
        pattern = re.escape(expected.rstrip("\n")).replace("…", ".*")
        assert re.fullmatch(pattern, done.stdout.rstrip("\n")), (line, done.stdout)


def test_every_command_is_on_the_page():
    """Each is run there, or at least named."""
    text = PAGE.read_text(encoding="utf-8")

    assert [name for name in COMMANDS if not re.search(rf"(interlingua |`){name}\b", text)] == []


def test_the_exit_codes_are_on_the_page():
    """Every code that the program may end with has a row."""
    page = PAGE.read_text(encoding="utf-8")
    rows = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    more = {0, output.FAILED, output.USAGE, output.UNEXPECTED, output.INTERRUPTED}

    assert rows == {*output.EXIT_CODES.values(), *more, output.CLOSED_PIPE}
