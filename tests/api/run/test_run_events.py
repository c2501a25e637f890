"""The events of a run: its steps, the numbers of its parts, its usage, and how it is left."""

import asyncio
from itertools import pairwise

import pytest

from interlingua import Session
from interlingua.api.objects.functions import stream_object
from interlingua.api.run.generate import stream
from interlingua.api.tools.tool import tool
from interlingua.errors import AbortError, ServerError
from interlingua.events import Finish, StepFinish
from interlingua.simulator import error, latency, scripted, text, thinking, tool_call, usage
from interlingua.spec.request import Request
from interlingua.streams.grammar import Grammar
from support.runs import named
from support.simulated import DIALECTS, MODELS, SLOW, in_virtual_time, run, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
LOOK = thinking("Hm.") + text("One moment.") + tool_call("look", at="cat")
TURNS = (LOOK, LOOK, text("It sleeps."))
MODEL = "anthropic:claude-haiku-4-5"


@tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at}: asleep"


async def collect(events):
    return [event async for event in events]


def rounds(provider="anthropic", answers=TURNS, **options):
    """The events of a run of two tool rounds."""
    with simulated(*answers) as peer:
        model = named(provider)

        async def work(client):
            result = stream(
                model,
                "Cat?",
                tools=[look],
                max_tool_rounds=9,
                include_thinking=True,
                client=client,
                **options,
            )
            return await collect(result), result.result()

        return run(peer, work)


@every_provider
def test_each_step_begins_with_an_event(provider):
    """The first one after the start of the stream; each but the last one ends with one too."""
    events, _ = rounds(provider)
    marks = [event for event in events if event.type in ("step_start", "step_finish")]

    assert [event.type for event in events[:2]] == ["stream_start", "step_start"]
    assert [(event.type, event.step) for event in marks] == [
        ("step_start", 0),
        ("step_finish", 0),
        ("step_start", 1),
        ("step_finish", 1),
        ("step_start", 2),
    ]
    assert events[-1].type == "finish"
    for before, event in pairwise(events):
        assert event.type != "step_start" or before.type in ("stream_start", "step_finish")


def test_a_run_without_tools_has_one_step():
    """It begins in the same way."""
    events = asyncio.run(collect(stream(MODEL, "Hi", client=scripted("Hello."))))

    assert [event.type for event in events][:3] == ["stream_start", "step_start", "text_start"]
    assert "step_finish" not in [event.type for event in events]


@every_provider
def test_the_numbers_of_parts_are_unique_over_a_run(provider):
    """And so are their ids; the grammar of streams says so."""
    events, result = rounds(provider)
    starts = [event for event in events if event.type.endswith("_start") and hasattr(event, "id")]
    starts = [event for event in starts if event.type != "stream_start"]
    indexes = [event.index for event in starts]
    grammar = Grammar()
    for event in events:
        grammar.feed(event)

    assert len(starts) == sum(len(step.response.message.content) for step in result.steps)
    assert indexes == sorted(set(indexes))
    assert len({event.id for event in starts}) == len(starts)


def test_the_usage_at_the_end_is_that_of_all_steps():
    """`StepFinish` has that of its step, and so has the response at the end."""
    answers = (LOOK + usage(10, 1), LOOK + usage(20, 2), text("So.") + usage(40, 4))
    events, result = rounds(answers=answers)
    finish = events[-1]
    steps = [event.response.usage for event in events if type(event) is StepFinish]

    assert [(each.input_tokens, each.output_tokens) for each in steps] == [(10, 1), (20, 2)]
    assert (finish.usage.input_tokens, finish.usage.output_tokens) == (70, 7)
    assert (finish.usage, finish.cost) == (result.total_usage, result.total_cost)
    assert finish.response.usage.input_tokens == 40


def test_a_run_that_fails_says_what_all_steps_used():
    """As its error does."""
    client = scripted(LOOK + usage(10, 1), error(500))
    events = []

    async def work():
        result = stream(MODEL, "Cat?", tools=[look], max_retries=0, client=client)
        async for event in result:
            events.append(event)  # noqa: PERF401 -- what came before the error is kept

    with pytest.raises(ServerError) as caught:
        asyncio.run(work())

    assert type(events[-1]) is Finish
    assert events[-1].usage == caught.value.total_usage
    assert (events[-1].usage.input_tokens, events[-1].usage.output_tokens) == (10, 1)


# Closing while another task reads.


async def closed_while_read(events, seen):
    """Read the events in one task, and close them from another one after some of them."""

    async def read():
        async for event in events:
            seen.append(event)
            if len(seen) == 3:
                arrived.set()

    arrived = asyncio.Event()
    reading = asyncio.ensure_future(read())
    await arrived.wait()
    await asyncio.sleep(1)  # the reader waits for the next event now
    await events.aclose()
    await asyncio.wait_for(reading, 60)


@every_provider
@pytest.mark.parametrize("way", ["stream", "client", "adapter", "session"])
def test_a_stream_is_closed_while_another_task_reads(provider, way):
    """It ends as a cancelled one for the reader, without an error."""
    seen = []

    async def work(client):
        request = Request(provider=provider, model=MODELS[provider], messages="Hi")
        streams = {
            "stream": lambda: stream(named(provider), "Hi", client=client),
            "client": lambda: client.stream(request),
            "adapter": lambda: client._adapters[provider].stream(request),
            "session": lambda: Session(named(provider), client=client).stream("Hi"),
        }
        await closed_while_read(streams[way](), seen)

    run(in_virtual_time(SLOW), work)

    assert seen[-1].type == "finish"
    assert seen[-1].finish_reason.reason == "cancelled"


def test_a_stream_of_objects_is_closed_while_another_task_reads():
    """Its reader gets no more, and asking for the object says that it was cancelled."""
    seen, objects = [], []
    answer = text('{"words": "' + "word " * 400 + '"}') + latency(between=1, write_bytes=400)
    schema = {"type": "object", "properties": {"words": {"type": "string"}}}

    async def work(client):
        events = stream_object(MODEL, "Hi", schema=schema, client=client)
        objects.append(events)
        await closed_while_read(events, seen)

    run(in_virtual_time(answer), work)

    assert seen[-1]["words"].startswith("wor")
    with pytest.raises(AbortError):
        objects[0].object()


def test_a_run_is_closed_while_its_tool_works():
    """The tool is ended, and the reader gets the end of a cancelled run."""
    ended = []

    @tool
    async def wait(at: str) -> str:
        """Wait for ever."""
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(at)
        return ""

    async def work(client):
        events = stream(MODEL, "Hi", tools=[wait], client=client)
        seen = []

        async def read():
            async for event in events:
                seen.append(event)  # noqa: PERF401 -- read by another task

        reading = asyncio.ensure_future(read())
        await asyncio.sleep(10)
        await events.aclose()
        await reading
        return seen

    seen = run(in_virtual_time(tool_call("wait", at="cat")), work)

    assert (seen[-1].type, seen[-1].finish_reason.reason) == ("finish", "cancelled")
    assert ended == ["cat"]


def test_a_stream_that_nobody_reads_is_closed_as_before():
    """Without an end for anyone; closing it again does nothing."""

    async def work():
        events = stream(MODEL, "Hi", client=scripted("Hello."))
        first = await anext(events)
        await events.aclose()
        await events.aclose()
        return first, await collect(events)

    first, rest = asyncio.run(work())

    assert (first.type, rest) == ("stream_start", [])
