"""What `-T` takes: the tools of a Python file; and the question whether a tool may run."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlingua.cli import collect_as_usual
from interlingua.cli.output import printable

if TYPE_CHECKING:
    from interlingua import Tool, ToolCall


def read_tools(paths: Sequence[str], *, approve: bool) -> list[Tool]:
    """
    The tools of Python files: their `Tool` objects and public functions.

    Every tool needs approval, unless the user has approved all of them.
    """
    return [each for path in paths for each in _tools_of(Path(path), approve=approve)]


def _tools_of(path: Path, *, approve: bool) -> list[Tool]:
    from msgspec.structs import replace

    from interlingua import Tool, tool

    found = []
    for name, value in vars(_load(path)).items():
        if name.startswith("_"):
            continue
        if isinstance(value, Tool):
            found.append(replace(value, needs_approval=not approve))
        elif inspect.isfunction(value) and value.__module__ == _module_name(path):
            found.append(tool(needs_approval=not approve)(value))
    if not found:
        raise click.BadParameter(f"{path} has no public function and no Tool", param_hint="-T")
    return found


def _module_name(path: Path) -> str:
    return f"interlingua_tools_{path.stem}"


def _load(path: Path) -> Any:
    if not path.is_file():
        raise click.BadParameter(f"there is no file {path}", param_hint="-T")
    spec = importlib.util.spec_from_file_location(_module_name(path), path)
    if spec is None or spec.loader is None:
        raise click.BadParameter(f"{path} is not a Python file (.py)", param_hint="-T")
    module = importlib.util.module_from_spec(spec)
    collect_as_usual()
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        text = f"{path} cannot be loaded: {type(error).__name__}: {error}"
        raise click.BadParameter(text, param_hint="-T") from error
    return module


def describe_call(call: ToolCall) -> str:
    """A call as code: `add(a=1, b=2)`."""
    inner = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return printable(f"{call.name}({inner})")


def ask_approvals(calls: Sequence[ToolCall]) -> dict[str, bool]:
    """Ask on the terminal which calls may run; without a terminal none may."""
    try:
        terminal = Path("/dev/tty").open("r+b", buffering=0)  # noqa: SIM115 -- closed below
    except OSError:
        names = ", ".join(sorted({call.name for call in calls}))
        raise click.ClickException(
            f"the model wants to run {names}, and there is no terminal to ask; "
            "--yes approves all tools"
        ) from None
    with terminal:
        return {call.id: _ask(terminal, call) for call in calls}


def _ask(terminal: Any, call: ToolCall) -> bool:
    terminal.write(f"Run {describe_call(call)}? [y/N] ".encode())
    answer = terminal.readline(1000).decode(errors="replace").strip().lower()
    return answer in ("y", "yes")
