"""Runs that are given up, closed, read slowly, retried or too long: what their reader sees."""

import asyncio
import threading

import pytest
from msgspec.structs import replace

from interlingua.api.objects.functions import stream_object
from interlingua.api.run.generate import generate, stream
from interlingua.api.run.options import TimeoutConfig
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.runtime.cancel import AbortController, AbortSignal
from interlingua.simulator import error, text, tool_call
from interlingua.spec.content import Text
from interlingua.spec.errors import (
    AbortError,
    AuthenticationError,
    ConfigurationError,
    ContextLengthError,
    RequestTimeoutError,
    ServerError,
)
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.grammar import Grammar
from support.runs import collect, named
from support.simulated import DIALECTS, SLOW, run, settled, simulated
from support.virtual_time import run as run_virtually
from support.warning_codes import codes

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
both = pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])


async def ask(client, whole, model="openai:m", **options):
    """To its end, in either way."""
    if whole:
        return await generate(model, "?", client=client, **options)
    return await collect(stream(model, "?", client=client, **options))


FAST = text("word " * 2_000)  # there before anybody has read much of it
LIST = {"type": "object", "properties": {"v": {"type": "array"}}, "required": ["v"]}


@every_provider
def test_after_giving_up_nothing_more_is_read(provider):
    """Of all that had come by then: what is open is closed, and the error is raised."""
    controller, seen, grammar = AbortController(), [], Grammar()

    async def feed(events):
        event = await anext(events)
        grammar.feed(event)
        return event

    async def work(client):
        events = stream(named(provider), "?", client=client, abort_signal=controller.signal)
        while (await feed(events)).type != "text_delta":
            pass
        await asyncio.sleep(0.05)  # in which all of it comes
        controller.abort("enough")
        seen.extend([(await feed(events)).type for _ in range(2)])
        with pytest.raises(AbortError, match="enough"):
            await feed(events)
        with pytest.raises(AbortError, match="enough"):
            events.result()

    with simulated(FAST) as peer:
        run(peer, work)

    grammar.finish()
    assert seen == ["text_end", "finish"]


def test_after_giving_up_an_object_is_not_read_on():
    """There is no partial after it."""
    controller = AbortController()
    answer = text('{"v": [' + '"word and word", ' * 500 + '"end"]}')

    async def work(client):
        options = {"client": client, "abort_signal": controller.signal, "schema": LIST}
        partials = stream_object(named("openai"), "?", **options)
        while len((await anext(partials)).get("v", ())) < 2:
            pass
        await asyncio.sleep(0.05)  # in which more of them come
        controller.abort()
        with pytest.raises(AbortError):
            await anext(partials)

    with simulated(answer) as peer:
        run(peer, work)


@every_provider
@both
def test_a_client_that_is_closed(provider, whole):
    """Whoever reads or waits is told; a short answer is no answer."""
    events, grammar = [], Grammar()

    async def work(client):
        if whole:
            task = asyncio.ensure_future(generate(named(provider), "?", client=client))
            await settled(lambda: peer.app.script.received)
            await client.close()
            return await asyncio.gather(task, return_exceptions=True)
        try:
            async for event in stream(named(provider), "?", client=client):
                grammar.feed(event)
                events.append(event)
                if event.type == "text_delta":
                    await client.close()
        except AbortError as failure:
            return [failure]

    with simulated(SLOW) as peer:
        (failure,) = run(peer, work)

    assert isinstance(failure, AbortError)
    if not whole:
        grammar.finish()
        assert events[-1].finish_reason.reason == "cancelled"
        assert failure.partial.text.startswith("wor")


# Time.


class Adapter:
    """Gives these answers at once, an exception by raising it, and counts."""

    name = "openai"

    def __init__(self, *answers, max_retries=0):
        self.answers, self.asked, self.max_retries = list(answers), [], max_retries

    async def complete(self, request):
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stream(self, request):
        for event in events_from_response(await self.complete(request)):
            yield event


DONE = Response(
    message=Message.assistant("done"),
    finish_reason=FinishReason(reason="stop"),
    usage=Usage(input_tokens=1, output_tokens=1),
)


@pytest.mark.parametrize("clock", ["total", "per_step"])
def test_a_slow_reader_is_not_billed(clock):
    """Whatever it does between two events, the answer is its own."""

    async def work():
        timeout = TimeoutConfig(**{clock: 25})
        events = stream("openai:m", "?", client=Client({"openai": Adapter(DONE)}), timeout=timeout)
        async for event in events:
            if event.type in ("text_delta", "text_end"):
                await asyncio.sleep(30)
        return events.result()

    assert run_virtually(work()).text == "done"


@both
@pytest.mark.parametrize("how", ["abort", "time"])
def test_tools_are_told_that_the_run_is_over(how, whole):
    """Also those in a thread, which nobody can cancel; and without a signal of the caller."""
    controller, told = AbortController(), threading.Event()

    def look(abort_signal: AbortSignal) -> None:
        abort_signal.add_callback(told.set)
        if how == "abort":
            controller.abort()
        told.wait(30)

    options = {"tools": [Tool(name="look", execute=look)]}
    if how == "abort":
        options["abort_signal"] = controller.signal
    else:
        options["timeout"] = 0.5

    async def work(client):
        kind = AbortError if how == "abort" else RequestTimeoutError
        with pytest.raises(kind):
            await ask(client, whole, named("openai"), **options)

    with simulated(tool_call("look")) as peer:
        run(peer, work)

    assert told.is_set()


# Retries.


@both
@pytest.mark.parametrize(
    ("said", "requests"), [({}, 2), ({"max_retries": 0}, 1), ({"max_retries": 3}, 4)]
)
@pytest.mark.usefixtures("no_backoff")
def test_the_number_of_the_call_goes_before_that_of_the_adapter(said, requests, whole):
    """N retries are N + 1 requests; the adapter's own count where the call says nothing."""
    failure = ServerError("down", retry_after=0.0)
    adapter = Adapter(*[failure] * 9, max_retries=1)

    async def work():
        with pytest.raises(ServerError):
            await ask(Client({"openai": adapter}), whole, **said)

    asyncio.run(work())

    assert len(adapter.asked) == requests


# What is too long.


@both
def test_what_was_left_out_is_told_and_kept(whole):
    """The model saw less; the conversation is as it was, and goes on whole."""
    said = [Message.user(f"{number}") for number in range(6)]
    adapter = Adapter(ContextLengthError("too long"), DONE)

    async def work():
        options = {"client": Client({"openai": adapter}), "on_overflow": "truncate"}
        if whole:
            return await generate("openai:m", messages=said, **options)
        events = stream("openai:m", messages=said, **options)
        seen = await collect(events)
        assert seen[-1].response.warnings == events.result().warnings
        return events.result()

    result = asyncio.run(work())

    assert [len(request.messages) for request in adapter.asked] == [6, 3]
    assert result.messages[:-1] == tuple(said)
    assert result.messages[-1].content == DONE.message.content
    assert codes(result) == ["history_truncated"]


# After it failed.


@pytest.mark.parametrize("when", ["at once", "later"])
def test_the_error_of_a_stream_is_told_again(when):
    """Not that it should be read to its end."""

    async def work(client):
        events = stream(named("openai"), "?", client=client, tools=[Tool(name="f", execute=int)])
        with pytest.raises(AuthenticationError) as caught:
            await collect(events)
        for ask in (events.response, events.result):
            with pytest.raises(AuthenticationError) as again:
                ask()
            assert again.value is caught.value

    with simulated(*([tool_call("f")] if when == "later" else []), error(401)) as peer:
        run(peer, work)


def test_a_choice_that_cannot_be_made():
    """It is told before anything is sent."""
    adapter = Adapter(replace(DONE, message=Message.assistant([Text(text="x")])))
    client = Client({"openai": adapter})
    with pytest.raises(ConfigurationError, match="Tools: look"):
        stream("openai:m", "?", tool_choice="lokk", tools=[Tool(name="look")], client=client)

    assert adapter.asked == []
