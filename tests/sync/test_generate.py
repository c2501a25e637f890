"""`generate` and `stream`, blocking, in every dialect, over real HTTP."""

import asyncio
import threading
import time

import pytest

from interlingua import sync
from interlingua.api.tools.tool import tool
from interlingua.client.retry_policy import RetryPolicy
from interlingua.runtime.cancel import AbortController
from interlingua.simulator import error, text, tool_call, tool_loop
from interlingua.spec.errors import (
    AbortError,
    AuthenticationError,
    ConfigurationError,
    ServerError,
)
from interlingua.streams.grammar import Grammar
from support.blocking import NEVER, blocking, left, named, until
from support.simulated import DIALECTS, SLOW

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
LOOP = tool_loop(tool_call("get_weather", city="Oslo"), text("So it rains."))
threads = []


@tool
def get_weather(city: str) -> str:
    """The weather in a city now."""
    threads.append(threading.current_thread().name)
    return f"{city}: rain"


@every_provider
def test_generate_with_tools(provider):
    """Tools are run, each in a thread, and their results sent back."""
    threads.clear()
    with blocking(LOOP) as (_, client):
        result = sync.generate(named(provider), "Weather?", tools=[get_weather], client=client)

    assert result.text == "So it rains."
    assert result.steps[0].tool_results[0].content == "Oslo: rain"
    assert threads[0] not in ("MainThread", "interlingua")


@every_provider
def test_stream_with_tools(provider):
    """One stream over both steps, and the whole of it at the end."""
    with blocking(LOOP) as (peer, client):
        with sync.stream(named(provider), "Hi", tools=[get_weather], client=peer.client) as found:
            assert found.partial_response is None
            events = list(found)
            assert found.partial_response.text == "So it rains."
        texts = sync.stream(named(provider), "Hi", tools=[get_weather], client=client)
        assert "".join(texts.text_stream) == "So it rains."

    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.finish()
    assert [event.step for event in events if event.type == "step_finish"] == [0]
    assert found.response() == events[-1].response
    assert found.result().text == "So it rains."
    assert len(found.result().steps) == 2


@every_provider
def test_leaving_a_stream(provider):
    """Closing it closes the connection; what was read is there, the end is not."""
    with blocking(SLOW) as (peer, client):
        found = sync.stream(named(provider), "Hi", client=client)
        for event in found:
            if event.type == "text_delta":
                break
        found.close()
        until(lambda: left(peer))

    assert found.partial_response.text == event.delta
    with pytest.raises(ConfigurationError):
        found.response()
    assert list(found) == []


def test_what_is_shown_is_what_was_read():
    """The answer so far is the reader's, however far ahead the network is."""
    with blocking(text("one two three")) as (_, client):
        found = sync.stream(named("openai"), "Hi", client=client)
        seen = ""
        for event in found:
            if event.type == "text_delta":
                seen += event.delta
                assert found.partial_response.text == seen

    assert seen == "one two three"


def test_mistakes_show_at_once():
    """A stream that cannot begin is refused where it is asked for."""
    with blocking(text("x")) as (_, client):
        with pytest.raises(ConfigurationError, match="Unknown option"):
            sync.stream(named("openai"), "Hi", client=client, temprature=1)
        with pytest.raises(ConfigurationError, match="not both"):
            sync.generate(named("openai"), "Hi", messages=["Hi"], client=client)


def test_abort_from_another_thread():
    """An abort signal ends the wait, and the call."""
    controller = AbortController()
    with blocking(NEVER) as (peer, client):

        def abort():
            until(lambda: peer.app.script.received)
            controller.abort("enough")

        thread = threading.Thread(target=abort)
        thread.start()
        with pytest.raises(AbortError, match="enough"):
            sync.generate(named("openai"), "Hi", client=client, abort_signal=controller.signal)
        thread.join()
        until(lambda: left(peer))


def test_tools_may_call_in_turn():
    """A plain tool asks a model itself; an async one uses the async functions, and is told so."""
    asked = []

    with blocking(tool_loop(tool_call("ask"), text("done"))) as (_, client):

        @tool(name="ask")
        def plain() -> str:
            """Ask."""
            asked.append(sync.generate(named("openai"), "Inner", client=client).text)
            return "asked"

        @tool(name="ask")
        async def wrong() -> str:
            """Ask."""
            return sync.generate(named("openai"), "Inner", client=client).text

        assert sync.generate(named("openai"), "Hi", tools=[plain], client=client).text == "done"
        told = sync.generate(named("openai"), "Hi", tools=[wrong], client=client)

    assert asked == ["done"]
    (result,) = told.steps[0].tool_results
    assert result.is_error
    assert "Await the async function" in result.content


def test_the_default_client():
    """It is the one of the async functions."""
    with blocking(text("hello")) as (peer, client):
        for given in (client, peer.client):
            sync.set_default_client(given)
            try:
                assert sync.get_default_client().asynchronous is peer.client
                assert sync.generate(named("gemini"), "Hi").text == "hello"
            finally:
                sync.set_default_client(None)


def test_inside_a_running_loop():
    """As in a notebook: the loop there waits, and the answer comes."""

    async def cell():
        result = sync.generate(named("anthropic"), "Hi", client=client)
        return result.text, "".join(
            sync.stream(named("anthropic"), "Hi", client=client).text_stream
        )

    with blocking(text("hello there")) as (_, client):
        assert asyncio.run(cell()) == ("hello there", "hello there")


@pytest.mark.parametrize("provider", sorted(DIALECTS))
@pytest.mark.parametrize("words", [100, 2_000], ids=["all of it had come", "more than is held"])
def test_after_giving_up_nothing_more_is_read(provider, words):
    """Of all that had been read ahead: what was seen is closed, and the error is raised."""
    controller, grammar = AbortController(), Grammar()

    def feed(events):
        event = next(events)
        grammar.feed(event)
        return event

    with blocking(text("word " * words)) as (_, client):
        events = sync.stream(named(provider), "?", client=client, abort_signal=controller.signal)
        while feed(events).type != "text_delta":
            pass
        time.sleep(0.1)  # in which it is read ahead
        controller.abort("enough")
        assert [feed(events).type for _ in range(2)] == ["text_end", "finish"]
        with pytest.raises(AbortError, match="enough") as caught:
            next(events)

    grammar.finish()
    assert caught.value.partial.text.startswith("wor")
    assert caught.value.total_usage is not None
    with pytest.raises(AbortError):
        events.result()
    with pytest.raises(StopIteration):
        next(events)


def test_given_up_before_it_was_read():
    """There is no event."""
    controller = AbortController()
    with blocking(text("word")) as (_, client):
        events = sync.stream(named("openai"), "?", client=client, abort_signal=controller.signal)
        controller.abort()
        with pytest.raises(AbortError):
            next(events)


def test_the_error_of_a_stream_is_told_again():
    """Not that it should be read to its end."""
    with blocking(error(401)) as (_, client):
        events = sync.stream(named("openai"), "?", client=client)
        with pytest.raises(AuthenticationError):
            next(events)
        with pytest.raises(AuthenticationError):
            events.response()


@pytest.mark.parametrize("is_async", [False, True])
def test_retry_repeats_a_blocking_function(is_async):
    """A blocking function is tried again as the policy allows."""
    tries, log = [], []

    def call():
        tries.append(1)
        if len(tries) < 3:
            raise ServerError("down")
        return "up"

    async def note_later(_, attempt, __):
        log.append(attempt)

    def note(_, attempt, __):
        log.append(attempt)

    policy = RetryPolicy(base_delay=0.0, on_retry=note_later if is_async else note)

    assert sync.retry(call, policy) == "up"
    assert log == [0, 1]
    with pytest.raises(ServerError):
        sync.retry(lambda: (_ for _ in ()).throw(ServerError("down")), RetryPolicy(max_retries=0))
