"""
Bulk: a data set through any model; each row is paid for once.

    from interlingua import bulk

    report = await bulk.run(
        "books.csv", "genres.jsonl", model="openai:gpt-5.2", prompt="Genre of {title}?", max_usd=5
    )

`bulk.sync` has the same functions, blocking.

`job` makes the request of a row, `reading` and `writing` are the tables, `ledger` is what was paid
for, `worker` answers rows anywhere, `loop` is the job on one machine.
"""

from typing import TYPE_CHECKING

from interlingua.lazy import names_of

if TYPE_CHECKING:
    from interlingua.bulk import sync as sync
    from interlingua.bulk.answers import Answer
    from interlingua.bulk.job import Job
    from interlingua.bulk.loop import run
    from interlingua.bulk.options import BulkOptions, Progress
    from interlingua.bulk.report import Distribution, ModelCost, Report, Sample
    from interlingua.bulk.state import export, read_rows, status
    from interlingua.bulk.vectors import embed
    from interlingua.bulk.worker import Worker, WorkerConfig

__all__ = [
    "Answer",
    "BulkOptions",
    "Distribution",
    "Job",
    "ModelCost",
    "Progress",
    "Report",
    "Sample",
    "Worker",
    "WorkerConfig",
    "embed",
    "export",
    "read_rows",
    "run",
    "status",
]
if not TYPE_CHECKING:  # a type checker would accept any name if it saw `__getattr__`
    __getattr__ = names_of(
        __name__,
        {
            ".answers": ("Answer",),
            ".job": ("Job",),
            ".loop": ("run",),
            ".options": ("BulkOptions", "Progress"),
            ".report": ("Distribution", "ModelCost", "Report", "Sample"),
            ".state": ("export", "read_rows", "status"),
            ".vectors": ("embed",),
            ".worker": ("Worker", "WorkerConfig"),
        },
        modules=("sync",),
    )
