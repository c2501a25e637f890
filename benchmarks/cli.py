"""
The CPU time of the command line: `--help`, and the first request of `ask`.

    python benchmarks/cli.py [--llm PATH_OF_THE_PROGRAM]

`--help` may take a tenth of what `llm --help` takes, and `ask` 1.2 times what a program takes that
makes the same call through the library. Without `--llm`, that program is installed by pip into an
environment of its own, which is deleted afterwards. Each figure is the median of several processes,
which take turns. The exit code is 1 if a limit is exceeded.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from statistics import median

from interlingua.simulator import Simulator, serve_in_thread, text

ROUNDS = 15
MODEL = "openai:gpt-5.2"
LIBRARY = f"""
from interlingua import sync
for event in sync.stream({MODEL!r}, 'Hi'):
    if event.type == 'text_delta':
        print(event.delta, end='', flush=True)
"""
PROGRAM = [sys.executable, "-m", "interlingua"]
HELP_LIMIT, ASK_LIMIT = 0.1, 1.2


def cpu(command, env):
    """Seconds of CPU time that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    nothing = subprocess.DEVNULL
    subprocess.run(command, env=env, check=True, stdout=nothing, stdin=nothing, stderr=nothing)  # noqa: S603 -- ours
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(commands, env):
    """The median of each command; they take turns, so that a busy machine is fair to all."""
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # users do not compile at each start
    for command in commands.values():
        cpu(command, env)  # writes the compiled files
    rounds = [[cpu(command, env) for command in commands.values()] for _ in range(ROUNDS)]
    return {
        name: median(column)
        for name, column in zip(commands, zip(*rounds, strict=True), strict=True)
    }


def install_llm(folder):
    """The program `llm` in an environment of its own; None if it cannot be installed."""
    venv.create(folder, with_pip=True)
    binaries = Path(folder) / "bin"
    done = subprocess.run(  # noqa: S603 -- ours
        [binaries / "python", "-m", "pip", "install", "--quiet", "llm"],
        check=False,
        stderr=subprocess.DEVNULL,
    )
    return binaries / "llm" if done.returncode == 0 else None


def measure_help(llm):
    """The times of `--help`."""
    commands = {"python -c pass": [sys.executable, "-c", "pass"], "--help": [*PROGRAM, "--help"]}
    if llm is not None:
        commands["llm --help"] = [llm, "--help"]
    return compare(commands, dict(os.environ))


def measure_ask():
    """The times of the first request."""
    with (
        serve_in_thread(Simulator(text("Hello."))) as server,
        tempfile.TemporaryDirectory() as home,
    ):
        env = {**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.url}/v1"}
        env["INTERLINGUA_HOME"] = home
        commands = {
            "library": [sys.executable, "-c", LIBRARY],
            "ask --no-log": [*PROGRAM, "ask", "-n", "-m", MODEL, "Hi"],
            "ask": [*PROGRAM, "ask", "-m", MODEL, "Hi"],
        }
        return compare(commands, env)


def judge(times, name, other, limit):
    """Print whether a time is within its limit; returns that."""
    if other not in times:
        print(f"SKIP  {name}: there is no {other} to compare with")
        return True
    ratio = times[name] / times[other]
    is_within = ratio <= limit
    print(f"{'PASS' if is_within else 'FAIL'}  {name} is {ratio:.2f} x {other} (limit {limit})")
    return is_within


def main():
    """Print the table and the verdicts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--llm", type=Path, help="the program llm, in another environment")
    given = parser.parse_args().llm
    with tempfile.TemporaryDirectory() as folder:
        times = {**measure_help(given or install_llm(folder)), **measure_ask()}
    for name, seconds in times.items():
        print(f"{name:16} {seconds * 1000:7.1f} ms of CPU time")
    verdicts = [
        judge(times, "--help", "llm --help", HELP_LIMIT),
        judge(times, "ask --no-log", "library", ASK_LIMIT),
        judge(times, "ask", "library", ASK_LIMIT),
    ]
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
