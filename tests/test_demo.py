"""`scripts/demo` runs, and leads on to what exists."""

import re
import subprocess
import sys
from pathlib import Path

from interlingua.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[1]


def test_the_demo(gguf):
    """A real answer in three dialects, a conversation in four, and then what to do next."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "tour.py"],
        capture_output=True,
        text=True,
        check=True,
        env={
            "PYTHONPATH": str(ROOT / "src"),
            "INTERLINGUA_GGUF": str(gguf),
            "HOME": "/nonexistent",
        },
    )

    assert done.stdout.count("[simulated] The weather: Oslo: 4 C, rain; Rome: 19 C, sun.") >= 1
    advice = done.stdout.partition("Where to go next")[2]
    for path in re.findall(r"(?:docs|examples|scripts)/[\w./-]+", advice):
        assert (ROOT / path).exists(), path
    commands = re.findall(r"^  interlingua (\w+)", advice, re.MULTILINE)
    assert len(commands) >= 3
    assert set(commands) <= set(COMMANDS)
