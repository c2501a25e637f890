"""Streams of partial objects."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import msgspec

from interlingua.api.objects.schema import VALUE, ObjectSchema
from interlingua.api.objects.strategy import ObjectGoal
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.run import Run
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError, NoObjectGeneratedError
from interlingua.spec.events import StepFinish, StreamEvent, TextDelta, ToolCallDelta, ToolCallStart
from interlingua.spec.response import Response
from interlingua.wire.partial_json import PartialJSON

T = TypeVar("T")

_find_start = re.compile(r"\{").search
_find_start_or_list = re.compile(r"[{\[]").search


class GrowingObject:
    """
    The object in a stream so far, from the text or from the arguments of a call.

    Reading it after each event takes linear time in total, because `PartialJSON` does.
    """

    def __init__(self, schema: ObjectSchema, tool: str | None = None) -> None:
        self._schema = schema
        self._tool = tool
        self._find = _find_start_or_list if schema.is_wrapped else _find_start
        self.value: Json = msgspec.UNSET
        self.begin()

    def begin(self) -> None:
        """Start over, because another answer replaces this one."""
        self._json = PartialJSON()
        self._seen: Json = None
        self._has_null = False
        self._end = ""
        self._began = False
        self._call: str | None = None

    def feed(self, event: StreamEvent) -> bool:
        """Add an event; return whether the object has changed."""
        kind = type(event)
        if kind is TextDelta:
            return self._call is None and self._grow(cast(TextDelta, event).delta)
        if kind is ToolCallDelta:
            delta = cast(ToolCallDelta, event)
            return delta.id == self._call and self._grow(delta.delta)
        if isinstance(event, ToolCallStart) and event.name == self._tool and self._call is None:
            self.begin()  # text before the call is not part of the object
            self._call = event.id
        return False

    def show(self, value: Json) -> bool:
        """Set the value; return whether it differs from the previous one."""
        if self.value is not msgspec.UNSET and value == self.value:
            return False
        self.value = value
        return True

    def _grow(self, fragment: str) -> bool:
        if not self._began:
            start = self._find(fragment)
            if start is None:
                return False
            self._began = True
            fragment = fragment[start.start() :]
        self._json.feed(fragment)
        # Looking at the text is far cheaper than searching each growing value for nulls.
        text = self._end + fragment
        self._has_null = self._has_null or "null" in text
        self._end = text[-3:]
        value = self._json.value
        if value is self._seen:  # `PartialJSON` returns the same object if nothing changed
            return False
        self._seen = value
        if self._schema.is_wrapped and isinstance(value, dict) and VALUE not in value:
            return False
        return value is not None and self.show(self._schema.unwrap(value, has_null=self._has_null))


class ObjectStream(Generic[T]):
    """
    An async iterator over partial objects; it can be read once.

        people = stream_object("openai:gpt-5.2", "Invent five people.", schema=list[Person])
        async for partial in people:
            print(len(partial))
        print(people.object())

    Partials are plain JSON values, and each differs from the one before. If the model has to
    correct its answer, they start over. The last one is complete; if it is not valid,
    `NoObjectGeneratedError` is raised after it.
    """

    def __init__(self, run: Run, goal: ObjectGoal) -> None:
        self._run = run
        self._goal = goal
        self._growing = GrowingObject(goal.schema, None if goal.tool is None else goal.tool.name)
        self._partials = self._read()
        self._response: Response | None = None
        self._output: Any = msgspec.UNSET
        self._error: Exception | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Json:
        try:
            return await anext(self._partials)
        except StopAsyncIteration:
            raise
        except Exception as error:
            self._error = error
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop reading and close the connection."""
        await self._partials.aclose()

    @property
    def partial(self) -> Json:
        """The object so far; None before its first part has arrived."""
        value = self._growing.value
        return None if value is msgspec.UNSET else value

    def object(self) -> T:
        """The complete object. Raises `StreamError` before the end, and the error of a failure."""
        if self._error is not None:
            raise self._error
        if self._output is msgspec.UNSET:
            self.response()
            raise NoObjectGeneratedError(
                "there is no object yet: tool calls wait for approval", response=self._response
            )
        return cast(T, self._output)

    def response(self) -> Response:
        """The last response. Raises `StreamError` before the end, and the error of a failure."""
        if self._response is None:
            if self._error is not None:
                raise self._error
            raise ConfigurationError("The stream has not ended. Read it to its end first.")
        return self._response

    def result(self) -> GenerateResult[T]:
        """The object with all steps and messages, after the stream has ended."""
        if self._run.loop.pending_approvals:
            self.response()
            return self._run.result()
        return finished(self._run, self._goal, self.object())

    async def _read(self) -> AsyncGenerator[Json, None]:
        async with aclosing(self._run.stream()) as events:
            async for event in events:
                if isinstance(event, StepFinish):
                    if self._is_complete(event.response):
                        self._growing.begin()
                elif self._growing.feed(event):
                    yield self._growing.value
        self._response = self._run.loop.steps[-1].response
        if self._run.loop.pending_approvals:
            return
        with self._run.accounting():
            reading = self._goal.read(self._response)
        self._output = reading.output
        if self._growing.show(reading.value):
            yield reading.value

    def _is_complete(self, response: Response) -> bool:
        """Whether an answer is complete; one that was paused is continued in the next step."""
        steps = self._run.loop.steps
        return bool(steps) and steps[-1].response is response


def finished(run: Run, goal: ObjectGoal, output: T) -> GenerateResult[T]:
    """The result of a run that has produced its object."""
    result: GenerateResult[T] = run.result(output)
    messages = (*result.messages, *goal.closing(result.response))
    return msgspec.structs.replace(result, messages=messages)
