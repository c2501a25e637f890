"""pydantic-ai with each of its model classes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from anthropic import AsyncAnthropic
from checks import (
    CITIES,
    GATEWAYS,
    GREETING,
    JOKE,
    KEPT,
    KEY,
    LOOK,
    PHOTO,
    PICTURE,
    RETRY_AFTER,
    SAY,
    has,
    png,
    report,
    weather,
)
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput, ToolOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider


class Joke(BaseModel):
    """A joke."""

    setup: str
    punchline: str | None
    rating: int


def chat(url: str, name: str, key: str) -> Model:
    return OpenAIChatModel(name, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=key))


def responses(url: str, name: str, key: str) -> Model:
    return OpenAIResponsesModel(name, provider=OpenAIProvider(base_url=f"{url}/v1", api_key=key))


def messages(url: str, name: str, key: str) -> Model:
    client = AsyncAnthropic(base_url=url, api_key=key, max_retries=0)
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


def gemini(url: str, name: str, key: str) -> Model:
    return GoogleModel(name, provider=GoogleProvider(api_key=key, base_url=url))


MODELS: dict[str, tuple[Callable[[str, str, str], Model], str]] = {
    "OpenAIChatModel": (chat, "gpt-4.1"),
    "OpenAIResponsesModel": (responses, "gpt-5.2"),
    "AnthropicModel": (messages, "claude-haiku-4-5"),
    "GoogleModel": (gemini, "gemini-2.5-pro"),
}


class Features:
    """The features, with one model class before one upstream."""

    def __init__(self, model: str, upstream: str) -> None:
        self._make, self._name = MODELS[model]
        self._upstream = upstream
        self._agent = Agent(self.model())
        self._agent.tool_plain(self._count(weather), name="get_weather")
        self._agent.tool_plain(self._photo, name="take_photo")
        self._calls: list[str] = []
        self._eighth = ""  # the answer after eight turns

    def model(self, *, key: str = KEY, name: str = "") -> Model:
        return self._make(GATEWAYS[self._upstream], name or self._name, key)

    def _count(self, tool: Callable[[str], str]) -> Callable[[str], str]:
        def counted(city: str) -> str:
            self._calls.append(city)
            return tool(city)

        return counted

    @staticmethod
    def _photo() -> BinaryContent:
        return BinaryContent(png(), media_type="image/png")

    async def text(self) -> None:
        result = await Agent(self.model()).run(SAY)
        assert result.output == GREETING, result.output
        assert result.usage.input_tokens > 0
        assert result.usage.output_tokens > 0

    async def stream(self) -> None:
        async with Agent(self.model()).run_stream(SAY) as result:
            pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
        assert "".join(pieces) == GREETING, pieces
        assert len(pieces) > 1, pieces

    async def tool_loop(self) -> None:
        self._calls.clear()
        result = await self._agent.run(LOOK.format("Oslo"))
        has(weather("Oslo"), result.output)
        assert self._calls == ["Oslo"], self._calls

    async def streamed_tool_loop(self) -> None:
        async with self._agent.run_stream(LOOK.format("Oslo")) as result:
            has(weather("Oslo"), await result.get_output())

    async def parallel(self) -> None:
        self._calls.clear()
        result = await self._agent.run(LOOK.format("Oslo and Rome"))
        has(weather("Oslo"), result.output)
        has(weather("Rome"), result.output)
        assert sorted(self._calls) == ["Oslo", "Rome"], self._calls

    async def image(self) -> None:
        has(PICTURE, (await self._agent.run(PHOTO)).output)

    async def eight_turns(self) -> None:
        history: list[ModelMessage] = []
        for number, city in enumerate(CITIES, 1):
            result = await self._agent.run(LOOK.format(city), message_history=history)
            history = result.all_messages()
            has(weather(city), result.output)
            has(f"Prompts: {number}.", result.output)
        self._eighth = result.output

    async def state(self) -> None:
        has(KEPT, self._eighth)

    async def streamed_state(self) -> None:
        async with self._agent.run_stream(LOOK.format("Oslo and Rome")) as result:
            has(KEPT, await result.get_output())

    async def native_output(self) -> None:
        agent = Agent(self.model(), output_type=NativeOutput(Joke))
        assert isinstance((await agent.run(JOKE)).output, Joke)

    async def tool_output(self) -> None:
        agent = Agent(self.model(), output_type=ToolOutput(Joke))
        assert isinstance((await agent.run(JOKE)).output, Joke)

    # Errors.

    async def _fails(self, status: int, words: str, prompt: str = SAY, **model: str) -> None:
        try:
            await Agent(self.model(**model)).run(prompt)
        except ModelHTTPError as error:
            assert error.status_code == status, str(error)
            has(words, str(error).lower())
        else:
            raise AssertionError("There was no error.")

    async def wrong_key(self) -> None:
        status = 400 if self._make is gemini else 401  # Google's own status
        await self._fails(status, "key", key="il_wrong")

    async def unknown_model(self) -> None:
        await self._fails(404, "no-such-model", name="no-such-model")

    async def refused(self) -> None:
        await self._fails(400, "refuses this request", "[fail 400]")

    async def rate_limit(self) -> None:
        await self._fails(429, "too many requests", "[fail 429]")
        await asyncio.sleep(RETRY_AFTER)

    async def overflow(self) -> None:
        await self._fails(400, "token", "[fail overflow]")

    def all(self) -> dict[str, Callable[[], Awaitable[str | None]]]:
        return {
            "text": self.text,
            "stream": self.stream,
            "tool loop": self.tool_loop,
            "streamed tool loop": self.streamed_tool_loop,
            "parallel calls": self.parallel,
            "image in a tool result": self.image,
            "eight turns": self.eight_turns,
            "state returned": self.state,
            "state returned, streamed": self.streamed_state,
            "structured output": self.native_output,
            "structured output by a tool": self.tool_output,
            "error 401": self.wrong_key,
            "error 404": self.unknown_model,
            "error 400": self.refused,
            "error 429": self.rate_limit,
            "context overflow": self.overflow,
        }


report(
    lambda upstream: [
        (f"pydantic-ai {model}", "pydantic-ai-slim", Features(model, upstream).all())
        for model in MODELS
    ]
)
