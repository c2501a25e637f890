"""OpenAI's Agents SDK with both of its model classes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import openai
from agents import (
    Agent,
    Model,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    ToolOutputImage,
    function_tool,
    set_tracing_disabled,
)
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
    NotApplicableError,
    has,
    png,
    report,
    weather,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)  # traces go to OpenAI otherwise
MODELS = {"Chat": OpenAIChatCompletionsModel, "Responses": OpenAIResponsesModel}


class Joke(BaseModel):
    """A joke."""

    setup: str
    punchline: str | None
    rating: int


@function_tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return weather(city)


@function_tool
def take_photo() -> ToolOutputImage:
    """Take a photo."""
    return ToolOutputImage(image_url=f"data:image/png;base64,{base64.b64encode(png()).decode()}")


class Features:
    """The features, with one model class before one upstream."""

    def __init__(self, model: str, upstream: str) -> None:
        self._class = MODELS[model]
        self._upstream = upstream
        self._eighth = ""  # the answer after eight turns

    def _agent(self, *, key: str = KEY, name: str = "gpt-5.2", **more: Any) -> Agent[None]:
        url = f"{GATEWAYS[self._upstream]}/v1"
        model: Model = self._class(name, AsyncOpenAI(base_url=url, api_key=key, max_retries=0))
        settings = ModelSettings(store=False, response_include=["reasoning.encrypted_content"])
        return Agent(name="Tester", model=model, model_settings=settings, **more)

    def _tools(self) -> Agent[None]:
        return self._agent(tools=[get_weather, take_photo])

    async def text(self) -> None:
        result = await Runner.run(self._agent(), SAY)
        assert result.final_output == GREETING, result.final_output
        assert result.context_wrapper.usage.total_tokens > 0

    async def stream(self) -> None:
        result = Runner.run_streamed(self._agent(), SAY)
        pieces = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event"
            and event.data.type == "response.output_text.delta"
        ]
        assert "".join(pieces) == GREETING == result.final_output, pieces
        assert len(pieces) > 1, pieces

    async def tool_loop(self) -> None:
        has(weather("Oslo"), (await Runner.run(self._tools(), LOOK.format("Oslo"))).final_output)

    async def _streamed(self, prompt: str) -> str:
        result = Runner.run_streamed(self._tools(), prompt)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    async def streamed_tool_loop(self) -> None:
        has(weather("Oslo"), await self._streamed(LOOK.format("Oslo")))

    async def parallel(self) -> None:
        result = await Runner.run(self._tools(), LOOK.format("Oslo and Rome"))
        has(f"{weather('Oslo')}; {weather('Rome')}", result.final_output)

    async def image(self) -> None:
        if self._class is OpenAIChatCompletionsModel:
            raise NotApplicableError("the SDK sends only the text of a result in Chat")
        has(PICTURE, (await Runner.run(self._tools(), PHOTO)).final_output)

    async def eight_turns(self) -> None:
        history: list[Any] = []
        for number, city in enumerate(CITIES, 1):
            history = [*history, {"role": "user", "content": LOOK.format(city)}]
            result = await Runner.run(self._tools(), history)
            history = result.to_input_list()
            has(f"{weather(city)}. Prompts: {number}.", result.final_output)
        self._eighth = result.final_output

    async def state(self) -> None:
        has(KEPT, self._eighth)

    async def streamed_state(self) -> None:
        has(KEPT, await self._streamed(LOOK.format("Oslo and Rome")))

    async def structured(self) -> None:
        result = await Runner.run(self._agent(output_type=Joke), JOKE)
        assert isinstance(result.final_output, Joke)

    async def kept(self) -> None:
        if self._class is OpenAIChatCompletionsModel:
            raise NotApplicableError("only Responses has them")
        agent = self._tools().clone(model_settings=ModelSettings())
        first = await Runner.run(agent, LOOK.format("Oslo"), auto_previous_response_id=True)
        second = await Runner.run(
            agent, LOOK.format("Rome"), previous_response_id=first.last_response_id
        )
        has(f"{weather('Rome')}. Prompts: 2.", second.final_output)
        has(KEPT, second.final_output)

    # Errors.

    async def _fails(
        self, kind: type[openai.APIStatusError], words: str, prompt: str, **agent: str
    ) -> None:
        try:
            await Runner.run(self._agent(**agent), prompt)
        except kind as error:
            has(words, f"{error} {error.code}".lower())
        else:
            raise AssertionError("There was no error.")

    async def wrong_key(self) -> None:
        await self._fails(openai.AuthenticationError, "key", SAY, key="il_wrong")

    async def unknown_model(self) -> None:
        await self._fails(openai.NotFoundError, "no-such-model", SAY, name="no-such-model")

    async def refused(self) -> None:
        await self._fails(openai.BadRequestError, "refuses this request", "[fail 400]")

    async def overflow(self) -> None:
        await self._fails(openai.BadRequestError, "context_length_exceeded", "[fail overflow]")

    async def rate_limit(self) -> None:
        await self._fails(openai.RateLimitError, "too many requests", "[fail 429]")
        await asyncio.sleep(RETRY_AFTER)

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
            "kept responses": self.kept,
            "structured output": self.structured,
            "error 401": self.wrong_key,
            "error 404": self.unknown_model,
            "error 400": self.refused,
            "context overflow": self.overflow,
            "error 429": self.rate_limit,
        }


report(
    lambda upstream: [
        (f"openai-agents {each.__name__}", "openai-agents", Features(model, upstream).all())
        for model, each in MODELS.items()
    ]
)
