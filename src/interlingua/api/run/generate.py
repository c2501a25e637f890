"""The functions people call: an answer whole, or as it comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self, Unpack

from interlingua.api.run.options import GenerateOptions
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.run import Run
from interlingua.spec.events import StreamEvent
from interlingua.spec.messages import Message
from interlingua.spec.response import Response


async def generate(
    model: str, prompt: str | Message | None = None, **options: Unpack[GenerateOptions]
) -> GenerateResult[None]:
    """
    Ask a model, run the tools it calls, and go on until it has answered.

        result = await generate("openai:gpt-5.2", "Weather in Oslo?", tools=[get_weather])
        print(result.text, result.total_usage.total_tokens)

    Either `prompt` or `messages=` is given. Errors are raised; those of tools go to the model.
    """
    return await Run(model, prompt, options).generate()


def stream(
    model: str, prompt: str | Message | None = None, **options: Unpack[GenerateOptions]
) -> StreamResult:
    """
    The same as it comes.

        async for event in stream("anthropic:claude-haiku-4-5", "Write a haiku."):
            if event.type == "text_delta":
                print(event.delta, end="")
    """
    return StreamResult(Run(model, prompt, options))


class StreamResult:
    """
    The events of one run; they are read once.

    `text_stream` has only the text. When it is over, `response()` is the last answer and
    `result()` all of it.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._events = run.stream()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self._events  # and not itself: one function less for every event

    async def __anext__(self) -> StreamEvent:
        return await anext(self._events)

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
        """Stop, and close the connection."""
        await self._events.aclose()

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The pieces of text alone."""
        return self._texts()

    @property
    def partial_response(self) -> Response | None:
        """The answer as far as it has come; None before it has begun."""
        return self._run.partial()

    def response(self) -> Response:
        """The last answer, when it is over; `StreamError` before, its own error if it failed."""
        return self._run.response()

    def result(self) -> GenerateResult[None]:
        """Every step and the whole conversation, when it is over."""
        self.response()
        return self._run.result()

    async def _texts(self) -> AsyncIterator[str]:
        async for event in self:
            if event.type == "text_delta":
                yield event.delta
