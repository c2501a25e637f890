"""Bulk jobs through the batch APIs of providers."""

import asyncio
import json

import pytest

from interlingua import bulk
from interlingua.bulk.answers import Answer
from interlingua.bulk.batches import BatchExecutor
from interlingua.bulk.ledger.sqlite import SQLiteLedger
from interlingua.bulk.reading import open_source
from interlingua.bulk.worker import Worker, WorkerConfig
from interlingua.simulator import Simulator, error, serve_in_thread, text
from support.batches import client_for
from support.bulk_jobs import PROMPT, books

ROWS = 60


def reply(request):
    """Most are answered; one is refused, and one expires."""
    asked = request.messages[-1].text
    if "Book 7?" in asked:
        return error(400, "No such thing.")
    if "Book 8?" in asked:
        return error(408)
    return text(f"About: {asked}")


def sent_to(app, path):
    """How many requests were sent to an address."""
    found = [(each.method, each.call.path) for each in app.script.received]
    return sum(method == "POST" and place.endswith(path) for method, place in found)


class Runs:
    """Runs of a batch executor, each as a process of its own would have it."""

    def __init__(self, folder, url, provider="openai", model="gpt-5.2"):
        self._folder = folder
        self._url = url
        self._provider = provider
        self._job = bulk.Job(model=f"{provider}:{model}", prompt=PROMPT)
        self.finished = {}

    async def run(self, rows, *, stop_after=None, **options):
        """Run once; with `stop_after`, stop when so many batches are at the provider."""
        ledger = SQLiteLedger(self._folder / "ledger.sqlite")
        config = WorkerConfig(job=self._job, ledger="", attempts=2)
        async with client_for(self._url, self._provider) as client:
            worker = Worker(config, client=client, ledger=ledger)
            executor = BatchExecutor(worker, self._finish, poll_interval=0.01, **options)

            async def chunks():
                yield list(open_source(rows, spool=self._folder / "spool"))

            async def stop():
                while stop_after is None or len(await ledger.batches()) < stop_after:  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
                executor.stop("test")

            await worker.ready()
            stopping = asyncio.create_task(stop())
            await executor.run(chunks())
            stopping.cancel()
            await asyncio.gather(stopping, return_exceptions=True)
            left = await ledger.batches()
            await worker.close()
        return left

    def _finish(self, row, _, answer: Answer):
        self.finished[row.key] = answer


@pytest.fixture
def make_runs(tmp_path):
    """Makes runs before a simulator; the function has its app."""
    with_server = []

    def make(**settings):
        app = Simulator(reply, keep=None, **settings)
        server = serve_in_thread(app)
        with_server.append(server)
        return Runs(tmp_path, server.__enter__().url), app

    yield make
    for server in with_server:
        server.__exit__(None, None, None)


def test_rows_are_grouped_submitted_and_joined(make_runs):
    """Answers, a refused request and an expired one go to their rows; equal rows share one."""
    runs, _ = make_runs()
    left = asyncio.run(runs.run([*books(ROWS), {"title": "Book 3"}], group=25))

    assert left == {}
    assert len(runs.finished) == ROWS + 1
    texts = {key: answer.text for key, answer in runs.finished.items()}
    assert texts["row:4"] == texts["row:61"] == "About: Genre of Book 3?"
    failed = {key: a.error_type for key, a in runs.finished.items() if a.status == "failed"}
    assert failed == {"row:8": "InvalidRequestError", "row:9": "ProviderTimeoutError"}


def test_leftovers_are_sent_live(make_runs):
    """What expired is sent as a call if that was asked for; what was refused is not."""
    runs, app = make_runs()
    asyncio.run(runs.run(books(10), leftovers=True))

    assert runs.finished["row:8"].status == "failed"
    # The items of the batch, and one call with its retries.
    assert 10 < sent_to(app, "/responses") <= 13
    asked = [each.request.messages[-1].text for each in app.script.received[12:] if each.request]
    assert set(asked[-1:]) == {"Genre of Book 8?"}


def test_another_process_reads_the_batch(make_runs):
    """A run that stopped leaves its batch at the provider; the next one reads it, and pays once."""
    runs, app = make_runs(batch_polls=50)
    left = asyncio.run(runs.run(books(20), stop_after=1))
    assert len(left) == 1
    assert runs.finished == {}

    left = asyncio.run(runs.run(books(20)))
    assert left == {}
    assert sent_to(app, "/batches") == 2  # the second has what was refused, and what expired
    failed = {key for key, answer in runs.finished.items() if answer.status == "failed"}
    assert failed == {"row:8", "row:9"}


def test_a_job_by_batches(tmp_path):
    """`bulk.run` with `executor="batch"` writes the same output as one with calls."""
    with serve_in_thread(Simulator(reply, batch_polls=1)) as server:

        async def work():
            async with client_for(server.url, "openai") as client:
                return await bulk.run(
                    books(12), tmp_path / "out.jsonl", model="openai:gpt-5.2", prompt=PROMPT,
                    client=client, executor="batch", attempts=1,
                )  # fmt: skip

        report = asyncio.run(work())
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (report.done, report.failed) == (10, 2)
    assert rows[3]["answer"] == "About: Genre of Book 3?"
    assert rows[3]["cost"] > 0
