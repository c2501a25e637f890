"""One run of a high-level function: its loop, tools, deadlines and scope."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from interlingua.api.run.clients import CLIENT_OPTIONS, adapt_client, find_client
from interlingua.api.run.limits import RunLimits
from interlingua.api.run.loop import ToolLoop, with_results
from interlingua.api.run.options import (
    OnOverflow,
    Prompt,
    TimeoutConfig,
    check_options,
    make_messages,
    make_request,
    other_prompt,
    policy_of,
    resumed_run,
    timeouts_of,
    with_system,
)
from interlingua.api.run.results import GenerateResult, StepResult
from interlingua.client.attempts import Attempts
from interlingua.client.calls import CallIds
from interlingua.client.client import Client
from interlingua.client.retry_policy import DEFAULT_POLICY
from interlingua.runtime.callbacks import settle
from interlingua.runtime.cancel import ABORTED, AbortSignal, CancelScope
from interlingua.runtime.log import log_warnings
from interlingua.spec.check import refuse
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    ContextLengthError,
    RunLimitError,
    SDKError,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import AnyTool, Request
from interlingua.spec.response import Response, Warning

if TYPE_CHECKING:
    from interlingua.api.run.validation import Goal
    from interlingua.api.tools.check import ReadyCall
    from interlingua.api.tools.context import ToolContext
    from interlingua.api.tools.runner import ToolRound, ToolRunner
    from interlingua.providers.uploads import Uploads
    from interlingua.streams.accumulate import StreamAccumulator


class Run:
    """
    The steps of `generate`; those of `stream` are in `stream_run.py`.

    A run has one request id and one scope: `client.cancel(id)` ends it during a model call, a wait
    between attempts, or a tool.
    """

    _tools: ToolRound | None = None  # the tools that are running
    _sent: Request | None = None
    _attempts: Attempts | None = None  # of the last step
    _accumulator: StreamAccumulator | None = None
    _error: Exception | None = None
    _response: Response | None = None
    _opened: CancelScope | None = None
    _partial: Response | None = None  # the last answer of a run cancelled by its id
    _cut: Response | None = None  # the same, with the finish reason "cancelled"
    _has_summarized = False
    _places_system = True  # whether a text of `system=` is put in front when the run is made
    _call_ids: CallIds | None = None  # translates the ids of tool calls, for a session

    def __init__(
        self,
        model: str | None,
        prompt: Prompt,
        options: Mapping[str, Any],
        goal: Goal | None = None,
        scope: CancelScope | None = None,
    ) -> None:
        check_options(options)
        tools: tuple[AnyTool, ...] = ()
        if "tools" in options:
            from interlingua.api.tools.tool import check_tools, read_tools

            tools = read_tools(options["tools"])
        resume = options.get("resume")
        resumed = None if resume is None else resumed_run(resume)
        system = options.get("system")
        self._make_system = system if callable(system) else None
        text = system if self._places_system and not callable(system) else None
        messages = make_messages(prompt, options.get("messages"), text, resumed)
        request = make_request(model, messages, tools, options)
        by_name = check_tools(tools) if tools else {}
        client = options.get("client")
        self.client: Client = client if isinstance(client, Client) else find_client(client)
        if not CLIENT_OPTIONS.isdisjoint(options):
            self.client = adapt_client(self.client, model, options)
        self.loop: ToolLoop = ToolLoop(
            request,
            by_name,
            max_tool_rounds=options.get("max_tool_rounds", 1),
            stop_when=options.get("stop_when"),
            resumed=resumed,
        )
        if text is not None:
            self._check_prompts()
        self._is_resumed = resumed is not None
        ends_with_answer = request.messages[-1].role == "assistant"
        timeout = options.get("timeout")
        self._timeouts = _NO_TIMEOUT if timeout is None else timeouts_of(timeout)
        is_begun = ends_with_answer or self._is_resumed
        self._has_beginning: bool = is_begun or callable(system) or timeout is not None
        self._request_id = request.request_id or ""
        self._approvals: Mapping[str, bool] | None = options.get("approvals")
        self._repair = options.get("repair_tool_call")
        has_tools = by_name or not _TOOL_OPTIONS.isdisjoint(options)
        self._runner = _make_runner(options, self.client, request) if has_tools else None
        self._deps: Any = options.get("deps")
        self._limits: RunLimits | None = options.get("limits")
        self._requests = len(self.loop.steps)  # of a run that is resumed, and of this one
        self._is_validated: bool = options.get("output_validator") is not None
        if self._is_validated:
            goal = self._validated(goal, options)
        self._goal = goal
        self._scope = scope
        self._signal: AbortSignal | None = options.get("abort_signal")
        has_policy = "retry_policy" in options or "max_retries" in options
        self._policy = policy_of(options) if has_policy else DEFAULT_POLICY
        self._logged: set[str] = set()  # codes of warnings, each logged once per run
        self._uploads: Uploads | None = None if request.upload is None else _make_uploads()
        self._on_overflow: OnOverflow = options.get("on_overflow", "raise")

    def result(self, output: object = None) -> GenerateResult[Any]:
        """The steps so far, the conversation and the output."""
        loop, cut = self.loop, self._cut
        goal = self._goal if self._is_validated else None
        if goal is not None and loop.steps and not loop.pending_approvals:
            output = goal.output(loop.steps[-1].response)
        steps, messages = tuple(loop.steps), loop.messages
        if cut is not None:
            if steps and steps[-1].response.message is cut.message:  # its tools were running
                steps = (*steps[:-1], replace(steps[-1], response=cut))
            else:
                steps = (*steps, StepResult(response=cut))
            is_new = cut.message.content and all(each is not cut.message for each in messages[-2:])
            messages = (*messages, cut.message) if is_new else messages
        return GenerateResult(
            steps=steps,
            messages=messages,
            pending_approvals=loop.pending_approvals,
            failed_usage=loop.failed_usage,
            failed_costs=loop.failed_costs,
            output=output,
        )

    def conversation(self, partial: Response | None = None) -> tuple[Message, ...]:
        """
        The conversation so far, at any moment, with a partial answer if one is given.

        It has the results of the tools that have begun.
        """
        messages = self.loop.messages
        if self._tools is not None:
            messages = with_results(messages, self._tools.settled())
        answer = None if partial is None else partial.message
        if answer is None or any(_is_same(each, answer) for each in messages):
            return messages
        return (*messages, answer)

    def add_warning(self, warning: Warning) -> None:
        """Add a warning to the last answer, and log it."""
        response = self.loop.add_warning(warning)
        if self._response is not None:
            self._response = response
        if self._sent is not None:
            log_warnings((warning,), self._sent, response.provider, self._logged)

    async def generate(self) -> GenerateResult[Any]:
        """Run all steps; each answer is read whole."""
        scope, step, calls = self._open_scope(), 0, self.client.calls
        try:
            if self._has_beginning:
                await self._begin(scope)
            while (request := self.loop.request) is not None:
                sent = self._start_step(request, scope)
                attempts = self._attempts = Attempts(
                    calls, sent, self._policy, step, self._logged, self._uploads, self._call_ids
                )
                try:
                    response = await scope.wait(attempts.answer(scope))
                except ContextLengthError as error:
                    if not await self._make_room(error, scope):
                        raise
                    continue
                tools = await self._take_answer(response, scope)
                if tools is None:
                    self.loop.finish_step()
                else:
                    await scope.wait(self._run_all(tools, scope))
                    self._finish_tools(tools)
                if self.loop.verdict is not None or self._goal is not None:
                    await self._review(scope)
                step += 1
            if scope.is_cancelled and scope.cause != "timeout":
                raise scope.error()
        except SDKError as error:
            self.account(error)
            raise
        finally:
            self._close_scope(scope)
            if self._uploads is not None:
                await self._uploads.close()
        return self.result()

    @property
    def is_aborted(self) -> bool:
        """Whether the caller's signal has fired."""
        return self._signal is not None and self._signal.aborted

    @property
    def is_cancelled(self) -> bool:
        """Whether the run was cancelled by its id."""
        return self._opened is not None and self._opened.is_quiet

    def stop(self) -> None:
        """Cancel the run, as `client.cancel` does by its id; nothing happens before it begins."""
        if self._opened is not None:
            self._opened.cancel()

    def abort_error(self) -> AbortError:
        """The error for a reader that aborted after the run ended but before reading it all."""
        reason = None if self._signal is None else self._signal.reason
        error = AbortError(reason or ABORTED)
        self.account(error)
        return error

    def account(self, error: SDKError) -> None:
        """Add the partial answer and the usage of the run to an error."""
        loop, tools = self.loop, self._tools
        error.add_facts(partial=loop.last_response)
        attempts = () if self._attempts is None else self._attempts.records
        error.add_facts(
            total_usage=loop.total_usage(error.partial),
            total_cost=loop.total_cost(error.partial, attempts),
        )
        if tools is not None:
            self._tools = None
            loop.interrupt(*tools.outcome())
        error.add_facts(messages=loop.messages, steps=tuple(loop.steps))
        if self._attempts is not None:
            self._attempts.explain(error)

    # Steps.

    def _open_scope(self) -> CancelScope:
        """The scope of the run, registered under its id for `client.cancel`."""
        self._opened = scope = self._scope or CancelScope()
        if self._signal is not None:
            scope.link(self._signal)
        self.client.calls.scopes.add(self._request_id, scope)
        return scope

    async def _start_clock(self, scope: CancelScope) -> None:
        await scope.wait(self.load())
        if self._timeouts.total is not None:
            scope.limit_total(self._timeouts.total)

    async def load(self) -> None:
        """Load what only a first call needs; a clock that starts afterwards does not count it."""
        request, calls = self.loop.request, self.client.calls
        if request is not None:
            with suppress(SDKError):  # the call itself raises it
                await calls.load(calls.routing.address(request).provider or "")

    def _close_scope(self, scope: CancelScope) -> None:
        if scope.clocks or scope.unlink is not None:
            scope.close()
        self.client.calls.scopes.remove(self._request_id, scope)

    def _start_step(self, request: Request, scope: CancelScope) -> Request:
        """The request to send in this step; also starts the clock of the step."""
        if self._timeouts.per_step is not None:
            scope.end_step()
            scope.limit_step(self._timeouts.per_step)
        if self._limits is not None:
            self._limits.check_request(self._requests)
            self._requests += 1
        if self._goal is not None:
            request = self._goal.ask(request, is_last=self.loop.is_out_of_rounds)
        if self._deps is not None:
            request = replace(request, context=self._context())
        self._sent = request
        return request

    def _validated(self, goal: Goal | None, options: Mapping[str, Any]) -> Goal:
        """The goal with the validator of the caller."""
        from interlingua.api.run.validation import ValidatedGoal

        retries = options.get("max_validation_retries")
        times = 1 if retries is None else retries
        return ValidatedGoal(goal, options["output_validator"], self._context, times)

    def _context(self) -> ToolContext[Any]:
        from interlingua.api.tools.context import ToolContext

        signal = (self._opened or CancelScope()).signal
        return ToolContext(messages=self.loop.messages, abort_signal=signal, deps=self._deps)

    async def _begin(self, scope: CancelScope) -> tuple[ToolResult, ...]:
        """What comes before the first request; returns the results of calls that were open."""
        if self._timeouts is not _NO_TIMEOUT:
            await self._start_clock(scope)
        if self._make_system is not None:
            await self._set_system(scope)
        if self._is_resumed or self.loop.messages[-1].role == "assistant":
            return await self._resume(scope)
        return ()

    async def _set_system(self, scope: CancelScope) -> None:
        """Put what the function of `system=` returns before the conversation."""
        text = await scope.wait(settle(self._make_system(self._context())))  # type: ignore[misc]
        if text is None:
            return
        if not isinstance(text, str):
            kind = type(text).__name__
            raise ConfigurationError(f"The function of system= returned a {kind}, not a string.")
        self.loop.begin_with(with_system(text, self.loop.messages))
        self._check_prompts()

    def _check_prompts(self) -> None:
        """Warn of a system message beside that of `system=`."""
        warning = other_prompt(self.loop.messages)
        if warning is not None:
            self.loop.warn(warning)

    def _check_limits(self, limits: RunLimits, calls: tuple[ToolCall, ...]) -> None:
        """Raise `RunLimitError` if the answer, or the calls in it, are too much."""
        loop = self.loop
        before = sum(len(step.tool_results) for step in loop.steps)
        try:
            answer = loop.last_response or Response()
            model = f"{answer.provider}:{answer.model}"
            usage = loop.total_usage()
            if usage is not None:
                limits.check_answers(usage, loop.total_cost(), model)
            limits.check_calls(before, len(calls))
        except RunLimitError:
            loop.interrupt()  # the answer becomes the last step
            raise

    async def _make_room(self, error: ContextLengthError, scope: CancelScope) -> bool:
        """Shorten a history that did not fit; False if that is not allowed or not possible."""
        policy = self._on_overflow
        if policy == "raise" or self._sent is None:
            return False
        from interlingua.wire.classify import overflow_figures

        used, limit = overflow_figures(error.message)
        if limit is None:
            limit = self.client.profile_for(self._sent).context_window
        if not callable(policy):
            return self.loop.shorten(used, limit)
        dropped = self.loop.droppable(used, limit)
        if not dropped or self._has_summarized:
            return False
        self._has_summarized = True  # a summary that does not help once will not help again
        summary = await scope.wait(settle(policy(self.loop.summarizable(dropped))))
        if not isinstance(summary, str):
            refuse("the result of on_overflow", "a string", summary)
        self.loop.drop(dropped, summary, code="history_summarized")
        return True

    async def _take_answer(self, response: Response, scope: CancelScope) -> ToolRound | None:
        """Give the answer to the loop; the calls to run, None if there are none."""
        if scope.clocks:
            scope.end_step()
        calls = self.loop.feed(response)
        self._accumulator = None  # from here on the loop has the answer
        added, attempts = self.loop.added_warnings, self._attempts
        if added and attempts is not None:
            log_warnings(added, attempts.request, response.provider, self._logged)
        if self._limits is not None:
            self._check_limits(self._limits, calls)
        if not calls:
            return None
        ready = await self._ready(calls, scope)
        waits = [item.waits for item in ready]
        if any(waits):
            self.loop.pause([item.call for item in ready], waits)
            return None
        from interlingua.api.tools.runner import ToolRound

        return ToolRound(ready, self.loop.messages)

    def _finish_tools(self, tools: ToolRound) -> StepResult:
        self._tools = None
        return self.loop.finish_step(*tools.outcome())

    async def _review(self, scope: CancelScope) -> None:
        """Whether to go on: `stop_when` may be async, and the goal may ask for a better answer."""
        loop, goal = self.loop, self._goal
        if loop.verdict is not None:
            await scope.wait(loop.judge())
        if goal is not None and loop.request is None and not loop.pending_approvals:
            reply = await scope.wait(settle(goal.review(loop.steps[-1].response)))
            if reply:
                loop.ask_again(reply)

    async def _resume(self, scope: CancelScope) -> tuple[ToolResult, ...]:
        """
        Run the open calls at the end of the conversation; returns their results.

        They are those of a run that is resumed, or those that were waiting for approval.
        """
        calls = self.loop.open_calls()
        tools = [self.loop.tools.get(call.name) for call in calls]
        if self._is_resumed:
            self._check_resumable(calls)
            if self._limits is not None:
                self._limits.check_request(self._requests)
                self._check_limits(self._limits, calls)
        elif self._approvals is None and not any(tool and tool.needs_approval for tool in tools):
            return ()
        if not calls:
            return ()
        from interlingua.api.tools.check import decide
        from interlingua.api.tools.runner import ToolRound

        ready = decide(await self._ready(calls, scope), self._approvals or {})
        if self._approvals is None and not self._is_resumed:
            return ()
        round_ = ToolRound(ready, self.loop.messages)
        await scope.wait(self._run_all(round_, scope))
        self._tools = None
        self.loop.resume(*round_.outcome())
        return round_.settled()

    def _check_resumable(self, calls: tuple[ToolCall, ...]) -> None:
        """Raise `ConfigurationError` if the run has nothing to go on with."""
        last = self.loop.messages[-1]
        if not calls and last.role == "assistant":
            reason = last.metadata.get("finish_reason", "unknown")
            raise ConfigurationError(
                f"There is nothing to resume: the run has ended (finish reason {reason!r}). To "
                "continue the conversation, pass messages=[*result.messages, ...]."
            )
        for call in calls:
            tool = self.loop.tools.get(call.name)
            if tool is not None and not tool.is_active:
                raise ConfigurationError(
                    f"The call {call.id!r} of {call.name!r} cannot be run, because the tool has no "
                    "function. Add its result to messages= instead of using resume=."
                )

    async def _ready(
        self, calls: tuple[ToolCall, ...], scope: CancelScope
    ) -> tuple[ReadyCall, ...]:
        tools, attempts = self.loop.tools, self._attempts
        if attempts is None:  # the calls are those of an earlier run
            left_out = self.client.calls.left_out(self.loop.request_of(calls))
        else:
            left_out = attempts.left_out
        if left_out:  # the model does not know these
            tools = {name: tool for name, tool in tools.items() if name not in left_out}
        from interlingua.api.tools.check import prepare

        return await scope.wait(prepare(calls, tools, self._repair))

    async def _run_all(self, tools: ToolRound, scope: CancelScope) -> None:
        from interlingua.api.tools.runner import ToolRunner

        self._tools = tools
        runner = self._runner or ToolRunner()  # a model may also call tools without having any
        async for _ in runner.run(tools, scope.signal):
            pass


def _is_same(left: Message, right: Message) -> bool:
    """Whether they are one answer; a copy of it may have other calls."""
    return left is right or (left.id is not None and left.id == right.id)


def _make_runner(options: Mapping[str, Any], client: Client, request: Request) -> ToolRunner:
    from interlingua.api.tools.runner import ToolRunner

    return ToolRunner.of(options, client.tool_layers, request)


def _make_uploads() -> Uploads:
    from interlingua.providers.uploads import Uploads

    return Uploads()


_NO_TIMEOUT = TimeoutConfig()
_TOOL_OPTIONS = frozenset(
    ("tool_timeout", "max_concurrent_tools", "max_tool_output", "tool_observer")
)
