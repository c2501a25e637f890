"""
The CPU time of the command line: `--help`, and the first request of `ask`.

    python benchmarks/cli.py

`--help` is compared with `llm --help` where that program is installed, and `ask` with a program
that makes the same call through the library. Each figure is the median of several processes.
"""

import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
from statistics import median

from interlingua.simulator import Simulator, serve_in_thread, text

ROUNDS = 7
MODEL = "openai:gpt-5.2"
LIBRARY = f"from interlingua import sync; print(sync.generate({MODEL!r}, 'Hi').text)"


def cpu(command, env):
    """Seconds of CPU time that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    nothing = subprocess.DEVNULL
    subprocess.run(command, env=env, check=True, stdout=nothing, stdin=nothing)  # noqa: S603 -- ours
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(commands, env):
    """The median of each command; they take turns, so that a busy machine is fair to all."""
    rounds = [[cpu(command, env) for command in commands.values()] for _ in range(ROUNDS)]
    return {
        name: median(column)
        for name, column in zip(commands, zip(*rounds, strict=True), strict=True)
    }


def main():
    """Print the table."""
    program = [sys.executable, "-m", "interlingua"]
    helps = {"python -c pass": [sys.executable, "-c", "pass"], "--help": [*program, "--help"]}
    if importlib.util.find_spec("llm") is not None:
        helps["llm --help"] = [sys.executable, "-m", "llm", "--help"]
    with (
        serve_in_thread(Simulator(text("Hello."))) as server,
        tempfile.TemporaryDirectory() as home,
    ):
        env = {**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1"}
        env["INTERLINGUA_HOME"] = home
        asks = {
            "library": [sys.executable, "-c", LIBRARY],
            "ask": [*program, "ask", "-m", MODEL, "Hi"],
            "ask --no-log": [*program, "ask", "-n", "-m", MODEL, "Hi"],
        }
        for name, seconds in {**compare(helps, env), **compare(asks, env)}.items():
            print(f"{name:16} {seconds * 1000:7.1f} ms of CPU time")


if __name__ == "__main__":
    main()
