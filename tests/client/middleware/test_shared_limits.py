"""Two processes on one store, a process that is killed, and a store that goes away."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "limits.py"
STORES = ("sqlite", "redis")

each_store = pytest.mark.parametrize("store", STORES)


def measure(*arguments):
    """Run the benchmark for a short time; it fails if a limit was passed."""
    command = [sys.executable, str(SCRIPT), "--windows", "2.2", "--period", "0.5", *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "PASS" in outcome.stdout


@pytest.mark.parametrize("section", ["requests", "tokens"])
@each_store
def test_field_81_two_processes_admit_no_more_than_the_limit(store, section):
    """Two processes with 50 workers each never pass the limit of a window."""
    measure("--store", store, section)


@each_store
def test_field_80_two_processes_do_not_overspend(store):
    """Two processes with 50 workers each spend at most the budget and one reservation."""
    measure("--store", store, "budget")


@each_store
def test_a_killed_process_gives_its_leases_back(store):
    """After `kill -9` the places are free when the leases have ended, and not before."""
    measure("--store", store, "crash")


def test_field_81_redis_goes_away():
    """
    Calls are sent or refused as declared, and none hangs.

    The benchmark holds each to a tenth of a second; other tests may slow this one down.
    """
    measure("--store", "redis", "--patience", "0.4", "outage")
