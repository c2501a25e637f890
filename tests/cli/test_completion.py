"""Completion in real shells: commands, options, models, providers, files."""

import fcntl
import os
import shutil
import subprocess
import sys
import termios

import pytest

from interlingua.cli.completion import model_names
from support.cli import Terminal

ASK_BASH = r"""
eval "$(il completion bash)"
complete -p "${1%% *}" >/dev/null || exit 9
compopt() { echo "$2"; }  # which bash has only while a key is handled
COMP_LINE="$1" COMP_POINT="${#1}"
_interlingua_completion "${1%% *}"
printf '%s\n' "${COMPREPLY[@]}"
"""
"""Asks the function that the script defines, as bash does when Tab is pressed."""


SHELLS = {
    "bash": (("--norc", "--noprofile", "-i"), 'eval "$(il completion bash)"'),
    "zsh": (("-f", "-i"), 'eval "$(il completion zsh)"'),
    "fish": (("--no-config", "-i"), "il completion fish | source"),
}
"""How an interactive shell is started without the files of the user, and what these would have."""


@pytest.fixture
def env(program):
    """The variables of a shell that finds the program under both its names."""
    folder = program.home / "programs"
    folder.mkdir()
    for name in ("il", "interlingua"):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m interlingua "$@"\n')
        (folder / name).chmod(0o755)
    return {**program.env, "PATH": f"{folder}{os.pathsep}{program.env['PATH']}"}


@pytest.fixture
def shell(program, env):
    """What bash offers for a line."""

    def complete(line):
        done = subprocess.run(
            [shutil.which("bash"), "--norc", "-c", ASK_BASH, "bash", line],
            env=env, cwd=program.home, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("il transc", ["transcribe"]),
        ("interlingua transc", ["transcribe"]),
        ("il ask --schema", ["--schema", "--schema-multi"]),
        ("il -m anthropic:claude-haiku-4", ["claude-haiku-4-5"]),
        ("il ask -m mistr", ["nospace", "mistral:"]),
        ("il embed -m openai:text-embedding-3-s", ["text-embedding-3-small"]),
        ("il keys set deeps", ["deepseek"]),
        ("il models -p deeps", ["deepseek"]),
        ("il ask -f not", ["default"]),
        ("il chat -T ", ["default"]),
        ('il "What is it?" --usa', ["--usage"]),
        ("il ask -m nothing:", []),
    ],
)
def test_bash(shell, typed, offered):
    """The part of a word behind a colon is what bash replaces."""
    assert shell(typed) == offered


def test_all_commands(shell):
    """They are offered without being loaded; a command that is begun is not."""
    found = shell("il ")

    assert {"ask", "chat", "embed-many"} <= {*found}
    assert shell("il embed-m") == ["embed-many"]


class _Shell:
    """A shell in the place of the program."""

    def __init__(self, command, env, home):
        self._command = command
        self.env = env
        self._home = home

    def start(self, *_, stdin, env, **streams):
        """Start it as the leader of a session whose terminal is its own."""
        del streams["has_terminal"]
        return subprocess.Popen(
            self._command, stdin=stdin, env=env, cwd=self._home, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **streams,  # noqa: PLW1509 -- one call
        )  # fmt: skip


@pytest.mark.parametrize("name", SHELLS)
def test_tab_in_an_interactive_shell(program, env, name):
    """The script is loaded, `il ask -m anthropic:claude-haiku-4-` and Tab are typed."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    arguments, script = SHELLS[name]
    env = {**env, "PS1": "$ ", "LC_ALL": "C.UTF-8", "XDG_DATA_HOME": str(program.home)}
    command = [shutil.which(name), *arguments]
    terminal = Terminal(_Shell(command, env, program.home), columns=120)
    terminal.type(f"{script}; echo re''ady\r")
    terminal.expect("ready")
    terminal.type("il ask -m anthropic:claude-haiku-4-\t")
    terminal.expect_match(r"-m anthropic:claude-haiku-4-5")
    terminal.type("\x15il ask -m mistr\t")
    terminal.expect_match(r"-m mistral:")
    terminal.type("\x15exit\r")
    assert terminal.close() == 0


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_the_scripts_of_other_shells(program, name):
    """They can be read by these shells, where they are installed."""
    script = program.run("completion", name).stdout
    assert "interlingua" in script
    assert " il" in script
    if shutil.which(name) is not None:
        checked = subprocess.run(
            [name, "-n"], input=script, text=True, capture_output=True, check=False
        )
        assert (checked.returncode, checked.stderr) == (0, "")


def test_names_of_models(monkeypatch, tmp_path):
    """Those of providers with a key, and the names of others, whose models follow the colon."""
    monkeypatch.setenv("INTERLINGUA_HOME", str(tmp_path))
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")

    first = model_names("")
    assert "anthropic:claude-haiku-4-5" in first
    assert "openai:" in first
    assert not [name for name in first if name.startswith("openai:") and name != "openai:"]
    assert "openai:gpt-5.2" in model_names("openai:gpt")
    assert model_names("nothing:") == []
    assert not [name for name in model_names("openai:", "embedding") if "gpt" in name]
