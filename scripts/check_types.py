"""
The types as pyright sees them: those of the package are complete, and the typed examples are right.

    python scripts/check_types.py

It prints the public names whose type pyright does not know, and what is wrong in tests/typing/. The
exit status is 1 if more than one percent of the names are unknown or an example is wrong.

mypy checks the same examples. A user's editor is likely to run pyright, which infers other types
where a name has no annotation; `--verifytypes` finds these names.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEAST = 0.99  # of the package's public names have a known type
MOST_SHOWN = 20


def main() -> int:
    """1 if something is wrong."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    ).parse_args()
    score, unknown = completeness()
    examples = pyright(cwd=ROOT)
    print(f"{score:.1%} of the names have a known type, at least {LEAST:.0%} must")
    for name in unknown[:MOST_SHOWN]:
        print(f"  {name}")
    print(examples.stdout.strip() or examples.stderr.strip())
    return int(score < LEAST or examples.returncode != 0)


def completeness() -> tuple[float, list[str]]:
    """How complete the package's types are, and the names whose type is not known."""
    # outside the project, so that the package is read as a program that installed it reads it
    run = pyright("--verifytypes", "interlingua", "--ignoreexternal", "--outputjson", cwd=Path("/"))
    try:
        report = json.loads(run.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        raise SystemExit(run.stdout + run.stderr) from None
    names = [one["name"] for one in report["symbols"] if not one["isTypeKnown"]]
    return report["completenessScore"], names


def pyright(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run it with the interpreter, and so the packages, that run this."""
    # with --verifytypes it ignores --pythonpath, and asks the first `python` of the PATH
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return subprocess.run(  # noqa: S603 -- a tool of the project
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PATH": path, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
