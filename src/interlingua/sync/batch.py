"""
The functions of `interlingua.batch`, blocking.

Each has the parameters and results of the async function it names.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Unpack

from interlingua.api.modalities import batch as async_batch
from interlingua.api.modalities.batch import INTERVAL, BatchName, SubmitSettings
from interlingua.api.modalities.batch_items import BatchItems
from interlingua.client.client import Client as AsyncClient
from interlingua.spec.modalities.batch import Batch, BatchResult
from interlingua.sync.blocking_iterator import BlockingIterator
from interlingua.sync.client import Client, unwrap
from interlingua.sync.loop_thread import background
from interlingua.sync.media import MediaOptions

__all__ = [
    "SubmitOptions",
    "cancel",
    "delete",
    "list",
    "results",
    "status",
    "submit",
    "wait",
]


class SubmitOptions(SubmitSettings, total=False):
    """The options of `submit`; the client may be blocking or async."""

    client: Client | AsyncClient | None


def submit(items: BatchItems, model: str | None = None, **options: Unpack[SubmitOptions]) -> Batch:
    """Like `interlingua.batch.submit`, blocking."""
    return background.run(async_batch.submit(items, model, **unwrap(options)))


def status(batch: BatchName, **options: Unpack[MediaOptions]) -> Batch:
    """Like `interlingua.batch.status`, blocking."""
    return background.run(async_batch.status(batch, **unwrap(options)))


def wait(
    batch: BatchName,
    *,
    poll_interval: float = INTERVAL,
    on_progress: Callable[[Batch], Any] | None = None,
    **options: Unpack[MediaOptions],
) -> Batch:
    """Like `interlingua.batch.wait`, blocking."""
    work = async_batch.wait(
        batch, poll_interval=poll_interval, on_progress=on_progress, **unwrap(options)
    )
    return background.run(work)


def results(
    batch: BatchName, *, requests: BatchItems | None = None, **options: Unpack[MediaOptions]
) -> BlockingIterator[BatchResult]:
    """
    Like `interlingua.batch.results`, as a blocking iterator.

        for result in results("openai:batch_68f1…"):
            print(result.id, result.error or result.response.text)
    """
    found = async_batch.results(batch, requests=requests, **unwrap(options))
    return BlockingIterator(aiter(found))


def cancel(batch: BatchName, **options: Unpack[MediaOptions]) -> Batch:
    """Like `interlingua.batch.cancel`, blocking."""
    return background.run(async_batch.cancel(batch, **unwrap(options)))


def list(
    target: str, *, limit: int | None = None, **options: Unpack[MediaOptions]
) -> builtins.list[Batch]:
    """Like `interlingua.batch.list`, blocking."""
    return background.run(async_batch.list_batches(target, limit=limit, **unwrap(options)))


def delete(batch: BatchName, **options: Unpack[MediaOptions]) -> None:
    """Like `interlingua.batch.delete`, blocking."""
    background.run(async_batch.delete(batch, **unwrap(options)))
