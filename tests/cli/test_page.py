"""The commands on the pages of the documentation run, and print what the pages show."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.cli import output
from interlingua.cli.commands import COMMANDS
from interlingua.simulator import Simulator, serve_in_thread, use_tools, within_limits
from support import preloaded
from support.cli import KEY
from support.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
HOWTO = ROOT / "docs" / "howto"
PAGE = HOWTO / "command-line.md"
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if CONSOLE.search(page.read_text(encoding="utf-8"))
]
NOT_RUN = {
    r"pip install ": "needs a package index; `scripts/build --install` does it with each extra",
    r"uv add ": "as `pip install`",
    r"python -m venv ": "makes an environment, for `pip install`",
    r"\./scripts/demo": "tests/test_demo.py runs it",
    r"\./scripts/test": "would run this suite",
    r"python benchmarks/": "measures for minutes, on a quiet machine",
    r"python scripts/docs_tables\.py": "tests/test_docs_tables.py compares what it writes",
    r"python -m interlingua\.simulator ": "tests/test_docs.py runs it, with the whole tutorial",
}
PROGRAM = 'from interlingua import sync\nprint(sync.generate("openai:gpt-5.2", "Hi.").text)\n'


def commands(page):
    """Each command of a page with the output that it shows."""
    for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = part.partition("\n")
            yield line, expected


def is_run(line):
    return not any(re.match(command, line) for command in NOT_RUN)


@pytest.fixture
def shell(program):
    """
    Runs a line as in the shell of a reader; returns what it prints.

    `interlingua` is the real thing, in a fresh interpreter or in one that has imported it.
    """
    folders = {True: program.home / "fresh", False: program.home / "preloaded"}
    ways = {True: [sys.executable], False: preloaded.command()}
    for is_fresh, folder in folders.items():
        programs = {
            "interlingua": f'exec {shlex.join(ways[is_fresh])} -m interlingua "$@"',
            "python": f'exec {sys.executable} "$@"',
            "git": "echo '+ a line that is new'",
        }
        folder.mkdir()
        for name, code in programs.items():
            (folder / name).write_text(f"#!/bin/sh\n{code}\n")
            (folder / name).chmod(0o755)
    (program.home / "my_program.py").write_text(PROGRAM)
    env = {**program.env, "MY_KEY": KEY}
    env |= {"GEMINI_API_KEY": KEY, "GEMINI_BASE_URL": program.env["ANTHROPIC_BASE_URL"]}

    def run(line, *, is_fresh=False):
        path = f"{folders[is_fresh]}:{env['PATH']}"
        done = subprocess.run(
            ["/bin/sh", "-c", f"{{ {line}\n}} 2>&1 </dev/null"], env={**env, "PATH": path},
            capture_output=True, text=True, check=False, cwd=program.home,
        )  # fmt: skip
        assert done.returncode == 0, (line, done.stdout)
        return done.stdout

    return run


@pytest.fixture
def servers():
    """The addresses of servers on the pages, and simulators that answer there."""
    options = {"models": ["my-model"], "strict": True}
    with (
        serve_in_thread(Simulator(within_limits(use_tools), **options)) as free,
        serve_in_thread(Simulator(within_limits(use_tools), key=KEY, **options)) as paid,
    ):
        yield {"http://127.0.0.1:8080": free.url, "https://llm.example.com": paid.url}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_run(shell, servers, page):
    """Every command prints what the page shows, where … stands for anything on its line."""
    started = set()  # the page about all commands starts each of them in a fresh interpreter, once
    for line, expected in commands(page):
        if not is_run(line):
            continue
        for address, real in servers.items():
            line = line.replace(address, real)  # noqa: PLW2901
        name = "".join(re.findall(r"^.*?\binterlingua (\w+)", line))
        printed = shell(line, is_fresh=page == PAGE and name not in started)
        started.add(name)
        pattern = re.escape(expected.rstrip("\n")).replace("…", ".*")
        assert not expected or re.fullmatch(pattern, printed.rstrip("\n")), (line, printed)


def test_what_is_not_run_is_on_a_page():
    """Each row of the list has a command, and most commands are run."""
    lines = [line for page in PAGES for line, _ in commands(page)]

    for command in NOT_RUN:
        assert any(re.match(command, line) for line in lines), command
    assert sum(map(is_run, lines)) > 60


def test_the_scripts_that_are_not_run_exist():
    """A command that starts a file of the project names one that there is."""
    for page in PAGES:
        for line, _ in commands(page):
            script = re.match(r"(?:python |\./)((?:scripts|benchmarks)/\S+)", line)
            assert script is None or (ROOT / script[1]).is_file(), line


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


def block_of(page, first_words):
    """The block of a page that starts so."""
    pattern = rf"^```\w+\n({re.escape(first_words)}.*?)^```"
    (found,) = re.findall(pattern, page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return found


def test_the_server_that_records(program):
    """`record` without a command prints the addresses that the page shows."""
    command, *expected = block_of(HOWTO / "recording.md", "$ interlingua record").splitlines()
    process = program.start(*command.split()[2:], "--port", "0")
    try:
        printed = [process.stdout.readline().rstrip() for _ in expected]
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)

    (port,) = re.findall(r"127\.0\.0\.1:(\d+) into", printed[0])
    assert printed == [line.replace("8900", port) for line in expected]


def test_the_simulator_in_the_background(program, shell):
    """A program uses it with the variables that the page shows."""
    start, use = block_of(PAGE, "interlingua simulate").splitlines()
    arguments = start.removesuffix(" &").replace("8899", "0").split()[1:]
    process = program.start(*arguments)
    try:
        (port,) = re.findall(r":(\d+)", process.stdout.readline())
        printed = shell(use.replace("8899", port))
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert "simulated answer" in printed
