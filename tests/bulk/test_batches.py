"""Bulk jobs through the batch APIs of providers."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from interlingua import batch, bulk
from interlingua.bulk.answers import Answer
from interlingua.bulk.batches import BatchExecutor
from interlingua.bulk.ledger.sqlite import SQLiteLedger
from interlingua.bulk.loop import BulkRun
from interlingua.bulk.reading import open_source
from interlingua.bulk.worker import Worker, WorkerConfig
from interlingua.errors import ConfigurationError
from interlingua.simulator import Simulator, error, serve_in_thread, text
from support.batches import BATCH, FILE, MODELS, client_for, faulty
from support.batches import reply as canned
from support.bulk_jobs import PROMPT, books

ROWS = 60
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


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

    def __init__(self, folder, url, provider="openai", model="gpt-5.2", **job):
        self._folder = folder
        self._connect = lambda: client_for(url, provider)
        self._job = bulk.Job(model=f"{provider}:{model}", prompt=PROMPT, **job)
        self.finished = {}
        self.stopped = None

    async def run(self, rows, *, stop_after=None, max_usd=None, **options):
        """Run once; with `stop_after`, stop when so many batches are at the provider."""
        path = self._folder / "ledger.sqlite"
        ledger = SQLiteLedger(path)
        config = WorkerConfig(job=self._job, ledger=str(path), attempts=2, max_usd=max_usd)
        async with self._connect() as client:
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
            self.stopped = executor.stopped
            await worker.close()
        return left

    async def entries(self, rows):
        """What the ledger has for rows."""
        async with self._connect() as client:
            digest = self._job.digest(client)
        asks = [self._job.ask(row, "", digest) for row in rows]
        ledger = SQLiteLedger(self._folder / "ledger.sqlite")
        try:
            return await ledger.look([ask.hash for ask in asks])
        finally:
            await ledger.close()

    async def submitted(self, provider):
        """How many requests each batch of the provider has."""
        async with self._connect() as client:
            return [each.counts.total for each in await batch.list(provider, client=client)]

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


class Script:
    """The same executor in a process of its own, which may die at a moment that is given."""

    SOURCE = """
import asyncio, os, signal, sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from bulk.test_batches import Runs
from interlingua.bulk.ledger.sqlite import SQLiteLedger
from support.bulk_jobs import books

_, _, folder, url, provider, model, moment = sys.argv
note = SQLiteLedger.note_batch

async def dying(self, reference, requests):
    is_intent = reference.startswith("submitting ")
    if moment == ("after" if not is_intent and requests else "before" if is_intent else ""):
        if moment == "before":
            await note(self, reference, requests)
        os.kill(os.getpid(), signal.SIGKILL)
    await note(self, reference, requests)

SQLiteLedger.note_batch = dying
asyncio.run(Runs(Path(folder), url, provider, model).run(books(12)))
"""


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
@pytest.mark.parametrize("provider", ["openai", "mistral", "gemini", "xai"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_death_around_the_submission(tmp_path, provider, moment):
    """A batch that was submitted and not noted is found by its name, and no row is sent twice."""
    app = Simulator(lambda request: text(request.messages[-1].text), keep=None)
    with serve_in_thread(app) as server:
        place = (str(tmp_path), server.url, provider, MODELS[provider])
        tests = str(Path(__file__).parents[1])
        died = subprocess.run(
            [sys.executable, "-c", Script.SOURCE, tests, *place, moment], check=False
        )
        runs = Runs(tmp_path, *place[1:])
        left = asyncio.run(runs.run(books(12)))
        asyncio.run(runs.run(books(12)))
        submitted = asyncio.run(runs.submitted(provider))

    assert died.returncode == -signal.SIGKILL
    assert left == {}
    assert submitted == [12]
    asked = [each.request.messages[-1].text for each in app.script.received if each.request]
    assert sorted(asked) == sorted(f"Genre of Book {number}?" for number in range(12))


def test_a_death_where_batches_have_no_names(tmp_path):
    """At a provider without names for batches, the rows of one batch may be sent twice."""
    app = Simulator(lambda request: text(request.messages[-1].text), keep=None)
    with serve_in_thread(app) as server:
        place = (str(tmp_path), server.url, "anthropic", MODELS["anthropic"])
        tests = str(Path(__file__).parents[1])
        command = [sys.executable, "-c", Script.SOURCE, tests, *place, "after"]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        runs = Runs(tmp_path, *place[1:])
        assert asyncio.run(runs.run(books(12))) == {}

    assert sent_to(app, "/batches") == 2
    assert len(runs.finished) == 12


def test_many_rows_with_failures_expiry_and_a_restart(make_runs):
    """Each row has its answer or its own failure, and what was answered is never sent again."""
    runs, app = make_runs(batch_polls=20)
    rows = books(2000)
    asyncio.run(runs.run(rows, group=300, stop_after=3))
    assert 3 <= sent_to(app, "/batches") <= 4
    assert asyncio.run(runs.run(rows, group=300)) == {}
    assert sum(asyncio.run(runs.submitted("openai"))) <= 2002  # two have failed in the first run

    failed = {key: a.error_type for key, a in runs.finished.items() if a.status == "failed"}
    assert failed == {"row:8": "InvalidRequestError", "row:9": "ProviderTimeoutError"}
    entries = asyncio.run(runs.entries(rows))
    assert sum(entry.state == "done" for entry in entries) == 1998
    texts = [entry.answer.text for entry in entries if entry.state == "done"]
    assert texts[10] == "About: Genre of Book 12?"
    asked = [each.request.messages[-1].text for each in app.script.received if each.request]
    counts = Counter(asked)
    assert len(counts) == 2000
    again = {text for text, count in counts.items() if count > 1}
    assert again <= {"Genre of Book 7?", "Genre of Book 8?"}


def test_equal_rows_in_several_groups_are_sent_once(make_runs):
    """A request that is in an open batch is in no other; all of its rows get the answer."""
    runs, app = make_runs(batch_polls=3)
    rows = [{"title": f"Book {number % 3}"} for number in range(12)]
    asyncio.run(runs.run(rows, group=2))

    asked = [each.request.messages[-1].text for each in app.script.received if each.request]
    assert sorted(asked) == [f"Genre of Book {number}?" for number in range(3)]
    assert len(runs.finished) == 12


def test_large_rows_make_small_batches(make_runs):
    """A batch is submitted before it is too large for a provider."""
    runs, app = make_runs()
    rows = [{"title": f"{number} " + "x" * 1000} for number in range(10)]
    asyncio.run(runs.run(rows, group_bytes=3000))

    assert sent_to(app, "/batches") == 4
    assert len(runs.finished) == 10


def test_a_request_that_cannot_be_encoded_fails_alone(tmp_path):
    """The other rows of its group are answered."""
    (tmp_path / "page.txt").write_bytes(b"\x00\xff no image")
    rows = [*books(5), {"title": "Book 5", "photo": str(tmp_path / "page.txt")}]
    rows = [{"photo": PIXEL, **row} for row in rows]
    with serve_in_thread(Simulator(reply, keep=None)) as server:
        runs = Runs(tmp_path, server.url, images=("photo",))
        left = asyncio.run(runs.run(rows))

    assert left == {}
    statuses = [runs.finished[f"row:{number}"].status for number in range(1, 7)]
    assert statuses == ["done"] * 5 + ["failed"]


def test_a_batch_that_the_provider_refuses(tmp_path):
    """Its rows stay pending, nothing is left in the ledger, and the run says why."""
    fault = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}
    failed = BATCH | {"status": "failed", "errors": {"data": [fault]}}
    client, _ = faulty("openai", canned(FILE), canned(BATCH), canned(failed))
    runs = Runs(tmp_path, "")
    runs._connect = lambda: client
    left = asyncio.run(runs.run(books(3)))

    assert left == {}
    assert runs.finished == {}
    assert "Enqueued token limit reached" in runs.stopped
    states = [entry.state for entry in asyncio.run(runs.entries(books(3)))]
    assert states == ["released"] * 3


def test_calls_do_not_pay_for_rows_in_a_batch(tmp_path):
    """A job whose rows are in a batch that was not read is not sent by calls."""
    app = Simulator(reply, batch_polls=1000, keep=None)
    with serve_in_thread(app) as server:

        async def work(**options):
            async with client_for(server.url, "openai") as client:
                job = BulkRun(
                    books(3), tmp_path / "out.jsonl", model="openai:gpt-5.2", prompt=PROMPT,
                    client=client, **options,
                )  # fmt: skip
                running = asyncio.create_task(job.run())
                while not sent_to(app, "/batches"):  # noqa: ASYNC110
                    await asyncio.sleep(0.005)
                job.stop("test")
                return await running

        assert asyncio.run(work(executor="batch")).pending == 3
        sent = len(app.script.received)
        with pytest.raises(ConfigurationError, match="in a batch that was not read"):
            asyncio.run(work())
    assert len(app.script.received) == sent


def test_objects_in_batches(tmp_path):
    """An answer that does not fit is a failed row with its text, the reason and its cost."""
    app = Simulator(
        lambda r: text('{"genre": 7}' if "Book 1" in r.messages[-1].text else '{"genre": "novel"}'),
        keep=None,
    )
    schema = {"type": "object", "properties": {"genre": {"type": "string"}}, "required": ["genre"]}
    with serve_in_thread(app) as server:
        runs = Runs(tmp_path, server.url, schema=schema)
        asyncio.run(runs.run(books(3)))

    objects = [runs.finished[f"row:{number}"].object for number in (1, 2, 3)]
    assert objects == [{"genre": "novel"}, None, {"genre": "novel"}]
    bad = runs.finished["row:2"]
    assert (bad.status, bad.text) == ("failed", '{"genre": 7}')
    assert "genre" in bad.error
    assert bad.cost > 0


def test_a_budget_and_batches(tmp_path):
    """What the budget allows is submitted, its answers are waited for, and the rest is pending."""
    app = Simulator(reply, batch_polls=1, keep=None)
    output = tmp_path / "out.jsonl"
    with serve_in_thread(app) as server:

        async def work(dollars):
            async with client_for(server.url, "openai") as client:
                return await bulk.run(
                    books(40), output, model="openai:gpt-5.2", prompt=PROMPT, client=client,
                    executor="batch", max_tokens=100, max_usd=dollars,
                )  # fmt: skip

        first = asyncio.run(work(0.01))
        second = asyncio.run(work(10))

    assert "budget" in first.stopped.lower()
    assert 0 < first.done < 38
    assert first.done + first.failed + first.pending == 40
    assert first.pending > 0
    assert first.cost <= 0.01
    assert (second.done, second.pending) == (38, 0)
    asked = [each.request.messages[-1].text for each in app.script.received if each.request]
    assert len(set(asked)) == 40
    assert len(asked) <= 42


def test_batches_of_an_earlier_run_count_in_the_budget(tmp_path):
    """What a run has left at the provider is spent before more is submitted."""
    (tmp_path / "other").mkdir()
    options = {"options": {"max_tokens": 20}}
    with serve_in_thread(Simulator(reply, batch_polls=10, keep=None)) as server:
        other = Runs(tmp_path / "other", server.url, **options)
        asyncio.run(other.run(books(7)))
        spent = sum(answer.cost for answer in other.finished.values())
        runs = Runs(tmp_path, server.url, **options)
        asyncio.run(runs.run(books(7), stop_after=1))
        asyncio.run(runs.run(books(30), max_usd=spent * 1.01))
        submitted = asyncio.run(runs.submitted("openai"))

    assert submitted == [7, 7]
    assert "budget" in runs.stopped.lower()


def test_a_provider_without_batches(tmp_path):
    """The run stops with the names of those that have them; no row has failed."""
    runs = Runs(tmp_path, "http://127.0.0.1:9", "cohere", "command-a")
    left = asyncio.run(runs.run(books(3)))

    assert left == {}
    assert runs.finished == {}
    assert "anthropic" in runs.stopped


@pytest.mark.parametrize(
    ("failure", "notes"),
    [(error(401, "wrong key"), 0), (error(500, "oops"), 1)],
    ids=["refused", "unknown"],
)
def test_a_submission_that_fails(tmp_path, failure, notes):
    """Rows stay pending; only if the provider may have the batch, the next run looks for it."""
    with serve_in_thread(Simulator(failure, failure, failure, failure, keep=None)) as server:
        runs = Runs(tmp_path, server.url, "anthropic", MODELS["anthropic"])
        left = asyncio.run(runs.run(books(3)))

    assert len(left) == notes
    assert runs.finished == {}
    assert runs.stopped is not None
