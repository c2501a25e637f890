"""
The smoke test: six small programs that use all of it, one after another, in every dialect.

They are the same programs for each provider; only the model's id differs, and comes from the
catalog. The model is simulated, the HTTP is real: client and key come from the environment.
"""

import asyncio
import base64
import functools
import json
import re

import pytest

from interlingua import (
    Client,
    Image,
    Message,
    Text,
    Tool,
    generate,
    generate_object,
    set_default_client,
    stream,
)
from interlingua.catalog import get_latest_model
from interlingua.errors import NotFoundError
from interlingua.simulator import Simulator, results, serve_in_thread, text, tool_call

KEY = "sk-of-the-smoke-test"
ENVIRONMENT = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
    "gemini": ("GEMINI_API_KEY", "GEMINI_BASE_URL", ""),
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", ""),
    "openrouter": ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "/v1"),  # speaks Chat Completions
}
"""Of each provider, where its key and its address are looked for, and where its paths begin."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}

weather_tool = Tool(
    name="get_weather",
    description="The weather in a city.",
    parameters={
        "type": "object",
        "properties": {"location": {"type": "string"}},
        "required": ["location"],
    },
    execute=lambda location: f"72F and sunny in {location}",
)


def model_of(provider, capability=None):
    return get_latest_model(provider, capability).id


def answer(request):
    """What a model would say that can read: it knows only what is in the request."""
    asked = request.messages[-1]
    tools = {tool.name for tool in request.tools or ()}
    person = re.search(r"(\w+) is (\d+) years", asked.text)
    if person is not None:
        said = {"name": person[1], "age": int(person[2])}
        return tool_call("answer", said) if "answer" in tools else text(json.dumps(said))
    if results(request):
        return text(" and ".join(str(result.content) for result in results(request)))
    if "get_weather" in tools:
        cities = re.findall(r"San Francisco|New York", asked.text)
        return sum((tool_call("get_weather", location=city) for city in cities), start=text(""))
    images = [part for part in asked.content if isinstance(part, Image)]
    if images:
        return text(f"A picture of {len(images[0].data)} bytes.")
    return text("Old pond, / a frog jumps in, / water's sound." if "haiku" in asked.text else "Hi.")


def smoke(program):
    """The program as a test for each provider, with the client that the environment gives."""

    @pytest.mark.parametrize("provider", sorted(ENVIRONMENT))
    @functools.wraps(program)
    def test(provider):
        known = [model_of(name, able) for name in ENVIRONMENT for able in (None, "tools", "vision")]
        app = Simulator(answer, key=KEY, models=known)
        with serve_in_thread(app) as server:
            environ = {}
            for key, address, path in ENVIRONMENT.values():
                environ |= {key: KEY, address: server.url + path}

            async def whole():
                async with Client.from_env(environ) as client:
                    set_default_client(client)
                    try:
                        await program(provider)
                    finally:
                        set_default_client(None)

            asyncio.run(whole())
        assert all(exchange.over.is_set() for exchange in app.script.received)

    return test


@smoke
async def test_1_basic_generation(provider):
    """Text, tokens and a reason."""
    result = await generate(
        model=get_latest_model(provider).id,
        prompt="Say hello in one sentence.",
        max_tokens=100,
        provider=provider,
    )
    assert result.text
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens > 0
    assert result.finish_reason.reason == "stop"


@smoke
async def test_2_streaming(provider):
    """The pieces are the whole. From here on the id of the model alone says whose it is."""
    stream_result = stream(model=model_of(provider), prompt="Write a haiku.")
    text_chunks = []
    async for event in stream_result:
        if event.type == "text_delta":
            text_chunks.append(event.delta)  # noqa: PERF401 -- as a user would write it
    assert "".join(text_chunks) == stream_result.response().text
    assert len(text_chunks) > 1


@smoke
async def test_3_tool_calling_with_parallel_execution(provider):
    """Both cities are looked up in one step, and both are in the answer."""
    result = await generate(
        model=model_of(provider, "tools"),
        prompt="What is the weather in San Francisco and New York?",
        tools=[weather_tool],
        max_tool_rounds=3,
    )
    assert len(result.steps) >= 2
    assert "San Francisco" in result.text
    assert "New York" in result.text
    assert len(result.steps[0].tool_results) == 2


@smoke
async def test_4_image_input(provider):
    """The picture arrives: its bytes are counted."""
    result = await generate(
        model=model_of(provider, "vision"),
        messages=[
            Message(
                role="user",
                content=[Text(text="What do you see?"), Image(data=PNG, media_type="image/png")],
            )
        ],
    )
    assert result.text
    assert result.text == f"A picture of {len(PNG)} bytes."


@smoke
async def test_5_structured_output(provider):
    """An object of the schema."""
    result = await generate_object(
        model=model_of(provider), prompt="Extract: Alice is 30 years old", schema=PERSON
    )
    assert result.output["name"] == "Alice"
    assert result.output["age"] == 30


@smoke
async def test_6_error_handling(provider):
    """A model that is not there."""
    with pytest.raises(NotFoundError):
        await generate(model="nonexistent-model-xyz", prompt="test", provider=provider)
