"""`execute`, blocking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from interlingua.api.execute import execution
from interlingua.api.execute.execution import ExecuteOptions, ExecuteResult
from interlingua.spec.messages import AnyMessage
from interlingua.sync.loop_thread import background


def execute(
    model: str | None,
    messages: Iterable[AnyMessage] | str | None = None,
    **options: Unpack[ExecuteOptions],
) -> ExecuteResult:
    """
    Ask a model, run the tools it calls, and call callbacks as the answer arrives.

        result = execute("openai:gpt-5.2", "Weather in Oslo?", on_chunk=show, tools=[look])
        print(result.text if result.error is None else result.error.message)

    Callbacks run in the thread of the background loop. Another thread can end it early with an
    `abort_signal`. Errors are not raised: they are in `result.error`, and the result has what
    arrived before. Messages may be `Message` objects, strings or plain dicts.
    """

    async def work() -> ExecuteResult:
        return await execution.execute(model, messages, **options)

    return background.run(work())
