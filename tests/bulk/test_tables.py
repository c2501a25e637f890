"""Tables: what is read from files and folders, and written to them."""

import csv
import io
import json
import os
import subprocess
import sys
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet

from interlingua.bulk.reading import open_source
from interlingua.errors import ConfigurationError
from support.bulk_jobs import books


def read(given, tmp_path, **options):
    return list(open_source(given, spool=tmp_path / "spool.jsonl", **options))


def test_csv(tmp_path):
    """Columns are named by the first line; quotes, line breaks and a byte order mark are read."""
    path = tmp_path / "in.csv"
    path.write_bytes('\ufeffid,title\r\n1,"Emma, a\nnovel"\r\n\r\n2,Ünder\r\n'.encode())

    first, second = read(path, tmp_path)
    assert first.data == {"id": "1", "title": "Emma, a\nnovel"}
    assert (second.key, second.data["title"]) == ("in.csv:2", "Ünder")


def test_bad_rows_of_csv(tmp_path):
    """A row with too many cells, or that is not UTF-8, has a problem; a long cell has none."""
    path = tmp_path / "in.csv"
    path.write_bytes(b"title,x\na,b,c\n\xff,b\n" + b"y" * 5_000_000 + b",b\n")

    many, binary, long = read(path, tmp_path)
    assert "3 cells" in many.problem
    assert "UTF-8" in binary.problem
    assert (long.problem, len(long.data["title"])) == ("", 5_000_000)
    binary.data["title"].encode()  # it can be written


def test_tsv_and_folders_of_tables(tmp_path):
    """The tables of a folder are read one after the other; keys name their files."""
    folder = tmp_path / "tables"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.tsv").write_text("title\tx\nEmma\t1\n")
    (folder / "deep" / "b.jsonl").write_text('{"title": "Dune"}\n')
    (folder / ".hidden.jsonl").write_text('{"title": "no"}\n')

    assert [row.key for row in read(folder, tmp_path)] == ["a.tsv:1", "deep/b.jsonl:1"]


def test_a_folder_of_texts(tmp_path):
    """Each file is a row with its name and its text."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("Once.")
    (folder / "b.md").write_bytes(b"\xff")

    good, bad = read(folder, tmp_path)
    assert good.data == {"file": "a.txt", "text": "Once."}
    assert "UTF-8" in bad.problem


def test_stdin(tmp_path, monkeypatch):
    """`-` reads JSON lines from stdin, which is kept because it can be read only once."""
    lines = io.BytesIO(b'{"title": "Emma"}\nnot json\n{"title": "Dune"}\n')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(lines))
    source = open_source("-", spool=tmp_path / "spool.jsonl")

    for _ in range(2):
        assert [row.data.get("title") for row in source] == ["Emma", None, "Dune"]


def test_ids(tmp_path):
    """The id column names the rows; a row without an id has a problem."""
    rows = read([{"id": 7}, {"id": ""}, {"x": 1}], tmp_path, id_column="id")

    assert [row.key for row in rows] == ["7", "row:2", "row:3"]
    assert [bool(row.problem) for row in rows] == [False, True, True]


@pytest.mark.parametrize(
    ("given", "words"),
    [("gone.csv", "no file"), ("empty", "neither"), (7, "iterable"), ("x.doc", "cannot be read")],
)
def test_what_cannot_be_read(tmp_path, given, words):
    """The error says what can be."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.doc").write_text("x")
    with pytest.raises(ConfigurationError, match=words):
        read(tmp_path / given if isinstance(given, str) else given, tmp_path)


def test_csv_output(bench):
    """Cells with commas and line breaks survive; objects are JSON."""
    rows = [{"title": 'a,"b"\nc', "tags": ["x"], "n": 1}]
    output = bench.folder / "out.csv"
    bench.run(rows, output=output)

    with output.open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert (row["title"], json.loads(row["tags"]), row["n"]) == ('a,"b"\nc', ["x"], "1")
    assert row["answer"] == 'About: Genre of a,"b"\nc?'
    assert row["error"] == ""


def test_parquet(bench):
    """Parquet keeps types; a column with values of several types is JSON."""
    rows = [
        {"title": "Emma", "year": 1815, "price": 1.5, "tags": ["a"], "mixed": 1},
        {"title": "Dune", "year": 1965, "price": 2, "tags": [], "mixed": "x"},
    ]
    parquet.write_table(pa.Table.from_pylist(rows[:1]), bench.folder / "in.parquet")
    bench.run(rows, output=bench.folder / "out.parquet")
    table = parquet.read_table(bench.folder / "out.parquet")

    assert str(table.schema.field("year").type) == "int64"
    assert str(table.schema.field("price").type) == "double"
    assert table.column("tags").to_pylist() == ['["a"]', "[]"]
    assert table.column("mixed").to_pylist() == ["1", "x"]
    assert table.column("answer").to_pylist()[1] == "About: Genre of Dune?"
    bench.run(bench.folder / "in.parquet", output=bench.folder / "again.jsonl")
    (row,) = bench.written(bench.folder / "again.jsonl")
    assert (row["year"], row["tags"]) == (1815, ["a"])


def test_parquet_keeps_the_types_of_its_columns(bench):
    """Nested columns, dates, small integers and columns without values come out as they were."""
    table = pa.table(
        {
            "title": ["Emma", "Dune"],
            "meta": [{"pages": 474, "tags": ["a"]}, None],
            "years": [[1815, 1816], []],
            "when": pa.array([0, 1], pa.timestamp("ms", "UTC")),
            "day": pa.array([date(2026, 1, 1), None]),
            "small": pa.array([1, 2], pa.int8()),
            "price": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
            "nothing": pa.array([None, None], pa.int32()),
            "kind": pa.array(["x", "y"]).dictionary_encode(),
            "cover": pa.array([b"\xff", None]),
        }
    )
    parquet.write_table(table, bench.folder / "in.parquet")
    bench.run(bench.folder / "in.parquet", output=bench.folder / "out.parquet")

    found = parquet.read_table(bench.folder / "out.parquet").select(table.column_names)
    assert found.equals(parquet.read_table(bench.folder / "in.parquet"))


def test_a_nested_column_in_a_prompt(bench):
    """Objects and lists are JSON there."""
    table = pa.Table.from_pylist([{"title": "Emma", "meta": {"pages": 474, "tags": ["a"]}}])
    parquet.write_table(table, bench.folder / "in.parquet")
    bench.run(bench.folder / "in.parquet", prompt="{title}: {meta}")

    assert bench.prompts == ['Emma: {"pages":474,"tags":["a"]}']


def test_a_data_set_of_hugging_face(bench):
    """A folder that `datasets` saved is read in the order of its files."""
    folder = bench.folder / "data"
    folder.mkdir()
    names = [f"data-0000{number}-of-00002.arrow" for number in range(2)]
    for number, name in enumerate(names):
        table = pa.Table.from_pylist([{"title": f"Book {number}", "when": date(2026, 1, 1)}])
        with (
            pa.OSFile(str(folder / name), "wb") as file,
            pa.ipc.new_stream(file, table.schema) as writer,
        ):
            writer.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names]}
    (folder / "state.json").write_text(json.dumps(state))
    bench.run(folder)

    assert [row["title"] for row in bench.written()] == ["Book 0", "Book 1"]
    assert bench.written()[0]["when"] == "2026-01-01"


@pytest.fixture
def read_only(tmp_path):
    """A folder that nobody can write to, also not root."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    if os.geteuid() != 0:
        folder.chmod(0o500)
        yield folder
        folder.chmod(0o700)
        return
    options = ["-t", "tmpfs", "-o", "ro", "tmpfs", str(folder)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:  # noqa: S607
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have other rights there")
def test_a_read_only_folder(bench, read_only):
    """Nothing is sent if the output cannot be written."""
    with pytest.raises(ConfigurationError, match="cannot be written"):
        bench.run(bench.write(books(2)), output=read_only / "out.jsonl")
    assert bench.prompts == []


def test_an_output_in_no_folder(bench):
    """The same where a file is in the place of a folder."""
    path = bench.write(books(2))
    with pytest.raises(ConfigurationError, match="cannot be written"):
        bench.run(path, output=path / "out.jsonl")
    assert bench.prompts == []
