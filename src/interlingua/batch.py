"""
Batches: many requests that a provider answers within a day, at a lower price.

    from interlingua import batch

    job = await batch.submit({"de": "Translate 'sea' into German."}, "openai:gpt-5.2")
    job = await batch.wait(job.reference)
    async for result in batch.results(job):
        print(result.id, result.error or result.response.text)
"""

from interlingua.api.modalities.batch import (
    BatchResults,
    SubmitOptions,
    cancel,
    delete,
    results,
    status,
    submit,
    wait,
)
from interlingua.api.modalities.batch import list_batches as list
from interlingua.spec.modalities.batch import Batch, BatchCounts, BatchFault, BatchResult

__all__ = [
    "Batch",
    "BatchCounts",
    "BatchFault",
    "BatchResult",
    "BatchResults",
    "SubmitOptions",
    "cancel",
    "delete",
    "list",
    "results",
    "status",
    "submit",
    "wait",
]
