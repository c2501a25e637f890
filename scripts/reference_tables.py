#!/usr/bin/env python
"""
Write the reference in docs/: every public name from its docstring, every warning from its table.

    scripts/reference_tables.py           writes the pages, and the options in `help(generate)`
    scripts/reference_tables.py --check   writes nothing; the exit status is 1 if a page is stale

A page of docs/reference/ is written by hand except between `<!-- reference: … -->` and
`<!-- end of reference -->`. The comment names a module, or a module and some of its names. A new
public name of a module appears by itself; one of `interlingua` must be added to a comment.
"""

from __future__ import annotations

import re
import sys
import textwrap
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "scripts")]

import generated_pages  # noqa: E402
from reference_build import render, source  # noqa: E402

from interlingua.spec.warning_table import WARNINGS  # noqa: E402

INDEX = ROOT / "docs" / "reference.md"
FOLDER = ROOT / "docs" / "reference"
OPTION_DOCS = ROOT / "src" / "interlingua" / "api" / "run" / "option_docs.py"
MARK = re.compile(
    r"<!-- reference: (?:(names) of )?([\w.]+)(?:: ([\w, ]+))? -->\n.*?<!-- end of reference -->\n",
    re.DOTALL,
)

OPTIONS = re.compile(r"are those of `(\w+)`")


def page_text(path: Path) -> str:
    """A page with what is generated of it as it should be now."""
    return MARK.sub(_filled, path.read_text(encoding="utf-8"))


def _filled(mark: re.Match[str]) -> str:
    head = mark[0].partition("\n")[0]
    is_short, subject, names = mark.groups()
    if subject == "warnings":
        body = warnings_text()
    elif subject == "index":
        body = index_text()
    elif is_short:
        body = render.names_table(subject)
    else:
        sections = [
            render.section(subject, name)
            for name in _listed(names) or source.names_of(subject)
            if subject == "interlingua" or not _is_shared(subject, name)
        ]
        body = OPTIONS.sub(_linked, "\n\n".join(sections))
    return f"{head}\n\n{body}\n\n<!-- end of reference -->\n"


def _linked(options: re.Match[str]) -> str:
    """A link to the table of the options, if it is on a page."""
    for module in ("interlingua", "interlingua.media", "interlingua.batch"):
        place = placed().get(module, {}).get(options[1])
        if place is not None:
            return f"are those of [`{options[1]}`]({place.removeprefix('reference/')})"
    return options[0]


def _listed(names: str | None) -> list[str]:
    return [name.strip() for name in names.split(",")] if names else []


def _is_shared(module: str, name: str) -> bool:
    """Whether it is described as a name of `interlingua`."""
    is_public = name in source.names_of("interlingua")
    return is_public and source.find(module, name) == source.find("interlingua", name)


def warnings_text() -> str:
    """The tables of all warnings, by kind."""
    parts = []
    for kind in ("content", "setting", "history", "note"):
        rows = [
            f"| `{code}` | {_sentence(row.sentence)} | {row.cause} | {row.cure} |"
            for code, row in sorted(WARNINGS.items())
            if row.kind == kind
        ]
        head = "| code | message | cause | cure |\n|---|---|---|---|"
        parts.append(f"## Kind `{kind}`\n\n{head}\n" + "\n".join(rows))
    return "\n\n".join(parts)


def _sentence(template: str) -> str:
    """A message with the names of what is filled in."""
    return re.sub(r"\{(\w+)[^}]*\}", r"{\1}", template).replace("|", "\\|")


# The index.


@cache
def placed() -> dict[str, dict[str, str]]:
    """Where each name is described, by module."""
    places: dict[str, dict[str, str]] = {}
    for path in sorted(FOLDER.glob("*.md")):
        for is_short, module, names in MARK.findall(path.read_text(encoding="utf-8")):
            if module == "warnings":
                continue
            for name in _listed(names) or source.names_of(module):
                owner = "interlingua" if _is_shared(module, name) and not is_short else module
                anchor = "" if is_short else f"#{slug(render.heading(owner, name))}"
                places.setdefault(module, {})[name] = f"reference/{path.name}{anchor}"
    return places


def index_text() -> str:
    """A table for each module: every public name with one sentence and a link."""
    parts = []
    for module, pages in sorted(placed().items()):
        rows = []
        for name in sorted(pages, key=str.lower):
            found = source.find(module, name)
            sentence = render.cell(source.summary(found.doc)) if found else ""
            rows.append(f"| [`{name}`]({pages[name]}) | {sentence} |")
        table = "\n".join(("| name | |", "|---|---|", *rows))
        parts.append(f"## `{module}`\n\n{table}")
    return "\n\n".join(parts)


def slug(heading: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


# The docstrings.


def option_docs_text() -> str:
    """The module that has the options of `generate`, for `help`."""
    found = source.find("interlingua", "GenerateOptions")
    assert found is not None  # noqa: S101
    lines = []
    for entry in render.options_of(found):
        meaning = render.cell(entry.meaning).replace("\\|", "|")
        text = f"- `{entry.name}` ({entry.type}): {meaning}"
        lines += textwrap.wrap(text, 92, subsequent_indent="  ", break_on_hyphens=False)
    return _OPTION_DOCS.format(options="\n".join(lines))


_OPTION_DOCS = '''"""
The options of `generate` with their meanings, for `help`.

Written by scripts/reference_tables.py from the docstrings in `options.py`.
"""

OPTIONS = """
Options:

{options}
"""
'''


def main() -> int:
    """Write the pages, or compare them."""
    return generated_pages.write(texts())


def texts() -> dict[Path, str]:
    """What each generated file should contain."""
    pages = [*sorted(FOLDER.glob("*.md")), INDEX]
    return {**{path: page_text(path) for path in pages}, OPTION_DOCS: option_docs_text()}


if __name__ == "__main__":
    sys.exit(main())
