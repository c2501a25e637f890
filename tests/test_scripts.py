"""Every script says what it does to someone who has never seen it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "scripts"
SCRIPTS = sorted(path for path in FOLDER.iterdir() if path.is_file() and path.name != "help")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_its_help_says_what_it_does(script, tmp_path):
    """In a few lines, at once: nothing is installed, written or run."""
    is_shell = script.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash")
    command = ["bash"] if is_shell else [sys.executable]
    done = subprocess.run(
        [*command, str(script), "--help"],
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert script.stem in done.stdout
    assert len(done.stdout.split()) > 15
    assert "source=" not in done.stdout
    assert [*tmp_path.iterdir()] == []
