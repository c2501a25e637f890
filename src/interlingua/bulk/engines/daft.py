"""
Rows on Daft: in this process, or on a Ray cluster if Daft is set to it.

Which of them is a setting of Daft: `DAFT_RUNNER=ray`, or `daft.set_runner_ray` in the program. Of
its means only the placing of rows is used: its retries repeat whole batches, its handling of
errors empties them, and its limit of concurrency counts batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlingua.bulk.engines.worker import KEY, RESULT, ROW, EngineWorker, Work
from interlingua.spec.errors import ConfigurationError

_BATCH = 100
"""Rows whose results come back together."""
_PARTITION = 250
"""Rows that are placed together on a machine."""


class DaftEngine:
    """Places rows by Daft."""

    name: str = "Daft"

    def __init__(self) -> None:
        try:
            import daft
        except ImportError as error:
            raise ConfigurationError(
                "The executor 'daft' needs Daft. Run `pip install 'interlingua[daft]'`.",
                setting="executor",
                cause=error,
            ) from error
        self.is_one_process: bool = daft.get_or_infer_runner_type() == "native"

    def open(self) -> None:
        """Do nothing: Daft connects by itself."""

    def close(self) -> None:
        """Do nothing."""

    def answers(self, work: Work, table: Any) -> Iterator[Any]:
        """Yield Arrow tables of keys and results, as they come. Blocks."""
        import daft

        frame = daft.from_arrow(table)
        if not self.is_one_process:
            frame = frame.into_partitions(-(-len(table) // _PARTITION))
        worker = _worker_class()(work)
        result = worker.one(daft.col(KEY), daft.col(ROW)).alias(RESULT)
        yield from frame.into_batches(_BATCH).select(KEY, result).to_arrow_iter()


def _worker_class() -> Any:
    """The worker as a class of Daft, which makes one in each of its processes."""
    import daft

    @daft.cls(use_process=False, max_retries=0)
    class Answering(EngineWorker):
        @daft.method(return_dtype=daft.DataType.binary())
        async def one(self, key: str, row: bytes) -> bytes:
            return await super().one(key, row)

    return Answering
