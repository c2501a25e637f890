"""What the client sends fits the vendors' own types, by every dialect."""

from dataclasses import dataclass

import pytest

from interlingua.api.objects.functions import generate_object
from interlingua.api.run.generate import generate, stream
from interlingua.simulator import text, thinking, tool_call
from interlingua.spec.content import Image
from interlingua.spec.messages import Message
from support.oracles_requests import problems
from support.requests import every_provider, get_weather, given, named
from support.simulated import DIALECTS, run, simulated

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)


@dataclass
class Place:
    """Where it is."""

    city: str
    country: str | None = None


SETTINGS = {
    "plain": {},
    "sampling": {"temperature": 0.5, "top_p": 0.9, "max_tokens": 500, "stop_sequences": ["END"]},
    "thinking": {"reasoning_effort": "low", "max_tokens": 4000},
    "choice": {"tool_choice": "required", "parallel_tool_calls": False},
    "named": {"tool_choice": "get_weather"},
    "image": {
        "prompt": None,
        "messages": [
            Message.user(["Look.", Image(data=PNG, media_type="image/png")]),
            Message.assistant("A dot."),
            Message.user("And now?"),
        ],
    },
}


def play(request):
    if request.response_format is not None:
        return text('{"city": "Oslo", "country": null}')
    if not any(tool.name == "get_weather" for tool in request.tools or ()):
        return tool_call(request.tools[0].name, city="Oslo", country=None)
    return text("Rain.") if given(request) else thinking("Hm.") + tool_call("get_weather", city="O")


def judged(peer, provider):
    """What the vendor's types have against the bodies that were sent, and how many there were."""
    calls = [exchange.call for exchange in peer.app.script.received]
    for call in calls:
        for message in call.body.get("messages", ()):
            message.pop("reasoning_content", None)  # of compatible hosts; OpenAI's types lack it
        if call.headers.get("anthropic-version") == "2023-06-01":
            for name in ("temperature", "top_p"):  # the types are of a later version
                call.body.pop(name, None)
    found = [problems(DIALECTS[provider], call.body, call.path) for call in calls]
    return found, len(calls)


@every_provider
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_bodies_of_runs_are_valid(provider, settings):
    """Two rounds, whole and streamed; the strict simulator accepts them too."""

    async def work(client):
        options = {"prompt": "Weather?", **SETTINGS[settings]}
        options |= {"client": client, "tools": [get_weather], "system": "Be brief."}
        prompt = options.pop("prompt")
        await generate(named(provider), prompt, **options)
        async for _ in stream(named(provider), prompt, **options):
            pass

    with simulated(play) as peer:
        run(peer, work)
        found, count = judged(peer, provider)

    assert count == 4
    assert found == [[]] * 4


@every_provider
def test_the_bodies_that_ask_for_objects_are_valid(provider):
    """A schema in the provider's own way."""

    async def work(client):
        result = await generate_object(named(provider), "Where?", schema=Place, client=client)
        return result.output

    with simulated(play) as peer:
        assert run(peer, work) == Place("Oslo")
        found, count = judged(peer, provider)

    assert (found, count) == ([[]], 1)
