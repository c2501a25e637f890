"""What responses, attempts, events, runs and errors say about their cost."""

import asyncio
from datetime import UTC, time
from math import isclose

import pytest
from msgspec.structs import replace

import interlingua
from interlingua import (
    AbortController,
    Client,
    Cost,
    HttpAdapter,
    Request,
    RetryPolicy,
    catalog,
    execute,
    generate,
    stream,
    sync,
    tool,
)
from interlingua.catalog import Behaviour, LongContext, Price, Provider, Rates
from interlingua.errors import AbortError, ConfigurationError, ServerError, StreamError
from interlingua.events import CallCompleted, CallFailed, Finish, StepFinish, StreamStart
from interlingua.middleware import Cache, Fallback, Hedge
from interlingua.simulator import cut, error, finish, latency, text, tool_call, usage
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.json_text import dumps
from support.simulated import DIALECTS, MODELS, adapters, in_virtual_time, run, simulated

RATES = {"input": 2.0, "output": 8.0, "cache_read": 0.5}
PRICES = {f"{provider}:{model}": RATES for provider, model in MODELS.items()}
COUNTED = text("Rain.") + usage(input_tokens=1000, output_tokens=50)
COST = (1000 * 2 + 50 * 8) / 1e6
every_provider = pytest.mark.parametrize("provider", DIALECTS)
every_mode = pytest.mark.parametrize("mode", ["whole", "stream"])
FAST = RetryPolicy(max_retries=2, base_delay=0.001)


async def ask(client, request, mode, **options):
    """The response in one of the two modes."""
    if mode == "whole":
        return await client.complete(request, **options)
    return [event async for event in client.stream(request, **options)][-1].response


async def answer(mode, model, prompt="Weather?", **options):
    """The result of a run in one of the two modes."""
    if mode == "whole":
        return await generate(model, prompt, **options)
    events = stream(model, prompt, **options)
    async for _ in events:
        pass
    return events.result()


def named(provider):
    return f"{provider}:{MODELS[provider]}"


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}."


# Where costs are.


@every_mode
@every_provider
def test_the_response_its_attempt_and_its_message(provider, mode):
    """The same amount, with the version of the table, in every way of a call."""
    with simulated(COUNTED) as peer:
        client = Client(adapters(peer.server.url), prices=PRICES)
        response = asyncio.run(ask(client, peer.ask(provider), mode))

    cost = response.cost
    assert isclose(cost.total, COST)
    assert (cost.source, cost.currency) == ("prices", "USD")
    assert cost.pricing_version.startswith("prices-")
    assert [attempt.cost for attempt in response.attempts] == [cost]
    shown = response.message.metadata["cost"]
    assert (shown["total"], shown["pricing_version"]) == (cost.total, cost.pricing_version)
    assert "price_unknown" not in [warning.code for warning in response.warnings]


@every_provider
def test_whole_and_streamed_cost_the_same(provider):
    """Also in the last event."""

    async def work(client):
        whole = await client.complete(peer.ask(provider))
        events = [event async for event in client.stream(peer.ask(provider))]
        return whole, events[-1]

    with simulated(COUNTED) as peer:
        whole, last = run(peer, work)

    assert whole.cost == last.cost == last.response.cost
    assert (whole.cost is None) == (provider == "openai_compatible")


@every_mode
def test_the_prices_of_the_catalog(mode):
    """With the version of the catalog."""
    with simulated(COUNTED) as peer:
        response = run(peer, lambda client: ask(client, peer.ask("anthropic"), mode))

    assert isclose(response.cost.total, (1000 * 1 + 50 * 5) / 1e6)
    assert response.cost.source == "catalog"
    assert response.cost.pricing_version[:4].isdigit()


@every_mode
def test_an_unknown_cost_is_none_with_a_warning(mode):
    """Never 0; the warning says what to do (field bug 69)."""
    with simulated(COUNTED) as peer:
        response = run(peer, lambda client: ask(client, peer.ask("openai_compatible"), mode))

    (warning,) = response.warnings
    assert response.cost is None
    assert response.attempts[0].cost is None
    assert "cost" not in response.message.metadata
    assert warning.code == "price_unknown"
    assert "openai_compatible:house-model" in warning.message
    assert "prices=" in warning.message


@every_mode
def test_a_local_server_costs_nothing(mode):
    """Its row says that it runs on the user's machine."""
    row = Provider(name="house", dialect="openai_chat", key_required=False, is_local=True)
    with simulated(COUNTED) as peer:
        adapter = HttpAdapter(row, base_url=f"{peer.server.url}/v1")
        request = Request(model="house:any", messages="?")
        response = asyncio.run(ask(Client({"house": adapter}), request, mode))

    assert response.cost == Cost(total=0.0, source="local")
    assert response.warnings == ()


@every_mode
def test_an_adapter_alone(mode):
    """A cost needs no client."""
    with simulated(COUNTED) as peer:
        adapter = adapters(peer.server.url)["anthropic"]
        request = replace(peer.ask("anthropic"), provider=None)
        response = asyncio.run(ask(adapter, request, mode))

    assert isclose(response.cost.total, 0.00125)


class Custom:
    """An adapter of the program."""

    name = "own"

    def __init__(self, *answers):
        self.answers = list(answers)

    async def complete(self, _):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stream(self, request):
        response = await self.complete(request)
        yield StreamStart(model=response.model, usage=Usage(input_tokens=7))
        if response.finish_reason.reason == "error":
            raise StreamError("cut")
        yield Finish(finish_reason=response.finish_reason, usage=response.usage, cost=response.cost)


def given(model="m", reason="stop", **fields):
    return Response(model=model, finish_reason=FinishReason(reason=reason), **fields)


@every_mode
def test_custom_adapters(mode):
    """Priced by `prices=`, unless the adapter says itself what an answer cost."""
    counted = Usage(input_tokens=1000, output_tokens=50)
    client = Client(
        {"own": Custom(given(usage=counted), given(usage=counted, cost=Cost(total=7.0)))},
        prices={"own:m": RATES},
    )
    request = Request(model="own:m", messages="?")

    async def work():
        return [await ask(client, request, mode) for _ in range(2)]

    first, second = asyncio.run(work())

    assert isclose(first.cost.total, COST)
    assert second.cost == second.attempts[0].cost == Cost(total=7.0)


def test_the_usage_of_a_whole_response():
    """A custom adapter may have it in `Finish.response` only."""

    class Whole(Custom):
        async def stream(self, request):
            response = await self.complete(request)
            yield StreamStart(model="m")
            yield Finish(finish_reason=response.finish_reason, response=response)

    counted = given(usage=Usage(input_tokens=1000, output_tokens=50))
    client = Client({"own": Whole(counted)}, prices={"own:m": RATES})
    response = asyncio.run(ask(client, Request(model="own:m", messages="?"), "stream"))

    assert isclose(response.cost.total, COST)
    assert response.attempts[0].usage == response.usage == counted.usage
    assert response.warnings == ()


@every_mode
def test_a_custom_adapter_that_reports_no_usage(mode):
    """Its usage is estimated, with a warning: the cost is not 0."""
    client = Client({"own": Custom(given())}, prices={"own:m": RATES})
    response = asyncio.run(ask(client, Request(model="own:m", messages="How are you?"), mode))

    assert response.usage.estimated
    assert response.cost.total > 0
    assert [warning.code for warning in response.warnings] == ["usage_estimated"]


# Attempts.


@every_mode
def test_attempts_are_metered_and_the_served_model_prices(mode):
    """The name in the response prices it; each attempt has its own cost (field bug 71)."""
    client = Client(
        {"own": Custom(given(model="big-2026-01-01", usage=Usage(input_tokens=100)))},
        prices={"big": {"input": 10, "output": 10}, "small": {"input": 1, "output": 1}},
    )
    response = asyncio.run(ask(client, Request(model="own:small", messages="?"), mode))

    assert isclose(response.cost.total, 0.001)
    assert isclose(response.attempts[0].cost.total, 0.001)


def test_a_failed_attempt_that_reported_usage_is_metered():
    """Its cost is in its record and in the sum of the run, not in the response (field bug 71)."""
    counted = Usage(input_tokens=1000, output_tokens=50)
    seen = []

    async def work():
        client = Client(
            {"own": Custom(given(reason="error"), given(usage=counted))}, prices={"own:m": RATES}
        )
        client.subscribe(seen.append)
        events = stream("own:m", "?", client=client, retry_policy=FAST)
        async for _ in events:
            pass
        return events.result()

    result = asyncio.run(work())
    first, second = result.response.attempts

    assert isclose(first.cost.total, 7 * 2 / 1e6)
    assert isclose(second.cost.total, COST)
    assert result.response.cost == second.cost
    assert isclose(result.total_cost.total, COST + 14e-6)
    failed, completed = seen[1], seen[3]
    assert (type(failed), failed.usage.input_tokens, failed.cost) == (CallFailed, 7, first.cost)
    assert (type(completed), completed.cost) == (CallCompleted, second.cost)


def test_an_attempt_without_usage_makes_nothing_unknown():
    """A refused connection is not billed."""
    with simulated(error(529), COUNTED) as peer:
        client = Client(adapters(peer.server.url), prices=PRICES)
        result = asyncio.run(answer("whole", named("anthropic"), client=client, retry_policy=FAST))

    assert [attempt.cost is None for attempt in result.response.attempts] == [True, False]
    assert isclose(result.total_cost.total, COST)


# Runs.


@every_mode
@every_provider
def test_steps_and_the_run(provider, mode):
    """The run costs what its steps cost."""
    calls = tool_call("get_weather", city="Oslo") + usage(input_tokens=500, output_tokens=20)
    with simulated(calls, COUNTED) as peer:
        result = run(
            peer,
            lambda client: answer(
                mode, named(provider), client=client, tools=[get_weather], prices=PRICES
            ),
        )

    first, second = (step.cost for step in result.steps)
    assert isclose(first.total, (500 * 2 + 20 * 8) / 1e6)
    assert isclose(second.total, COST)
    assert result.cost == second
    assert isclose(result.total_cost.total, first.total + second.total)
    assert result.total_cost.pricing_version == first.pricing_version


def test_one_unknown_part_makes_the_sum_unknown():
    """A sum without it would be too small."""
    known = given(usage=Usage(input_tokens=10), cost=Cost(total=1.0))
    steps = [interlingua.StepResult(response=each) for each in (known, replace(known, cost=None))]

    assert interlingua.GenerateResult(steps=tuple(steps[:1])).total_cost.total == 1.0
    assert interlingua.GenerateResult(steps=tuple(steps)).total_cost is None


@every_mode
def test_prices_of_a_call_are_over_those_of_the_client(mode):
    """Only the rates that are given change."""
    cached = text("Rain.") + usage(input_tokens=1000, output_tokens=50, cache_read=800)
    prices = {MODELS["openai"]: {"inputCachedPricePerMillion": 1.0}}  # under another name
    with simulated(cached) as peer:
        client = Client(adapters(peer.server.url), prices={named("openai"): {"output": 8.0}})
        before = asyncio.run(answer(mode, named("openai"), client=client))
        result = asyncio.run(answer(mode, named("openai"), client=client, prices=prices))

    standard = next(p for p in catalog.get_model_info("gpt-5.2").prices if p.tier == "standard")
    rates = standard.rates
    assert isclose(
        before.total_cost.total, (200 * rates.input + 800 * rates.cache_read + 50 * 8) / 1e6
    )
    assert isclose(result.total_cost.total, (200 * rates.input + 800 * 1.0 + 50 * 8) / 1e6)
    assert before.total_cost.pricing_version != result.total_cost.pricing_version


@every_provider
def test_execute_has_the_cost(provider):
    """Also in its JSON."""

    async def work(client):
        return await execute(named(provider), "?", client=client, prices=PRICES)

    with simulated(COUNTED) as peer:
        result = run(peer, work)

    assert isclose(result.cost.total, COST)
    assert isclose(result.to_dict()["cost"]["total"], COST)
    assert "pricingVersion" in result.to_dict()["cost"]
    assert "pricing_version" in result.to_dict(camel=False)["cost"]


def test_blocking():
    """The same, with `interlingua.sync`."""
    with (
        simulated(COUNTED) as peer,
        sync.Client(adapters(peer.server.url), prices=PRICES) as client,
    ):
        result = sync.generate(named("gemini"), "?", client=client)
        cheaper = sync.generate(
            named("gemini"), "?", client=client, prices={named("gemini"): {"input": 0, "output": 0}}
        )

    assert isclose(result.total_cost.total, COST)
    assert cheaper.total_cost.total == 0
    assert cheaper.total_cost.source == "prices"


# Several attempts.


@every_mode
@pytest.mark.parametrize("is_first_slow", [True, False])
def test_a_hedged_call_is_paid_once(is_first_slow, mode):
    """The slower one of two attempts ends after the answer; its own cost is an estimate."""
    slow = text("Snow.") + latency(first=9)
    answers = [slow, COUNTED] if is_first_slow else [COUNTED + latency(first=2), slow]
    peer = in_virtual_time(*answers)
    client = peer.client.with_middleware(Hedge(after=1, share=1.0))

    result = peer.run(answer(mode, named("openai"), client=client, prices=PRICES))

    loser, winner = result.response.attempts
    assert isclose(result.response.cost.total, COST)
    assert winner.cost == result.response.cost
    assert loser.usage.estimated
    output = winner.usage.output_tokens
    assert (loser.usage.input_tokens > 0, loser.usage.output_tokens) == (True, output)
    assert isclose(result.total_cost.total, winner.cost.total + loser.cost.total)


@every_mode
def test_an_answer_that_was_not_accepted_is_paid_too(mode):
    """Also if the next answer is from a cache."""
    cache = Cache()
    short = text("Rain in") + finish("length") + usage(input_tokens=10, output_tokens=5)
    peer = in_virtual_time(COUNTED, short)
    other = peer.client.with_middleware(cache)
    client = peer.client.with_middleware(
        Fallback(named("anthropic"), finish_reasons=["length"], midstream="hold"), cache
    )

    async def work():
        options = {"prices": PRICES}
        await answer(mode, named("anthropic"), client=other, **options)
        return await answer(mode, named("openai"), client=client, **options)

    result = peer.run(work())

    assert result.text == "Rain."
    assert result.response.cost.source == "cache"
    assert isclose(result.total_cost.total, (10 * 2 + 5 * 8) / 1e6)


# Failures.

LONG = text("once upon a time " * 200) + latency(between=0.002)


@every_provider
def test_a_stream_that_was_given_up_is_priced(provider):
    """Client disconnect: what had arrived is estimated and priced, and says that it is one.

    Field bug 72.
    """
    controller, seen = AbortController(), []

    async def work():
        client = Client(adapters(peer.server.url), prices=PRICES)
        client.subscribe(seen.append)
        events = stream(named(provider), "?", client=client, abort_signal=controller.signal)
        try:
            async for event in events:
                if event.type == "text_delta" and len(events.partial_response.text) > 100:
                    controller.abort()
        except AbortError as error:
            await client.close()
            return error, event

    with simulated(LONG) as peer:
        failure, last = asyncio.run(work())

    partial, attempt = failure.partial, failure.attempts[-1]
    assert partial.usage.estimated
    assert partial.cost == attempt.cost == failure.total_cost == last.response.cost
    assert seen[-1].cost == attempt.cost
    assert seen[-1].usage == attempt.usage
    expected = (partial.usage.input_tokens * 2 + partial.usage.output_tokens * 8) / 1e6
    assert isclose(partial.cost.total, expected)
    assert partial.message.metadata["cost"]["total"] == partial.cost.total


def test_a_reader_that_leaves_is_metered():
    """Closing the iterator of a client's stream reports the attempt with an estimate.

    Field bug 72.
    """
    seen = []

    async def work():
        client = Client(adapters(peer.server.url), prices=PRICES)
        client.subscribe(seen.append)
        events = client.stream(peer.ask("openai"))
        async for event in events:
            if event.type == "text_delta":
                break
        await events.aclose()
        await client.close()

    with simulated(LONG) as peer:
        asyncio.run(work())

    assert type(seen[-1]) is CallCompleted
    assert seen[-1].usage.estimated
    assert seen[-1].cost.total > 0


@every_provider
def test_a_stream_that_breaks_is_priced(provider):
    """The error has what the run cost, and what had arrived."""
    with simulated(text("once upon a time " * 500) + cut(at=4000)) as peer:
        client = Client(adapters(peer.server.url), prices=PRICES)
        with pytest.raises(interlingua.errors.SDKError) as caught:
            asyncio.run(answer("stream", named(provider), client=client, max_retries=0))

    partial = caught.value.partial
    assert partial.usage.estimated
    assert partial.cost.total > 0
    assert caught.value.total_cost == partial.cost


def test_errors_of_runs():
    """The steps before the failure were paid for."""
    calls = tool_call("get_weather", city="Oslo") + usage(input_tokens=500, output_tokens=20)
    with simulated(calls, error(400), COUNTED) as peer:
        client = Client(adapters(peer.server.url), prices=PRICES)
        with pytest.raises(interlingua.errors.SDKError) as caught:
            asyncio.run(answer("whole", named("openai"), client=client, tools=[get_weather]))
        resumed = asyncio.run(
            generate(named("openai"), client=client, tools=[get_weather], resume=caught.value)
        )

    assert isclose(caught.value.total_cost.total, (500 * 2 + 20 * 8) / 1e6)
    assert isclose(resumed.total_cost.total, caught.value.total_cost.total + COST)


def test_a_resumed_run_has_the_cost_of_the_failed_answer():
    """It is in no step."""
    with simulated(text("once upon a time " * 500) + cut(at=4000), COUNTED) as peer:
        client = Client(adapters(peer.server.url), prices=PRICES)
        with pytest.raises(interlingua.errors.SDKError) as caught:
            asyncio.run(answer("stream", named("openai"), client=client, max_retries=0))
        failure = caught.value
        resumed = asyncio.run(generate(named("openai"), client=client, resume=failure))

    assert failure.total_cost.total > 0
    assert isclose(resumed.total_cost.total, failure.total_cost.total + COST)


def test_nothing_was_used():
    """An error before the first answer has no cost."""
    with simulated(error(401)) as peer:
        client = Client(adapters(peer.server.url), prices=PRICES)
        with pytest.raises(interlingua.errors.AuthenticationError) as caught:
            asyncio.run(answer("whole", named("openai"), client=client))

    assert caught.value.total_cost is None


# Middleware.


async def coroutine(request, following):
    return await following(request)


async def generator(request, following):
    async for event in following(request):
        yield event


@pytest.mark.parametrize("per_attempt", [False, True], ids=["outer", "per_attempt"])
@pytest.mark.parametrize("layer", [coroutine, generator], ids=lambda layer: layer.__name__)
@every_mode
def test_middleware_sees_and_keeps_the_cost(mode, layer, per_attempt):
    """In every shape, outside and inside of the attempts."""
    seen = []

    async def watch(request, following):
        response = await following(request)
        seen.append(response.cost)
        return response

    layers = [layer, watch]
    if per_attempt:
        layers = [interlingua.middleware.per_attempt(_copy(each)) for each in layers]
    with simulated(COUNTED) as peer:
        client = Client(adapters(peer.server.url), prices=PRICES, middleware=layers)
        response = asyncio.run(ask(client, peer.ask("anthropic"), mode))

    assert isclose(response.cost.total, COST)
    assert seen == [response.cost]


def _copy(layer):
    """The same function, which may be marked without changing the other."""
    if layer is generator:

        async def twin(request, following):
            async for event in following(request):
                yield event

    else:

        async def twin(request, following):
            return await layer(request, following)

    return twin


# The wire.


def canned(body, provider="openrouter", **fields):
    transport = CannedTransport(lambda _: CannedReply(body=dumps(body)))
    client = Client({provider: HttpAdapter(provider, "k", transport=transport)}, **fields)
    return asyncio.run(client.complete(Request(model=f"{provider}:m", messages="?")))


def test_the_figure_of_the_provider():
    """OpenRouter says what it charges; no table is needed, and no warning given."""
    message = {"role": "assistant", "content": "a"}
    body = {
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "cost": 0.00123},
    }
    response = canned(body, prices={"m": {"input": 1, "output": 1}})

    assert response.cost == Cost(total=0.00123, source="provider")
    assert response.warnings == ()


def test_the_served_tier():
    """A response that was served in another tier than the standard one has its price."""
    body = {
        "id": "r",
        "model": "gpt-5.2",
        "status": "completed",
        "output": [],
        "usage": {"input_tokens": 1000, "output_tokens": 0},
        "service_tier": "priority",
    }
    rows = [Price(rates=Rates(input=1)), Price(rates=Rates(input=4), tier="priority")]
    response = canned(body, "openai", prices={"gpt-5.2": rows})

    assert response.usage.service_tier == "priority"
    assert isclose(response.cost.total, 0.004)


def test_a_tier_without_a_price_is_named():
    """The warning says which tier."""
    body = {
        "model": "m",
        "status": "completed",
        "output": [],
        "usage": {"input_tokens": 1000, "output_tokens": 0},
        "service_tier": "priority",
    }
    response = canned(body, "openai", prices={"m": {"input": 1}})

    assert response.cost is None
    assert "'priority'" in response.warnings[-1].message


# Prices of the caller.


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ([("m", 1)], "mapping"),
        ({"": {}}, "name of a model"),
        ({"m": 3}, "rates such as"),
        ({"m": "3"}, "rates such as"),
        ({"m": [1]}, "rates such as"),
        ({"m": {"inptu": 1}}, "Did you mean 'input'"),
        ({"m": {"input": -1}}, "number of dollars"),
        ({"m": {"input": True}}, "number of dollars"),
        ({"m": {"input": float("nan")}}, "number of dollars"),
        ({"m": {1: 2}}, "no rate 1"),
        ({"m": Rates(input=-1)}, r"prices\['m'\]`: .* >= 0.0 - at `\$.input`"),
        ({"m": Rates(input="3")}, "got `str`"),
        ({"m": Price(rates=Rates(output=float("nan")))}, "rates.output"),
        ({"m": [Price(rates=Rates()), Price(rates=Rates(), days=(0,))]}, r"\['m'\]\[1\]`: .*days"),
        ({"m": Price(rates=Rates(), hours=(time(1, tzinfo=UTC), time(2)))}, "no timezone"),
        ({"m": Price(rates=Rates(input=object()))}, "object"),
    ],
)
def test_wrong_prices(prices, words):
    """It says which model and which rate."""
    with pytest.raises(ConfigurationError, match=words):
        Client({}, prices=prices)


@pytest.mark.parametrize(
    "rates",
    [
        {"input": 2, "output": 8},
        {"inputPricePerMillion": 2, "outputPricePerMillion": 8},
        Rates(input=2, output=8),
        Price(rates=Rates(input=2, output=8)),
        (Price(rates=Rates(input=2, output=8)),),
    ],
)
@pytest.mark.parametrize("name", ["m", "own:m"])
def test_forms_of_prices(name, rates):
    """Rates, mappings and rows; by the bare name, or with the provider."""
    counted = Usage(input_tokens=1000, output_tokens=50)
    client = Client({"own": Custom(given(usage=counted))}, prices={name: rates})
    response = asyncio.run(client.complete(Request(model="own:m", messages="?")))

    assert isclose(response.cost.total, COST)


@pytest.mark.parametrize("name", ["google", "Gemini"])
def test_prices_by_another_name_of_the_provider(name):
    """As in the names of models; a price is not ignored."""
    client = Client({"gemini": HttpAdapter("gemini", "k")}, prices={f"{name}:m": RATES})
    request = Request(model="google:m", messages="?", max_tokens=100)

    assert client.estimate_cost(request) is not None


def test_given_rates_also_hold_for_long_context():
    """A caller who states a price means all calls."""
    counted = Usage(input_tokens=300_000)
    client = Client(
        {"anthropic": Custom(given(model="claude-sonnet-4-5", usage=counted))},
        prices={"claude-sonnet-4-5": {"input": 1}},
    )
    client.calls.adapters["anthropic"].name = "anthropic"
    response = asyncio.run(
        client.complete(Request(model="anthropic:claude-sonnet-4-5", messages="?"))
    )

    assert isclose(response.cost.total, 0.3)


# Before a call.


def test_a_range_before_the_call():
    """From everything cached and no answer to nothing cached and the longest answer."""
    client = Client({"anthropic": HttpAdapter("anthropic", "k")}, prices=PRICES)
    request = Request(model=named("anthropic"), messages="word " * 1000, max_tokens=500)
    low, high = client.estimate_cost(request)
    tokens = client.estimate_input_tokens(request)

    assert isclose(low, int(tokens * 0.85) * 0.5 / 1e6, rel_tol=0.01)
    assert high >= (tokens * 2 + 500 * 8) / 1e6
    assert client.explain(request).estimated_cost == (low, high)
    assert sync.Client.wrap(client).estimate_cost(request) == (low, high)


def test_the_limit_of_the_model_bounds_the_answer():
    """If the request has none."""
    client = Client({"anthropic": HttpAdapter("anthropic", "k")})
    request = Request(model=named("anthropic"), messages="?")

    assert client.estimate_cost(request).high > 0.1  # 64,000 tokens at $5 per million
    assert client.estimate_cost(replace(request, max_tokens=10)).high < 0.001


def test_a_request_that_may_ask_for_a_tier_has_a_wider_range():
    """Its options may ask for a cheaper or a dearer one."""
    client = Client({"openai": HttpAdapter("openai", "k")})
    plain = Request(model="openai:gpt-5.2", messages="word " * 500, max_tokens=100)
    tiered = replace(plain, provider_options={"openai": {"service_tier": "priority"}})
    narrow, wide = client.estimate_cost(plain), client.estimate_cost(tiered)

    assert wide.low < narrow.low
    assert isclose(wide.high, 2 * narrow.high, rel_tol=0.01)


def test_the_settings_of_the_adapter_count():
    """Its options may ask for a tier of service, and its behaviour may bound the answer."""
    request = Request(model="gpt-5.2", messages="?")

    def most(**settings):
        return (
            Client({"openai": HttpAdapter("openai", "k", **settings)}).estimate_cost(request).high
        )

    assert isclose(most(options={"service_tier": "priority"}), 2 * most(), rel_tol=0.01)
    assert most(behaviour=Behaviour(max_tokens=10)) < most() / 100


def test_no_range():
    """Without a price, or without a limit of the answer."""
    client = Client({"own": Custom()}, prices={"known": RATES})

    assert client.estimate_cost(Request(model="own:m", messages="?", max_tokens=5)) is None
    assert client.estimate_cost(Request(model="own:known", messages="?")) is None
    assert client.estimate_cost(Request(model="own:known", messages="?", max_tokens=5)).high > 0


@every_provider
def test_the_cost_is_within_the_range(provider):
    """Of a call that the simulator answers with an estimate of its own."""
    with simulated(text("Rain.")) as peer:
        client = Client(adapters(peer.server.url), prices=PRICES)
        request = peer.ask(provider, "word " * 300, max_tokens=200)
        low, high = client.estimate_cost(request)
        response = asyncio.run(client.complete(request))

    assert low <= response.cost.total <= high


def test_events_of_steps():
    """`StepFinish` has the response of its step, with its cost; `Finish` has the sum."""
    calls = tool_call("get_weather", city="Oslo") + usage(input_tokens=500, output_tokens=20)

    async def work(client):
        options = {"client": client, "tools": [get_weather], "prices": PRICES}
        return [event async for event in stream(named("openai"), "?", **options)]

    with simulated(calls, COUNTED) as peer:
        events = run(peer, work)

    (step,) = (event for event in events if type(event) is StepFinish)
    assert isclose(step.response.cost.total, (500 * 2 + 20 * 8) / 1e6)
    assert isclose(events[-1].response.cost.total, COST)
    assert isclose(events[-1].cost.total, step.response.cost.total + COST)


def test_sums_of_costs():
    """Amounts add up; what differs is marked."""
    one = Cost(total=3.0, input=1.0, output=2.0, reasoning=1.0, pricing_version="a")
    other = Cost(total=1.0, media=1.0, pricing_version="b", source="provider")

    assert one + one == Cost(total=6.0, input=2.0, output=4.0, reasoning=2.0, pricing_version="a")
    assert (one + other).source == "mixed"
    assert (one + other).pricing_version == ""
    assert (one + one) - one == one


def test_long_rows_of_the_caller():
    """Rows replace all that is known of a model."""
    row = Price(
        rates=Rates(input=1, output=1), long_context=(LongContext(above=10, rates=Rates(input=5)),)
    )
    client = Client({"own": Custom(given(usage=Usage(input_tokens=100)))}, prices={"m": row})
    response = asyncio.run(client.complete(Request(model="own:m", messages="?")))

    assert isclose(response.cost.total, 0.0005)


def test_a_message_without_usage_stays():
    """Only answers have a cost."""
    assert "cost" not in Message.user("a").metadata
    assert ServerError("x").total_cost is None
