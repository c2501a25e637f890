"""Runs groups of clients, shows what they found and saves it; called by `scripts/test-clients`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import results
from environments import CACHE, cache_folder
from group import SKIPPED

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SAVED = HERE / "results.json"
GROUPS = ("python", "langchain", "js", "agents")


def main() -> int:
    """Run the groups; 1 if something failed."""
    parser = argparse.ArgumentParser(prog="scripts/test-clients")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--save", action="store_true", help="write the page of the documentation")
    parser.add_argument("--cache", help="the folder of the environments")
    options = parser.parse_args()
    unknown = sorted({*options.groups} - {*GROUPS})
    if unknown:
        parser.error(f"There is no {', '.join(unknown)}. The groups are: {', '.join(GROUPS)}.")
    if options.cache:
        os.environ[CACHE] = options.cache
    names = options.groups or [name for name in GROUPS if (HERE / name / "run.py").exists()]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = [_run(name, Path(folder) / f"{name}.jsonl", save=options.save) for name in names]
    if options.save:
        command = [sys.executable, str(ROOT / "scripts" / "docs_tables.py"), "clients"]
        subprocess.run(command, check=True)
    return int(any(outcomes))


def _run(name: str, found: Path, *, save: bool) -> bool:
    """Run one group; whether it failed."""
    print(f"\n== {name}", flush=True)
    begun = time.monotonic()
    command = [sys.executable, str(HERE / name / "run.py"), "--results", str(found)]
    code = subprocess.call([*command, "--cache", str(cache_folder())])
    if code == SKIPPED:
        print(f"{name}: skipped, because it could not be installed; see above.")
        return False
    listed = results.read(found)
    kinds = [each["result"] for each in listed]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in results.KINDS)
    print(f"{name}: {counts}; {time.monotonic() - begun:.0f} s", flush=True)
    if save:
        saved = json.loads(SAVED.read_text("utf-8")) if SAVED.exists() else {}
        saved[name] = results.packed(listed)
        ordered = {each: saved[each] for each in GROUPS if each in saved}
        SAVED.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return bool(code) or not listed


if __name__ == "__main__":
    sys.exit(main())
