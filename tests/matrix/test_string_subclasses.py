"""Strings of a subclass of `str` are sent as plain ones are, by every dialect and function."""

import pytest

from interlingua import (
    Session,
    batch,
    embed_many,
    execute,
    generate,
    generate_image,
    generate_many,
    generate_object,
    speak,
    stream,
    stream_object,
)
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import text, tool_call
from interlingua.spec.messages import Message
from support.odd_strings import Odd
from support.requests import every_provider, given, named
from support.simulated import KEY, run, simulated

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def looking(kind):
    @tool
    def look(city: str) -> dict:
        """Look at a city."""
        return {"seen": [kind("rain"), {"city": kind(city)}]}

    return look


@tool(name="look")
def look_briefly(city: str) -> str:
    """Look at a city."""
    return Odd(f"rain in {city}")


def play(request):
    if request.response_format is not None:
        return text('{"city": "Oslo"}')
    if request.tools and not given(request):
        return tool_call(request.tools[0].name, city="Oslo")
    return text("Rain.")


def conversation(kind):
    message = {"role": kind("assistant"), "content": kind("B & C")}
    return [Message.user(kind("A <b>")), message, kind("D")]


def bodies(kind, work):
    """The bodies that the simulator received from work with strings of a class."""
    with simulated(play) as peer:
        run(peer, lambda client: work(client, kind))
        return [exchange.call.body for exchange in peer.app.script.received]


@every_provider
def test_runs_send_the_same_bodies(provider):
    """Two rounds, whole and streamed, with results of tools that hold such strings."""

    async def work(client, kind):
        options = {
            "messages": conversation(kind),
            "system": kind("Be <brief>."),
            "tools": [looking(kind)],
            "tool_choice": kind("auto"),
            "stop_sequences": [kind("END")],
            "user": kind("u-1"),
            "client": client,
        }
        await generate(kind(named(provider)), **options)
        async for _ in stream(kind(named(provider)), **options):
            pass

    sent = bodies(str, work)
    assert bodies(Odd, work) == sent
    assert len(sent) == 4


@every_provider
def test_a_text_that_a_tool_returns_is_sent_as_it_is(provider):
    """The result is the string, whatever its class."""
    with simulated(play) as peer:
        result = run(
            peer,
            lambda client: generate(named(provider), "?", tools=[look_briefly], client=client),
        )
    (answer,) = given(result)
    assert answer.content == "rain in Oslo"
    assert type(answer.content) is str


async def _object(model, kind, client):
    result = stream_object(model, kind("Where?"), schema=SCHEMA, client=client)
    return [each async for each in result]


async def _send(model, kind, client):
    session = Session(model, system=kind("S <s>"), client=client)
    await session.send(kind("Hi"))
    return await session.send([kind("Hi"), kind("again")])


FUNCTIONS = {
    "objects": lambda model, kind, client: generate_object(
        model, kind("Where?"), schema=SCHEMA, client=client
    ),
    "streamed objects": _object,
    "many": lambda model, kind, client: generate_many([kind("a")], model, client=client),
    "session": _send,
    "execute": lambda model, kind, client: execute(model, conversation(kind), client=client),
}


@every_provider
@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_functions_send_the_same_bodies(provider, name):
    """Prompts, system prompts and the name of the model may be such strings."""

    async def work(client, kind):
        return await FUNCTIONS[name](kind(named(provider)), kind, client)

    sent = bodies(str, work)
    assert bodies(Odd, work) == sent
    assert sent


OPERATIONS = {
    "embed": lambda kind, client: embed_many(
        kind("openai:text-embedding-3-small"), [kind("a <b>"), kind("c")], client=client
    ),
    "image": lambda kind, client: generate_image(
        kind("openai:gpt-image-1"), kind("A cat & a dog"), client=client
    ),
    "speech": lambda kind, client: speak(
        kind("openai:gpt-4o-mini-tts"), kind("Hi <b>"), voice=kind("alloy"), client=client
    ),
    "batch": lambda kind, client: batch.submit(
        {kind("first"): kind("Hi"), "second": conversation(kind)},
        model=kind("anthropic:claude-haiku-4-5"),
        client=client,
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_send_the_same_bodies(name):
    """The values of operations take such strings too."""

    async def work(client, kind):
        return await OPERATIONS[name](kind, client)

    sent = bodies(str, work)
    assert bodies(Odd, work) == sent
    assert sent


@every_provider
def test_keys_addresses_and_headers_may_be_such_strings(provider):
    """Settings of an adapter are read as the strings they are."""
    with simulated(text("Hi"), key=KEY) as peer:
        base = f"{peer.server.url}/v1" if provider == "openai_compatible" else peer.server.url
        adapter = HttpAdapter(
            Odd(provider), Odd(KEY), base_url=Odd(base), default_headers={"x-team": Odd("a")}
        )
        peer.client = Client({Odd(provider): adapter})
        result = run(peer, lambda client: generate(named(provider), "?", client=client))
        (exchange,) = peer.app.script.received
    assert result.text == "Hi"
    assert exchange.call.headers["x-team"] == "a"
