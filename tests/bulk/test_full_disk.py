"""A disk that is full: a clear stop, and what was paid for is not lost."""

import asyncio
import os
import shutil
import subprocess
import sys

import pytest

from interlingua.bulk.answers import Answer
from interlingua.bulk.ledger.sqlite import SQLiteLedger
from interlingua.errors import StoreError
from interlingua.simulator import text
from support.bulk_jobs import Bench, answer, books

SIZE = 3 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path):
    """A folder on a file system of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can make a small file system")
    options = ["-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:  # noqa: S607
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607


def test_answers_under_way_are_recorded_when_the_disk_is_full(small_disk, tmp_path):
    """The job stops with the reason; after room was made, it pays only for what was not sent."""
    bench = Bench(tmp_path, lambda request: text(f"{request.messages[-1].text} " + "x" * 20_000))
    rows = books(300)
    output = small_disk / "out.jsonl"
    report = bench.run(rows, output=output, concurrency=4)

    assert report.stopped is not None
    assert report.failed == 0
    assert 0 < report.done < 300
    assert report.done == len(bench.prompts)  # all that was paid for is there
    larger = tmp_path / "larger"
    shutil.copytree(small_disk, larger)
    final = bench.run(rows, output=larger / "out.jsonl", concurrency=4)
    assert final.done == 300
    assert len(bench.prompts) == 300


def test_the_output_is_not_lost_if_it_cannot_be_written(small_disk, tmp_path):
    """Answers are in the ledger; an output that does not fit raises, and leaves nothing behind."""
    bench = Bench(tmp_path, answer)
    ledger = str(tmp_path / "ledger.sqlite")
    rows = [{"title": f"{number} " + "y" * 20_000} for number in range(120)]
    with pytest.raises(OSError, match="No space"):
        bench.run(rows, output=small_disk / "out.jsonl", ledger=ledger)

    assert [path.name for path in small_disk.iterdir()] == ["out.jsonl.bulk"]
    assert bench.run(rows, ledger=ledger).done == 120
    assert len(bench.prompts) == 120


def test_a_ledger_that_cannot_write_says_so(small_disk):
    """When the room that was kept is used up, an answer raises `StoreError`."""

    async def work():
        ledger = SQLiteLedger(small_disk / "ledger.sqlite")
        await ledger.open()
        big = Answer(status="done", text="z" * 400_000)

        async def put_all():
            for number in range(100):
                await ledger.put(number.to_bytes(16, "big"), big)

        with pytest.raises(StoreError, match="full"):
            await put_all()
        with pytest.raises(StoreError, match="Make room"):
            await ledger.claim([bytes(16)], 3)
        await ledger.close()

    asyncio.run(work())
