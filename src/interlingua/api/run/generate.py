"""`generate` and `stream`."""

from __future__ import annotations

from typing import Unpack

from interlingua.api.run.help import list_options
from interlingua.api.run.options import GenerateOptions, Prompt
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.run import Run
from interlingua.api.run.stream_result import StreamResult


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
    from interlingua.api.run.stream_run import StreamRun

    return StreamResult(StreamRun(model, prompt, options))
