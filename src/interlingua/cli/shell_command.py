"""`ask --execute`: a command that a model proposes is shown, and runs only after a yes."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import click

from interlingua.cli.output import FAILED, BadInput, Output, is_terminal, paint, printable
from interlingua.cli.tables import BOLD

_SHELLS = ("bash", "zsh", "fish", "dash", "ksh", "sh")
_PLAIN_SHELL = "/bin/sh"
_SIGNALLED = 128  # is added to the number of the signal that ended a command
_ANSWERS = {"y": "run", "yes": "run", "e": "edit", "edit": "edit"}


def check_terminal(out: Output) -> None:
    """Refuse to propose a command where nobody can say yes to it; nothing is sent."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise click.UsageError("-e asks before it runs a command, so it needs a terminal.")
    if out.json:
        raise click.UsageError("-e runs a command, whose output is not JSON; leave out --json.")


def system_prompt(system: str | None) -> str:
    """What a model is told so that it answers with a command; the user's own words come last."""
    name = Path(_shell()).name
    told = (
        f"Answer with one command for the shell {name} on {platform.system()} that does what the "
        "user asks. Write only the command: no explanation, no Markdown, no prompt sign. Prefer "
        "a command that changes nothing if the user only wants to know something."
    )
    return f"{told}\n\n{system}" if system else told


def offer(out: Output, command: str) -> int:
    """Show a command, and run it if the user wants that; returns the exit code."""
    command = command.strip().strip("`").strip()
    while True:
        if not command:
            raise click.ClickException("The model has proposed no command.")
        if printable(command) != command:  # what is shown would not be what is run
            raise BadInput("The command has characters that cannot be shown; it was not run.")
        sys.stderr.write(f"{paint(sys.stderr, command, BOLD)}\n")
        choice = click.prompt(
            "Run this? [y]es, [e]dit, [N]o", default="n", show_default=False, err=True
        )
        action = _ANSWERS.get(choice.strip().lower())
        if action == "run":
            return _run(command)
        if action is None:
            out.note("It was not run.")
            return FAILED
        command = _edit(command)


def _edit(command: str) -> str:
    """The command as the user changes it, on its line where that is possible."""
    if "\n" not in command:
        try:
            import readline
        except ImportError:  # on Windows
            pass
        else:
            readline.set_startup_hook(lambda: readline.insert_text(command))
            try:
                return input("$ ").strip()
            finally:
                readline.set_startup_hook()
    return (click.edit(command, extension=".sh") or command).strip()


def _run(command: str) -> int:
    done = subprocess.run([_shell(), "-c", command], check=False)  # noqa: S603 -- after a yes
    return done.returncode if done.returncode >= 0 else _SIGNALLED - done.returncode


def _shell() -> str:
    """The user's shell, if it takes commands as other shells do."""
    shell = os.environ.get("SHELL", "")
    return shell if Path(shell).name in _SHELLS and shutil.which(shell) else _PLAIN_SHELL
