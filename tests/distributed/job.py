"""
One engine on two nodes: run by `main.py` with the Python of the engine's environment.

It prints one JSON object for each job, and removes a node in the middle of the last.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from interlingua import bulk
from interlingua.errors import ConfigurationError

STARTS = 5
"""How often the nodes are started: Ray gives each 30 s, which a busy machine may not keep."""
MODEL, PROMPT = "openai:gpt-5.2", "Genre of {title}?"


def main() -> None:
    """Run the jobs in `plan.json`."""
    results = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Ray prints to stdout
    plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    executor = plan["engine"]
    if executor == "daft":
        os.environ["DAFT_RUNNER"] = "ray"
    print(json.dumps({"job": "file", "refused": refused(executor)}), file=results)
    cluster, second = start()
    os.environ["RAY_ADDRESS"] = cluster.address
    try:
        for job in plan["jobs"]:
            if job.get("removes"):
                threading.Thread(
                    target=remove, args=(cluster, second, job["log"], job["removes"]), daemon=True
                ).start()
            place = f"ray://{cluster.address}" if executor == "ray" else executor
            found = command(place, job) if job.get("command") else program(executor, job)
            print(json.dumps({"job": job["name"], **found}), file=results)
    finally:
        ray.shutdown()
        cluster.shutdown()


def refused(executor: str) -> str:
    """Why a ledger in a file is refused."""
    try:
        asyncio.run(bulk.run([{"title": "Emma"}], "file.jsonl", model=MODEL, prompt=PROMPT,
                             executor=executor))  # fmt: skip
    except ConfigurationError as error:
        return str(error)
    return ""


def start() -> tuple[Cluster, object]:
    """Two nodes; that of this program, and one that can be removed."""
    settings = {"num_cpus": 2, "object_store_memory": 100 << 20, "include_dashboard": False}
    for number in range(1, STARTS + 1):
        cluster = Cluster()
        try:
            cluster.add_node(**settings)
            second = cluster.add_node(**settings)
            cluster.wait_for_nodes(timeout=120)
        except Exception as error:
            print(f"Ray did not start ({number} of {STARTS}): {error}", file=sys.stderr, flush=True)
            cluster.shutdown()
            if number == STARTS:
                raise
            time.sleep(5)
        else:
            return cluster, second
    raise AssertionError


def program(executor: str, job: dict) -> dict:
    """Run a job in this process."""
    report = asyncio.run(
        bulk.run(job["rows"], job["output"], model=MODEL, prompt=PROMPT, executor=executor,
                 **job["options"])
    )  # fmt: skip
    names = ("rows", "done", "failed", "pending", "cost", "stopped", "is_written")
    return {name: getattr(report, name) for name in names}


def command(executor: str, job: dict) -> dict:
    """Run it as a command."""
    words = [sys.executable, "-m", "interlingua", "bulk", "run", job["rows"], "-p", PROMPT]
    words += ["-m", MODEL, "-o", job["output"], "--executor", executor, "--yes", *job["command"]]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return {"code": done.returncode, "printed": done.stderr[-2000:]}


def remove(cluster: Cluster, node: object, log: str, count: int) -> None:
    """Remove a node, as a machine that fails, when the provider had so many requests."""
    before = requests(log)
    while requests(log) < before + count:
        time.sleep(0.05)
    cluster.remove_node(node, allow_graceful=False)
    print("A node was removed.", file=sys.stderr, flush=True)


def requests(log: str) -> int:
    """How many requests the provider had."""
    return Path(log).read_bytes().count(b"\n")


if __name__ == "__main__":
    main()
