"""How far a download is, shown on stderr."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TextIO, TypeAlias

Report: TypeAlias = Callable[[int], None]
"""Takes the number of bytes there are by now."""
Progress: TypeAlias = Callable[[str, int], AbstractContextManager[Report]]
"""Opens a display with a title, for so many bytes."""

_WIDTH = 30


def show(title: str, total: int) -> AbstractContextManager[Report]:
    """A bar of `rich` if it is installed, else a plain one."""
    try:
        rich = importlib.import_module("rich.progress")
        console = importlib.import_module("rich.console").Console(stderr=True)
    except ImportError:
        return plain(title, total)
    return _rich(rich.Progress(console=console), title, total)


@contextmanager
def _rich(display: Any, title: str, total: int) -> Iterator[Report]:
    with display:
        task = display.add_task(title, total=total)
        yield lambda done: display.update(task, completed=min(done, total))


@contextmanager
def plain(title: str, total: int, *, out: TextIO | None = None) -> Iterator[Report]:
    """A bar that is drawn over itself on a terminal; elsewhere one line, said once."""
    stream = out or sys.stderr
    drawn = -1

    def report(done: int) -> None:
        nonlocal drawn
        percent = min(done * 100 // total, 100)
        if percent != drawn:
            drawn = percent
            full = "#" * (percent * _WIDTH // 100)
            stream.write(f"\r{title} [{full:.<{_WIDTH}}] {percent:3} %")
            stream.flush()

    if not stream.isatty():
        stream.write(f"{title} ({total / 1e6:.0f} MB)\n")
        stream.flush()
        yield lambda _done: None
        return
    report(0)
    try:
        yield report
    finally:
        stream.write("\n")
