"""
What takes long.

Progress is a bar on stderr if that is a terminal. `video` and `batch` wait for jobs, on which a
provider works for minutes or hours, also after the command has ended.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import click

from interlingua.cli.output import Output, console, is_terminal

Unit: TypeAlias = Literal["items", "bytes", "percent"]
_WIDTH = 24  # of the bar, so that a line fits into 80 columns


class Progress:
    """
    What `Output.progress` yields: call it with how much is done.

        with out.progress("Embedding", len(texts)) as progress:
            progress(10)

    `total` and `title` replace what was given before, and `note` is a second line. It may be called
    from any thread.
    """

    def __init__(self, display: Any = None, task: Any = None) -> None:
        self._display = display
        self._task = task

    def __call__(
        self,
        done: float | None = None,
        *,
        total: float | None = None,
        title: str | None = None,
        note: str = "",
    ) -> None:
        if self._display is None:
            return
        given = {"completed": done, "total": total, "description": title}
        known = {name: value for name, value in given.items() if value is not None}
        self._display.note = note
        self._display.update(self._task, **known)

    def step(self) -> None:
        """Count one more as done."""
        if self._display is not None:
            self._display.advance(self._task)


@contextmanager
def show_progress(title: str, total: float | None, unit: Unit) -> Iterator[Progress]:
    """A bar that vanishes at the end; without a total it only moves, with the time elapsed."""
    if not is_terminal(sys.stderr):
        yield Progress()
        return
    screen = console(sys.stderr)
    from rich import progress as rich
    from rich.text import Text

    class Amount(rich.ProgressColumn):
        """How much of the total is done, if there is one."""

        def render(self, task: rich.Task) -> str:
            return _amount(unit, task.completed, task.total)

    class Display(rich.Progress):
        """The bar, and a second line if there is a note."""

        note = ""

        def get_renderables(self) -> Iterator[Any]:
            yield self.make_tasks_table(self.tasks)
            if self.note:
                yield Text(self.note)

    display = Display(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(_WIDTH),
        Amount(),
        rich.TimeElapsedColumn(),
        console=screen,
        transient=True,
    )
    with display:
        yield Progress(display, display.add_task(title, total=total))


def _amount(unit: Unit, done: float, total: float | None) -> str:
    if not total:
        return ""
    if unit == "percent":
        return f"{100 * done / total:.0f} %"
    if unit == "bytes":
        return f"{done / 1e6:.1f}/{total / 1e6:.1f} MB"
    return f"{done:.0f}/{total:.0f}"


poll_option = click.option(
    "--poll",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Seconds until the provider is asked for the state again; later it is asked less often.",
)
timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="How long to wait. The job goes on afterwards.",
)


@contextmanager
def resumable(out: Output, what: str, command: str) -> Iterator[None]:
    """Say how to go on with a job if the wait for it is interrupted or fails."""
    from interlingua.errors import NetworkError, RateLimitError, RequestTimeoutError

    hint = f"the {what} goes on: {command}"
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(hint) from None
    except (NetworkError, RateLimitError, RequestTimeoutError):
        out.note(f"T{hint[1:]}")
        raise
