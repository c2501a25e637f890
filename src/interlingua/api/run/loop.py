"""
The tool loop as a state machine without I/O.

    while (request := loop.request) is not None:
        calls = loop.feed(response to request)
        if some of them need approval:
            loop.pause(calls, whether each one waits for approval)
            loop.finish_step()
        else:
            loop.finish_step(results of calls)

At the end, `loop.steps` has all steps and `loop.messages` the whole conversation.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from interlingua import dialects
from interlingua.api.run.results import (
    StepResult,
    costs_of,
    failed_costs_of,
    failed_usage_of,
    sum_usage,
)
from interlingua.spec.content import Part, Text, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolChoice
from interlingua.spec.response import (
    Attempt,
    Cost,
    Reason,
    Response,
    Usage,
    Warning,
    sum_costs,
    with_usage,
)
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import extra_of, merge

if TYPE_CHECKING:
    from interlingua.api.tools.tool import Tool

StopCondition: TypeAlias = Callable[[Sequence[StepResult]], bool | Awaitable[bool]]
"""Says, after the tools of a step have run, whether the run ends there; sync or async."""

_UNSAFE = ("length", "content_filter", "cancelled", "error")  # calls may be cut off or unwanted
_PAUSED: Reason = "other"  # the canonical reason for the raw reasons in `HistoryRules.paused`
_CUT: Reason = "length"

MAX_CONTINUATIONS = 20
"""How often a provider that pauses its turn is asked to continue."""


class ToolLoop:
    """
    One conversation of a model with tools.

    The calls of an answer are run and their results sent back at most `max_tool_rounds` times.
    They are not run if the answer was cut off, or if one of them is for a tool without a handler:
    then they are left to the caller. Approval is checked by the code that runs them, because it
    may have to wait.
    """

    def __init__(
        self,
        request: Request,
        tools: Mapping[str, Tool],
        *,
        max_tool_rounds: int = 1,
        stop_when: StopCondition | None = None,
        resumed: object = None,
    ) -> None:
        if max_tool_rounds < 0:
            raise ConfigurationError("`max_tool_rounds` must be 0 or more.")
        self._first = request
        choice = request.tool_choice
        self.tools: Mapping[str, Tool] = tools if choice is None else callable_tools(tools, choice)
        """The tools that may be called, by name. A call of another tool is answered as unknown."""
        self._runs_tools = bool(tools) and any(tool.is_active for tool in tools.values())
        self._max_rounds = self._rounds_left = max_tool_rounds
        self._stop_when = stop_when
        self._continuations = 0
        self._tries = 0  # to shorten the history for the next answer
        self._has_run = False
        self.dropped: set[int] = set()
        """The positions of the messages that are not sent."""
        self.summary: str | None = None
        """What is sent in their place."""
        self._new_warnings: tuple[Warning, ...] = ()
        self.added_warnings: tuple[Warning, ...] = ()
        """What the loop itself has added to the warnings of the last answer."""
        self.request: Request | None = request
        """The next request; None when the loop is over."""
        self.verdict: Awaitable[bool] | None = None
        """What an async `stop_when` returned after the last step; `judge` waits for it."""
        self._answer: Response | None = None
        self._unfinished: Response | None = None  # the first part of an answer that is continued
        self.messages: tuple[Message, ...] = request.messages
        self.steps: list[StepResult] = []
        self.failed_usage: Usage | None = None
        """The tokens of failed answers, of a run that is resumed."""
        self.failed_costs: tuple[Cost | None, ...] = ()
        if resumed is not None:
            self.steps += getattr(resumed, "steps", None) or ()
            self.failed_usage = failed_usage_of(resumed)
            self.failed_costs = failed_costs_of(resumed, self.failed_usage)
        self.pending_approvals: tuple[ToolCall, ...] = ()

    @property
    def is_out_of_rounds(self) -> bool:
        """Whether tools have run and no more will be run."""
        return self._rounds_left <= 0 and self._has_run

    @property
    def last_response(self) -> Response | None:
        """The newest answer, even if it is incomplete or its tools are still running."""
        last = self._answer or self._unfinished
        return self.steps[-1].response if last is None and self.steps else last

    def has_answer(self, response: Response) -> bool:
        """Return whether it is the answer of the last step; one that was paused is none yet."""
        return bool(self.steps) and self.steps[-1].response is response

    def add_warning(self, warning: Warning) -> Response:
        """Return the answer of the last step with one more warning, which it has from now on."""
        step = self.steps[-1]
        response = replace(step.response, warnings=(*step.response.warnings, warning))
        self.steps[-1] = replace(step, response=response)
        return response

    def answers(self, partial: Response | None = None) -> list[Response]:
        """Return all answers so far, and one that was cut off."""
        answers = [step.response for step in self.steps]
        for answer in (self._answer, self._unfinished, partial):
            if answer is not None and all(answer is not other for other in answers):
                answers.append(answer)
        return answers

    def total_usage(self, partial: Response | None = None) -> Usage | None:
        """Return the tokens of `answers(partial)`; None if there are no answers."""
        answers = self.answers(partial)
        if not answers and self.failed_usage is None:
            return None
        return sum_usage(answers, self.failed_usage)

    def total_cost(
        self, partial: Response | None = None, attempts: Sequence[Attempt] = ()
    ) -> Cost | None:
        """
        Return the cost of `answers(partial)`; None without answers, or if a price is unknown.

        `attempts` are those of the last call. They count if it has no answer.
        """
        answers = self.answers(partial)
        costs = [cost for answer in answers for cost in costs_of(answer)]
        if attempts and all(attempts[-1] not in answer.attempts for answer in answers):
            costs += [attempt.cost for attempt in attempts if attempt.usage is not None]
        return sum_costs((*costs, *self.failed_costs))

    def open_calls(self) -> tuple[ToolCall, ...]:
        """Return the open tool calls at the end of the conversation, to be run by `resume`."""
        messages = list(self.messages)
        answered: Counter[str] = Counter()
        while messages and messages[-1].role == "tool":
            results = (part for part in messages.pop().content if isinstance(part, ToolResult))
            answered.update(result.tool_call_id for result in results)
        last = messages[-1] if messages else None
        if last is None or last.metadata.get("finish_reason") in _UNSAFE:
            return ()
        calls = []
        for call in last.tool_calls:
            answered[call.id] -= 1
            if answered[call.id] < 0:
                calls.append(call)
        return tuple(calls)

    def request_of(self, calls: Sequence[ToolCall]) -> Request:
        """Return the request that these tool calls answer, as far as the conversation shows it."""
        end, ids = len(self.messages), {call.id for call in calls}
        while end and not ids <= {call.id for call in self.messages[end - 1].tool_calls}:
            end -= 1
        return replace(self._first, messages=self.messages[: max(0, end - 1)])

    def resume(
        self, results: Sequence[ToolResult], errors: Mapping[str, Exception] | None = None
    ) -> None:
        """
        Add the results of the open calls before the first request; they count as a round.

        They are also those of the last step of the run that is resumed.
        """
        self._add_results(results)
        if self.steps:
            last = self.steps[-1]
            self.steps[-1] = replace(
                last,
                tool_results=(*last.tool_results, *results),
                tool_errors={**last.tool_errors, **(errors or {})},
            )
        self.request = self._next()

    def interrupt(
        self, results: Sequence[ToolResult] = (), errors: Mapping[str, Exception] | None = None
    ) -> None:
        """
        End the loop in the middle of a step, with the results that there are.

        The conversation keeps them, so that a run that resumes it does not run a tool again.
        """
        if self._answer is not None:
            step = StepResult(
                response=self._answer, tool_results=tuple(results), tool_errors=errors or {}
            )
            self.steps.append(step)
            self._answer = None
        self._add_results(results)

    def shorten(self, used: int | None = None, limit: int | None = None) -> bool:
        """
        Leave the oldest turns and tool rounds out of the request; False if none can be left out.

        `used` is the provider's count of the request's tokens, `limit` what fits. Without a limit,
        or if two tries did not fit, half of what may be left out is: each request is paid and takes
        time. It stays in `messages`, and the answer gets a warning.
        """
        dropped = self.droppable(used, limit if self._tries < _TRIES else None)
        self._tries += 1
        if dropped:
            self.drop(dropped)
        return bool(dropped)

    def droppable(self, used: int | None = None, limit: int | None = None) -> tuple[int, ...]:
        """Return the positions of the messages that `shorten` would leave out."""
        if self.request is None:
            return ()
        from interlingua.prepare.history.messages import droppable_units

        sent = [at for at in range(len(self.messages)) if at not in self.dropped]
        units = droppable_units(tuple(self.messages[at] for at in sent))
        count = half_of(units)
        if units and limit is not None:
            count = count_to_drop(self.request, units, used, limit)
        return tuple(sent[at] for unit in units[:count] for at in unit)

    def summarizable(self, positions: Sequence[int]) -> tuple[Message, ...]:
        """Messages to be dropped; what an earlier summary says is in the first user message."""
        messages = tuple(self.messages[at] for at in positions)
        return messages if self.summary is None else with_summary(messages, self.summary)

    def drop(
        self,
        positions: Iterable[int],
        summary: str | None = None,
        *,
        code: str | None = "history_truncated",
    ) -> None:
        """Leave messages out of the requests; `summary` is sent in their place."""
        self.dropped |= set(positions)
        self.summary = self.summary if summary is None else summary
        if self.request is not None:
            self.request = replace(self.request, messages=self._sent())
        if code is not None:
            others = (each for each in self._new_warnings if each.code != code)
            warning = make_warning(code, "messages", count=len(self.dropped))
            self._new_warnings = (*others, warning)

    def warn(self, warning: Warning) -> None:
        """Add a warning to those of the next answer."""
        self._new_warnings = (*self._new_warnings, warning)

    def feed(self, response: Response) -> tuple[ToolCall, ...]:
        """Take the answer to `request`; returns the calls to run."""
        self._tries = 0
        self.added_warnings, self._new_warnings = self._new_warnings, ()
        if self.added_warnings:
            response = replace(response, warnings=(*response.warnings, *self.added_warnings))
        if self._unfinished is not None:
            response, self._unfinished = join_answers(self._unfinished, response), None
        self._answer = response
        if response.finish_reason.reason == _CUT and self._has_continuation(response):
            return ()
        self.messages = (*self.messages, response.message)
        calls = response.message.tool_calls
        if not calls or not self._can_run(response, calls):
            return ()
        if self._rounds_left > 0:
            return calls
        if self._max_rounds:  # 0 asks that no tool is run
            names = ", ".join(dict.fromkeys(call.name for call in calls))
            rounds = f"{self._max_rounds} tool round{'s' if self._max_rounds > 1 else ''}"
            warning = make_warning("tool_rounds_exhausted", rounds=rounds, names=names)
            self.added_warnings = (*self.added_warnings, warning)
            self._answer = replace(response, warnings=(*response.warnings, warning))
        return ()

    def pause(self, calls: Sequence[ToolCall], waits: Sequence[bool]) -> None:
        """
        Leave the calls that `feed` returned to a later run, because some need approval.

        The conversation gets the calls exactly as they will be run, so that what is approved is
        what is executed. Calls with the same id get different ids.
        """
        calls = _make_ids_unique(calls)
        self.pending_approvals = tuple(
            call for call, waiting in zip(calls, waits, strict=True) if waiting
        )
        *before, last = self.messages
        replacements = iter(calls)
        content = tuple(
            next(replacements) if type(part) is ToolCall else part for part in last.content
        )
        self.messages = (*before, replace(last, content=content))

    def finish_step(
        self, results: Sequence[ToolResult] = (), errors: Mapping[str, Exception] | None = None
    ) -> StepResult:
        """End the step with the results of its calls, in their order, and why calls failed."""
        response = self._answer
        if response is None:
            raise ConfigurationError("Call feed before finish_step.")
        self._answer = None
        step = StepResult(response=response, tool_results=tuple(results), tool_errors=errors or {})
        reason = response.finish_reason.reason
        if reason == _CUT and self._has_continuation(response):
            self._continuations += 1
            self._unfinished = response
            self.request = _continued(self.request or self._first, response)
            return step
        self.steps.append(step)
        if results:
            self._add_results(results)
            stops = self._stop_when is not None and self._stop_when(tuple(self.steps))
            if inspect.isawaitable(stops):
                self.verdict, stops = stops, False
            self.request = None if stops else self._next()
        else:
            self.request = self._next_after_pause(response) if reason == _PAUSED else None
        return step

    async def judge(self) -> None:
        """Wait for the `verdict` of an async `stop_when`, and stop if it says so."""
        verdict, self.verdict = self.verdict, None
        if verdict is not None and await verdict:
            self.request = None

    def begin_with(self, messages: tuple[Message, ...]) -> None:
        """Replace the conversation before the first request."""
        self.messages = messages
        self.request = self._first = replace(self._first, messages=messages)

    def ask_again(self, messages: Sequence[Message]) -> None:
        """Continue after the end with more messages."""
        self.messages = (*self.messages, *messages)
        self.request = self._next()

    def _can_run(self, response: Response, calls: tuple[ToolCall, ...]) -> bool:
        if response.finish_reason.reason in _UNSAFE or not self._runs_tools:
            return False
        tools = [self.tools.get(call.name) for call in calls]
        return all(tool is None or tool.is_active for tool in tools)

    def _add_results(self, results: Sequence[ToolResult]) -> None:
        self.messages = with_results(self.messages, results)
        self._rounds_left -= 1
        self._has_run = True

    def _next(self) -> Request:
        # A required tool was called: requiring it again would never end. The allowed tools stay.
        choice = self._first.tool_choice
        if choice is not None and choice.mode in ("required", "named"):
            choice = None if choice.allowed is None else ToolChoice(allowed=choice.allowed)
        return replace(self._first, messages=self._sent(), tool_choice=choice)

    def _sent(self) -> tuple[Message, ...]:
        """The conversation without the messages that were dropped."""
        if not self.dropped:
            return self.messages
        sent = tuple(each for at, each in enumerate(self.messages) if at not in self.dropped)
        return sent if self.summary is None else with_summary(sent, self.summary)

    def _next_after_pause(self, response: Response) -> Request | None:
        """The next request if the provider paused its own turn; else None."""
        if not _is_paused(response) or self._continuations >= MAX_CONTINUATIONS:
            return None
        self._continuations += 1
        return self._next()

    def _has_continuation(self, response: Response) -> bool:
        """Whether the answer is only a first part, with a token to get the rest."""
        return self._continuations < MAX_CONTINUATIONS and bool(_continuation_options(response))


SUMMARY = "Summary of the earlier conversation, which is not shown in full:\n"


def with_summary(messages: tuple[Message, ...], summary: str) -> tuple[Message, ...]:
    """The messages with a summary of what came before, as a text of the first user message."""
    part = Text(text=SUMMARY + summary)
    for at, message in enumerate(messages):
        if message.role == "user":
            content = (part, *message.content)
            return (*messages[:at], replace(message, content=content), *messages[at + 1 :])
    return (Message(role="user", content=(part,)), *messages)


MARGIN = 0.95
"""The share of the limit to aim at: token counts are estimates."""


_TRIES = 2
"""How often a history is shortened to a limit that is known; after that, by half each time."""


def half_of(units: Sequence[range]) -> int:
    """How many are half of the units, rounded up."""
    return (len(units) + 1) // 2


def count_to_drop(request: Request, units: Sequence[range], used: int | None, limit: int) -> int:
    """How many of the units to leave out so that the request fits; at least one."""
    from interlingua.tokens.estimate import estimate_request

    tokens = estimate_request(request)
    # The provider's own count shows how far off the estimate is.
    excess = tokens - limit * MARGIN * (1 if used is None else tokens / max(used, 1))
    if excess <= 0:  # it should have fitted, so the limit is another one
        return half_of(units)
    for count, unit in enumerate(units, 1):
        messages = request.messages[unit.start : unit.stop]
        excess -= estimate_request(Request(model=request.model, messages=messages))
        if excess <= 0:
            return count
    return len(units)


def callable_tools(tools: Mapping[str, Tool], choice: ToolChoice) -> Mapping[str, Tool]:
    """The tools that a tool choice lets the model call."""
    if choice.mode != "none" and choice.allowed is None:
        return tools
    allowed = () if choice.mode == "none" else choice.allowed or ()
    return {name: tool for name, tool in tools.items() if name in allowed}


def with_results(
    messages: tuple[Message, ...], results: Sequence[ToolResult]
) -> tuple[Message, ...]:
    """The conversation with the results of its last calls, or of more of them."""
    if not results:
        return messages
    *before, last = messages
    if last.role != "tool":
        return (*messages, Message(role="tool", content=tuple(results)))
    answer = before[-1] if before else last
    content = in_call_order(answer, (*last.content, *results))
    return (*before, replace(last, content=content))


def in_call_order(answer: Message, results: tuple[Part, ...]) -> tuple[Part, ...]:
    """The results in the order of the calls of a message."""
    places = {call.id: place for place, call in enumerate(answer.tool_calls)}
    return tuple(
        sorted(results, key=lambda part: places.get(getattr(part, "tool_call_id", ""), len(places)))
    )


def join_answers(first: Response, then: Response) -> Response:
    """Join an answer that came in two parts."""
    parts, rest = first.message.content, then.message.content
    if parts and rest:
        last, following = parts[-1], rest[0]
        if isinstance(last, Text) and isinstance(following, Text):
            extra = merge(last.extra, following.extra)
            tokens = (*last.logprobs, *following.logprobs)
            text = last.text + following.text
            whole = replace(following, text=text, logprobs=tokens, extra=extra)
            parts, rest = parts[:-1], (whole, *rest[1:])
    message = replace(then.message, content=(*parts, *rest))
    # Both parts may have the same warnings.
    warnings = tuple(dict.fromkeys((*first.warnings, *then.warnings)))
    # The costs of both are in the sum, those of their failed attempts are not.
    attempts = (*first.attempts[:-1], *then.attempts)
    joined = replace(then, message=message, warnings=warnings, attempts=attempts)
    return with_usage(joined, first.usage + then.usage, sum_costs((first.cost, then.cost)))


def _continued(request: Request, response: Response) -> Request:
    """The same request again, with the token for the rest of the answer."""
    options = merge(request.provider_options, _continuation_options(response))
    return replace(request, provider_options=options)


def _make_ids_unique(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Rename repeated ids: a decision about one call must not apply to another."""
    taken = {call.id for call in calls}
    numbers: dict[str, int] = {}
    unique = []
    for call in calls:
        number = numbers.get(call.id, 0) + 1
        while number > 1 and f"{call.id}_{number}" in taken:
            number += 1
        numbers[call.id] = number
        if number > 1:
            call = replace(call, id=f"{call.id}_{number}")  # noqa: PLW2901 -- the same call, renamed
            taken.add(call.id)
        unique.append(call)
    return unique


def _is_paused(response: Response) -> bool:
    reason = response.finish_reason
    return any(reason.raw in dialects.get(name).FACTS.history.paused for name in dialects.names())


def _continuation_options(response: Response) -> dict[str, Any]:
    """The provider options that ask for the rest of an answer; empty if there is none."""
    reason = response.finish_reason
    for dialect in response.extra.keys() & set(dialects.names()):
        rest = dialects.get(dialect).FACTS.continuation
        if rest is None or reason.raw != rest.reason:
            continue
        token: object = extra_of(response, dialect)
        for name in rest.token:
            token = token.get(name) if isinstance(token, Mapping) else None
        if isinstance(token, str):
            return {dialect: {rest.option: token}}
    return {}
