"""
A coding agent: it reads files by itself, and asks you before it writes one or runs the tests.

    python examples/coding_agent.py

repairs a small program in a temporary folder; the model is scripted, so this needs no key. For a
real model and a folder of yours, set its key in the environment (such as `ANTHROPIC_API_KEY`):

    python examples/coding_agent.py --model anthropic:claude-haiku-4-5 --folder . "Add a test."
"""

import argparse
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from interlingua import sync, tool
from interlingua.simulator import scripted, tool_call
from interlingua.tools import ToolContext

SYSTEM = "You are a careful programmer. Read before you write. Be brief."
TASK = "The tests fail. Repair calc.py."
FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "from calc import add\n\nassert add(2, 3) == 5, add(2, 3)\nprint('ok')\n",
}
SCRIPT = (  # what a real model would do
    tool_call("read_file", path="calc.py") + tool_call("read_file", path="test_calc.py"),
    tool_call("write_file", path="calc.py", text="def add(a, b):\n    return a + b\n"),
    tool_call("run_program", path="test_calc.py"),
    "The sign in add() was wrong. The tests pass now.",
)


def inside(folder: Path, path: str) -> Path:
    """The file in the folder; the model must not reach any other."""
    found = (folder / path).resolve()
    if not found.is_relative_to(folder.resolve()):
        raise ValueError(f"{path} is outside of the folder")  # the model is told so
    return found


@tool
def read_file(path: str, run: ToolContext[Path]) -> str:
    """Read a text file of the project."""
    return inside(run.deps, path).read_text(encoding="utf-8")


@tool(needs_approval=True)
def write_file(path: str, text: str, run: ToolContext[Path]) -> str:
    """Replace the content of a file of the project."""
    inside(run.deps, path).write_text(text, encoding="utf-8")
    return f"{path} has {len(text)} characters now"


@tool(needs_approval=True)
def run_program(path: str, run: ToolContext[Path]) -> str:
    """Run a Python file of the project and return what it prints."""
    command = [sys.executable, str(inside(run.deps, path))]
    done = subprocess.run(
        command, cwd=run.deps, capture_output=True, text=True, timeout=60, check=False
    )
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def is_approved(question: str) -> bool:
    return input(f"{question}\nAllow it? [y/N] ").strip().lower() == "y"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("task", nargs="?", default=TASK)
    parser.add_argument("--model", help="a real model; without it, a scripted one answers")
    parser.add_argument("--folder", type=Path, help="the project; without it, a temporary one")
    arguments = parser.parse_args()

    client = sync.get_default_client() if arguments.model else scripted(*SCRIPT)
    folder = arguments.folder or Path(tempfile.mkdtemp())
    if arguments.folder is None:
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")

    ask = partial(
        sync.generate,
        arguments.model or "scripted:programmer",
        client=client,
        deps=folder,
        max_tool_rounds=20,
        system=SYSTEM,
        tools=[read_file, write_file, run_program],
    )
    result = ask(arguments.task)
    while result.pending_approvals:  # the run stopped before these calls
        decisions = {
            call.id: is_approved(f"\n{call.name} {call.arguments}")
            for call in result.pending_approvals
        }
        result = ask(resume=result, approvals=decisions)
    print(f"\n{result.text}")


if __name__ == "__main__":
    main()
