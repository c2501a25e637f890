"""`generate` and `stream`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self, Unpack

from interlingua.api.run.help import list_options
from interlingua.api.run.options import GenerateOptions, Prompt
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.run import Run
from interlingua.runtime.fold import close_reading
from interlingua.spec.events import StreamEvent
from interlingua.spec.response import Response


@list_options
async def generate(
    model: str | None, prompt: Prompt = None, **options: Unpack[GenerateOptions]
) -> GenerateResult[None]:
    """
    Ask a model, run the tools it calls, and go on until it has answered.

        result = await generate("openai:gpt-5.2", "Weather in Oslo?", tools=[get_weather])
        print(result.text, result.total_usage.total_tokens)

    Pass either `prompt` or `messages=`. Errors are raised, except those of tools, which are sent
    to the model. Tools are run in one round by default: a model that calls tools again after their
    results needs a larger `max_tool_rounds`.
    """
    return await Run(model, prompt, options).generate()


@list_options
def stream(
    model: str | None, prompt: Prompt = None, **options: Unpack[GenerateOptions]
) -> StreamResult:
    """
    Do what `generate` does, and return the events of the answers as they arrive.

    As there, tools are run in one round unless `max_tool_rounds` allows more.

        async for event in stream("anthropic:claude-haiku-4-5", "Write a haiku."):
            if event.type == "text_delta":
                print(event.delta, end="")
    """
    return StreamResult(Run(model, prompt, options))


class ClosedByAsyncWith(ABC):
    """A context manager: the end of an `async with` block closes it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """End it."""


class StreamResult(ClosedByAsyncWith):
    """
    The events of one run, which can be read once.

    `text_stream` has only the text. At the end, `response()` is the last answer and `result()`
    has all steps.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._events = run.stream()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self._events  # not self: saves a function call per event

    async def __anext__(self) -> StreamEvent:
        return await anext(self._events)

    async def aclose(self) -> None:
        """
        Stop the run and close the connection.

        If another task is reading, the run is cancelled: that task gets a last `Finish`.
        """
        await close_reading(self._events, self._run.stop)

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """Only the text, as it arrives."""
        return self._texts()

    @property
    def partial_response(self) -> Response | None:
        """The answer so far; None before it has begun."""
        return self._run.partial()

    def response(self) -> Response:
        """Return the last answer, or raise the error of a run that failed; only after the end."""
        return self._run.response()

    def result(self) -> GenerateResult[None]:
        """Return all steps and the whole conversation; only after the end."""
        self.response()
        return self._run.result()

    async def _texts(self) -> AsyncIterator[str]:
        async for event in self:
            if event.type == "text_delta":
                yield event.delta
