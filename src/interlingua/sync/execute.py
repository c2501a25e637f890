"""The callback front door, blocking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from interlingua.api.execute import AnyMessage, ExecuteResult, ExecuteSettings
from interlingua.api.execute import ExecuteOptions as AsyncOptions
from interlingua.api.execute import execute as asynchronous
from interlingua.client.client import Client as AsyncClient
from interlingua.sync.client import Client, unwrap
from interlingua.sync.loop_thread import background


class ExecuteOptions(ExecuteSettings, total=False):
    """The options of the async function; the client may be either."""

    client: Client | AsyncClient | None


def execute(
    model: str, messages: Iterable[AnyMessage] | str, **options: Unpack[ExecuteOptions]
) -> ExecuteResult:
    """
    Ask a model, run the tools it calls, and tell callbacks of each piece as it comes.

        result = execute("openai:gpt-5.2", "Weather in Oslo?", on_chunk=show, tools=[look])
        print(result.text if result.error is None else result.error.message)

    Nothing is raised for what goes wrong: `result.error` says it. Callbacks are called in the
    thread of the background loop. From another thread, an `abort_signal` ends it early.
    """

    async def work() -> ExecuteResult:
        plain: AsyncOptions = unwrap(options)
        return await asynchronous(model, messages, **plain)

    return background.run(work())
