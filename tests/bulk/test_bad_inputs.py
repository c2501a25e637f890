"""Inputs that are wrong, strange, or change between two runs: nothing is lost or paid twice."""

import asyncio
import json
import random

import pyarrow as pa
import pytest
from pyarrow import parquet

from interlingua import bulk
from interlingua.errors import ConfigurationError
from interlingua.simulator import text
from support.bulk_jobs import books

LONE = "\udc80"  # half of a character, as `surrogateescape` makes it


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("in.jsonl", b"", "The input has no rows"),
        ("in.csv", b"", "its first line must name the columns"),
        ("in.csv", b"title\n", "The input has no rows"),
        ("in.csv", "title\nEmma\n".encode("utf-16"), "UTF-16. Save it in UTF-8"),
        ("in.csv", b"title,title\na,b\n", "two columns with the same name"),
        ("in.jsonl", '{"title": "Emma"}\n'.encode("utf-16"), "UTF-16"),
        ("in.jsonl", b'[{"title": "Emma"},\n{"title": "Dune"}]', "No row of the input can be read"),
        ("in.parquet", b"PAR1 and no more", "in.parquet cannot be read"),
        ("in.json", b'[{"title": "Emma"}]', "Use .jsonl"),
    ],
)
def test_files_that_are_no_tables(bench, name, content, words):
    """The error says what is wrong with the file; nothing is sent."""
    (bench.folder / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=words):
        bench.run(bench.folder / name)
    assert bench.prompts == []


@pytest.mark.parametrize("rows", [[], iter(())], ids=["list", "iterator"])
def test_no_rows(bench, rows):
    """An empty iterable is an error too."""
    with pytest.raises(ConfigurationError, match="no rows"):
        bench.run(rows)


def test_a_parquet_file_that_is_cut(bench):
    """A page that cannot be read is an error that names the file."""
    path = bench.folder / "in.parquet"
    table = pa.table({"title": [random.Random(n).randbytes(40).hex() for n in range(5000)]})
    parquet.write_table(table, path, compression="snappy")
    content = bytearray(path.read_bytes())
    content[100:60_000] = bytes(59_900)
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"in\.parquet cannot be read"):
        bench.run(path)
    assert bench.prompts == []


def test_a_byte_order_mark(bench):
    """It belongs to no column, in any format."""
    mark = b"\xef\xbb\xbf"
    (bench.folder / "in.csv").write_bytes(mark + b"title\nEmma\n")
    (bench.folder / "in.jsonl").write_bytes(mark + b'{"title": "Emma"}\n')
    (bench.folder / "texts").mkdir()
    (bench.folder / "texts" / "a.txt").write_bytes(mark + b"Emma")
    bench.run(bench.folder / "in.csv")
    bench.run(bench.folder / "in.jsonl")
    bench.run(bench.folder / "texts", prompt="Genre of {text}?")

    assert set(bench.prompts) == {"Genre of Emma?"}


def test_a_very_long_cell(bench):
    """It is sent, and written, whole."""
    path = bench.folder / "in.csv"
    path.write_text(f"title\n{'y' * 5_000_000}\nDune\n")
    report = bench.run(path, output=bench.folder / "out.csv")

    assert report.done == 2
    assert max(map(len, bench.prompts)) > 5_000_000
    assert (bench.folder / "out.csv").stat().st_size > 10_000_000  # the cell, and the answer


@pytest.mark.parametrize("output", ["out.jsonl", "out.csv", "out.parquet"])
def test_values_that_cannot_be_written_as_they_are(bench, output):
    """NaN, half characters, very large integers and strange objects end no job that was paid."""
    rows = [
        {"title": "a", "n": float("nan"), "big": 2**70, "text": LONE, "any": {1, 2}},
        {"title": f"b{LONE}", "n": 1.0, "big": 1, "text": "x", "any": object()},
        {"title": float("nan"), "n": 1.0, "big": 1, "text": "x", "any": None},
    ]
    report = bench.run(rows, output=bench.folder / output)

    assert (report.done, report.failed) == (1, 2)
    assert bench.prompts == ["Genre of a?"]
    assert bench.run(rows, output=bench.folder / output).is_written
    assert len(bench.prompts) == 1


def test_strange_rows_of_an_iterator(bench):
    """What can be read only once is kept with its bytes, its mistakes and their reasons."""
    photo = b"\x89PNG\r\n\x1a\n" + bytes(20)
    rows = [{"title": "a", "photo": photo}, 7, {"title": LONE, "photo": photo}]
    report = bench.run(iter(rows), images=["photo"])

    assert (report.done, report.failed) == (1, 2)
    assert bench.client.requests[0].messages[-1].content[0].data == photo
    errors = [row["error"] for row in bench.written()]
    assert errors[1] == "The row is no dict but 7."
    assert "not valid Unicode" in errors[2]


def test_the_state_of_a_job_with_an_iterator(bench):
    """Its rows are in the folder of the job, for `status`, `read_rows` and `export`."""
    bench.run(iter(books(3)))

    async def look():
        state = await bulk.status(bench.output)
        keys = [row.key async for row in bulk.read_rows(bench.output)]
        return state.done, keys, await bulk.export(bench.output, bench.folder / "again.csv")

    assert asyncio.run(look()) == (3, ["row:1", "row:2", "row:3"], 3)
    bench.run(books(2))  # another input: the rows that were kept are no longer those of the job
    with pytest.raises(ConfigurationError, match="given by a program"):
        asyncio.run(bulk.export(bench.output, bench.folder / "again.csv"))


@pytest.mark.parametrize("change", ["removed", "added", "reordered", "all"])
@pytest.mark.parametrize("id_column", [None, "id"])
def test_an_input_that_changes_between_runs(bench, change, id_column):
    """The output is that of the new input; only rows that are new are paid for."""
    before = books(20)
    after = {
        "removed": before[5:],
        "added": [*books(30)[20:25], *before],
        "reordered": before[::-1],
        "all": [*books(30)[20:], *before[:3:-2]],
    }[change]
    bench.run(bench.write(before), id_column=id_column)
    report = bench.run(bench.write(after), id_column=id_column)

    assert [row["id"] for row in bench.written()] == [row["id"] for row in after]
    for row in bench.written():
        assert row["answer"] == f"About: Genre of {row['title']}?"
    new = {row["title"] for row in after} - {row["title"] for row in before}
    assert len(bench.prompts) == 20 + len(new)
    assert report.failed == 0


def test_rows_that_are_removed_from_parts(bench):
    """Parts are not written again: an input without their rows is an error."""
    bench.run(bench.write(books(20)), parts=10)
    with pytest.raises(ConfigurationError, match="5 rows that are there are no longer"):
        bench.run(bench.write(books(15)), parts=10)
    with pytest.raises(ConfigurationError, match="other answers"):
        bench.run(bench.write(books(20)), parts=10, prompt="Author of {title}?")
    assert len(bench.prompts) == 20


def test_the_output_is_not_the_input(bench):
    """An output that would replace the input, or be part of it in the next run, is refused."""
    path = bench.write(books(2))
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="is the input"):
        bench.run(path, output=bench.folder / "." / "in.jsonl")
    with pytest.raises(ConfigurationError, match="in the folder of the input"):
        bench.run(bench.folder, output=bench.folder / "deep" / "out.jsonl")

    assert path.read_bytes() == before
    assert [each.name for each in bench.folder.iterdir()] == ["in.jsonl"]


def test_columns_that_only_some_rows_have(bench):
    """They are columns of the output; rows without them are empty there."""
    bench.run([{"title": "Emma"}, {"title": "Dune", "x": 1}], output=bench.folder / "out.parquet")
    assert parquet.read_table(bench.folder / "out.parquet")["x"].to_pylist() == [None, 1]


def test_parts_in_parquet(bench):
    """Each part has the types of all rows, also if its own rows have no value in a column."""
    rows = [{"title": f"Book {n}", "x": n if n > 5 else None} for n in range(10)]
    bench.run(rows, output=bench.folder / "out.parquet", parts=4, concurrency=1)

    parts = sorted(bench.folder.glob("out-*.parquet"))
    assert len(parts) == 3
    schemas = {str(parquet.read_schema(part).field("x").type) for part in parts}
    assert schemas == {"int64"}


def test_objects_that_do_not_fit(make_bench):
    """Such a row is failed with the reason, and its text is kept; a slip of JSON is repaired."""
    answers = {
        "Book 0": '{"genre": "novel", "pages": 3}',
        "Book 1": '{"genre": "novel", "pages": "many"}',
        "Book 2": '```json\n{"genre": "novel", "pages": 4,}\n```',
    }

    def reply(request):
        asked = request.messages[-1].text
        return text(next(answer for title, answer in answers.items() if title in asked))

    kinds = {"genre": {"type": "string"}, "pages": {"type": "integer"}}
    schema = {"type": "object", "properties": kinds, "required": ["genre", "pages"]}
    bench = make_bench(reply)
    bench.run(books(3), schema=schema, attempts=1)

    good, bad, repaired = bench.written()
    assert good["object"] == {"genre": "novel", "pages": 3}
    assert (bad["status"], bad["answer"], bad["object"]) == ("failed", answers["Book 1"], None)
    assert "pages" in bad["error"]
    assert bad["cost"] > 0  # it was paid for
    assert repaired["object"] == {"genre": "novel", "pages": 4}
    assert json.loads(bad["answer"])["pages"] == "many"
