"""
The integration matrix: every case against every dialect, over real HTTP.

Its rows are two lists of what a client must do: one by capability, one by task of an agent.
"""

import pytest

from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import tool
from interlingua.spec.content import ToolResult
from support.simulated import DIALECTS, MODELS, run

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))


def named(provider):
    return f"{provider}:{MODELS[provider]}"


def given(request):
    """The results of tools in a request, in order."""
    return [p for m in request.messages for p in m.content if isinstance(p, ToolResult)]


def ask(peer, provider, prompt="hi", **options):
    return run(peer, lambda client: generate(named(provider), prompt, client=client, **options))


def listen(peer, provider, prompt="hi", **options):
    async def work(client):
        result = stream(named(provider), prompt, client=client, **options)
        return [event async for event in result], result

    return run(peer, work)


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: rain"
