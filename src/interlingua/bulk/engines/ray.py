"""
Rows on Ray Data: one worker on each machine of a cluster.

Of Ray's means only the placing of rows is used. A block whose machine was lost is given to another
worker, which finds in the ledger what was answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

from interlingua.bulk.engines.worker import KEY, RESULT, ROW, EngineWorker, Work
from interlingua.bulk.reading import load_pyarrow
from interlingua.spec.errors import ConfigurationError

_BLOCK = 250
"""Rows that are placed together on a machine."""
_BATCH = 50
"""Rows whose results come back together."""
_CPUS = 0.25
"""Of a machine, for its worker. Workers that ask for all leave nothing for other tasks of Ray."""


class RayEngine:
    """Places rows by Ray Data, on the cluster at an address."""

    name: str = "Ray"
    is_one_process: bool = False

    def __init__(self, address: str | None) -> None:
        """`address`: of the head of a cluster; None: that which Ray finds, or a new one here."""
        # What Ray itself calls `ray://` is its client, over which Ray Data does not work.
        self._address = None if address is None else address.removeprefix("ray://")
        self._is_ours = False
        try:
            import ray.data  # noqa: F401
        except ImportError as error:
            raise ConfigurationError(
                "The executor 'ray' needs Ray Data. Run `pip install 'interlingua[ray]'`.",
                setting="executor",
                cause=error,
            ) from error

    def open(self) -> None:
        """Connect to the cluster, unless the program is connected."""
        import ray

        if not ray.is_initialized():
            try:
                ray.init(self._address, log_to_driver=False, logging_level=logging.ERROR)
            except Exception as error:
                place = self._address or "RAY_ADDRESS"
                raise ConfigurationError(
                    f"There is no Ray cluster at {place}, or this machine is not one of its "
                    f"nodes: {error}",
                    setting="executor",
                    cause=error,
                ) from error
            logging.getLogger("ray.data").setLevel(logging.ERROR)  # Ray sets it when it begins
            self._is_ours = True

    def close(self) -> None:
        """End the connection that was made here."""
        if self._is_ours:
            import ray

            self._is_ours = False
            ray.shutdown()

    def answers(self, work: Work, table: Any) -> Iterator[Any]:
        """Yield Arrow tables of keys and results, as they come. Blocks."""
        import ray

        machines = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        workers = max(1, len(machines))
        blocks = max(min(workers, len(table)), -(-len(table) // _BLOCK))
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        rows = ray.data.from_arrow(table).repartition(blocks)
        answers = rows.map_batches(
            Answering,
            fn_constructor_args=(work,),
            # A worker goes on with the next block while it waits for the last rows of one.
            compute=ray.data.ActorPoolStrategy(size=workers, max_concurrent_calls_per_actor=2),
            batch_size=_BATCH,
            batch_format="pyarrow",
            num_cpus=_CPUS,
        )
        yield from answers.iter_batches(batch_size=None, batch_format="pyarrow")


class Answering(EngineWorker):
    """The worker as a class of Ray Data."""

    async def __call__(self, batch: Any) -> Any:
        """Return the results of rows."""
        keys, rows = batch.column(KEY).to_pylist(), batch.column(ROW).to_pylist()
        results = await asyncio.gather(*map(self.one, keys, rows))
        return load_pyarrow().table({KEY: keys, RESULT: results})
