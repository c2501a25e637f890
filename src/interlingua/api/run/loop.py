"""
The tool loop as a state machine: it never waits, and calls nobody.

    while (request := loop.request) is not None:
        calls = loop.feed(response to request)
        if somebody has to allow one of them first:
            loop.pause(calls, whether each of them waits)
            loop.finish_step()
        else:
            loop.finish_step(results of calls)

After it, `loop.steps` is what happened and `loop.messages` the whole conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, TypeAlias

from msgspec.structs import replace

from interlingua import dialects
from interlingua.api.run.results import StepResult
from interlingua.api.tools.tool import Tool
from interlingua.prepare.history import PROMPTS, drop_oldest_turns
from interlingua.spec.content import Text, ToolCall, ToolResult
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Reason, Response, Usage, Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import extra_of, merge

StopCondition: TypeAlias = Callable[[Sequence[StepResult]], bool]

_UNSAFE = ("length", "content_filter", "cancelled", "error")  # calls may be cut, or unwanted
_PAUSED: Reason = "other"  # what dialects make of the raw reasons that their facts name
_CUT: Reason = "length"

MAX_CONTINUATIONS = 20
"""How often a provider that pauses its own turn is asked to go on."""


class ToolLoop:
    """
    One conversation with tools, at one model.

    At most `max_tool_rounds` times the calls of an answer are run and their results sent back.
    Calls are not run if the answer was cut short, or if one of them is for a tool without a
    handler: then they are the caller's. Whether one needs approval is asked by whoever runs
    them, as that may have to wait.
    """

    def __init__(
        self,
        request: Request,
        tools: Mapping[str, Tool],
        *,
        max_tool_rounds: int = 1,
        stop_when: StopCondition | None = None,
    ) -> None:
        if max_tool_rounds < 0:
            raise ConfigurationError("max_tool_rounds counts from 0 up")
        self._first = request
        self._tools = tools
        self._rounds_left = max_tool_rounds
        self._stop_when = stop_when
        self._continuations = 0
        self._has_run = False
        self._dropped = 0  # how many messages are not sent, of those after the instructions
        self._untold: tuple[Warning, ...] = ()
        self.request: Request | None = request
        """What to ask next; None when the loop is over."""
        self._answer: Response | None = None
        self._held: Response | None = None  # the beginning of an answer that goes on
        self.messages: tuple[Message, ...] = request.messages
        self.steps: list[StepResult] = []
        self.pending_approvals: tuple[ToolCall, ...] = ()

    @property
    def is_out_of_rounds(self) -> bool:
        """Whether tools have run, and none will be run any more."""
        return self._rounds_left <= 0 and self._has_run

    @property
    def last_response(self) -> Response | None:
        """The newest answer, also one that is not whole yet or whose tools still run."""
        last = self._answer or self._held
        return self.steps[-1].response if last is None and self.steps else last

    def answers(self, partial: Response | None = None) -> list[Response]:
        """Every answer so far, and one that broke off."""
        answers = [step.response for step in self.steps]
        for more in (self._answer, self._held, partial):
            if more is not None and all(more is not known for known in answers):
                answers.append(more)
        return answers

    def total_usage(self, partial: Response | None = None) -> Usage | None:
        """The tokens of every answer so far, and of one that broke off; None without any."""
        answers = self.answers(partial)
        return reduce(add, (answer.usage for answer in answers)) if answers else None

    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the conversation ends with, of one that was paused before them."""
        last = self.messages[-1] if self.messages else None
        return () if last is None or last.role != "assistant" else tuple(last.tool_calls)

    def resume(self, results: Sequence[ToolResult]) -> None:
        """The results of the open calls, before the first request: they are a round."""
        self._tell_results(results)
        self.request = self._next()

    def shorten(self) -> bool:
        """
        Leave out the oldest turns of what is asked; False if there is nothing to leave out.

        They stay in `messages`, and the answer has a warning.
        """
        asked = self.request
        if asked is None:
            return False
        left = drop_oldest_turns(asked.messages)
        dropped = len(asked.messages) - len(left)
        if not dropped:
            return False
        self._dropped += dropped
        self.request = replace(asked, messages=left)
        self._untold = (make_warning("history_truncated", "messages", count=self._dropped),)
        return True

    def feed(self, response: Response) -> tuple[ToolCall, ...]:
        """The answer to `request`; returns the calls that are to be run for it."""
        if self._untold:
            response = replace(response, warnings=(*response.warnings, *self._untold))
            self._untold = ()
        if self._held is not None:
            response, self._held = join_answers(self._held, response), None
        self._answer = response
        if response.finish_reason.reason == _CUT and self._is_to_be_continued(response):
            return ()
        self.messages = (*self.messages, response.message)
        calls = response.message.tool_calls
        return calls if calls and self._may_run(response, calls) else ()

    def pause(self, calls: Sequence[ToolCall], waits: Sequence[bool]) -> None:
        """
        Leave the calls that `feed` gave to a later run, as some of them wait for approval.

        They are as they will be run, and so the conversation has them from here on: what is
        allowed is what is executed. An id that several of them have is made one for each.
        """
        calls = _told_apart(calls)
        self.pending_approvals = tuple(
            call for call, waiting in zip(calls, waits, strict=True) if waiting
        )
        *before, last = self.messages
        left = iter(calls)
        content = tuple(next(left) if type(p) is ToolCall else p for p in last.content)
        self.messages = (*before, replace(last, content=content))

    def finish_step(self, results: Sequence[ToolResult] = ()) -> StepResult:
        """The results of the calls, in their order; the step is over."""
        response = self._answer
        if response is None:
            raise ConfigurationError("finish_step comes after feed")
        self._answer = None
        step = StepResult(response=response, tool_results=tuple(results))
        reason = response.finish_reason.reason
        if reason == _CUT and self._is_to_be_continued(response):
            self._continuations += 1
            self._held = response
            self.request = _continued(self.request or self._first, response)
            return step
        self.steps.append(step)
        if results:
            self._tell_results(results)
            stops = self._stop_when is not None and self._stop_when(tuple(self.steps))
            self.request = None if stops else self._next()
        else:
            self.request = self._continued(response) if reason == _PAUSED else None
        return step

    def ask_again(self, messages: Sequence[Message]) -> None:
        """Go on after the end, with more to say."""
        self._say(*messages)
        self.request = self._next()

    def _may_run(self, response: Response, calls: tuple[ToolCall, ...]) -> bool:
        if self._rounds_left <= 0 or response.finish_reason.reason in _UNSAFE:
            return False
        if not any(tool.is_active for tool in self._tools.values()):
            return False
        known = [self._tools.get(call.name) for call in calls]
        return all(tool is None or tool.is_active for tool in known)

    def _tell_results(self, results: Sequence[ToolResult]) -> None:
        self._say(*_as_messages(results))
        self._rounds_left -= 1
        self._has_run = True

    def _next(self) -> Request:
        # a tool that had to be called has been: to insist would go on for ever
        choice = self._first.tool_choice
        if choice is not None and choice.mode in ("required", "named"):
            choice = None
        return replace(self._first, messages=self._sent(), tool_choice=choice)

    def _sent(self) -> tuple[Message, ...]:
        """The conversation without what did not fit."""
        if not self._dropped:
            return self.messages
        begin = next(at for at, said in enumerate(self.messages) if said.role not in PROMPTS)
        return self.messages[:begin] + self.messages[begin + self._dropped :]

    def _continued(self, response: Response) -> Request | None:
        """The next request of a turn that the provider broke off by itself."""
        if not _is_paused(response) or self._continuations >= MAX_CONTINUATIONS:
            return None
        self._continuations += 1
        return self._next()

    def _is_to_be_continued(self, response: Response) -> bool:
        """Whether it is the beginning of an answer, and there is a token for the rest."""
        return self._continuations < MAX_CONTINUATIONS and bool(_continuation_options(response))

    def _say(self, *messages: Message) -> None:
        self.messages = (*self.messages, *messages)


def join_answers(first: Response, then: Response) -> Response:
    """One answer that came in two pieces."""
    parts, rest = first.message.content, then.message.content
    if parts and rest:
        last, following = parts[-1], rest[0]
        if isinstance(last, Text) and isinstance(following, Text):
            extra = merge(last.extra, following.extra)
            whole = replace(following, text=last.text + following.text, extra=extra)
            parts, rest = parts[:-1], (whole, *rest[1:])
    message = replace(then.message, content=(*parts, *rest))
    warnings = tuple(dict.fromkeys((*first.warnings, *then.warnings)))  # both may have the same
    return replace(then, message=message, usage=first.usage + then.usage, warnings=warnings)


def _continued(request: Request, response: Response) -> Request:
    """The same request again, with the token for the rest of the answer."""
    options = merge(request.provider_options, _continuation_options(response))
    return replace(request, provider_options=options)


def _told_apart(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """No id twice: a decision about one call must not be one about another."""
    taken = {call.id for call in calls}
    numbers: dict[str, int] = {}
    apart = []
    for call in calls:
        number = numbers.get(call.id, 0) + 1
        while number > 1 and f"{call.id}_{number}" in taken:
            number += 1
        numbers[call.id] = number
        if number > 1:
            call = replace(call, id=f"{call.id}_{number}")  # noqa: PLW2901 -- the same, renamed
            taken.add(call.id)
        apart.append(call)
    return apart


def _as_messages(results: Sequence[ToolResult]) -> tuple[Message, ...]:
    return (Message(role="tool", content=tuple(results)),) if results else ()


def _is_paused(response: Response) -> bool:
    reason = response.finish_reason
    return any(reason.raw in dialects.get(name).FACTS.paused for name in dialects.names())


def _continuation_options(response: Response) -> dict[str, Any]:
    """The provider options that ask for the rest of an answer; empty if there is none."""
    reason = response.finish_reason
    for dialect in response.extra.keys() & set(dialects.names()):
        rest = dialects.get(dialect).FACTS.continuation
        if rest is None or reason.raw != rest.reason:
            continue
        token: Any = extra_of(response, dialect)
        for name in rest.token:
            token = token.get(name) if isinstance(token, Mapping) else None
        if isinstance(token, str):
            return {dialect: {rest.option: token}}
    return {}
