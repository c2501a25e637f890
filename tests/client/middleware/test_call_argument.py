"""Middleware that takes facts of the call, and middleware around tools."""

import asyncio

import pytest
from msgspec.structs import replace

from interlingua import Client, RetryPolicy, generate, stream, tool
from interlingua.client.middleware.contract import per_attempt
from interlingua.simulator import error, text, tool_call
from interlingua.spec.errors import ConfigurationError
from support.simulated import simulated

MODEL = "anthropic:claude-haiku-4-5"


class Noting:
    """Notes what it is told, before and after the call."""

    def __init__(self):
        self.told = []

    def _note(self, call):
        self.told.append((call.step, call.attempt, len(call.attempts())))

    async def complete(self, request, call_next, *, call):
        assert request.provider in call.adapters
        self._note(call)
        response = await call_next(request)
        self._note(call)
        return response

    async def stream(self, request, call_next, *, call):
        assert request.provider in call.adapters
        self._note(call)
        async for event in call_next(request):
            if event.type == "finish":
                self._note(call)
            yield event


@per_attempt
class NotingAttempts(Noting):
    """The same for each attempt."""


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def run(peer, layers, *, is_stream, tools=(weather,)):
    client = peer.client.with_middleware(*layers)

    async def main():
        options = {
            "tools": tools,
            "client": client,
            "retry_policy": RetryPolicy(max_retries=2, base_delay=0),
        }
        try:
            if not is_stream:
                return await generate(MODEL, "Hi.", **options)
            result = stream(MODEL, "Hi.", **options)
            async for _ in result:
                pass
            return result.result()
        finally:
            await client.close()

    return asyncio.run(main())


both = pytest.mark.parametrize("is_stream", [False, True])
CALL = tool_call("weather", {"city": "Oslo"})


@both
def test_a_layer_is_told_the_step_and_the_attempts(is_stream):
    """Outside of the attempts there is no number of one; inside there is."""
    outer, inner = Noting(), NotingAttempts()
    with simulated(CALL, error(503), text("Rain.")) as peer:
        run(peer, [outer, inner], is_stream=is_stream)

    assert outer.told == [(0, None, 0), (0, None, 1), (1, None, 0), (1, None, 2)]
    # One note before each attempt, and one after each that succeeded.
    assert [told[:2] for told in inner.told] == [(0, 0), (0, 0), (1, 0), (1, 1), (1, 1)]


class Around:
    """Notes tools, and may change what they return."""

    def __init__(self, name, log, change=None):
        self.name, self.log, self.change = name, log, change

    async def run_tool(self, call, request, call_next):
        self.log.append((self.name, call.name, request.request_id is not None))
        result = await call_next()
        return result if self.change is None else replace(result, content=self.change)


@both
def test_layers_around_tools_run_from_the_outside_in(is_stream):
    """What the outermost returns is what the model gets; the layers need not wrap calls."""
    log = []
    layers = [Around("outer", log, "sun"), Around("inner", log, "snow")]
    with simulated(CALL, text("Sun.")) as peer:
        result = run(peer, layers, is_stream=is_stream)

    assert log == [("outer", "weather", True), ("inner", "weather", True)]
    assert result.steps[0].tool_results[0].content == "sun"


@both
def test_an_error_of_a_layer_around_a_tool_is_the_result_of_the_tool(is_stream):
    """As an error of the tool itself would be; the run goes on."""

    class Refusing:
        async def run_tool(self, *_):
            raise PermissionError("not today")

    with simulated(CALL, text("Sorry.")) as peer:
        result = run(peer, [Refusing()], is_stream=is_stream)

    assert result.text == "Sorry."
    assert result.steps[0].tool_results[0].is_error
    assert "not today" in result.steps[0].tool_results[0].content


def test_twins_of_a_client_keep_the_layers_around_tools():
    """`with_middleware` adds to them, `with_access` keeps them."""
    with simulated(text("ok")) as peer:
        first, second = Around("a", []), Around("b", [])
        client = peer.client.with_middleware(first).with_middleware(second)

        assert peer.client.tool_layers == ()
        assert client.tool_layers == (first, second)
        assert client.with_access(MODEL, api_key="other").tool_layers == (first, second)


def test_what_is_no_middleware_is_refused():
    """A layer has one of the methods at least."""
    with pytest.raises(ConfigurationError, match="not a middleware"):
        Client({}, middleware=[object()])
