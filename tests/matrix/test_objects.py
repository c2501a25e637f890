"""Structured output, by every dialect."""

import json
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from interlingua.api.objects.functions import generate_object, stream_object
from interlingua.simulator import text, tool_call
from interlingua.spec.errors import NoObjectGeneratedError
from interlingua.spec.request import ToolDefinition
from support.requests import every_provider, get_weather, given, named
from support.simulated import run, simulated


@dataclass
class Person:
    """Somebody."""

    name: str
    age: int


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}


def give(value):
    """An answer in text, or by the tool where that is how objects are asked for."""

    def answer(request):
        tools = [tool for tool in request.tools or () if isinstance(tool, ToolDefinition)]
        return tool_call(tools[0].name, value) if tools else text(json.dumps(value))

    return answer


def objects(peer, provider, **options):
    """What `generate_object` gives, and the partials and the end of `stream_object`."""

    async def work(client):
        whole = await generate_object(named(provider), "Who?", client=client, **options)
        growing = stream_object(named(provider), "Who?", client=client, **options)
        return whole.output, [partial async for partial in growing], growing.object()

    return run(peer, work)


@every_provider
def test_a_schema(provider):
    """Asked for in the provider's way, read, checked; streamed, it grows to the same."""
    alice = {"name": "Alice", "age": 30}
    with simulated(give(alice)) as peer:
        output, partials, end = objects(peer, provider, schema=SCHEMA)

    assert output == partials[-1] == end == alice


@every_provider
def test_a_type(provider):
    """The object is of the type, also in a list."""
    with simulated(give({"name": "Alice", "age": 30})) as peer:
        output, _, end = objects(peer, provider, schema=Person)
    assert output == end == Person("Alice", 30)

    with simulated(give({"value": [{"name": "Alice", "age": 30}]})) as peer:
        output, _, end = objects(peer, provider, schema=list[Person])
    assert output == end == [Person("Alice", 30)]


@every_provider
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (text("I would rather not."), "no JSON"),
        (text('{"name": "Alice", "age": 3'), "not JSON"),
        (give({"name": "Alice", "age": "thirty"}), "age"),
    ],
    ids=["words", "cut off", "another type"],
)
def test_no_object(provider, answer, problem):
    """What cannot be read or does not fit is an error, with the text and why."""
    for way in (generate_object, stream_object):

        async def work(client, way=way):
            found = way(named(provider), "Who?", schema=Person, client=client)
            if way is generate_object:
                return await found
            return [partial async for partial in found]

        with simulated(answer) as peer, pytest.raises(NoObjectGeneratedError) as caught:
            run(peer, work)
        assert any(problem in said for said in caught.value.problems)
        assert caught.value.text
        assert caught.value.response is not None


@every_provider
def test_asked_again(provider):
    """The model is told what is wrong, and may do better."""
    bad, good = give({"name": "Alice", "age": "thirty"}), give({"name": "Alice", "age": 30})
    told = []

    def play(request):
        told.append(str(request.messages[-1]))
        return (bad if len(told) == 1 else good)(request)

    async def work(client):
        return await generate_object(
            named(provider), "Who?", schema=Person, client=client, max_validation_retries=1
        )

    with simulated(play) as peer:
        result = run(peer, work)

    assert result.output == Person("Alice", 30)
    assert "age" in told[1]


@every_provider
def test_tools_on_the_way(provider):
    """They are run, and then the object comes."""

    def play(request):
        # In words where the choice `none` has no form: then no tools are sent.
        if given(request) or request.messages[-1].text.startswith("get_weather returned: Oslo:"):
            assert bool(given(request)) == (provider != "bedrock_converse")
            return give({"name": "Oslo: rain", "age": 30})(
                replace(request, tools=[t for t in request.tools if t.name != "get_weather"])
            )
        return tool_call("get_weather", city="Oslo")

    async def work(client):
        return await generate_object(
            named(provider), "Who?", schema=Person, client=client, tools=[get_weather]
        )

    with simulated(play) as peer:
        assert run(peer, work).output == Person("Oslo: rain", 30)
