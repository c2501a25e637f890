"""
The command line: `interlingua`, in short `il`, or `python -m interlingua`.

Each command is a module of this folder with `command`, and a row of `commands.COMMANDS`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

_MISSING = "error: the command line needs click and rich: pip install 'interlingua[cli]'\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
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
