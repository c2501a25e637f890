"""`Cache`: equal requests are answered from a store, whole and as streams."""

import asyncio
import contextlib
import logging

import pytest
from msgspec.structs import replace

from interlingua import Client, generate, sync, tool
from interlingua.client.middleware.cache import Cache, MemoryEntries
from interlingua.client.middleware.hedge import Hedge
from interlingua.client.stores.memory import MemoryStore
from interlingua.client.stores.sqlite import SQLiteStore
from interlingua.simulator import latency, text, tool_call
from interlingua.spec.content import Image, Text, ToolCall
from interlingua.spec.errors import ServerError, StoreError
from interlingua.spec.events import Finish, TextDelta
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.grammar import Grammar
from support import virtual_time
from support.simulated import in_virtual_time, simulated

ASK = Request(model="here:m", messages="Hi.")


def answer_of(*content, reason="stop"):
    return Response(
        message=Message.assistant(content or "hello"),
        finish_reason=FinishReason(reason=reason),
        usage=Usage(input_tokens=3, output_tokens=1),
        raw={"a": 1},
        id="r1",
    )


class Adapter:
    """Answers with what it is given in turn; the last again and again."""

    name = "here"

    def __init__(self, *answers, gate=None):
        self.answers = list(answers or [answer_of()])
        self.gate = gate
        self.asked = 0

    async def _next(self):
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def complete(self, _):
        return await self._next()

    async def stream(self, _):
        for event in events_from_response(await self._next()):
            await asyncio.sleep(0)
            yield event

    async def perform(self, *_, **__):
        self.asked += 1
        return self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)


def client_of(adapter, **settings):
    return Client({"here": adapter}, middleware=[Cache(**settings)])


async def whole(client, request=ASK):
    return await client.complete(request)


async def streamed(client, request=ASK):
    """The response of a stream whose events follow the grammar."""
    grammar, finish = Grammar(), None
    async for event in client.stream(request):
        grammar.feed(event)
        if type(event) is Finish:
            finish = event
    grammar.finish()
    return finish.response


both = pytest.mark.parametrize("ask", [whole, streamed])


@both
@pytest.mark.parametrize("again", [whole, streamed])
def test_an_equal_request_is_not_sent_again(ask, again):
    """Whole answers and streams serve each other; only what is about the call differs."""
    adapter = Adapter()
    events = []

    async def main():
        client = client_of(adapter)
        client.subscribe(events.append)
        first = await ask(client)
        count = len(events)
        second = await again(client, replace(ASK, request_id="second"))
        return first, second, len(events) - count

    first, second, new_events = asyncio.run(main())

    assert adapter.asked == 1
    assert new_events == 0
    assert (second.text, second.usage, second.id) == (first.text, first.usage, first.id)
    assert second.finish_reason == first.finish_reason
    assert second.attempts == ()
    assert second.cost.source == "cache"
    assert second.cost.total == 0
    assert second.request_id == "second"
    assert second.raw is None
    assert second.message.id == "second-0"
    assert second.message.metadata["cost"] == {"total": 0.0, "currency": "USD", "source": "cache"}
    assert second.message.metadata.items() >= first.message.metadata.items()


@both
def test_a_different_request_is_sent(ask):
    """Also one whose temperature is 0 and not omitted."""
    adapter = Adapter()

    async def main():
        client = client_of(adapter)
        for request in (ASK, replace(ASK, temperature=0), replace(ASK, user="ada")):
            await ask(client, request)

    asyncio.run(main())
    assert adapter.asked == 3


@both
@pytest.mark.parametrize(
    "answer",
    [
        *(
            answer_of(reason=reason)
            for reason in ("length", "content_filter", "cancelled", "other")
        ),
        Response(finish_reason=FinishReason(reason="stop")),
        answer_of(ToolCall(id="1", name="a", raw_arguments="{"), reason="tool_calls"),
        ServerError("down", provider="here"),
    ],
    ids=["length", "content_filter", "cancelled", "other", "empty", "invalid", "error"],
)
def test_what_is_not_a_whole_answer_is_not_stored(ask, answer):
    """Errors, partial and filtered answers are asked for again."""
    adapter = Adapter(answer)

    async def main():
        client = client_of(adapter)
        for _ in range(2):
            with contextlib.suppress(ServerError):
                await ask(client)

    asyncio.run(main())
    assert adapter.asked == 2


def test_a_stream_that_was_left_is_not_stored():
    """Its reader saw only a part of the answer."""
    adapter = Adapter()

    async def main():
        client = client_of(adapter)
        stream = client.stream(ASK)
        async for event in stream:
            if type(event) is TextDelta:
                break
        await stream.aclose()
        await whole(client)

    asyncio.run(main())
    assert adapter.asked == 2


def test_a_stream_that_was_left_after_its_end_is_stored():
    """Many programs break out of the loop at `Finish`."""
    adapter = Adapter()

    async def main():
        client = client_of(adapter)
        stream = client.stream(ASK)
        async for event in stream:
            if type(event) is Finish:
                break
        await stream.aclose()
        await whole(client)

    asyncio.run(main())
    assert adapter.asked == 1


@both
def test_equal_requests_at_the_same_time_are_one_call(ask):
    """The others wait for the first."""

    async def main():
        adapter = Adapter(gate=asyncio.Event())
        client = client_of(adapter)
        tasks = [asyncio.create_task(ask(client)) for _ in range(5)]
        await asyncio.sleep(0.01)
        adapter.gate.set()
        answers = await asyncio.gather(*tasks)
        return adapter, answers

    adapter, answers = virtual_time.run(main())

    assert adapter.asked == 1
    assert [answer.text for answer in answers] == ["hello"] * 5


@both
def test_if_the_first_call_fails_the_others_go_on_themselves(ask):
    """One failure is one caller's."""

    async def main():
        adapter = Adapter(ServerError("down", provider="here"), answer_of(), gate=asyncio.Event())
        client = client_of(adapter)
        tasks = [asyncio.create_task(ask(client)) for _ in range(3)]
        await asyncio.sleep(0.01)
        adapter.gate.set()
        return adapter, await asyncio.gather(*tasks, return_exceptions=True)

    adapter, answers = virtual_time.run(main())

    assert isinstance(answers[0], ServerError)
    assert [answer.text for answer in answers[1:]] == ["hello"] * 2
    assert adapter.asked == 3


@both
def test_if_the_first_call_is_cancelled_another_takes_its_place(ask):
    """And the rest wait for that one."""

    async def main():
        adapter = Adapter(gate=asyncio.Event())
        client = client_of(adapter)
        first, *others = [asyncio.create_task(ask(client)) for _ in range(4)]
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0.01)
        adapter.gate.set()
        return adapter, await asyncio.gather(*others)

    adapter, answers = virtual_time.run(main())

    assert adapter.asked == 2
    assert [answer.text for answer in answers] == ["hello"] * 3


@both
def test_a_call_that_waits_can_be_cancelled(ask):
    """The one that it waited for is not."""

    async def main():
        adapter = Adapter(gate=asyncio.Event())
        client = client_of(adapter)
        first, second = (asyncio.create_task(ask(client)) for _ in range(2))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.wait({second})
        adapter.gate.set()
        return adapter, second.cancelled(), (await first).text

    adapter, is_cancelled, text_ = virtual_time.run(main())

    assert is_cancelled
    assert (adapter.asked, text_) == (1, "hello")


def test_a_task_does_not_wait_for_its_own_stream():
    """It would wait for ever."""
    adapter = Adapter()

    async def main():
        client = client_of(adapter, wait=60)
        stream = client.stream(ASK)
        await anext(stream)
        await whole(client)
        await whole(client)
        await stream.aclose()

    virtual_time.run(asyncio.wait_for(main(), 5))
    assert adapter.asked == 2


def test_nobody_waits_long_for_a_stream_that_nobody_reads():
    """After `wait` seconds a call goes on itself."""
    adapter = Adapter()

    async def main():
        client = client_of(adapter, wait=0.02)
        stream = client.stream(ASK)
        await anext(stream)
        await asyncio.create_task(whole(client))
        await stream.aclose()

    virtual_time.run(asyncio.wait_for(main(), 5))
    assert adapter.asked == 2


def test_calls_get_new_ids():
    """The same answer may come twice in one conversation."""
    call = ToolCall(id="c1", name="a", arguments={"x": 1}, raw_arguments='{"x":1}')
    adapter = Adapter(answer_of(Text(text="a"), call, reason="tool_calls"))

    async def main():
        client = client_of(adapter)
        return [await ask(client) for ask in (whole, whole, streamed)]

    answers = asyncio.run(main())
    calls = [answer.tool_calls[0] for answer in answers]

    assert adapter.asked == 1
    assert len({call.id for call in calls}) == 3
    assert [replace(each, id="c1") for each in calls] == [call] * 3


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def test_a_run_with_tools_is_answered_from_the_cache():
    """Every step is found again, although each answer has its own ids."""
    with simulated(tool_call("weather", {"city": "Oslo"}), text("It rains.")) as peer:
        client = peer.client.with_middleware(Cache())

        async def main():
            options = {"tools": [weather], "client": client}
            try:
                return [
                    await generate("anthropic:claude-haiku-4-5", "Hi.", **options) for _ in "ab"
                ]
            finally:
                await client.close()

        first, second = asyncio.run(main())

    assert len(peer.app.script.received) == 2
    assert second.text == first.text
    assert len(second.steps) == 2
    assert all(step.response.cost.source == "cache" for step in second.steps)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_memory_keeps_what_was_used_last_and_forgets_after_the_time_to_live():
    """The size counts keys and values."""
    clock = Clock()
    entries = MemoryEntries(10, clock=clock)

    async def main():
        for name in "abc":
            await entries.put(name, b"12", ttl=5)
        assert await entries.get("a") == b"12"
        await entries.put("d", b"12")
        assert await entries.get("b") is None
        assert await entries.get("a") == b"12"
        assert entries.size == 9
        assert not await entries.put("e", b"x" * 10)
        clock.now = 5
        assert await entries.get("a") is None
        assert await entries.get("d") == b"12"
        assert not await entries.put("d", b"x" * 10)
        assert await entries.get("d") is None

    asyncio.run(main())
    assert entries.size == len("c12")


class Store:
    """A store that can fail, and hang."""

    def __init__(self):
        self.values, self.ttls, self.error, self.delay = {}, [], None, 0.0

    async def _work(self):
        await asyncio.sleep(self.delay)
        if self.error is not None:
            raise self.error

    async def get(self, key):
        await self._work()
        return self.values.get(key)

    async def put(self, key, value, *, ttl=None):
        await self._work()
        self.values[key] = value
        self.ttls.append(ttl)
        return True


def test_a_store_holds_no_key_and_no_request():
    """Two clients share one store, with the time to live of the cache; keys are digests."""
    store = Store()
    adapter = Adapter()
    adapter.cache_identity = "v1"

    async def main():
        for _ in range(2):
            await whole(client_of(adapter, store=store, ttl=7, key=lambda _: "secret tenant"))

    asyncio.run(main())
    assert adapter.asked == 1
    assert store.ttls == [7]
    held = repr(store.values)
    assert "Hi." not in held
    assert "secret" not in held


@pytest.mark.parametrize(
    "damage",
    [
        lambda value: value[:-1],
        lambda value: value[:25] + b"x" + value[26:],
        lambda _: b"",
        lambda _: b"{}",
        lambda _: "text",
        lambda value: b"ilc0" + value[4:],
    ],
)
def test_a_damaged_or_foreign_entry_is_a_miss(damage):
    """And is replaced."""
    store, adapter = Store(), Adapter()

    async def main():
        client = client_of(adapter, store=store)
        await whole(client)
        (key,) = store.values
        good = store.values[key]
        store.values[key] = damage(good)
        await whole(client)
        assert store.values[key] == good
        await streamed(client)

    asyncio.run(main())
    assert adapter.asked == 2


def test_an_entry_under_another_key_is_a_miss():
    """A store that mixes up keys does not mix up tenants."""
    store, adapter = Store(), Adapter()

    async def main():
        client = client_of(adapter, store=store)
        await whole(client)
        await whole(client, replace(ASK, seed=1))
        one, other = store.values
        store.values[other] = store.values[one]
        await whole(client, replace(ASK, seed=1))

    asyncio.run(main())
    assert adapter.asked == 3


@both
@pytest.mark.parametrize("error", [StoreError("redis is away"), RuntimeError("?")])
def test_a_store_that_is_down_is_left_out(ask, error, caplog):
    """One log line until it works again; the calls go on."""
    store, adapter = Store(), Adapter()
    store.error = error

    async def main():
        client = client_of(adapter, store=store)
        await ask(client)
        await ask(client)
        store.error = None
        await ask(client)
        await ask(client)
        store.error = error
        await ask(client)

    with caplog.at_level(logging.WARNING, "interlingua"):
        asyncio.run(main())

    assert adapter.asked == 4
    assert len(caplog.records) == 2
    assert "Store" in caplog.text
    assert str(error) in caplog.text


def test_a_store_that_hangs_costs_a_bounded_time():
    """The call does not wait for it."""
    store, adapter = Store(), Adapter()
    store.delay = 60

    async def main():
        return await asyncio.wait_for(whole(client_of(adapter, store=store, store_timeout=0.01)), 2)

    assert virtual_time.run(main()).text == "hello"


@both
@pytest.mark.parametrize("kind", [MemoryStore, SQLiteStore])
def test_the_stores_of_the_library_serve_two_clients(ask, kind, tmp_path):
    """What one client stores, another finds until its time to live has ended."""
    adapter, clock = Adapter(), Clock()
    adapter.cache_identity = "v1"

    async def main():
        path = () if kind is MemoryStore else (tmp_path / "answers.db",)
        store = kind(*path, clock=clock)
        for _ in range(2):
            await ask(client_of(adapter, store=store, ttl=7))
        clock.now = 7.1
        await ask(client_of(adapter, store=store, ttl=7))
        await store.close()

    asyncio.run(main())
    assert adapter.asked == 2


@both
def test_an_answer_of_another_model_is_not_stored(ask):
    """Also if a fallback inside of the cache stays with the provider."""
    adapter = Adapter()

    class Other:
        async def complete(self, request, call_next):
            return await call_next(replace(request, model="other"))

        def stream(self, request, call_next):
            return call_next(replace(request, model="other"))

    async def main():
        client = Client({"here": adapter}, middleware=[Cache(), Other()])
        await ask(client)
        await ask(client)

    asyncio.run(main())
    assert adapter.asked == 2


@both
def test_the_answer_of_a_hedge_at_another_model_is_not_stored(ask):
    """Also where the attempt at the model itself was cancelled after that answer."""
    peer = in_virtual_time(text("slow") + latency(first=9), text("other"), text("own"))
    hedge = Hedge(after=1, share=1.0, model="openai:gpt-5")
    client = peer.client.with_middleware(Cache(), hedge)
    request = peer.ask("openai")

    async def main():
        return [(await ask(client, request)).text for _ in range(3)]

    assert peer.run(main()) == ["other", "own", "own"]


def test_large_requests_are_cached():
    """Their key is made in a thread."""
    adapter = Adapter()

    async def main():
        client = client_of(adapter)
        for _ in range(2):
            await whole(client, replace(ASK, messages=(Message.user("x" * 3_000_000),)))

    asyncio.run(main())
    assert adapter.asked == 1


def test_large_answers_are_not_stored():
    """`max_entry` is the largest one."""
    adapter = Adapter(answer_of("x" * 500))

    async def main():
        client = client_of(adapter, max_entry=400)
        await whole(client)
        await whole(client)

    asyncio.run(main())
    assert adapter.asked == 2


def test_the_caller_chooses_what_is_cached():
    """A `key` of None is not cached; other keys are other tenants."""
    adapter = Adapter()

    async def main():
        client = client_of(adapter, key=lambda request: request.user)
        for user in (None, None, "ada", "bob", "ada", "bob"):
            await whole(client, replace(ASK, user=None, context=user))

        client = client_of(adapter, key=lambda request: request.context)
        for user in (None, None, "ada", "bob", "ada", "bob"):
            await whole(client, replace(ASK, context=user))

    asyncio.run(main())
    assert adapter.asked == 6 + 4


def test_wire_events_are_not_stored():
    """So a request that asks for them is sent."""
    adapter = Adapter()

    async def main():
        client = client_of(adapter)
        for _ in range(2):
            await streamed(client, replace(ASK, keep_raw=True))

    asyncio.run(main())
    assert adapter.asked == 2


def test_an_answer_of_another_provider_is_not_stored():
    """A fallback inside of the cache answers for the time of an outage only."""
    adapter = Adapter()

    async def other(request, call_next):
        response = await call_next(request)
        return replace(response, provider="elsewhere")

    async def main():
        client = Client({"here": adapter}, middleware=[Cache(), other])
        await whole(client)
        await streamed(client)

    asyncio.run(main())
    assert adapter.asked == 2


@pytest.mark.parametrize(
    ("operation", "value", "result", "asked"),
    [
        ("count_tokens", ASK, 12, 1),
        ("embed", {"input": ["a"]}, [[0.1, 2.0]], 1),
        ("embed", {"input": ["a"]}, {"a": (1, 2)}, 2),
        ("embed", object(), [1], 2),
        ("list_models", None, [1], 2),
    ],
)
def test_operations_without_effects_are_cached(operation, value, result, asked):
    """If value and result have a JSON form; others are performed each time."""
    adapter = Adapter(result)

    async def main():
        client = client_of(adapter)
        return [await client.perform("here", operation, value) for _ in range(2)]

    assert asyncio.run(main()) == [result] * 2
    assert adapter.asked == asked


def test_the_cache_serves_several_loops_and_blocking_callers():
    """Nothing is bound to the loop of the first call."""
    adapter = Adapter()
    client = client_of(adapter)
    asyncio.run(whole(client))
    asyncio.run(streamed(client))
    blocking = sync.Client.wrap(client)

    assert blocking.complete(ASK).text == "hello"
    assert [*blocking.stream(ASK)][-1].response.text == "hello"
    assert adapter.asked == 1


def test_a_file_counts_by_its_content(tmp_path):
    """A file that was changed under its name is another request."""
    path = tmp_path / "a.png"
    with simulated(text("A cat.")) as peer:
        client = peer.client.with_middleware(Cache())

        async def main():
            request = peer.ask("anthropic", [Message.user("What?", Image(path=path))])
            for data in (b"one", b"one", b"two"):
                path.write_bytes(b"\x89PNG\r\n\x1a\n" + data)
                await client.complete(request)
            await client.close()

        asyncio.run(main())

    assert len(peer.app.script.received) == 2
