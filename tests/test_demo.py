"""`scripts/demo` runs, and leads on to what exists."""

import os
import re
import subprocess
import sys
from pathlib import Path

from interlingua import dialects
from interlingua.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[1]


def test_the_demo(gguf):
    """Real answers, a conversation in four dialects, the gateway; then what to do next."""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "tour.py"],
        capture_output=True,
        text=True,
        check=True,
        env={
            "PYTHONPATH": str(ROOT / "src"),
            "INTERLINGUA_GGUF": str(gguf),
            "HOME": "/nonexistent",
            "PATH": os.environ["PATH"],
        },
    )

    assert re.findall(r"^(\d)\. ", done.stdout, re.MULTILINE) == [*"123456"]
    assert done.stdout.count("[simulated] The weather: Oslo: 4 C, rain; Rome: 19 C, sun.") == 1
    spoken = {*re.findall(r"\((\w+_\w+)\)", done.stdout)}
    assert len(spoken) == 4
    assert spoken <= {*dialects.names()}
    assert "gemini:gemini-2.5-flash: foreign_thinking_dropped" in done.stdout
    assert "is sent again as it was (1 block)" in done.stdout
    assert re.search(r"^   0\.00\d+ USD$", done.stdout, re.MULTILINE)
    assert re.search(
        r"^   openai \S+: \[simulated\] I am claude-haiku-4-5", done.stdout, re.MULTILINE
    )
    advice = done.stdout.partition("Where to go next")[2]
    for path in re.findall(r"(?:docs|examples|scripts)/[\w./-]+", advice):
        assert (ROOT / path).exists(), path
    commands = re.findall(r"^  interlingua (\w+)", advice, re.MULTILINE)
    assert len(commands) == 3
    assert set(commands) <= set(COMMANDS)
