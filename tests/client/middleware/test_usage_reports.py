"""`on_usage=`: figures while an answer streams, and the exact ones at its end."""

import asyncio
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import AbortController, Client, generate, stream, sync, tool
from interlingua.errors import AbortError, SDKError
from interlingua.simulator import cut, error, latency, text, tool_call, usage
from interlingua.spec.content import Text
from interlingua.spec.events import Finish, StreamStart, TextDelta, TextEnd, TextStart
from interlingua.spec.response import FinishReason, Usage
from support.simulated import DIALECTS, MODELS, adapters, simulated

every_provider = pytest.mark.parametrize("provider", DIALECTS)
PRICES = {f"{name}:{model}": {"input": 2, "output": 8} for name, model in MODELS.items()}
STORY = text("once upon a time " * 60) + usage(input_tokens=321, output_tokens=222)
COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens", "cache_read_tokens")


def named(provider):
    return f"{provider}:{MODELS[provider]}"


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}."


def streamed(peer, model, **options):
    """The reports of a run, and the run."""
    reports = []

    async def work():
        client = Client(adapters(peer.server.url), prices=PRICES)
        events = stream(model, "?", client=client, on_usage=reports.append, **options)
        async for _ in events:
            pass
        await client.close()
        return events.result()

    return reports, asyncio.run(work())


def check_sums(reports):
    """The reports of a call add up to the last one."""
    last = reports[-1]
    assert last.is_final
    assert not any(report.is_final for report in reports[:-1])
    for name in COUNTS:
        counts = [getattr(report.usage, name) or 0 for report in reports]
        assert sum(counts) == (getattr(last.total, name) or 0)
    if last.total_cost is not None:
        costs = [report.cost.total for report in reports]
        assert isclose(sum(costs), last.total_cost.total, abs_tol=1e-12)


@every_provider
def test_a_stream_reports_on_the_way(provider):
    """Estimates that say so, then the exact figure of the provider; the sums are equal."""
    with simulated(STORY) as peer:
        reports, result = streamed(
            peer, named(provider), usage_batch_size=20, caller_id="user-7", session_id="s"
        )

    *early, last = reports
    assert len(early) >= 3
    assert all(report.usage.estimated for report in early)
    assert all(report.usage.output_tokens >= 20 for report in early)
    assert early[0].usage.input_tokens > 0
    assert not any(report.usage.input_tokens for report in early[1:])
    assert not last.usage.estimated
    assert last.total == result.usage
    assert last.total_cost == result.response.cost
    check_sums(reports)
    facts = {
        (report.caller_id, report.session_id, report.provider, report.model, report.call)
        for report in reports
    }
    assert facts == {("user-7", "s", provider, MODELS[provider], 0)}
    assert {report.request_id for report in reports} == {result.response.request_id}


@every_provider
def test_a_whole_answer_is_one_report(provider):
    """The exact one."""
    reports = []

    async def work():
        client = Client(adapters(peer.server.url), prices=PRICES)
        return await generate(named(provider), "?", client=client, on_usage=reports.append)

    with simulated(STORY) as peer:
        result = asyncio.run(work())

    (report,) = reports
    assert (report.is_final, report.total, report.total_cost) == (True, result.usage, result.cost)
    check_sums(reports)


def test_every_model_call_of_a_run_has_its_reports():
    """Numbered; together they are the usage of the run."""
    calls = tool_call("get_weather", city="Oslo") + usage(input_tokens=50, output_tokens=9)
    with simulated(calls, STORY) as peer:
        reports, result = streamed(peer, named("openai"), tools=[get_weather], usage_batch_size=30)

    for number in (0, 1):
        check_sums([report for report in reports if report.call == number])
    output = sum(report.usage.output_tokens for report in reports)
    assert output == result.total_usage.output_tokens == 231
    costs = sum(report.cost.total for report in reports)
    assert isclose(costs, result.total_cost.total, abs_tol=1e-12)


def test_the_batch_size_is_a_hundred():
    """By default; a short answer has only the last report."""
    with simulated(STORY) as peer:
        reports, _ = streamed(peer, named("openai"))
    with simulated(text("Rain.")) as peer:
        short, _ = streamed(peer, named("openai"))

    assert 2 <= len(reports) <= 4
    assert len(short) == 1


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_callback_that_fails_is_logged(way, caplog):
    """The run goes on."""

    def fail(_):
        raise RuntimeError("no")

    async def fail_later(_):
        raise RuntimeError("no")

    async def work():
        client = Client(adapters(peer.server.url))
        callback = fail if way == "sync" else fail_later
        return await generate(named("openai"), "?", client=client, on_usage=callback)

    with simulated(STORY) as peer:
        result = asyncio.run(work())

    assert result.text.startswith("once")
    assert "on_usage raised" in caplog.text


def test_an_async_callback_is_awaited():
    """The run waits for it."""
    reports = []

    async def note(report):
        await asyncio.sleep(0)
        reports.append(report)

    async def work():
        client = Client(adapters(peer.server.url))
        await generate(named("openai"), "?", client=client, on_usage=note)

    with simulated(STORY) as peer:
        asyncio.run(work())

    assert len(reports) == 1


def test_blocking():
    """The same, with `interlingua.sync`."""
    reports = []
    with simulated(STORY) as peer, sync.Client(adapters(peer.server.url)) as client:
        for _ in sync.stream(
            named("openai"), "?", client=client, on_usage=reports.append, usage_batch_size=20
        ):
            pass

    assert len(reports) > 3
    check_sums(reports)


@pytest.mark.parametrize("how", ["abort", "cut"])
def test_a_stream_that_ends_early_has_a_last_report(how):
    """An estimate of what had arrived."""
    reports, controller = [], AbortController()
    story = text("once upon a time " * 500)
    story += latency(between=0.001) if how == "abort" else cut(at=4000)

    async def work():
        client = Client(adapters(peer.server.url), prices=PRICES)
        events = stream(
            named("openai"),
            "?",
            client=client,
            on_usage=reports.append,
            usage_batch_size=20,
            abort_signal=controller.signal,
            max_retries=0,
        )
        async for event in events:
            if how == "abort" and event.type == "text_delta" and len(reports) > 2:
                controller.abort()

    with simulated(story) as peer, pytest.raises(AbortError if how == "abort" else SDKError):
        asyncio.run(work())

    assert reports[-1].total.estimated
    assert reports[-1].total.output_tokens > 0
    check_sums(reports)


def test_a_call_that_was_never_answered_has_no_report():
    """There is nothing to report."""
    reports = []

    async def work():
        client = Client(adapters(peer.server.url))
        await generate(named("openai"), "?", client=client, on_usage=reports.append)

    with simulated(error(401)) as peer, pytest.raises(SDKError):
        asyncio.run(work())

    assert reports == []


class Scripted:
    """An adapter that streams these pieces."""

    name = "own"

    def __init__(self, pieces, total):
        self.pieces = pieces
        self.total = total

    async def complete(self, request):
        raise NotImplementedError

    async def stream(self, request):
        yield StreamStart(model=request.model)
        yield TextStart(id="a", index=0)
        for piece in self.pieces:
            yield TextDelta(id="a", index=0, delta=piece)
        yield TextEnd(id="a", index=0, part=Text(text="".join(self.pieces)))
        yield Finish(finish_reason=FinishReason(reason="stop"), usage=self.total)


@given(
    st.lists(st.text(max_size=40), max_size=30),
    st.integers(1, 50),
    st.integers(0, 500),
    st.integers(0, 500),
)
def test_the_sums_are_equal_whatever_arrives(pieces, batch, went_in, came_out):
    """Also where the estimates were too high."""
    reports = []
    total = Usage(input_tokens=went_in + 1, output_tokens=came_out)

    async def work():
        client = Client(
            {"own": Scripted(pieces, total)}, prices={"own:m": {"input": 1, "output": 3}}
        )
        options = {"client": client, "on_usage": reports.append, "usage_batch_size": batch}
        async for _ in stream("own:m", "?", **options):
            pass

    asyncio.run(work())

    check_sums(reports)
    assert reports[-1].total == total


def test_an_adapter_that_is_unregistered_meanwhile():
    """The stream goes on to its end, and so do its reports."""
    reports = []
    with simulated(text("once upon a time " * 60) + latency(between=0.001)) as peer:

        async def work():
            client = Client(adapters(peer.server.url), prices=PRICES)
            events = stream(
                named("anthropic"), "?", client=client, on_usage=reports.append, usage_batch_size=20
            )
            async for event in events:
                if isinstance(event, StreamStart):
                    await client.unregister("anthropic")
            await client.close()

        asyncio.run(work())

    assert len(reports) > 2
    check_sums(reports)


def test_a_price_that_only_the_provider_knows_is_in_the_last_report():
    """What each report adds is unknown until then; the sum is the provider's figure."""
    reports = []
    total = Usage(input_tokens=9, output_tokens=80, reported_cost=0.25)

    async def work():
        client = Client({"own": Scripted(["once upon a time "] * 20, total)})
        options = {"client": client, "on_usage": reports.append, "usage_batch_size": 5}
        async for _ in stream("own:m", "?", **options):
            pass

    asyncio.run(work())

    *early, last = reports
    assert early
    assert all(report.cost is None for report in early)
    assert last.cost.total == last.total_cost.total == 0.25
