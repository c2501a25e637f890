"""
Runs real coding agents through `interlingua serve`, each with any upstream behind it.

    python tests/clients/agents/run.py --results results.jsonl
    python tests/clients/agents/run.py --results r.jsonl --client pi --upstream Gemini --keep out

The agents are npm packages at the versions of `package.json`, kept in a folder outside of the
tree. They run in a network namespace that has only the loopback, so that none can call home.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from environments import CACHE, cache_folder
from group import SKIPPED
from results import Result, append

HERE = Path(__file__).resolve().parent
PACKAGES = HERE / "package.json"
INSIDE = "INTERLINGUA_AGENTS_NAMESPACE"
"""The variable that says that this process has a network of its own."""


def main() -> int:
    """Install the agents, then run them in a network of their own; 1 if something failed."""
    options = _parser().parse_args()
    if options.cache:
        os.environ[CACHE] = options.cache
    if os.environ.get(INSIDE):
        return run(options)
    missing = [name for name in ("npm", "unshare", "ip") if shutil.which(name) is None]
    if missing:
        print(f"There is no {', '.join(missing)} here, which the agents need.", file=sys.stderr)
        return SKIPPED
    if subprocess.call(_isolated(["true"])):
        print("A network namespace is not allowed here, which the agents need.", file=sys.stderr)
        return SKIPPED
    try:
        install(packages_folder())
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"The agents could not be installed: {error}", file=sys.stderr)
        return SKIPPED
    return subprocess.call(_isolated([sys.executable, __file__, *sys.argv[1:]]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--results", required=True, help="the file that gets a line of JSON for each result")
    add("--cache", help="the folder of the environments")
    add("--client", action="append", help="only this agent; may be repeated")
    add("--dialect", action="append", help="only agents that speak this dialect")
    add("--upstream", action="append", help="only this upstream")
    add(
        "--group",
        action="append",
        help="only these: work, patch, codemode, deferred, compaction, servercompaction, faults",
    )
    add("--keep", help="a folder for what was sent and printed")
    add("--at-once", type=int, default=5, help="how many agents run at once (%(default)s)")
    return parser


def packages_folder() -> Path:
    """The folder of the agents in these versions."""
    digest = hashlib.sha256(PACKAGES.read_bytes()).hexdigest()[:12]
    return cache_folder() / f"agents-{digest}"


def install(folder: Path) -> None:
    """Install the agents, unless they are there."""
    done = folder / ".ready"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGES, folder)
        command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(command, cwd=folder, check=True)
        done.touch()


def _isolated(command: list[str]) -> list[str]:
    """The command in a network namespace whose only interface is the loopback."""
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    script = 'ip link set lo up && exec "$@"'
    inside = ["env", f"{INSIDE}=1", *command]
    return ["unshare", *as_root, "--net", "sh", "-c", script, "sh", *inside]


def run(options: argparse.Namespace) -> int:
    """Run what was chosen; 1 if something failed."""
    from cases import choose  # beside this file, and it imports the library

    cases = choose(options)
    pinned = json.loads(PACKAGES.read_text("utf-8"))["dependencies"]
    found: dict[int, list[Result]] = {}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        closing(_Stages(Path(folder), options.at_once)) as stages,
        ThreadPoolExecutor(options.at_once) as pool,
    ):
        runs = {pool.submit(stages.run, case, options.keep): i for i, case in enumerate(cases)}
        for ended in as_completed(runs):
            number = runs[ended]
            found[number] = [cases[number].row(pinned, each) for each in ended.result()]
            for row in found[number]:
                print(*row.values(), sep=" | ", flush=True)
    ordered = [row for number in sorted(found) for row in found[number]]
    Path(options.results).unlink(missing_ok=True)
    append(Path(options.results), ordered)
    return int(any(row["result"] == "fail" for row in ordered))


class _Stages:
    """As many stages as agents run at once; each run borrows one."""

    def __init__(self, folder: Path, number: int) -> None:
        from stage import Stage

        self._folder = folder
        self._all = [Stage(folder / f"stage{index}") for index in range(number)]
        self._free: queue.SimpleQueue[Stage] = queue.SimpleQueue()
        for stage in self._all:
            self._free.put(stage)

    def close(self) -> None:
        """End the gateways and simulators."""
        for stage in self._all:
            stage.close()

    def run(self, case: Any, keep: str | None) -> Any:
        """What one run has found."""
        stage = self._free.get()
        try:
            folder = Path(tempfile.mkdtemp(dir=self._folder))
            return case.run(stage, folder, _environment(), keep)
        finally:
            self._free.put(stage)


def _environment() -> dict[str, str]:
    """The variables of every agent: nothing of whoever runs this."""
    packages = packages_folder() / "node_modules"
    programs = [packages / ".bin", packages / "node" / "bin", "/usr/local/bin", "/usr/bin", "/bin"]
    path = os.pathsep.join(map(str, programs))
    return {"PATH": path, "LANG": "C.UTF-8", "TERM": "dumb", "CI": "1"}


if __name__ == "__main__":
    raise SystemExit(main())
