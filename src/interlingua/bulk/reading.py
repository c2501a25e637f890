"""
Reads rows: from JSONL, CSV and Parquet files, folders, stdin, or what Python iterates over.

A source is read several times, one row at a time: to check all rows before anything is sent, to
send them, and to write them with their answers. A row that cannot be read has a problem instead
of values; it fails alone.
"""

from __future__ import annotations

import binascii
import codecs
import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, TypeAlias

import msgspec

from interlingua.spec.check import describe
from interlingua.spec.errors import ConfigurationError

Input: TypeAlias = str | Path | Iterable[Mapping[str, Any]]
"""A file, a folder, `-` for stdin, or rows."""
TEXTS = frozenset((".txt", ".md", ".rst", ".html", ".xml", ".tex"))
_LINES = frozenset((".jsonl", ".ndjson"))
_TABLES = frozenset((".csv", ".tsv"))
_LONGEST_CELL = 2**31 - 1
_BATCH = 1_000  # rows of Parquet at a time
_NOT_UNICODE = "The row has text that is not valid Unicode."
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Row(NamedTuple):
    """A row of the input."""

    number: int
    """Its place in the input, from 0."""
    key: str
    """What it is called: the value of the id column, or its file and its place there."""
    data: Mapping[str, Any]
    """Its columns."""
    problem: str = ""
    """Why it cannot be read."""


class _Record(NamedTuple):
    """A row of one file."""

    place: int
    """From 1."""
    data: Mapping[str, Any]
    problem: str = ""


class Table(Protocol):
    """Rows that can be read again."""

    name: str
    columns: tuple[str, ...] | None
    """The columns of all rows; None if each row has its own."""

    def types(self) -> Mapping[str, Any]:
        """Arrow's types of the columns, where the table states them."""

    def __iter__(self) -> Iterator[_Record]: ...


class Source:
    """The rows of a job, from one table or several; each row as often as there are samples."""

    def __init__(
        self, tables: list[Table], *, id_column: str | None, samples: int = 1, limit: int | None
    ) -> None:
        self._tables = tables
        self._id_column = id_column
        self._samples = samples
        self._limit = limit

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that all tables state; None if the rows must be read to know them."""
        stated = [table.columns for table in self._tables]
        if None in stated:
            return None
        return tuple(dict.fromkeys(name for columns in stated for name in columns or ()))

    @property
    def types(self) -> Mapping[str, Any]:
        """Arrow's types of the columns that all tables state in the same way."""
        first, *others = [table.types() for table in self._tables] or [{}]
        return {
            name: kind
            for name, kind in first.items()
            if all(each.get(name) == kind for each in others)
        }

    def __iter__(self) -> Iterator[Row]:
        number = 0
        for table in self._tables:
            for record in table:
                if self._limit is not None and number >= self._limit * self._samples:
                    return
                key, problem = self._key(table, record)
                if self._samples == 1:
                    yield Row(number, key, record.data, problem)
                    number += 1
                    continue
                for sample in range(1, self._samples + 1):
                    yield Row(number, f"{key}#{sample}", record.data, problem)
                    number += 1

    def _key(self, table: Table, record: _Record) -> tuple[str, str]:
        place = f"{table.name}:{record.place}"
        if self._id_column is None or record.problem:
            return place, record.problem
        value = record.data.get(self._id_column)
        if value is None or value == "":
            return place, f"The row has no {self._id_column!r}, which is the column with the ids."
        return str(value), ""


def open_source(
    given: Input,
    *,
    spool: Path,
    id_column: str | None = None,
    samples: int = 1,
    limit: int | None = None,
) -> Source:
    """
    The rows of an input. What can be read only once is written to the file `spool` first.

    Raises `ConfigurationError` if there is nothing to read, or no reader for it.
    """
    is_spool = isinstance(given, (str, Path)) and Path(given) == spool
    tables: list[Table] = [_Spool(spool)] if is_spool else _tables(given, spool)
    return Source(tables, id_column=id_column, samples=samples, limit=limit)


def _tables(given: Input, spool: Path) -> list[Table]:
    value: object = given  # a caller without a type checker may pass anything
    if value == "-":
        return [_spooled(_lines(sys.stdin.buffer), spool, "stdin")]
    if isinstance(value, (str, Path)):
        return _files(Path(value))
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise ConfigurationError(
            "The input must be a file, a folder, '-' or an iterable of dicts, not "
            f"{describe(value)}."
        )
    if iter(value) is value:  # it can be read only once
        return [_spooled(_records(value), spool, "row")]
    return [_Rows(value)]


def _files(path: Path) -> list[Table]:
    try:
        if path.is_dir():
            return _folder(path)
        if not path.exists():
            raise ConfigurationError(f"There is no file {path}.")
        return [_file(path, path.name)]
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}.") from error


def _file(path: Path, name: str) -> Table:
    suffix = path.suffix.lower()
    if suffix in _LINES | _TABLES:
        _check_encoding(path)
    if suffix in _LINES:
        return _JsonLines(path, name)
    if suffix in _TABLES:
        return _Csv(path, name)
    if suffix == ".parquet":
        return _Parquet(path, name)
    if suffix == ".arrow":
        return _Arrow(path, name)
    if suffix in TEXTS:
        return _Texts([path], path.parent)
    raise ConfigurationError(
        f"Rows cannot be read from {path.name}. Use .jsonl, .csv, .tsv, .parquet or a folder."
    )


def _folder(path: Path) -> list[Table]:
    """The tables in a folder: a data set of Hugging Face, files with rows, or texts."""
    if (path / "dataset_dict.json").exists():
        raise ConfigurationError(
            f"{path} has several splits. Name the folder of one, such as {path / 'train'}."
        )
    if (path / "state.json").exists():
        listed = msgspec.json.decode((path / "state.json").read_bytes()).get("_data_files", ())
        names = [Path(each["filename"]).name for each in listed]  # never outside of the folder
        return [_Arrow(path / name, name) for name in names]
    files = sorted(each for each in path.rglob("*") if each.is_file() and each.name[0] != ".")
    known = _LINES | _TABLES | {".parquet"}
    tables = [each for each in files if each.suffix.lower() in known]
    if tables:
        return [_file(each, each.relative_to(path).as_posix()) for each in tables]
    texts = [each for each in files if each.suffix.lower() in TEXTS]
    if not texts:
        raise ConfigurationError(f"The folder {path} has neither tables nor texts.")
    return [_Texts(texts, path)]


def _check_encoding(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise ConfigurationError(f"{path} is text in UTF-16. Save it in UTF-8.")


# Tables.


class _Untyped:
    """A table that states no types."""

    columns: tuple[str, ...] | None = None

    def types(self) -> Mapping[str, Any]:
        return {}


class _Rows(_Untyped):
    """Rows of the program, which can be read again."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = rows
        self.name = "row"

    def __iter__(self) -> Iterator[_Record]:
        return _records(self._rows)


class _JsonLines(_Untyped):
    """A file with one JSON object on each line."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self.name = name

    def __iter__(self) -> Iterator[_Record]:
        with self._path.open("rb") as file:
            yield from _lines(file)


class _Csv(_Untyped):
    """A file with a line of names, and then a line for each row."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        self.name = name
        with self._open() as file:
            self.columns = tuple(next(self._read(file), ()))
        if not self.columns:
            raise ConfigurationError(f"{path} is empty: its first line must name the columns.")
        if len(set(self.columns)) < len(self.columns):
            raise ConfigurationError(f"{path} has two columns with the same name.")

    def _open(self) -> IO[str]:
        # What is not UTF-8 is one row's problem.
        return self._path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")

    def _read(self, file: IO[str]) -> Iterator[list[str]]:
        if csv.field_size_limit() < _LONGEST_CELL:
            csv.field_size_limit(_LONGEST_CELL)
        return csv.reader(file, delimiter=self._delimiter)

    def __iter__(self) -> Iterator[_Record]:
        columns = self.columns or ()
        count = len(columns)
        with self._open() as file:
            rows = self._read(file)
            next(rows, None)
            place = 0
            for cells in rows:
                if not cells:  # an empty line
                    continue
                place += 1
                problem = ""
                if len(cells) != count:
                    problem = f"The row has {len(cells)} cells, and the file {count} columns."
                elif not _is_utf8(cells):
                    cells = [_readable(cell) for cell in cells]  # noqa: PLW2901
                    problem = "The row is not text in UTF-8."
                yield _Record(place, dict(zip(columns, cells, strict=False)), problem)


class _Typed:
    """A file in a format of Arrow, which states the types of its columns."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self.name = name
        with self._opened() as (schema, _):
            self._types: dict[str, Any] = {field.name: field.type for field in schema}
        self.columns: tuple[str, ...] | None = tuple(self._types)

    def types(self) -> Mapping[str, Any]:
        return self._types

    def __iter__(self) -> Iterator[_Record]:
        with self._opened() as (_, batches):
            yield from _from_batches(batches)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Iterable[Any]]]:
        """The schema of the file, and its batches of rows."""
        try:
            with self._open() as file:
                yield self._parts(file)
        except (load_pyarrow().ArrowException, OSError) as error:
            raise ConfigurationError(f"{self._path} cannot be read: {error}") from error

    def _open(self) -> Any:
        return load_parquet().ParquetFile(self._path)

    def _parts(self, file: Any) -> tuple[Any, Iterable[Any]]:
        return file.schema_arrow, file.iter_batches(batch_size=_BATCH)


class _Parquet(_Typed):
    """A Parquet file; it is read in batches."""


class _Arrow(_Typed):
    """A file of a data set that was saved by `datasets`: a stream of Arrow batches."""

    def _open(self) -> Any:
        pa = load_pyarrow()
        return pa.ipc.open_stream(pa.memory_map(str(self._path)))

    def _parts(self, file: Any) -> tuple[Any, Iterable[Any]]:
        return file.schema, file


class _Texts(_Untyped):
    """A folder of texts; a row has the name of the file and its text."""

    def __init__(self, paths: list[Path], folder: Path) -> None:
        self._paths = paths
        self._folder = folder
        self.name = folder.name or "."
        self.columns = ("file", "text")

    def __iter__(self) -> Iterator[_Record]:
        for place, path in enumerate(self._paths, 1):
            name = path.relative_to(self._folder).as_posix()
            try:
                text = path.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError:
                yield _Record(place, {"file": name, "text": None}, f"{name} is not text in UTF-8.")
            else:
                yield _Record(place, {"file": name, "text": text})


class _Spool(_Untyped):
    """
    What could be read only once, as JSON lines after one with the name of the table.

    A row with bytes, or of which no request can be made, is a list: the row, the problem, and the
    names of the columns with bytes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self.name: str = _decode(file.readline())

    def __iter__(self) -> Iterator[_Record]:
        with self._path.open("rb") as file:
            file.readline()
            for place, line in enumerate(file, 1):
                data = _decode(line)
                if isinstance(data, dict):
                    yield _Record(place, data)
                    continue
                row, problem, binary = data
                yield _Record(
                    place, row | {name: binascii.a2b_base64(row[name]) for name in binary}, problem
                )


def _spooled(records: Iterable[_Record], path: Path, name: str) -> Table:
    scratch = path.with_suffix(".new")
    with scratch.open("wb") as file:
        file.write(_encode(name) + b"\n")
        for record in records:
            file.write(_spool_line(record) + b"\n")
    scratch.replace(path)
    return _Spool(path)


def _spool_line(record: _Record) -> bytes:
    data, problem = record.data, record.problem
    binary = [name for name, value in data.items() if isinstance(value, (bytes, bytearray))]
    try:
        return _encode([data, problem, binary] if problem or binary else data)
    except UnicodeEncodeError:
        return _encode([readable(data), problem or _NOT_UNICODE, binary])


def _records(rows: Iterable[Any]) -> Iterator[_Record]:
    for place, row in enumerate(rows, 1):
        if isinstance(row, Mapping):
            yield _Record(place, row)
        else:
            yield _Record(place, {}, f"The row is no dict but {describe(row)}.")


def _lines(file: IO[bytes]) -> Iterator[_Record]:
    place = 0
    for line in file:
        text = line.removeprefix(b"\xef\xbb\xbf") if not place else line
        if not text.strip():
            continue
        place += 1
        try:
            data = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            data = _decode_nan(text)
            if data is None:
                yield _Record(place, {}, f"The line is not JSON in UTF-8: {error}.")
                continue
        if isinstance(data, dict):
            yield _Record(place, data)
        else:
            yield _Record(place, {}, "The line is no JSON object.")


def _decode_nan(line: bytes) -> Any:
    """The value of a line with NaN or Infinity, which many programs write; else None."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _from_batches(batches: Iterable[Any]) -> Iterator[_Record]:
    place = 0
    for batch in batches:
        for data in batch.to_pylist():
            place += 1
            yield _Record(place, data)


def _is_utf8(cells: list[str]) -> bool:
    return all(cell.isascii() or not any("\udc80" <= c <= "\udcff" for c in cell) for cell in cells)


def readable(value: Any) -> Any:
    """A value in which what is not Unicode is replaced, so that it can be written."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {readable(name): readable(each) for name, each in value.items()}
    return [readable(each) for each in value] if isinstance(value, (list, tuple)) else value


def _readable(cell: str) -> str:
    return cell.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def load_pyarrow() -> Any:
    """The package that reads and writes Parquet; raises if it is not installed."""
    return _load("pyarrow")


def load_parquet() -> Any:
    """Its module for Parquet."""
    return _load("pyarrow.parquet")


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            "Parquet and data sets need the package pyarrow. Run `pip install pyarrow`.",
            cause=error,
        ) from error
