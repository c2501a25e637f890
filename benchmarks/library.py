"""
One library of the same purpose, in an environment of its own; `libraries.py` runs it.

    python benchmarks/library.py import MODULE
    python benchmarks/library.py calls LIBRARY SERVER < chat-bodies.json

Prints JSON: seconds of CPU, by row. Nothing is imported here but the library and what comes
with Python.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

ROUNDS = 3
BATCH = 10
CONCURRENT = 100
MODELS = {"openai_chat": "some-model", "anthropic_messages": "claude-opus-5"}
_PROVIDERS = {"openai_chat": "openai", "anthropic_messages": "anthropic"}

Ask = Callable[[dict[str, Any]], Awaitable[object]]


def litellm(dialect: str, base: str) -> tuple[Ask, Ask]:
    import litellm as it

    it.suppress_debug_info = True
    it.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize  # the reply repeats itself, and it would stop
    settings = {
        "model": f"{_PROVIDERS[dialect]}/{MODELS[dialect]}",
        "api_key": "none",
        "api_base": _version(dialect, base),
        "num_retries": 0,
    }

    async def complete(body: dict[str, Any]) -> object:
        return await it.acompletion(**settings, **body)

    async def stream(body: dict[str, Any]) -> int:
        return await _count(await it.acompletion(**settings, **body, stream=True))

    return complete, stream


def any_llm(dialect: str, base: str) -> tuple[Ask, Ask]:
    from any_llm import AnyLLM

    where = _version(dialect, base)
    it = AnyLLM.create(_PROVIDERS[dialect], api_key="none", api_base=where)
    model = MODELS[dialect]

    async def complete(body: dict[str, Any]) -> object:
        return await it.acompletion(model=model, **body)

    async def stream(body: dict[str, Any]) -> int:
        return await _count(await it.acompletion(model=model, **body, stream=True))

    return complete, stream


def pydantic_ai(dialect: str, base: str) -> tuple[Ask, Ask]:
    """
    Its models alone, without the agent around them; a long history is not asked of it here.

    Of Anthropic it takes no whole replies: it streams them to itself.
    """
    from pydantic_ai.direct import model_request, model_request_stream
    from pydantic_ai.messages import ModelRequest

    if dialect == "openai_chat":
        from pydantic_ai.models.openai import OpenAIChatModel as Model
        from pydantic_ai.providers.openai import OpenAIProvider as Provider
    else:
        from pydantic_ai.models.anthropic import AnthropicModel as Model
        from pydantic_ai.providers.anthropic import AnthropicProvider as Provider
    provider = Provider(api_key="none", base_url=_version(dialect, base))
    it = Model(MODELS[dialect], provider=provider)

    async def complete(body: dict[str, Any]) -> object:
        return await model_request(it, _prompt(body))

    async def stream(body: dict[str, Any]) -> int:
        async with model_request_stream(it, _prompt(body)) as events:
            return await _count(events)

    def _prompt(body: dict[str, Any]) -> list[Any]:
        if len(body["messages"]) != 1:
            raise NotImplementedError
        return [ModelRequest.user_text_prompt(body["messages"][0]["content"])]

    return complete, stream


LIBRARIES = {"litellm": litellm, "any_llm": any_llm, "pydantic_ai": pydantic_ai}


def _version(dialect: str, base: str) -> str:
    return f"{base}/v1" if dialect == "openai_chat" else base


async def _count(events: Any) -> int:
    count = 0
    async for _ in events:
        count += 1
    return count


async def measure(work: Callable[[], Awaitable[object]], units: int) -> float | None:
    """Seconds of CPU a unit, the best of a few; None if the library cannot do it."""
    import gc

    try:
        await work()
    except Exception as error:  # noqa: BLE001 -- another library's, and it is told
        print(f"{type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return None
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        gc.disable()
        start = time.process_time()
        await work()
        best = min(best, time.process_time() - start)
        gc.enable()
    return best / units


async def calls(library: str, server: str) -> dict[str, float | None]:
    import asyncio
    import json

    bodies = json.load(sys.stdin)
    plain, history = bodies["plain"], bodies["history"]
    found: dict[str, float | None] = {}
    for dialect in MODELS:
        make = LIBRARIES[library]
        complete, _ = make(dialect, f"{server}/{dialect}.whole")
        _, stream = make(dialect, f"{server}/{dialect}.burst")
        _, arguments = make(dialect, f"{server}/{dialect}.arguments_burst")

        async def batch(complete: Ask = complete) -> None:
            for _ in range(BATCH):
                await complete(plain)

        async def at_once(complete: Ask = complete) -> None:
            await asyncio.gather(*(complete(plain) for _ in range(CONCURRENT)))

        rows: dict[str, tuple[Callable[[], Awaitable[object]], int]] = {
            "whole": (batch, BATCH),
            "concurrent": (at_once, CONCURRENT),
            "burst": (lambda stream=stream: stream(plain), 2_000),
            "arguments": (lambda arguments=arguments: arguments(plain), 1),
            "history": (lambda complete=complete: complete(history), 1),
        }
        for row, (work, units) in rows.items():
            found[f"{row} {dialect}"] = await measure(work, units)
    return found


def main() -> None:
    what, *rest = sys.argv[1:]
    if what == "import":
        for module in rest:
            __import__(module)
        result: dict[str, float | None] = {"cpu": time.process_time()}
    else:
        import asyncio

        result = asyncio.run(calls(*rest))
    import json
    import os

    print(json.dumps(result), flush=True)
    os._exit(0)  # what they leave behind in threads and loops is not asked here


if __name__ == "__main__":
    main()
