"""Modules as a strict type checker sees them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def type_check(paths):
    """
    What mypy finds in these files, one line each.

    It runs with the settings of the project. So what it already knows of the library, in the cache
    of the project, is valid here.
    """
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", *paths],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stderr == ""
    return [line for line in checked.stdout.splitlines() if ": note:" not in line]
