"""Run openai-agents and pydantic-ai through the gateway."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import group  # noqa: E402
from environments import python_environment  # noqa: E402
from results import Result  # noqa: E402
from stand import Stand  # noqa: E402

PROGRAMS = ("with_openai_agents.py", "with_pydantic_ai.py")


def run(stand: Stand) -> Iterable[Result]:
    """The results of both programs."""
    python = str(python_environment(HERE))
    for program in PROGRAMS:
        yield from group.run_program([python, str(HERE / program)], stand)


if __name__ == "__main__":
    sys.exit(group.main(run, lambda: python_environment(HERE)))
