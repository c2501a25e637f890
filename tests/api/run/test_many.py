"""`generate_many`: bounded, ordered or not, errors per item, ended as a whole."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import AbortController, Message, generate_many, sync
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, scripted, serve_in_thread, text
from interlingua.spec.errors import AbortError, ConfigurationError, ServerError
from interlingua.spec.response import FinishReason, Response, Usage
from support import virtual_time
from support.simulated import settled


class Counting:
    """An adapter that answers with the text it was asked, and counts calls at the same time."""

    name = "house"

    def __init__(self, delay=0.0):
        self.running = self.most = self.calls = self.cancelled = 0
        self.delay = delay

    async def complete(self, request):
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        question = request.messages[-1].text
        try:
            await asyncio.sleep(self.delay or (hash(question) % 7) / 2000)
            if "fail" in question:
                raise ServerError("No.", retryable=False)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        message = Message.assistant(f"{question}!")
        usage = Usage(input_tokens=1, output_tokens=2)
        reason = FinishReason(reason="stop")
        return Response(message=message, usage=usage, finish_reason=reason)

    async def stream(self, request):
        raise NotImplementedError(request)
        yield


def house(delay=0.0):
    adapter = Counting(delay)
    return adapter, Client({"house": adapter})


def answers(results):
    return [item.result.text for item in results]


@given(
    count=st.integers(0, 12),
    concurrency=st.integers(1, 5),
    ordered=st.booleans(),
    kind=st.sampled_from(["list", "generator", "async"]),
)
def test_every_item_once_and_never_too_many(count, concurrency, ordered, kind):
    """Each item has one result at its index; no more than `concurrency` run at once."""
    adapter, client = house()
    prompts = [f"q{index}" for index in range(count)]

    async def later():
        for prompt in prompts:
            await asyncio.sleep(0)
            yield prompt

    items = {"list": prompts, "generator": (each for each in prompts), "async": later()}[kind]

    async def work():
        many = generate_many(items, "m", client=client, concurrency=concurrency, ordered=ordered)
        return [item async for item in many]

    results = asyncio.run(work())

    if ordered:
        assert [item.index for item in results] == [*range(count)]
    assert sorted((item.index, item.item) for item in results) == [*enumerate(prompts)]
    assert all(item.result.text == f"{item.item}!" for item in results)
    assert adapter.most <= concurrency


def test_awaited_it_is_a_list_in_order():
    """Whatever the order in which they ended."""
    _, client = house()
    work = generate_many(["a", "b", "c"], "m", client=client, ordered=False)

    async def main():
        return await work

    assert answers(asyncio.run(main())) == ["a!", "b!", "c!"]


def test_an_error_is_the_items_own():
    """The others go on; `unwrap` raises it; progress counts it."""
    _, client = house()
    seen = []

    async def main():
        return await generate_many(
            ["a", "fail", {"prompt": "c", "nonsense": 1}, "d"],
            "m",
            client=client,
            on_progress=seen.append,
        )

    results = asyncio.run(main())

    assert [type(item.error) for item in results] == [
        type(None),
        ServerError,
        ConfigurationError,
        type(None),
    ]
    with pytest.raises(ServerError):
        results[1].unwrap()
    assert results[3].unwrap().text == "d!"
    assert [progress.done for progress in seen] == [1, 2, 3, 4]
    assert (seen[-1].failed, seen[-1].total, seen[-1].usage.output_tokens) == (2, 4, 4)


def test_items_have_their_own_arguments():
    """A dict overrides the options; a message or a list of parts is a prompt."""
    _, client = house()
    items = [
        {"prompt": "a", "model": "house:other"},
        {"messages": ["x", Message.assistant("y"), "b"]},
        {"role": "user", "content": "c"},
        Message.user("d"),
    ]

    async def main():
        return await generate_many(items, "house:m", client=client)

    results = asyncio.run(main())

    assert answers(results) == ["a!", "b!", "c!", "d!"]
    assert results[0].result.messages[-1].metadata["model"] == "other"


@pytest.mark.parametrize("way", ["leave", "task", "signal", "id"])
def test_ended_as_a_whole(way):
    """Runs are cancelled, and no new one begins."""
    adapter, client = house(delay=30.0)
    controller = AbortController()

    async def main():
        many = generate_many(
            (str(index) for index in range(1000)),
            "m",
            client=client,
            concurrency=4,
            abort_signal=controller.signal,
            request_id="batch",
        )
        reading = asyncio.ensure_future(anext(aiter(many)))
        await settled(lambda: adapter.running == 4)
        if way == "signal":
            controller.abort("enough")
        elif way == "id":
            assert await client.cancel("batch")
        else:
            reading.cancel()
        expected = asyncio.CancelledError if way in ("leave", "task") else AbortError
        with pytest.raises(expected):
            await reading
        await many.aclose()
        assert len(client.calls.scopes) == 0

    asyncio.run(main())

    assert (adapter.calls, adapter.cancelled, adapter.running) == (4, 4, 0)


def test_one_run_is_cancelled_by_its_id():
    """It is an error of that item only."""
    adapter, client = house(delay=0.05)

    async def main():
        work = asyncio.ensure_future(
            generate_many(["a", "b"], "m", client=client, request_id="batch")._list()
        )
        await settled(lambda: adapter.running == 2)
        await client.cancel("batch-1")
        return await work

    first, second = virtual_time.run(main())

    assert first.result.text == "a!"
    assert isinstance(second.error, AbortError)


def test_what_nobody_reads_does_not_pile_up():
    """A reader that stops reads no more than twice `concurrency` ahead."""
    adapter, client = house()

    async def main():
        many = generate_many(
            (str(index) for index in range(1000)), "m", client=client, concurrency=3
        )
        async with contextlib.aclosing(many):
            await anext(aiter(many))
            await asyncio.sleep(0.1)

    virtual_time.run(main())

    assert adapter.calls <= 7


@pytest.mark.parametrize("ordered", [True, False])
def test_items_that_fail_to_come(ordered):
    """What the iterable raises ends it, after the results of the runs that had begun."""
    adapter, client = house()
    texts = set()

    def items():
        yield from "abc"
        raise LookupError("the file is gone")

    async def main():
        async for item in generate_many(items(), "m", client=client, ordered=ordered):
            texts.add(item.result.text)

    with pytest.raises(LookupError):
        asyncio.run(main())
    assert texts == {"a!", "b!", "c!"}
    assert (adapter.calls, adapter.running, adapter.cancelled) == (3, 0, 0)


def test_blocking():
    """The same, as an iterator."""
    _, client = house()
    with sync.Client.wrap(client) as blocking:
        results = list(sync.generate_many(["a", "b"], "m", client=blocking, concurrency=1))

    assert answers(results) == ["a!", "b!"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"items": "text"}, "`items` must be a list"),
        ({"items": 5}, "`items` must be a list"),
        ({"items": [], "concurrency": 0}, "concurrency must be"),
        ({"items": [], "concurrency": "4"}, "concurrency must be"),
        ({"items": [], "temprature": 1}, "temperature"),
        ({"items": [], "messages": []}, "belongs to one item"),
        ({"items": [], "on_progress": "print"}, "on_progress must be a function"),
        ({"items": [], "abort_signal": "stop"}, "abort_signal must be"),
        ({"items": [], "client": "openai"}, "client must be"),
        ({"items": [], "request_id": ["r"]}, "request_id must be a string"),
        ({"items": [], "max_retries": -1}, "max_retries must be"),
    ],
)
def test_wrong_arguments(arguments, message):
    """They are refused at once."""
    with pytest.raises(ConfigurationError, match=message):
        generate_many(**arguments)


def test_iterators_are_for_every_item():
    """An option that can be read once is the same for each item."""
    client = scripted("Yes.", "Yes.")
    options = {"stop_sequences": iter(["X"]), "tools": iter([{"name": "look"}]), "concurrency": 1}

    async def work():
        await generate_many(["a", "b"], "openai_compatible:m", client=client, **options)
        await client.close()

    asyncio.run(work())
    assert [request.stop_sequences for request in client.requests] == [("X",)] * 2
    assert [len(request.tools) for request in client.requests] == [1, 1]


def test_a_key_is_for_the_provider_of_the_model():
    """An item of another provider is sent there without it, and without the headers."""
    openai, anthropic = Simulator(text("O"), key="for-openai"), Simulator(text("A"), key="own")
    items = ["?", {"model": "anthropic:claude-haiku-4-5", "prompt": "?"}]
    options = {"provider": "openai", "api_key": "for-openai", "headers": {"x-mark": "1"}}
    with serve_in_thread(openai) as first, serve_in_thread(anthropic) as second:
        client = Client(
            {
                "openai": HttpAdapter("openai", "own", base_url=first.url),
                "anthropic": HttpAdapter("anthropic", "own", base_url=second.url),
            }
        )

        async def work():
            results = await generate_many(items, "gpt-5.2", client=client, **options)
            await client.close()
            return results

        assert [item.unwrap().text for item in asyncio.run(work())] == ["O", "A"]
    assert ["x-mark" in each.call.headers for each in openai.script.received] == [True]
    assert ["x-mark" in each.call.headers for each in anthropic.script.received] == [False]
