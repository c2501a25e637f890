"""Bulk jobs on Daft in this process: the same output, money and exit codes as with live calls."""

import asyncio
import signal
import sys
import time

import pytest

from interlingua.errors import ConfigurationError
from interlingua.simulator import Simulator, error, latency, serve_in_thread
from support.bulk_jobs import MODEL, PROMPT, answer, books
from support.cli import KEY, Program, wait_for
from support.redis_server import new_server

daft = pytest.importorskip("daft")


def comparable(rows):
    """Without times, and without costs: the simulator caches prompts."""
    return [{name: row[name] for name in row if name not in ("seconds", "cost")} for row in rows]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_the_output_is_that_of_live_calls(make_bench, kind):
    """The same rows, columns and order; with equal rows, bad rows and rows that are refused."""
    bench = make_bench(
        lambda r: error(400, "no") if "Book 2?" in r.messages[-1].text else answer(r)
    )
    rows = bench.write([*books(250), {"id": "x", "title": "Book 1"}, {"id": "y", "title": None}])
    given = {"attempts": 1, "id_column": "id"}
    bench.run(rows, **given)
    place = bench.folder / f"daft.{kind}"
    report = bench.run(rows, executor="daft", output=place, **given)

    assert (report.done, report.failed, report.is_written) == (250, 2, True)
    assert len(bench.prompts) == 2 * 250
    if kind == "parquet":
        import pyarrow.parquet as pq

        written = pq.read_table(place).to_pylist()
    else:
        written = bench.written(place)
    assert comparable(written) == comparable(bench.written())


def test_parts(bench):
    """Numbered files have each row once."""
    report = bench.run(bench.write(books(250)), executor="daft", parts=60, id_column="id")
    files = sorted(bench.folder.glob("out-*.jsonl")) or sorted(bench.folder.glob("out*.jsonl"))
    keys = [row["id"] for file in files for row in bench.written(file)]

    assert report.done == 250
    assert len(files) == 5
    assert sorted(keys) == sorted(row["id"] for row in books(250))


def test_several_runs_pay_once(bench):
    """Live calls and Daft share the ledger of an output."""
    bench.run(bench.write(books(30)))
    report = bench.run(bench.write(books(80)), executor="daft")
    assert (report.done, len(bench.prompts)) == (80, 80)


def test_concurrency_is_that_of_the_job(bench):
    """Daft gives all rows at once; only so many calls are under way."""
    active = most = 0

    class Counting:
        async def complete(self, request, call_next):
            nonlocal active, most
            active += 1
            most = max(most, active)
            await asyncio.sleep(0)
            try:
                return await call_next(request)
            finally:
                active -= 1

    client = bench.client.with_middleware(Counting())
    assert bench.run(books(120), executor="daft", client=client, concurrency=3).done == 120
    assert most == 3


def test_a_ledger_in_redis(bench):
    """The limits and the budget of all workers are there."""
    server = new_server().start()
    try:
        report = bench.run(
            books(300), executor="daft", ledger=server.url, volatile=True, max_usd=0.01,
            max_tokens=20, concurrency=4,
        )  # fmt: skip
    finally:
        server.stop()
    assert "budget" in report.stopped.lower()
    assert report.cost <= 0.01
    assert 0 < report.done < 300


def test_a_file_is_no_ledger_for_machines(bench, monkeypatch):
    """Daft may be set to a Ray cluster."""
    monkeypatch.setattr(daft, "get_or_infer_runner_type", lambda: "ray")
    with pytest.raises(ConfigurationError, match=r"a ledger that all of them reach"):
        bench.run(books(2), executor="daft")
    assert not bench.prompts


@pytest.fixture
def program(tmp_path):
    """The command line before a simulator."""
    with serve_in_thread(Simulator(answer, key=KEY)) as server:
        yield Program(tmp_path, server.url)


def command(folder, count):
    rows = "".join(f"{row['id']},{row['title']}\n" for row in books(count))
    (folder / "in.csv").write_text(f"id,title\n{rows}", encoding="utf-8")
    base = ("bulk", "run", "in.csv", "-p", PROMPT, "-m", MODEL, "--executor", "daft")
    return (*base, "-o", "out.csv", "--option", "max_tokens", "20")


def test_the_command(program):
    """The exit code is 3 when the budget is spent, and 0 when all rows are done."""
    job = command(program.home, 60)
    found = program.run(*job, "--max-usd", "0.002")
    assert found.returncode == 3, found.stderr
    assert "0 failed" in found.stderr
    assert "budget" in found.stderr.lower()

    found = program.run(*job)
    assert found.returncode == 0, found.stderr
    assert len((program.home / "out.csv").read_text(encoding="utf-8").splitlines()) == 61


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c(tmp_path, times):
    """Once: calls under way are answered, and recorded. Twice: it ends. Both can go on."""
    app = Simulator(lambda r: answer(r) + latency(first=0.5), key=KEY, keep=None)
    with serve_in_thread(app) as server:
        program = Program(tmp_path, server.url)
        job = (*command(tmp_path, 40), "--concurrency", "4")
        with program.start(*job) as process:
            wait_for(lambda: len(app.script.received) >= 4, process)
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.05)  # two signals at once would be one
            process.communicate()
        assert process.returncode in ((3,) if times == 1 else (3, 130))
        assert len(app.script.received) < 40
        assert program.run(*job).returncode == 0
    twice = len(app.script.received) - 40
    assert twice == 0 if times == 1 else twice <= 4
