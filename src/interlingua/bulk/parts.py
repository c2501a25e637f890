"""
The parts of an output: numbered files in the order of completion.

Which rows a part has is recorded before it is written. A part that was not there when the run
before ended has no file, and its rows go to another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlingua.bulk.place import Place
from interlingua.bulk.rows import RowIndex
from interlingua.bulk.writing import Columns, part_path, write_file


class PartWriter:
    """Collects rows, and writes a file when it has enough of them."""

    def __init__(self, place: Place, index: RowIndex, columns: Columns, size: int) -> None:
        self._place = place
        self._index = index
        self._columns = columns
        self._size = size
        self._rows: list[tuple[int, dict[str, Any]]] = []
        self._last = 0
        for part in index.parts():
            self._last = max(self._last, part)
            if not part_path(place.output, part).exists():
                index.forget(part)

    def add(self, number: int, row: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Add a row with its result."""
        self._rows.append((number, self._columns.join(row, result)))
        if len(self._rows) >= self._size:
            self.flush()

    def flush(self) -> None:
        """Write what was collected."""
        if not self._rows:
            return
        self._last += 1
        self._index.assign(self._last, [number for number, _ in self._rows])
        write_file(
            part_path(self._place.output, self._last), self._columns, [row for _, row in self._rows]
        )
        self._rows = []
