"""
The command line: `interlingua`, in short `il`, or `python -m interlingua`.

Each command is a module of this folder with `command`, and a row of `commands.COMMANDS`.
"""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]

_COLLECT_AFTER = 100_000
"""New objects before the garbage collector runs: twice what the imports of `ask` leave."""
_USUAL = gc.get_threshold()
_MOMENT = 0.01  # seconds
_MISSING = "error: the command line needs click and rich: pip install 'interlingua[cli]'\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run a command; returns the exit code.

    Without `arguments` this is the whole program: it takes the arguments of the process, collects
    garbage rarely, and loses no Ctrl-C.
    """
    if arguments is None:
        _collect_rarely()
        sys.unraisablehook = _interrupt_again
        warnings.showwarning = _warn_in_one_line
    try:
        from interlingua.cli.commands import program
        from interlingua.cli.output import run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write(_MISSING)
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    return run(program, arguments)


def _warn_in_one_line(message: Warning | str, *_: Any, **__: Any) -> None:
    """Write a warning of Python, such as one about a broken plugin, as all warnings are written."""
    from interlingua.cli.output import Output

    Output().warn(str(message))


def _interrupt_again(lost: Any) -> None:
    """
    Repeat a Ctrl-C that Python has raised where nothing can be raised, and would only print.

    That is in `__del__` and in callbacks of weak references, of which each import has some.
    """
    if isinstance(lost.exc_value, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt_soon, ())
    else:
        sys.__unraisablehook__(lost)


def _interrupt_soon() -> None:
    import signal

    time.sleep(_MOMENT)  # until the function above has returned
    if os.name == "nt":
        _thread.interrupt_main()
    else:  # this also ends a wait
        os.kill(os.getpid(), signal.SIGINT)


def _collect_rarely() -> None:
    """
    Spare the garbage collector a fifth of the time of a short command.

    What was imported stays to the end: there is nothing to find in it. At the end the operating
    system frees it at once: frozen objects are not freed one by one.
    """
    gc.set_threshold(_COLLECT_AFTER)
    atexit.register(gc.freeze)


def collect_as_usual() -> None:
    """Undo `_collect_rarely` for code of the user, whose objects may have to finish something."""
    gc.set_threshold(*_USUAL)
    atexit.unregister(gc.freeze)
