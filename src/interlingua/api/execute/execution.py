"""The callback front door: callbacks are told what happens, errors are returned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Mapping
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
from interlingua.api.run.abort import AbortController, AbortSignal
from interlingua.api.run.default_client import get_default_client
from interlingua.api.run.generate import StreamResult
from interlingua.api.run.options import AnyTool, TimeoutConfig, check_options, timeouts_of
from interlingua.api.run.run import Run
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog.models import providers_of
from interlingua.providers.rows import providers
from interlingua.spec.errors import ConfigurationError, RequestTimeoutError, SDKError
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
        self._controller = AbortController()
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
        self._controller.abort("the execution was cancelled")

    async def _work(
        self, model: str, messages: Iterable[AnyMessage] | str, options: ExecuteOptions
    ) -> ExecuteResult:
        teller = Teller(options, lambda: self._controller.abort("a callback failed"))
        record = _Record()
        failure: Exception | None = None
        clock = _Clock(teller)
        unlink = self._link(options.get("abort_signal"), teller)
        try:
            try:
                clock.start(options.get("timeout"))
                await self._run(model, messages, options, teller, record)
            except Exception as error:  # noqa: BLE001 -- errors are returned; that is the point
                failure = error
            await teller.settle()
        finally:
            unlink()
            clock.stop()
            teller.stop()
        failure = failure or clock.error
        if teller.error is not None:
            return record.result(ExecuteError.of(teller.error, CALLBACK_FAILED), failure)
        return record.result(None if failure is None else ExecuteError.of(failure), failure)

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
                    "abort_signal": self._controller.signal,
                    "tool_observer": teller,
                },
            )
            record.run = run
            async with StreamResult(run) as events:
                async for event in events:
                    record.feed(event)
                    teller.tell(event)
                    if not teller.is_settled:
                        await teller.settle()
                    if teller.error is not None:
                        record.partial = events.partial_response
                        return

    def _link(self, signal: AbortSignal | None, teller: Teller) -> Callable[[], None]:
        """Pass on what the caller's signal says, also to a callback that hangs."""
        loop = asyncio.get_running_loop()
        own = self._controller.signal
        links = [own.add_callback(lambda: loop.call_soon_threadsafe(teller.stop))]
        if signal is not None:
            links.append(signal.add_callback(lambda: self._controller.abort(signal.reason or "")))

        def unlink() -> None:
            for remove in links:
                remove()

        return unlink


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


class _Clock:
    """The time for everything, callbacks included: the run sees to the rest of it."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self._timer: asyncio.TimerHandle | None = None
        self.error: RequestTimeoutError | None = None

    def start(self, timeout: float | TimeoutConfig | None) -> None:
        """From now on."""
        check_options({"timeout": timeout})
        total = timeouts_of(timeout).total
        if total is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(total, self._expire, f"{total:g} s")

    def stop(self) -> None:
        """It came in time."""
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self, total: str) -> None:
        self.error = RequestTimeoutError(
            f"it took longer than {total} in all", phase="request", retryable=False
        )
        self._teller.stop()


class _Record:
    """What has come so far."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self.partial: Response | None = None
        """An answer that was left in its middle."""

    def feed(self, event: Any) -> None:
        """One event of the run."""
        if event.type == "text_delta":
            self._texts.append(event.delta)
        elif event.type == "reasoning_delta":
            self._thoughts.append(event.delta)

    def result(self, error: ExecuteError | None, failure: Exception | None) -> ExecuteResult:
        """The whole of it."""
        loop = None if self.run is None else self.run.loop
        partial = failure.partial if isinstance(failure, SDKError) else self.partial
        last = partial if loop is None else partial or loop.last_response
        usage = None if loop is None else loop.total_usage(partial)
        return ExecuteResult(
            text="".join(self._texts),
            reasoning="".join(self._thoughts) or None,
            usage=ExecuteUsage() if usage is None else ExecuteUsage.of(usage),
            error=error,
            finish_reason=None if last is None else last.finish_reason.reason,
            messages=() if loop is None else loop.messages,
            pending_approvals=() if loop is None else loop.pending_approvals,
        )


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the run takes as it is."""
    fields = {name: value for name, value in options.items() if name not in _OURS}
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
