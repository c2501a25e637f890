"""Run the vendors' SDKs for JavaScript and Vercel's AI SDK through the gateway."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import group  # noqa: E402
from environments import node_environment  # noqa: E402
from results import Result  # noqa: E402
from stand import Stand  # noqa: E402

PROGRAMS = ("sdks.mjs", "vercel.mjs")


def run(stand: Stand) -> Iterable[Result]:
    """The results of both programs."""
    os.environ["INTERLINGUA_PACKAGES"] = str(node_environment(HERE))
    for program in PROGRAMS:
        yield from group.run_program(["node", str(HERE / program)], stand)


if __name__ == "__main__":
    sys.exit(group.main(run, lambda: node_environment(HERE)))
