"""Bulk jobs on one machine, from the table to the output."""

import asyncio
import json

import pytest

from interlingua import bulk
from interlingua.bulk import Answer, Job
from interlingua.bulk.ledger.sqlite import SQLiteLedger
from interlingua.errors import ConfigurationError
from interlingua.simulator import error, text
from support.bulk_jobs import MODEL, PROMPT, answer, books
from support.ledgers import LEDGERS, new_ledger


def test_each_row_has_its_columns_and_its_answer(bench):
    """The output has one row for each of the input, in its order, with the input's columns."""
    report = bench.run(bench.write(books(70)))

    rows = bench.written()
    assert [row["id"] for row in rows] == [f"b{number}" for number in range(70)]
    assert rows[3]["answer"] == "About: Genre of Book 3?"
    assert rows[3] | {"title": "Book 3", "status": "done", "row_key": "in.jsonl:4"} == rows[3]
    assert (report.rows, report.done, report.failed, report.is_written) == (70, 70, 0, True)
    assert report.cost == pytest.approx(sum(row["cost"] for row in rows))


def test_the_same_command_pays_nothing_again(bench):
    """A job that has ended is not sent again; its output is the same."""
    path = bench.write(books(10))
    bench.run(path)
    before = bench.output.read_bytes()
    report = bench.run(path)

    assert len(bench.prompts) == 10
    assert report.done == 10
    assert bench.output.read_bytes() == before


def test_more_rows_are_sent_alone(bench):
    """Rows that were added to the input are the only ones that are sent."""
    bench.run(bench.write(books(5)))
    report = bench.run(bench.write(books(8)))

    assert len(bench.prompts) == 8
    assert report.rows == 8


def test_equal_requests_are_paid_for_once(bench):
    """Rows with the same request share one answer, also at the same time; one row has its cost."""
    report = bench.run([{"title": "Emma"}] * 40 + [{"title": "Ulysses"}])

    assert sorted(bench.prompts) == ["Genre of Emma?", "Genre of Ulysses?"]
    assert (report.done, report.reused) == (41, 39)
    sources = [row["cost_source"] for row in bench.written()]
    assert sorted(sources) == ["call", "call", *["ledger"] * 39]


def test_independent_answers(bench):
    """Without dedupe equal rows are sent each; with samples each row has several answers."""
    bench.run([{"title": "Emma"}] * 3, dedupe=False)
    assert len(bench.prompts) == 3

    bench.run([{"title": "Emma"}], samples=4, output=bench.folder / "samples.jsonl")
    assert len(bench.prompts) == 7
    rows = bench.written(bench.folder / "samples.jsonl")
    assert [row["row_key"] for row in rows] == ["row:1#1", "row:1#2", "row:1#3", "row:1#4"]

    bench.run([{"title": "Emma"}], samples=4, output=bench.folder / "samples.jsonl")
    assert len(bench.prompts) == 7


def test_changed_settings_touch_rows(bench):
    """Another setting is another request: the report says how many rows it touches."""
    path = bench.write(books(6))
    bench.run(path, id_column="id")
    report = bench.run(path, id_column="id", temperature=0.5)

    assert report.changed == 6
    assert len(bench.prompts) == 12
    assert bench.run(path, id_column="id", max_retries=7).changed == 6  # and back: all are known
    assert len(bench.prompts) == 12


def test_a_bad_row_fails_alone(make_bench):
    """A row that the provider refuses is failed with the reason, and the others are answered."""
    bench = make_bench(lambda r: error(400, "no") if "Book 2" in r.messages[-1].text else answer(r))
    report = bench.run(books(5))

    rows = bench.written()
    assert [row["status"] for row in rows] == ["done", "done", "failed", "done", "done"]
    assert rows[2]["error_class"] == "invalid_request"
    assert "no" in rows[2]["error"]
    assert (report.failed, report.errors) == (1, {"invalid_request": 1})
    assert len(bench.prompts) == 5


def test_failed_rows_are_tried_again_up_to_attempts(make_bench):
    """Each run tries a failed row again, until it was tried as often as allowed."""
    bench = make_bench(lambda r: error(400, "no") if "Book 1" in r.messages[-1].text else answer(r))
    for expected in (3, 4, 4):
        bench.run(books(3), attempts=2)
        assert len(bench.prompts) == expected
    assert bench.written()[1]["attempts"] == 2


def test_rows_that_another_process_sends_come_last(bench):
    """Jobs with one input divide it: a row that is claimed elsewhere is waited for at the end."""
    rows = books(100)
    ledger = SQLiteLedger(bench.folder / "shared.sqlite")
    finished = []

    async def work():
        job = Job(model=MODEL, prompt=PROMPT)
        digest = job.digest(bench.client)
        held = [job.ask(row, row["id"], digest).hash for row in rows[:40]]
        await ledger.open()
        assert await ledger.claim(held, 3) == [None] * 40

        async def answer_when_the_others_are_done():
            while len(finished) < 60:  # noqa: ASYNC110 -- of another task
                await asyncio.sleep(0.001)
            assert len(bench.prompts) == 60
            for each in held:
                await ledger.put(each, Answer(status="done", key="other", text="Novel."))

        other = asyncio.create_task(answer_when_the_others_are_done())
        report = await bench.start(
            rows, ledger=str(bench.folder / "shared.sqlite"), concurrency=8,
            on_progress=finished.append,
        )  # fmt: skip
        await other
        await ledger.close()
        return report

    report = asyncio.run(asyncio.wait_for(work(), 60))
    assert (report.done, report.reused) == (100, 40)
    assert set(bench.prompts) == {f"Genre of Book {number}?" for number in range(40, 100)}


def test_only_failed_rows(make_bench):
    """With `only_failed`, rows that were never tried stay pending, and no output is written."""
    bench = make_bench(lambda r: error(400, "no") if "Book 1" in r.messages[-1].text else answer(r))
    bench.run(books(3))
    report = bench.run(books(5), only_failed=True, output=bench.output)

    assert len(bench.prompts) == 4
    assert (report.pending, report.is_written) == (2, False)


def test_a_spent_budget_leaves_rows_pending(bench):
    """The job stops cleanly at its budget; the next run, with more money, pays only the rest."""
    path = bench.write(books(300))
    report = bench.run(path, max_usd=0.01, max_tokens=20, concurrency=4)

    assert "budget" in report.stopped.lower()
    assert 0 < report.done < 300
    assert (report.failed, report.done + report.pending) == (0, 300)
    assert report.cost <= 0.01
    assert not bench.output.exists()
    again = bench.run(path, max_usd=0.01, max_tokens=20, concurrency=4)
    assert again.done - report.done <= 1  # what earlier runs have spent counts
    assert bench.run(path, max_tokens=20).done == 300
    assert len(bench.prompts) == 300


def test_a_refused_key_stops_the_job(make_bench):
    """A wrong key fails no row: they stay pending, and a few requests were sent at most."""
    bench = make_bench(lambda _: error(401, "wrong key"))
    report = bench.run(books(200), concurrency=8)

    assert "wrong key" in report.stopped
    assert (report.failed, report.pending) == (0, 200)
    assert len(bench.prompts) <= 8


def test_objects(make_bench):
    """With a schema the column `object` has the object; an answer that does not fit is failed."""
    schema = {"type": "object", "properties": {"genre": {"type": "string"}}, "required": ["genre"]}
    bench = make_bench(
        lambda r: text("a novel" if "Book 1" in r.messages[-1].text else '{"genre": "novel"}')
    )
    bench.run(books(3), schema=schema, attempts=1)

    rows = bench.written()
    assert [row["object"] for row in rows] == [{"genre": "novel"}, None, {"genre": "novel"}]
    assert (rows[1]["status"], rows[1]["answer"]) == ("failed", "a novel")


def test_rows_of_which_no_request_can_be_made(bench):
    """An empty cell, a missing column and a line that is no JSON fail, and are not sent."""
    path = bench.folder / "in.jsonl"
    lines = [
        b'{"title": "Emma"}',
        b'{"title": null}',
        b'{"name": "Ulysses"}',
        b"not json",
        b'{"title": "\xff"}',
        b'{"title": NaN}',
        b"[1]",
        b'{"title": "Dune"}',
    ]
    path.write_bytes(b"\n".join(lines))
    report = bench.run(path)

    assert sorted(bench.prompts) == ["Genre of Dune?", "Genre of Emma?"]
    assert (report.done, report.failed) == (2, 6)
    rows = bench.written()
    assert [row["status"] == "done" for row in rows] == [True, *[False] * 6, True]
    assert "title" in rows[1]["error"]
    assert "no column 'title'" in rows[2]["error"]
    assert "JSON" in rows[3]["error"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prompt": "Genre of {name}?"}, "no column 'name'. It has: id, title"),
        ({"prompt": "Genre of {title?"}, "{{"),
        ({"prompt": "{}"}, "empty braces"),
        ({"schema": {"type": "nothing"}}, "schema"),
        ({"id_column": "title"}, "'Emma' (2 times)"),
        ({"output": "out.xyz"}, ".jsonl"),
        ({"tools": []}, "tools"),
        ({"concurrency": 0}, "concurrency"),
        ({"prefix": "", "prompt": "{status}"}, "no column 'status'"),
    ],
)
def test_mistakes_are_found_before_anything_is_sent(bench, options, words):
    """A missing column, ids that are not unique, a wrong schema: an error, and no request."""
    rows = [{"id": 1, "title": "Emma"}, {"id": 2, "title": "Emma"}]
    if "output" in options:
        options["output"] = bench.folder / options["output"]
    with pytest.raises(ConfigurationError) as found:
        bench.run(rows, **options)

    assert words in str(found.value)
    assert bench.prompts == []


def test_columns_of_results_do_not_replace_those_of_the_input(bench):
    """An input with a column `status` needs a prefix."""
    rows = [{"title": "Emma", "status": "sold"}]
    with pytest.raises(ConfigurationError, match="prefix"):
        bench.run(rows)
    bench.run(rows, prefix="out_")

    (row,) = bench.written()
    assert (row["status"], row["out_status"]) == ("sold", "done")


def test_two_jobs_on_one_output(bench):
    """The second process is told that the first is at work; nothing is sent twice."""

    async def both():
        first = asyncio.ensure_future(bench.start(books(50)))
        await asyncio.sleep(0)
        with pytest.raises(ConfigurationError, match="Another process"):
            await bench.start(books(50))
        return await first

    assert asyncio.run(both()).done == 50
    assert len(bench.prompts) == 50


def test_two_jobs_with_one_ledger_pay_once(bench):
    """Jobs at the same time, with outputs of their own, share what they pay for."""
    ledger = str(bench.folder / "ledger.sqlite")

    async def both():
        outputs = (bench.folder / "a.jsonl", bench.folder / "b.jsonl")
        jobs = (bench.start(books(60), output=each, ledger=ledger) for each in outputs)
        return await asyncio.gather(*jobs)

    reports = asyncio.run(both())
    assert [report.done for report in reports] == [60, 60]
    assert len(bench.prompts) == 60


def test_parts(bench):
    """Parts are numbered files, which together have each row once, also after more rows came."""
    bench.run(books(25), parts=10)
    bench.run(books(32), parts=10)

    parts = sorted(bench.folder.glob("out-*.jsonl"))
    assert [len(bench.written(part)) for part in parts] == [10, 10, 5, 7]
    ids = [row["id"] for part in parts for row in bench.written(part)]
    assert sorted(ids) == sorted(row["id"] for row in books(32))
    assert len(bench.prompts) == 32


def test_a_part_that_was_not_written_is_written_again(bench):
    """Rows of a part without a file, because its writer died, go to another part."""
    bench.run(books(20), parts=10)
    (bench.folder / "out-00001.jsonl").unlink()
    bench.run(books(20), parts=10)

    parts = sorted(bench.folder.glob("out-*.jsonl"))
    assert [part.name for part in parts] == ["out-00002.jsonl", "out-00003.jsonl"]
    assert len({row["id"] for part in parts for row in bench.written(part)}) == 20
    assert len(bench.prompts) == 20


def test_an_iterator_is_read_once(bench):
    """What can be read only once is kept, so that it can be checked, sent and written."""
    bench.run(row for row in books(12))

    assert [row["id"] for row in bench.written()] == [f"b{number}" for number in range(12)]


def test_progress(bench):
    """Each row is reported, with the cost so far and what is expected."""
    seen = []
    bench.run(books(9), on_progress=seen.append, concurrency=1)

    assert [each.done for each in seen] == list(range(1, 10))
    assert seen[-1].rows == 9
    assert seen[2].expected == pytest.approx(seen[-1].cost, rel=0.5)


def test_images_and_documents(bench):
    """Media come from columns: a path beside the program, bytes, or a URL."""
    (bench.folder / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    rows = [
        {"title": "x", "photo": str(bench.folder / "a.png")},
        {"title": "x", "photo": "gone.png"},
    ]
    report = bench.run(rows, images=["photo"])

    assert (report.done, report.failed) == (1, 1)
    assert "gone.png" in bench.written()[1]["error"]
    (request,) = bench.client.requests
    assert [part.kind for part in request.messages[-1].content] == ["image", "text"]


def test_the_hash_depends_on_everything_that_affects_the_answer(bench):
    """Another system prompt, model or schema is another request."""
    rows = [{"title": "Emma"}]
    for options in (
        {},
        {"system": "Be brief."},
        {"system": "Be brief, {title}."},
        {"model": "openai:gpt-5.2-mini"},
        {"max_tokens": 5},
    ):
        bench.run(rows, **options)
    assert len(bench.prompts) == 5
    hashes = json.loads(bench.output.read_text(encoding="utf-8"))["request_hash"]
    assert len(hashes) == 32


@pytest.mark.parametrize("kind", LEDGERS)
def test_a_job_on_every_kind_of_ledger(bench, tmp_path, kind):
    """It is run, looked at, changed and run again as on any other."""
    with new_ledger(kind, tmp_path) as ledger:
        options = {"ledger": ledger, "volatile": True}
        first = bench.run(books(40), **options)
        state = asyncio.run(bulk.status(bench.output))
        again = bench.run(books(41), **options)
        changed = bench.run(books(41), prompt="Author of {title}?", limit=3, **options)

    assert (first.done, state.done, again.done) == (40, 40, 41)
    assert (changed.done, changed.changed) == (3, 3)
    assert len(bench.prompts) == 41 + 3
