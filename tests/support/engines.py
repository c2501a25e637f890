"""An engine in a few lines, which loses and doubles what a test wants."""

import asyncio

import pyarrow as pa

from interlingua.bulk.engines.worker import KEY, RESULT, ROW, EngineWorker


class PlainEngine:
    """Answers all rows in this process; `damage` changes the list of keys and results."""

    name = "Plain"
    is_one_process = True

    def __init__(self, damage=lambda pairs: pairs, leave_out=()):
        self._damage = damage
        self._leave_out = leave_out
        self.is_open = None

    def open(self):
        self.is_open = True

    def close(self):
        self.is_open = False

    def answers(self, work, table):
        pairs = zip(table.column(KEY).to_pylist(), table.column(ROW).to_pylist(), strict=True)
        found = asyncio.run(
            self._work(work, [each for each in pairs if each[0] not in self._leave_out])
        )
        for key, result in self._damage(found):
            yield pa.table({KEY: [key], RESULT: [result]})

    @staticmethod
    async def _work(work, pairs):
        worker = EngineWorker(work)
        results = await asyncio.gather(*(worker.one(key, row) for key, row in pairs))
        return [(key, result) for (key, _), result in zip(pairs, results, strict=True)]
