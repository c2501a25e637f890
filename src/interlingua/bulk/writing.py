"""
Writes rows to JSONL, CSV or Parquet files, each of which appears when it is whole.

A file is written beside its place under another name, forced to the disk, and renamed.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec

from interlingua.bulk.answers import RESULT_COLUMNS
from interlingua.bulk.reading import load_parquet, load_pyarrow, readable
from interlingua.runtime.files import sync_folder
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.json_text import dump_text

FORMATS = (".jsonl", ".csv", ".tsv", ".parquet")
KINDS: Mapping[str, str] = {
    "str": "string", "int": "int64", "float": "float64", "bool": "bool", "bytes": "binary",
}  # fmt: skip
"""The type of a column whose values all have this type in Python."""
_LEAST, _MOST = -(2**63), 2**63 - 1  # of Arrow's int64
_NO_TYPES: Mapping[str, Any] = {}


class Columns:
    """The columns of an output: those of the input with their types, then those of results."""

    def __init__(
        self, prefix: str = "", *, has_vectors: bool = False, types: Mapping[str, Any] = _NO_TYPES
    ) -> None:
        """`types` are those of Arrow which the input states."""
        self.kinds: dict[str, set[str]] = {}
        """By column of the input: the names of the types of its values."""
        self.types: Mapping[str, Any] = types
        vector = {"object": ("embedding", "vector")} if has_vectors else {}
        columns = [(own, *vector.get(own, (own, kind))) for own, kind in RESULT_COLUMNS]
        self.results: dict[str, str] = {prefix + name: own for own, name, _ in columns}
        """The columns of results, with their own names."""
        self._types = {prefix + name: kind for _, name, kind in columns}
        self._are_renamed = any(name != own for name, own in self.results.items())

    def add(self, row: Mapping[str, Any]) -> None:
        """Take note of the columns of a row."""
        kinds = self.kinds
        for name, value in row.items():
            found = kinds.get(name)
            if found is None:
                found = kinds[name] = set()
            kind = value.__class__.__name__
            if kind == "int" and not _LEAST <= value <= _MOST:
                kind = "large int"
            found.add(kind)

    def check(self) -> None:
        """Raise if the input has a column with the name of a result."""
        both = [name for name in self.results if name in self.kinds]
        if both:
            raise ConfigurationError(
                f"The input has the column {both[0]!r}, which the output needs for results. "
                "Set `prefix`, such as 'out_', for the columns of results.",
                setting="prefix",
            )

    @property
    def names(self) -> list[str]:
        """All columns in their order."""
        return [*self.kinds, *self.results]

    def kind(self, name: str) -> str:
        """The name of the type of a column: one of Arrow's, `json` (a text), or `vector`."""
        if name in self._types:
            return self._types[name]
        kinds = self.kinds[name] - {"NoneType"}
        if kinds == {"int", "float"}:
            return "float64"
        return KINDS.get(next(iter(kinds)), "json") if len(kinds) == 1 else "json"

    def join(self, row: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
        """One row of the output."""
        if self._are_renamed:
            result = {name: result[own] for name, own in self.results.items()}
        return {**row, **result}


class OutputFile:
    """
    A file that appears when it is whole.

        with OutputFile(path, columns) as file:
            file.write(rows)
    """

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path = path
        self._scratch = path.with_name(f".{path.name}.{os.getpid()}.new")
        self._columns = columns
        self.count: int = 0
        """How many rows were written."""

    def __enter__(self) -> Self:
        self._file: IO[bytes] = self._scratch.open("wb")
        self._format = _FORMATS[self._path.suffix.lower()](self._file, self._columns)
        return self

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows; text that is not Unicode, and cannot be written, is replaced."""
        try:
            self._format.write(rows)
        except UnicodeEncodeError:
            self._format.write([readable(row) for row in rows])
        self.count += len(rows)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is not None:
                with suppress(OSError, ValueError):  # writers of Parquet must be closed
                    self._format.finish()
            else:
                self._format.finish()
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                self._scratch.replace(self._path)
                sync_folder(self._path.parent)
        finally:
            self._file.close()
            with suppress(OSError):
                self._scratch.unlink()


def check_format(path: Path) -> None:
    """Raise if there is no format for a name."""
    if path.suffix.lower() not in FORMATS:
        known = ", ".join(FORMATS)
        raise ConfigurationError(f"The output {path.name} must end in one of: {known}.")
    if path.suffix.lower() == ".parquet":
        load_pyarrow()


def part_path(path: Path, number: int) -> Path:
    """The file of a part of an output."""
    return path.with_stem(f"{path.stem}-{number:05}")


# Formats.


class _JsonLines:
    def __init__(self, file: IO[bytes], _: Columns) -> None:
        self._file = file
        self._encoder = msgspec.json.Encoder(enc_hook=str)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._file.write(self._encoder.encode_lines(rows))

    def finish(self) -> None:
        pass


class _Csv:
    delimiter = ","

    def __init__(self, file: IO[bytes], columns: Columns) -> None:
        # A write that fails in the middle of rows could not be repeated.
        self._text = TextIOWrapper(
            file, encoding="utf-8", errors="replace", newline="", write_through=True
        )
        self._names = columns.names
        self._writer = csv.writer(self._text, delimiter=self.delimiter)
        self._writer.writerow(self._names)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        names = self._names
        self._writer.writerows([_cell(row.get(name)) for name in names] for row in rows)

    def finish(self) -> None:
        self._text.flush()
        self._text.detach()


class _Tsv(_Csv):
    delimiter = "\t"


class _Parquet:
    def __init__(self, file: IO[bytes], columns: Columns) -> None:
        self._arrow = load_pyarrow()
        names = [name for name in columns.names if name not in columns.types]
        kinds = {name: columns.kind(name) for name in names}
        self._texts = [name for name, kind in kinds.items() if kind == "json"]
        others = {"json": self._arrow.string(), "vector": self._arrow.list_(self._arrow.float32())}
        types = {**columns.types, **{name: others.get(kind, kind) for name, kind in kinds.items()}}
        self._schema = self._arrow.schema([(name, types[name]) for name in columns.names])
        self._writer = load_parquet().ParquetWriter(file, self._schema)

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        table = self._arrow.Table.from_pylist([self._row(row) for row in rows], self._schema)
        self._writer.write_table(table)

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        texts = {name: _json_cell(row.get(name)) for name in self._texts}
        return {**row, **texts}

    def finish(self) -> None:
        self._writer.close()


_FORMATS: Mapping[str, Any] = {
    ".jsonl": _JsonLines, ".csv": _Csv, ".tsv": _Tsv, ".parquet": _Parquet,
}  # fmt: skip


def _cell(value: object) -> object:
    return dump_text(value) if isinstance(value, (dict, list, bool)) else value


def _json_cell(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value, enc_hook=str).decode()


def write_file(path: Path, columns: Columns, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write a whole file; returns how many rows it has."""
    with OutputFile(path, columns) as file:
        file.write(list(rows))
    return file.count
