"""How the marked regions of a page are filled, and how stale files are found and written."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MARK = re.compile(r"<!-- generated: (.+?) -->\n.*?<!-- end of generated -->\n", re.DOTALL)


def fill(path: Path, make: Callable[[str], str]) -> str:
    """The text of a page with its regions filled; `make` is called with what each mark names."""

    def region(mark: re.Match[str]) -> str:
        head = mark[0].partition("\n")[0]
        return f"{head}\n\n{make(mark[1])}\n\n<!-- end of generated -->\n"

    return MARK.sub(region, path.read_text(encoding="utf-8"))


def marks(path: Path) -> list[str]:
    """What the marks of a page name."""
    return MARK.findall(path.read_text(encoding="utf-8"))


def write(texts: Mapping[Path, str], *, check: bool) -> list[Path]:
    """Write the files that are stale, unless they are only checked; returns them."""
    stale = [
        path
        for path, text in texts.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in [] if check else stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[path], encoding="utf-8")
    return stale
