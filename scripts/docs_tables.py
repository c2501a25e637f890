#!/usr/bin/env python
"""
Write what is generated in the documentation: tables, the reference, pictures, a report.

    scripts/docs_tables.py                  writes all that a change of the source makes stale
    scripts/docs_tables.py NAME …           writes only these
    scripts/docs_tables.py [NAME …] --check writes nothing and names the files that are stale; the
                                            exit status is 1 if there are any

A page is written by hand except between `<!-- generated: … -->` and `<!-- end of generated -->`.
Each name below is a module of scripts/docs_build/, where its tables are made.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / part) for part in ("src", "scripts", "tests")]

from docs_build import pages  # noqa: E402


class Output(NamedTuple):
    """What a name writes, and whether it is written without being named."""

    about: str
    is_default: bool = True


OUTPUTS = {
    "reference": Output("docs/reference.md, docs/reference/, and the options in help(generate)"),
    "dialects": Output("docs/explanation/dialects.md: what each field is on the wire"),
    "rules": Output("docs/explanation/prepare-rules.md: the rules of prepare and their warnings"),
    "laws": Output("docs/explanation/laws.md: the laws of dialects, the checks of servers"),
    "walk": Output("docs/explanation/walk.svg and architecture.md: the files a call enters"),
    "performance": Output("docs/explanation/performance.md, from benchmarks/figures.json"),
    "clients": Output("docs/clients.md, from what scripts/test-clients --save has found"),
    "providers": Output("docs/providers.md, from the rows of providers"),
    "pictures": Output("docs/**/architecture.svg, swap.svg, budget.svg: pictures of pages"),
    "quirks": Output("docs/provider-quirks.md, if there are recordings (INTERLINGUA_CORPUS)"),
    "surface": Output("tests/fixtures/public_surface.txt: the public names and signatures"),
    "terminal": Output("docs/assets/terminal.svg, from a real run in a terminal", is_default=False),
    "conformance": Output(
        "build/conformance-report.md: scores of the simulator and, where installed, of llama.cpp",
        is_default=False,
    ),
}


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_names(), formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to write; see below")
    parser.add_argument("--check", action="store_true", help="write nothing; name stale files")
    options = parser.parse_args()
    unknown = sorted({*options.names} - {*OUTPUTS})
    if unknown:
        parser.error(f"There is no {', '.join(unknown)}. The names are: {', '.join(OUTPUTS)}.")
    names = options.names or [name for name, output in OUTPUTS.items() if output.is_default]
    stale = []
    for name in names:
        texts = import_module(f"docs_build.{name}").texts()
        stale += pages.write(texts, check=options.check)
    for path in stale:
        print(f"{path.relative_to(ROOT)} {'is stale' if options.check else 'was written'}")
    return int(options.check and bool(stale))


def _names() -> str:
    width = max(map(len, OUTPUTS)) + 2
    lines = [
        f"  {name:{width}}{output.about}{'' if output.is_default else ' (only if named)'}"
        for name, output in OUTPUTS.items()
    ]
    return "\n".join(("names:", *lines))


if __name__ == "__main__":
    sys.exit(main())
