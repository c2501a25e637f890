"""Writing generated files, or comparing them: what the scripts that make pages share."""

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def write(texts: Mapping[Path, str]) -> int:
    """Write the files that are not up to date; with `--check`, only name them and return 1."""
    stale = 0
    for path, text in texts.items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale = 1
        print(f"{path.relative_to(ROOT)} is stale")
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    return stale if "--check" in sys.argv else 0
