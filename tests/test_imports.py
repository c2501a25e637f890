"""The layers hold."""

import subprocess
import sys
from pathlib import Path


def test_import_contracts():
    """Layers, purity and the independence of the dialects, as pyproject.toml states them."""
    found = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        check=False,
    )

    assert found.returncode == 0, found.stdout
    assert "3 kept, 0 broken" in found.stdout
