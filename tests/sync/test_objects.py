"""Objects, blocking, in every dialect, over real HTTP."""

import time
from dataclasses import dataclass

import pytest

from interlingua import sync
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import error, text, tool_call
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    InvalidRequestError,
    NoObjectGeneratedError,
)
from interlingua.spec.request import ToolDefinition
from support.blocking import blocking, left, named, until
from support.simulated import DIALECTS, SLOW

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
ALICE = '{"name": "Alice", "age": 30}'


@dataclass
class Person:
    """Somebody."""

    name: str
    age: int


def answer(request):
    """In text, or by the tool where that is how objects are asked for."""
    tools = [tool for tool in request.tools or () if isinstance(tool, ToolDefinition)]
    return tool_call(tools[0].name, name="Alice", age=30) if tools else text(ALICE)


@every_provider
def test_whole(provider):
    """It is of the type that was asked for."""
    with blocking(answer) as (_, client):
        result = sync.generate_object(named(provider), "Who?", schema=Person, client=client)

    assert result.output == Person("Alice", 30)


@every_provider
def test_as_it_comes(provider):
    """Partials grow; the object is there when they have been read, not before."""
    with blocking(answer) as (_, client):
        found = sync.stream_object(named(provider), "Who?", schema=Person, client=client)
        assert found.partial is None
        with pytest.raises(ConfigurationError):
            found.object()
        partials = []
        for partial in found:
            partials.append(partial)
            assert found.partial is partial
            with pytest.raises(ConfigurationError):
                found.response()

    assert partials[-1] == {"name": "Alice", "age": 30}
    assert found.object() == found.result().output == Person("Alice", 30)
    assert found.response() == found.result().response


@every_provider
def test_no_object(provider):
    """What does not fit is an error, in both ways."""
    with blocking(text("I would rather not.")) as (_, client):
        with pytest.raises(NoObjectGeneratedError):
            sync.generate_object(named(provider), "Who?", schema=Person, client=client)
        found = sync.stream_object(named(provider), "Who?", schema=Person, client=client)
        with pytest.raises(NoObjectGeneratedError):
            list(found)
        with pytest.raises(NoObjectGeneratedError):
            found.object()


def test_after_a_failure():
    """Whoever asks for the object, or the answer, is told again why there is none."""
    with blocking(error(400, "bad")) as (_, client):
        found = sync.stream_object(named("openai"), "Who?", schema=Person, client=client)
        with pytest.raises(InvalidRequestError) as caught:
            next(found)
        for ask in (found.object, found.response, found.result):
            with pytest.raises(InvalidRequestError) as again:
                ask()
            assert again.value is caught.value


def test_leaving():
    """Closing it closes the connection."""
    slow = text('{"names": ["' + "x" * 4000) + SLOW
    with blocking(slow) as (peer, client):
        with sync.stream_object(
            named("openai"), "Who?", schema={"type": "object"}, client=client
        ) as found:
            next(found)
        until(lambda: left(peer))


@pytest.mark.parametrize("words", [20, 500], ids=["all of it had come", "more than is held"])
def test_after_giving_up_nothing_more_is_read(words):
    """Of all partials that had been read ahead; the error has what came."""
    controller = AbortController()
    schema = {"type": "object", "properties": {"v": {"type": "array"}}, "required": ["v"]}
    with blocking(text('{"v": [' + '"word and word", ' * words + '"end"]}')) as (_, client):
        partials = sync.stream_object(
            named("openai"), "?", schema=schema, client=client, abort_signal=controller.signal
        )
        while len(next(partials).get("v", ())) < 2:
            pass
        time.sleep(0.1)  # in which it is read ahead
        controller.abort("enough")
        with pytest.raises(AbortError, match="enough"):
            next(partials)
        with pytest.raises(StopIteration):
            next(partials)
