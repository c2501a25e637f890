"""An answer whole, or as it comes, blocking."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self, Unpack

from interlingua.api.run import default_client as default
from interlingua.api.run import generate as asynchronous
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.run import Run
from interlingua.client.client import Client as AsyncClient
from interlingua.spec.errors import SDKError
from interlingua.spec.events import StreamEvent
from interlingua.spec.messages import Message
from interlingua.spec.response import Response
from interlingua.sync.blocking_iterator import BlockingIterator
from interlingua.sync.client import Client, GenerateOptions, unwrap
from interlingua.sync.loop_thread import background
from interlingua.sync.progress import Progress


def generate(
    model: str, prompt: str | Message | None = None, **options: Unpack[GenerateOptions]
) -> GenerateResult[None]:
    """
    Ask a model, run the tools it calls, and go on until it has answered.

        result = generate("openai:gpt-5.2", "Weather in Oslo?", tools=[get_weather])
        print(result.text, result.total_usage.total_tokens)

    Either `prompt` or `messages=` is given. Errors are raised; those of tools go to the model.
    """
    return background.run(asynchronous.generate(model, prompt, **unwrap(options)))


def stream(
    model: str, prompt: str | Message | None = None, **options: Unpack[GenerateOptions]
) -> StreamResult:
    """
    The same as it comes.

        for event in stream("anthropic:claude-haiku-4-5", "Write a haiku."):
            if event.type == "text_delta":
                print(event.delta, end="")
    """
    return StreamResult(Run(model, prompt, unwrap(options)))


class StreamResult:
    """
    The events of one run; they are read once.

    `text_stream` has only the text. When it is over, `response()` is the last answer and
    `result()` all of it.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._events = BlockingIterator(run.stream())
        self._progress = Progress()
        self._end: Iterator[StreamEvent] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamEvent:
        if self._run.is_aborted and self._end is None and not self._progress.is_over:
            error = self._events.discard() or self._run.given_up()
            self._end = self._progress.give_up(error)
        if self._end is not None:
            return next(self._end)
        try:
            event = next(self._events)
        except SDKError as error:
            self._progress.fail(error)
            raise
        self._progress.feed(event)
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and close the connection."""
        self._events.close()

    @property
    def text_stream(self) -> Iterator[str]:
        """The pieces of text alone."""
        return self._texts()

    @property
    def partial_response(self) -> Response | None:
        """The answer as far as it was read; None before it has begun."""
        return self._progress.partial()

    def response(self) -> Response:
        """The last answer, when it is over; `StreamError` before, its own error if it failed."""
        return self._progress.response()

    def result(self) -> GenerateResult[None]:
        """Every step and the whole conversation, when it is over."""
        self.response()
        return self._run.result()

    def _texts(self) -> Iterator[str]:
        for event in self:
            if event.type == "text_delta":
                yield event.delta


def get_default_client() -> Client:
    """The one that was set, or else one from the environment, made at first use."""
    return Client.wrap(default.get_default_client())


def set_default_client(client: Client | AsyncClient | None) -> None:
    """Use this one from now on, here and in the async functions; None to make it again."""
    default.set_default_client(client.asynchronous if isinstance(client, Client) else client)
