"""The callback front door: callbacks are told what happens, errors are returned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Unpack

from interlingua.api.execute.callbacks import Callbacks, Teller
from interlingua.api.execute.messages import AnyMessage, decode_messages
from interlingua.api.execute.results import (
    CALLBACK_FAILED,
    ExecuteError,
    ExecuteResult,
    ExecuteUsage,
)
from interlingua.api.run.default_client import get_default_client
from interlingua.api.run.generate import StreamResult
from interlingua.api.run.options import AnyTool, TimeoutConfig, check_options, timeouts_of
from interlingua.api.run.run import Run
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.cancel import AbortSignal, CancelScope
from interlingua.providers.catalog.models import providers_of
from interlingua.providers.rows import providers
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.request import ToolChoice
from interlingua.spec.response import Response

MAX_TOOL_ROUNDS = 20
"""How often the calls of an answer are run and sent back, unless said."""


class ExecuteSettings(Callbacks, total=False):
    """What is said to the model, how, and who is told."""

    system: str | None
    tools: Iterable[AnyTool] | None
    tool_choice: ToolChoice | str | None
    """`auto`, `none`, or what `generate` takes besides; left out if there are no tools."""
    temperature: float | None
    max_tokens: int | None
    thinking_budget: int | None
    reasoning_effort: str | None
    provider: str | None
    provider_options: Mapping[str, Any]
    max_tool_rounds: int
    tool_timeout: float | None
    approvals: Mapping[str, bool] | None
    """Decisions about `result.pending_approvals`, by the id of the call."""
    max_retries: int
    timeout: float | TimeoutConfig | None
    abort_signal: AbortSignal | None
    api_key: str | None
    """For this execution alone, which then has connections of its own; else of the client."""
    base_url: str | None
    """Where the provider is, with `api_key`."""


class ExecuteOptions(ExecuteSettings, total=False):
    """And by whom."""

    client: Client | None


_OURS = frozenset((*Callbacks.__annotations__, "api_key", "base_url", "abort_signal", "client"))


class Execution:
    """
    An execution under way: await it for its result, which also says if it failed.

    It may be awaited more than once, or not at all. Cancelling a task that awaits it ends it too.
    """

    def __init__(
        self, model: str, messages: Iterable[AnyMessage] | str, options: ExecuteOptions
    ) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise ConfigurationError(
                "execute needs a running event loop; in blocking code use interlingua.sync.execute"
            ) from None
        # callbacks count: the clocks do not stand still while one of them runs
        self._scope = CancelScope(pauses=False)
        self._task = loop.create_task(self._work(model, messages, options))
        _under_way.add(self._task)  # a task that nobody holds may be collected before it is done
        self._task.add_done_callback(_under_way.discard)

    def __await__(self) -> Generator[Any, None, ExecuteResult]:
        return self._task.__await__()

    @property
    def is_done(self) -> bool:
        """Whether it is over."""
        return self._task.done()

    def cancel(self) -> None:
        """
        Stop it, from any thread: the connection is closed, and tools are cancelled.

        The result has what came until then, and an error with the code `cancelled`.
        """
        self._scope.cancel("the execution was cancelled")

    async def _work(
        self, model: str, messages: Iterable[AnyMessage] | str, options: ExecuteOptions
    ) -> ExecuteResult:
        scope, loop = self._scope, asyncio.get_running_loop()
        teller = Teller(options, lambda: scope.cancel("a callback failed"))
        # a callback that hangs is ended too
        scope.signal.add_callback(lambda: loop.call_soon_threadsafe(teller.stop))
        record = _Record()
        failure: Exception | None = None
        try:
            try:
                self._limit(options)
                await self._run(model, messages, options, teller, record)
            except Exception as error:  # noqa: BLE001 -- errors are returned; that is the point
                failure = error
            await teller.settle()
        finally:
            scope.close()
            teller.stop()
        if failure is None and scope.cause == "timeout":
            failure = scope.error()
        if teller.error is not None:
            return record.result(ExecuteError.of(teller.error, CALLBACK_FAILED), failure)
        return record.result(None if failure is None else ExecuteError.of(failure), failure)

    def _limit(self, options: ExecuteOptions) -> None:
        """End it with the caller's signal, and when its time is over."""
        signal, timeout = options.get("abort_signal"), options.get("timeout")
        check_options({"abort_signal": signal, "timeout": timeout})
        if signal is not None:
            self._scope.link(signal)
        total = timeouts_of(timeout).total
        if total is not None:
            self._scope.limit_total(total)

    async def _run(
        self,
        model: str,
        messages: Iterable[AnyMessage] | str,
        options: ExecuteOptions,
        teller: Teller,
        record: _Record,
    ) -> None:
        fields = _fields(options)
        async with _client_for(model, options) as client:
            run = Run(
                model,
                None,
                {
                    "max_tool_rounds": MAX_TOOL_ROUNDS,
                    **fields,
                    "messages": decode_messages(messages),
                    "client": client,
                    "tool_observer": teller,
                },
                scope=self._scope,
            )
            record.run = run
            async with StreamResult(run) as events:
                async for event in events:
                    teller.tell(event)
                    if not teller.is_settled:
                        await teller.settle()
                    if teller.error is not None:
                        record.partial = events.partial_response
                        return


_under_way: set[asyncio.Task[ExecuteResult]] = set()


def execute(
    model: str, messages: Iterable[AnyMessage] | str, **options: Unpack[ExecuteOptions]
) -> Execution:
    """
    Ask a model, run the tools it calls, and tell callbacks of each piece as it comes.

        execution = execute("openai:gpt-5.2", "Weather in Oslo?", on_chunk=show, tools=[look])
        result = await execution  # execution.cancel() ends it early
        print(result.text if result.error is None else result.error.message)

    It begins at once. Nothing is raised for what goes wrong: `result.error` says it, and the
    result has what came before. Messages may be ours or plain dicts.
    """
    return Execution(model, messages, options)


class _Record:
    """What has come so far."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.partial: Response | None = None
        """An answer that was left in its middle."""

    def result(self, error: ExecuteError | None, failure: Exception | None) -> ExecuteResult:
        """The whole of it."""
        if self.run is None:
            return ExecuteResult(error=error)
        loop = self.run.loop
        partial = failure.partial if isinstance(failure, SDKError) else self.partial
        answers = loop.answers(partial)
        thoughts = "".join(answer.reasoning or "" for answer in answers)
        usage = loop.total_usage(partial)
        return ExecuteResult(
            text="".join(answer.text for answer in answers),
            reasoning=thoughts or None,
            usage=ExecuteUsage() if usage is None else ExecuteUsage.of(usage),
            error=error,
            finish_reason=answers[-1].finish_reason.reason if answers else None,
            messages=loop.messages,
            pending_approvals=loop.pending_approvals,
        )


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the run takes as it is."""
    fields = {name: value for name, value in options.items() if name not in _OURS}
    per_step = timeouts_of(fields.pop("timeout", None)).per_step
    fields["timeout"] = TimeoutConfig(per_step=per_step)
    tools = fields.get("tools")
    if tools is not None:
        fields["tools"] = tools = tuple(tools)
    if not tools:  # providers refuse a choice without tools
        fields.pop("tool_choice", None)
    return fields


@asynccontextmanager
async def _client_for(model: str, options: ExecuteOptions) -> AsyncIterator[Client]:
    """The client that was given, the default one, or one for the key that was given."""
    key, client = options.get("api_key"), options.get("client")
    if key is None:
        yield client or get_default_client()
        return
    if client is not None:
        raise ConfigurationError("pass either client or api_key, and not both")
    name = options.get("provider") or _provider_of(model)
    adapter = HttpAdapter(name, key, base_url=options.get("base_url"))
    async with Client({name: adapter}, default_provider=name) as made:
        yield made


def _provider_of(model: str) -> str:
    prefix, colon, _ = model.partition(":")
    if colon and prefix in providers():
        return prefix
    serving = providers_of(model)
    if len(serving) != 1:
        raise ConfigurationError(
            f"it is not known whose key that is: say provider:{model}, or pass provider="
        )
    return serving[0]
