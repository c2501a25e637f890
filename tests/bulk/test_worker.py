"""The worker: it pickles as its configuration, and never raises for a row."""

import asyncio
import pickle
import time

import pytest

from interlingua.bulk import Answer, Job, Worker, WorkerConfig
from interlingua.bulk.ledger.sqlite import SQLiteLedger
from interlingua.bulk.reading import Row
from interlingua.simulator import Simulator, error, scripted, serve_in_thread, text
from support.bulk_jobs import MODEL, PROMPT, answer, books
from support.ledgers import LEDGERS, new_ledger

KEY = "sk-planted-key-of-a-test"


def config(tmp_path, **settings):
    job = Job(model=MODEL, prompt=PROMPT)
    return WorkerConfig(job=job, ledger=str(tmp_path / "ledger.sqlite"), **settings)


def run(worker, rows):
    async def work():
        try:
            return await worker(rows)
        finally:
            await worker.close()

    return asyncio.run(work())


def keyed(count):
    return [{"row_key": row["id"], **row} for row in books(count)]


def test_a_worker_pickles_without_a_key(tmp_path, monkeypatch):
    """It is carried as plain values; where it runs, it takes the key from the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve_in_thread(Simulator(answer, key=KEY)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        worker = Worker(config(tmp_path))
        first = run(worker, keyed(2))
        carried = pickle.dumps(worker)
        assert KEY.encode() not in carried
        second = run(pickle.loads(carried), keyed(3))  # noqa: S301 -- our own

    assert [row["status"] for row in second] == ["done"] * 3
    assert second[:2] == first
    assert second[2]["answer"] == "About: Genre of Book 2?"


def test_a_worker_never_raises(tmp_path):
    """Whatever is wrong with a row or a call, the result says it."""
    client = scripted(lambda r: error(400, "no") if "Book 0" in r.messages[-1].text else answer(r))
    rows = [*keyed(2), {"row_key": "x"}, {}, {"row_key": "n", "title": None}]
    results = run(Worker(config(tmp_path), client=client), rows)

    assert [row["status"] for row in results] == ["failed", "done", "failed", "failed", "failed"]
    assert [row["row_key"] for row in results] == ["b0", "b1", "x", "", "n"]


def test_a_worker_without_a_key_leaves_rows_pending(tmp_path, monkeypatch):
    """A missing key is no row's fault."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    results = run(Worker(config(tmp_path)), keyed(2))

    assert [row["status"] for row in results] == ["pending", "pending"]
    assert "OPENAI_API_KEY" in results[0]["error"]


def test_a_worker_has_its_own_semaphore(tmp_path):
    """An engine may give it any number of rows: only so many are under way at once."""
    active, most = 0, 0

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

    client = scripted(answer).with_middleware(Counting())
    results = run(Worker(config(tmp_path, concurrency=3), client=client), keyed(40))

    assert {row["status"] for row in results} == {"done"}
    assert most == 3


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_no_failure(tmp_path, status):
    """The row stays pending, and is free for others."""
    client = scripted(lambda _: error(status, "no"))
    (row,) = run(Worker(config(tmp_path), client=client), keyed(1))
    assert row["status"] == "pending"
    (row,) = run(Worker(config(tmp_path), client=scripted(text("Novel."))), keyed(1))
    assert (row["status"], row["attempts"]) == ("done", 1)


@pytest.mark.parametrize("lease", [60, 0.02], ids=["in time", "stalled"])
def test_a_claim_ahead_is_trusted_for_a_part_of_a_lease(tmp_path, lease):
    """A worker that was stalled asks again: another one may have taken what it had claimed."""
    client = scripted(answer)
    row = Row(0, "b0", books(1)[0])

    async def work():
        worker = Worker(config(tmp_path, lease=lease), client=client)
        (turn,) = await worker.claim([row])
        assert turn.entry is None
        time.sleep(0.02)  # noqa: ASYNC251 -- the event loop is stalled, too
        others = SQLiteLedger(tmp_path / "ledger.sqlite")
        await others.put(turn.ask.hash, Answer(status="done", key="b0", text="of another"))
        await others.close()
        found = await worker.answer(row.key, row.data, turn.ask)
        await worker.close()
        return found[1]

    answered = asyncio.run(work())
    assert answered.text == ("of another" if lease < 1 else "About: Genre of Book 0?")
    assert len(client.requests) == (0 if lease < 1 else 1)


def test_equal_rows_that_are_claimed_ahead_are_sent_once(tmp_path):
    """The claim counts for one call; who comes after it finds the answer."""
    client = scripted(answer)
    rows = [Row(number, f"r{number}", {"title": "Emma"}) for number in range(3)]

    async def work():
        worker = Worker(config(tmp_path), client=client)
        turns = await worker.claim(rows)
        answers = [await worker.answer(turn.row.key, turn.row.data, turn.ask) for turn in turns]
        await worker.close()
        return answers

    assert {found.key for _, found in asyncio.run(work())} == {"r0"}
    assert len(client.requests) == 1


@pytest.mark.parametrize("kind", LEDGERS)
def test_workers_share_a_budget(tmp_path, kind):
    """What all workers of a ledger pay together stays within the limit."""
    clients = [scripted(answer), scripted(answer)]
    with new_ledger(kind, tmp_path) as ledger:
        job = Job(model=MODEL, prompt=PROMPT, options={"max_tokens": 20})
        given = WorkerConfig(job=job, ledger=ledger, volatile=True, max_usd=0.004, concurrency=4)
        rows = keyed(60)

        async def work():
            workers = [Worker(given, client=client) for client in clients]
            results = await asyncio.gather(workers[0](rows[:30]), workers[1](rows[30:]))
            for worker in workers:
                await worker.close()
            return [row for part in results for row in part]

        results = asyncio.run(work())

    paid = sum(row["cost"] for row in results if row["status"] == "done")
    statuses = {row["status"] for row in results}
    assert statuses == {"done", "pending"}
    assert all(client.requests for client in clients)
    assert 0.002 < paid <= 0.004
