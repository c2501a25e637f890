"""`bulk.embed`: the vectors of a column."""

import asyncio

import pytest
from pyarrow import parquet

from interlingua import bulk
from interlingua.simulator import Simulator, serve_in_thread
from support.batches import client_for
from support.bulk_jobs import Bench, books

MODEL = "openai:text-embedding-3-small"


class Vectors:
    """Jobs before a simulator that makes vectors."""

    def __init__(self, folder, url, app):
        self.folder, self._url, self.app = folder, url, app

    def run(self, rows, output="out.jsonl", **options):
        async def work():
            async with client_for(self._url, "openai") as client:
                return await bulk.embed(
                    rows, self.folder / output, model=MODEL, column="title", client=client,
                    **options,
                )  # fmt: skip

        return asyncio.run(work())

    @property
    def calls(self):
        return len(self.app.script.received)


@pytest.fixture
def vectors(tmp_path):
    app = Simulator(keep=None)
    with serve_in_thread(app) as server:
        yield Vectors(tmp_path, server.url, app)


def test_each_row_has_a_vector(vectors, tmp_path):
    """Texts are sent together, equal ones once; the same call again sends nothing."""
    rows = [*books(100), {"title": "Book 3"}, {"title": None}]
    report = vectors.run(rows, dimensions=8)

    written = Bench(tmp_path).written()
    assert [len(row["embedding"] or ()) for row in written] == [8] * 101 + [0]
    assert written[3]["embedding"] == written[100]["embedding"] != written[4]["embedding"]
    assert written[101]["status"] == "failed"
    assert (report.done, report.failed) == (101, 1)
    calls = vectors.calls
    assert calls < 10
    vectors.run(rows, dimensions=8)
    assert vectors.calls == calls
    assert vectors.run(rows, dimensions=4).done == 101  # other settings: other vectors
    assert vectors.calls > calls


def test_vectors_in_parquet(vectors, tmp_path):
    """The column is a list of 32-bit floats."""
    vectors.run(books(3), "out.parquet", dimensions=8)
    table = parquet.read_table(tmp_path / "out.parquet")

    assert str(table.schema.field("embedding").type) == "list<element: float>"
    assert len(table.column("embedding").to_pylist()[2]) == 8
