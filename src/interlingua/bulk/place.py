"""The folder of a job beside its output: ledger, index of rows, and who is at work there."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from interlingua.bulk.ledger.owners import try_lock
from interlingua.bulk.writing import check_format
from interlingua.spec.errors import ConfigurationError
from interlingua.transport.downloads import as_path


class Place:
    """
    Where a job is: its output, and the folder `<output>.bulk` beside it.

    As a context, it keeps other processes from running a job with the same output.
    """

    def __init__(self, output: str | os.PathLike[str]) -> None:
        self.output: Path = as_path(output)
        check_format(self.output)
        self.folder: Path = self.output.with_name(f"{self.output.name}.bulk")
        self._lock: FileIO | None = None

    @property
    def ledger(self) -> Path:
        """The ledger, unless it is elsewhere."""
        return self.folder / "ledger.sqlite"

    @property
    def index(self) -> Path:
        """The index of rows."""
        return self.folder / "rows.sqlite"

    @property
    def spool(self) -> Path:
        """The rows, if they can be read only once."""
        return self.folder / "input.jsonl"

    @property
    def report(self) -> Path:
        """The report as a page."""
        return self.folder / "report.html"

    def check_input(self, given: object) -> None:
        """Raise if the output would replace the input, or be a part of it in the next run."""
        if not isinstance(given, (str, Path)) or given == "-":
            return
        source, output = Path(given).resolve(), self.output.resolve()
        if source == output:
            raise ConfigurationError(f"The output {self.output} is the input. Choose another one.")
        if source.is_dir() and output.is_relative_to(source):
            raise ConfigurationError(
                f"The output {self.output} is in the folder of the input. Choose another place: "
                "the next run would read it."
            )

    def check_exists(self) -> None:
        """Raise if there is no job with this output."""
        if not self.index.exists():
            raise ConfigurationError(f"There is no bulk job with the output {self.output}.")

    def __enter__(self) -> Self:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileIO(self.folder / "run.lock", "a+")
        except OSError as error:
            raise ConfigurationError(
                f"The output cannot be written: {self.folder}: {error.strerror}."
            ) from None
        if not try_lock(self._lock):
            self._lock.close()
            raise ConfigurationError(
                f"Another process is working on {self.output}. Wait for it, or choose another "
                "output; two jobs with one ledger share what they pay for."
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
