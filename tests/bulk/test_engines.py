"""Engines may repeat, double and lose rows: the output has each once, and nothing is paid twice."""

import asyncio
import json
import math
import pickle
import sys

import msgspec
import pytest

from interlingua import Client, bulk
from interlingua.bulk.engines import executor as executors
from interlingua.bulk.engines.worker import EngineWorker, Work, decode_result, encode_row
from interlingua.errors import ConfigurationError
from interlingua.simulator import error, scripted
from support.bulk_jobs import MODEL, PROMPT, answer, books
from support.engines import PlainEngine
from support.patience import PATIENCE

KEY = "sk-planted-key-of-a-test"


@pytest.fixture
def engine(monkeypatch):
    """Makes the engine of the next jobs."""

    def use(*given, **settings):
        made = PlainEngine(*given, **settings)
        monkeypatch.setattr(executors, "find_engine", lambda *_: made)
        return made

    return use


def comparable(rows):
    """Without times, and without costs: the simulator caches prompts."""
    return [
        {name: value for name, value in row.items() if name not in ("seconds", "cost")}
        for row in rows
    ]


def test_the_output_is_that_of_live_calls(make_bench, engine):
    """The same rows, columns and order; with equal rows, bad rows and rows that are refused."""
    bench = make_bench(
        lambda r: error(400, "no") if "Book 2?" in r.messages[-1].text else answer(r)
    )
    rows = bench.write([*books(40), {"id": "x", "title": "Book 1"}, {"id": "y", "title": None}])
    live = bench.run(rows, attempts=1, id_column="id")
    expected, prompts = comparable(bench.written()), sorted(bench.prompts)
    place = bench.folder / "engine.jsonl"
    made = engine()
    report = bench.run(rows, attempts=1, id_column="id", executor="ray", output=place)

    assert comparable(bench.written(place)) == expected
    assert sorted(bench.prompts) == sorted(prompts * 2)
    assert (report.done, report.failed) == (live.done, live.failed) == (40, 2)
    assert made.is_open is False


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda pairs: [*pairs, *pairs], id="doubled"),
        pytest.param(lambda pairs: pairs[:7], id="lost after they were answered"),
        pytest.param(lambda pairs: pairs[::-1], id="another order"),
        pytest.param(lambda _: [], id="all lost after they were answered"),
    ],
)
@pytest.mark.parametrize("parts", [False, 5])
def test_what_an_engine_does_to_rows(bench, engine, damage, parts):
    """Every input row has exactly one output row, and was sent once."""
    engine(damage)
    seen = []
    report = bench.run(
        bench.write(books(20)), id_column="id", executor="ray", parts=parts, on_progress=seen.append
    )

    files = sorted(bench.folder.glob("out*.jsonl"))
    keys = [row["id"] for file in files for row in bench.written(file)]
    assert sorted(keys) == sorted(row["id"] for row in books(20))
    assert len(files) == (4 if parts else 1)
    assert (report.done, report.stopped, len(bench.prompts)) == (20, None, 20)
    assert seen[-1].done == len(seen) == 20


def test_rows_that_no_worker_saw(bench, engine):
    """They stay pending, the report says how many, and the same command goes on."""
    rows = bench.write(books(20))
    engine(leave_out=("b3", "b4"))
    report = bench.run(rows, id_column="id", executor="ray")
    assert "not given back 2 rows" in report.stopped
    assert (report.done, report.pending, report.is_written) == (18, 2, False)

    engine()
    assert bench.run(rows, id_column="id", executor="ray").done == 20
    assert len(bench.prompts) == 20


def test_an_engine_that_fails(bench, engine):
    """What was answered is recorded; the job stops, and says why."""

    def fail(pairs):
        yield from pairs[:5]
        raise RuntimeError("the cluster is gone")

    rows = bench.write(books(20))
    engine(fail)
    report = bench.run(rows, executor="ray")
    assert "Plain has ended with RuntimeError: the cluster is gone" in report.stopped
    assert bench.run(rows).done == 20
    assert len(bench.prompts) == 20


def test_rows_that_an_engine_gives_up_are_not_sent(tmp_path):
    """Only what is under way is answered, and it is recorded before the worker has ended."""
    begun, released = [], asyncio.Event()

    class Gate:
        async def complete(self, request, call_next):
            begun.append(request)
            await released.wait()
            return await call_next(request)

    job = bulk.Job(model=MODEL, prompt=PROMPT)
    config = bulk.WorkerConfig(job=job, ledger=str(tmp_path / "ledger.sqlite"), concurrency=2)
    rows = [(row["id"], encode_row(row)) for row in books(20)]

    async def work():
        worker = EngineWorker(Work(config, scripted(answer).with_middleware(Gate())))
        calls = asyncio.gather(*(worker.one(*each) for each in rows))
        while len(begun) < 2:  # noqa: ASYNC110 -- counted by the client
            await asyncio.sleep(0)
        calls.cancel()
        released.set()
        await asyncio.gather(calls, return_exceptions=True)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        again = EngineWorker(Work(config, scripted(error(400, "no"))))
        return [
            decode_result(each) for each in await asyncio.gather(*(again.one(*row) for row in rows))
        ]

    results = asyncio.run(work())
    assert len(begun) == 2
    assert [each.answer.status for each in results].count("done") == 2


def test_a_worker_that_made_another_request(bench, engine):
    """A file that a column names differs on another machine: the row is not called done."""

    def other(pairs):
        key, result = pairs[0]
        changed = msgspec.structs.replace(decode_result(result), request=b"another")
        return [(key, msgspec.msgpack.encode(changed)), *pairs[1:]]

    engine(other)
    report = bench.run(books(5), executor="ray")
    assert "has made another request of the row row:1" in report.stopped


def test_a_refused_key_stops_all(make_bench, engine):
    """A worker sends no more than what is under way; its rows stay pending."""
    bench = make_bench(lambda _: error(401, "no"))
    engine()
    report = bench.run(books(200), executor="ray", concurrency=4)

    assert (report.done, report.failed, report.pending) == (0, 0, 200)
    assert report.stopped
    assert len(bench.prompts) <= 4


def test_a_spent_budget_leaves_rows_pending(bench, engine):
    """The job stops at its budget; the next run, with more money, pays only the rest."""
    engine()
    rows = bench.write(books(300))
    given = {"max_tokens": 20, "concurrency": 4, "executor": "ray"}
    report = bench.run(rows, max_usd=0.01, **given)
    assert "budget" in report.stopped.lower()
    assert report.cost <= 0.01
    assert 0 < report.done < 300
    assert report.done + report.pending == 300

    assert bench.run(rows, max_usd=5, **given).done == 300
    assert len(bench.prompts) == 300


def test_stopping_drains(bench, engine):
    """Calls under way are answered and recorded; no further row is sent."""
    engine()
    begun = []

    class Gate:
        async def complete(self, request, call_next):
            begun.append(request)
            if len(begun) == 4:
                loop.call_soon_threadsafe(job.stop, "interrupted")
            if len(begun) >= 4:
                (run,) = executors.LOCAL.values()
                await asyncio.to_thread(run.halted.wait, PATIENCE)
            return await call_next(request)

    client = bench.client.with_middleware(Gate())
    loop = asyncio.new_event_loop()
    job = bulk.loop.BulkRun(
        bench.write(books(50)), bench.output, model=MODEL, prompt=PROMPT, client=client,
        executor="ray", concurrency=2,
    )  # fmt: skip
    report = loop.run_until_complete(job.run())
    loop.close()

    assert report.stopped == "interrupted"
    assert report.done == len(begun)
    assert 4 <= len(begun) <= 5
    assert executors.LOCAL == {}


HOSTILE = {
    "none": None,
    "nan": math.nan,
    "bytes": b"\xff\x00",
    "nested": {"a": [1, {"b": None}]},
    "deep": [[[[[[]]]]]],
    "huge": "x" * 5_000_000,
    "surrogate": "\ud800",
    "object": object,
    "number": 1e308,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_worker_never_raises(tmp_path, name):
    """Whatever is in a row, it fails or is answered, as with live calls."""
    job = bulk.Job(model=MODEL, prompt=PROMPT)
    config = bulk.WorkerConfig(job=job, ledger=str(tmp_path / "ledger.sqlite"))
    worker = EngineWorker(Work(config, scripted(answer)))
    row = encode_row({"title": HOSTILE[name]})
    result = decode_result(asyncio.run(worker.one("k", row)))

    fails = name in ("none", "nan", "surrogate")
    assert result.answer.status == ("failed" if fails else "done")
    assert result.answer.key == "k"
    assert (result.request is None) == fails


def test_a_defect_leaves_rows_pending(tmp_path, monkeypatch):
    """What should never happen ends the worker, and no row waits for ever."""

    async def fail(*_):
        raise RuntimeError("a defect")

    job = bulk.Job(model=MODEL, prompt=PROMPT)
    config = bulk.WorkerConfig(job=job, ledger=str(tmp_path / "ledger.sqlite"), concurrency=4)
    monkeypatch.setattr(bulk.Worker, "answer", fail)
    worker = EngineWorker(Work(config, scripted(answer)))

    async def work():
        rows = [(row["id"], encode_row(row)) for row in books(9)]
        return await asyncio.gather(*(worker.one(*row) for row in rows))

    answers = [decode_result(each).answer for each in asyncio.run(work())]
    assert {each.status for each in answers} == {"pending"}
    assert "a defect" in answers[-1].error


def test_a_row_that_cannot_be_read_stays_pending(tmp_path):
    """A class that is not installed where the worker is says nothing about the row."""
    job = bulk.Job(model=MODEL, prompt=PROMPT)
    config = bulk.WorkerConfig(job=job, ledger=str(tmp_path / "ledger.sqlite"))
    worker = EngineWorker(Work(config, scripted(answer)))
    missing = pickle.dumps(Work).replace(b"Work", b"Gone")
    result = decode_result(asyncio.run(worker.one("k", missing)))

    assert result.answer.status == "pending"
    assert "Gone" in result.answer.error


def test_work_is_carried_without_keys(tmp_path, monkeypatch):
    """Workers read them from their own environment."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    job = bulk.Job(model=MODEL, prompt=PROMPT)
    config = bulk.WorkerConfig(job=job, ledger=str(tmp_path / "ledger.sqlite"))
    carried = pickle.dumps(Work(config, Client.from_env()))

    assert KEY.encode() not in carried
    assert KEY not in repr(pickle.loads(carried))  # noqa: S301 -- our own
    assert pickle.loads(carried).config == config  # noqa: S301


def test_another_model_where_the_worker_is(tmp_path):
    """A worker whose settings name another model sends nothing."""
    job = bulk.Job(model=MODEL, prompt=PROMPT)
    config = bulk.WorkerConfig(
        job=job, ledger=str(tmp_path / "ledger.sqlite"), digest=b"of another model"
    )
    client = scripted(answer)
    worker = EngineWorker(Work(config, client))
    result = decode_result(asyncio.run(worker.one("k", encode_row({"title": "Emma"}))))

    assert result.answer.status == "pending"
    assert "is another model here" in result.answer.error
    assert not client.requests


@pytest.mark.parametrize("name", ["ray", "daft"])
def test_an_engine_that_is_not_installed(bench, monkeypatch, name):
    """The error names the extra."""
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, f"{name}.data", None)
    with pytest.raises(ConfigurationError, match=rf"pip install 'interlingua\[{name}\]'"):
        bench.run(books(2), executor=name)


def test_executors_have_names(bench):
    """Another name is an error before anything is read."""
    with pytest.raises(ConfigurationError, match="'ray://HOST:PORT'"):
        bench.run(books(2), executor="spark")


def test_vectors_have_no_engines(bench):
    """It would be left out in silence."""
    with pytest.raises(ConfigurationError, match="has no engines"):
        asyncio.run(
            bulk.embed(books(2), bench.output, model=MODEL, column="title", executor="daft")
        )


def test_a_client_that_cannot_be_carried(bench, engine):
    """The error says what to do."""
    made = engine()
    made.is_one_process = False
    with pytest.raises(ConfigurationError, match="cannot be pickled"):
        bench.run(books(2), executor="ray")
    assert json.dumps(made.is_open) == "null"
