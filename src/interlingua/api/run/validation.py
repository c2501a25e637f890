"""Checks of the last answer by a function of the caller's, which may ask for a better one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from interlingua.api.tools.context import Retry, ToolContext, find_context
from interlingua.runtime.callbacks import settle, signature_of
from interlingua.spec.errors import ConfigurationError, NoObjectGeneratedError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Response

OutputValidator: TypeAlias = Callable[..., Any]
"""
Takes the output, and by annotation a `ToolContext`; sync or async.

The output is the text of the answer, or the object of `generate_object`. It may raise `Retry` to
ask the model again. What it returns replaces the output, unless it is None.
"""


class Goal(Protocol):
    """What a run must produce besides an answer, such as an object of a schema."""

    def ask(self, request: Request, *, is_last: bool) -> Request:
        """The request with what the goal needs; `is_last` if no more tools will be run."""

    def review(self, response: Response) -> Any:
        """Messages that ask for a better last answer; none to accept it or to give up."""

    def output(self, response: Response) -> Any:
        """What the answer is to the caller; raises an error if there is none."""

    def reject(self, response: Response, reason: str) -> tuple[Message, ...]:
        """The messages that send the answer back with a reason."""


class TextGoal:
    """Any text will do."""

    def ask(self, request: Request, *, is_last: bool) -> Request:  # noqa: ARG002 -- of `Goal`
        """The request as it is."""
        return request

    def review(self, response: Response) -> tuple[Message, ...]:  # noqa: ARG002 -- of `Goal`
        """Every answer is accepted."""
        return ()

    def output(self, response: Response) -> str:
        """The text."""
        return response.text

    def reject(self, response: Response, reason: str) -> tuple[Message, ...]:  # noqa: ARG002
        """A user message with the reason."""
        return (Message.user(reason),)


class ValidatedGoal:
    """A goal whose output is checked by a function of the caller's."""

    def __init__(
        self,
        goal: Goal | None,
        validator: OutputValidator,
        context: Callable[[], ToolContext[Any]],
        retries: int,
    ) -> None:
        self._goal = goal or TextGoal()
        self._validator = validator
        self._context = context
        self._retries = self._retries_left = retries
        self._validated: tuple[Response, Any] | None = None

    def ask(self, request: Request, *, is_last: bool) -> Request:
        """The request with what the goal needs."""
        return self._goal.ask(request, is_last=is_last)

    def reject(self, response: Response, reason: str) -> tuple[Message, ...]:
        """The messages that send the answer back with a reason."""
        return self._goal.reject(response, reason)

    async def review(self, response: Response) -> tuple[Message, ...]:
        """Messages with the reason why the output was not accepted; none if it was."""
        messages: tuple[Message, ...] = await settle(self._goal.review(response))
        if messages or (type(self._goal) is TextGoal and response.tool_calls):
            return messages
        output = self._goal.output(response)
        try:
            checked = await settle(call_with_context(self._validator, self._context(), output))
        except Retry as retry:
            if self._retries_left <= 0:
                raise self._refused(response, retry.reason) from retry
            self._retries_left -= 1
            return self.reject(response, retry.reason)
        self._validated = (response, output if checked is None else checked)
        return ()

    def output(self, response: Response) -> Any:
        """The output as the validator returned it."""
        if self._validated is not None and self._validated[0] is response:
            return self._validated[1]
        return self._goal.output(response)

    def _refused(self, response: Response, reason: str) -> NoObjectGeneratedError:
        times = f"{self._retries} retr{'y' if self._retries == 1 else 'ies'}"
        return NoObjectGeneratedError(
            f"The output validator did not accept the answer after {times}: {reason}",
            text=response.text,
            response=response,
            problems=(reason,),
            request_id=response.request_id,
            partial=response,
        )


def call_with_context(
    function: Callable[..., object], context: ToolContext[Any], value: object
) -> Any:
    """Call the function with a value; parameters annotated with the context get that."""
    wanted = find_context(function)
    if not wanted:
        return function(value)
    parameters = signature_of(function).parameters
    other = next((name for name in parameters if name not in wanted), None)
    if other is None:
        raise ConfigurationError(f"{function!r} has no parameter for the value to check.")
    arguments = {name: read(context) for name, read in wanted.items()}
    return function(**arguments, **{other: value})
