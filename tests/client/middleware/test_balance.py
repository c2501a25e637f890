"""`Balance`: which key or endpoint is used, and what happens if one fails."""

import asyncio
from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import sync
from interlingua.api.run.generate import generate
from interlingua.client.client import Client
from interlingua.client.middleware.balance import Balance, rank
from interlingua.client.middleware.circuit_breaker import CircuitBreaker
from interlingua.client.retry_policy import RetryPolicy
from interlingua.client.stores.memory import MemoryStore
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, error, serve_in_thread, text
from interlingua.spec.errors import (
    AbortError,
    AuthenticationError,
    ConfigurationError,
    ErrorClass,
    InvalidRequestError,
    RateLimitError,
    SDKError,
    ServerError,
    StreamError,
)
from interlingua.spec.request import Request
from interlingua.streams.grammar import Grammar
from support import virtual_time
from support.scripted_adapter import Cut, ScriptedAdapter, Slow, says
from support.simulated import MODELS

ONCE = RetryPolicy(max_retries=1, base_delay=0.0)


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def client_of(*members, **settings):
    """A client with one provider, `p`, over these members."""
    for number, member in enumerate(members):
        member.name = f"m{number}"
    return Client({"p": Balance(*members, **settings)})


def ask(client, mode="whole", retry=None, **fields):
    request = Request(model="p:one", messages="Hi.", **fields)

    async def work():
        if mode == "whole":
            return await client.complete(request, retry=retry)
        grammar, events = Grammar(), []
        async for event in client.stream(request, retry=retry):
            grammar.feed(event)
            events.append(event)
        return events[-1].response

    return asyncio.run(work())


both = pytest.mark.parametrize("mode", ["whole", "stream"])


def first_of(*names, weights=None):
    """A session that `rank` gives to the first of these names."""
    weights = dict.fromkeys(names, 1.0) if weights is None else weights
    return next(f"s{n}" for n in count() if rank(f"s{n}", weights)[0] == names[0])


# The law of the choice.

weight_maps = st.dictionaries(
    st.sampled_from("abcdefgh"), st.floats(0.1, 10), min_size=1, max_size=6
)


@given(weight_maps, st.text())
def test_law_of_few_moves(weights, key):
    """If a member leaves, only its own sessions move; the order of the others stays."""
    order = rank(key, weights)

    assert sorted(order) == sorted(weights)
    assert rank(key, dict(reversed(weights.items()))) == order
    for leaving in weights:
        rest = {name: weight for name, weight in weights.items() if name != leaving}
        assert rank(key, rest) == [name for name in order if name != leaving]


@pytest.mark.parametrize("weights", [{"a": 1, "b": 1}, {"a": 3, "b": 1}, {"a": 5, "b": 3, "c": 2}])
def test_law_of_proportion(weights):
    """Over many sessions each member gets its share."""
    sessions = 4000
    firsts = Counter(rank(f"session {n}", weights)[0] for n in range(sessions))

    for name, weight in weights.items():
        share = weight / sum(weights.values())
        assert firsts[name] / sessions == pytest.approx(share, abs=0.03)


@given(st.text(), st.floats(1, 10))
def test_law_of_growing_weights(key, factor):
    """A member that gets more weight only wins sessions, and loses none."""
    before = rank(key, {"a": 1.0, "b": 1.0, "c": 1.0})
    after = rank(key, {"a": factor, "b": 1.0, "c": 1.0})

    assert after.index("a") <= before.index("a")


@both
def test_a_session_stays(mode):
    """By its id, else by the user; calls with neither are spread."""
    members = [ScriptedAdapter(says("x")) for _ in range(3)]
    client = client_of(*members)

    for number in range(8):
        for _ in range(3):
            ask(client, mode, session_id=f"s{number}", user="u")
    for member in members:
        asked = Counter(request.session_id for request in member.asked)
        assert set(asked.values()) <= {3}
    used = [len(member.asked) for member in members]
    assert sum(used) == 24
    assert sum(map(bool, used)) > 1
    users = Counter(ask(client, mode, user="u").attempts[0].member for _ in range(5))
    assert len(users) == 1
    spread = Counter(ask(client, mode).attempts[0].member for _ in range(60))
    assert len(spread) == 3


def test_a_spare_is_used_last():
    """Weight 0: only if no other is left."""
    spare = ScriptedAdapter(says("spare"))
    client = client_of(
        ScriptedAdapter(*[says("x")] * 20, ServerError("down")), spare, weights=(1, 0)
    )

    assert {ask(client).text for _ in range(20)} == {"x"}
    assert ask(client, retry=ONCE).text == "spare"


# Failures.


@both
@pytest.mark.parametrize(
    "failure",
    [
        ServerError("down"),
        RateLimitError("slow", retry_after=40.0),
        AuthenticationError("key"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_a_retry_goes_to_another_member(mode, failure):
    """At once, whatever the first one asked to wait; the attempts say which one was used."""
    session = first_of("m0", "m1")
    client = client_of(ScriptedAdapter(failure), ScriptedAdapter(says("x")))

    response = ask(client, mode, retry=ONCE, session_id=session)

    assert (response.text, response.provider) == ("x", "p")
    assert response.message.metadata["provider"] == "p"
    assert [attempt.member for attempt in response.attempts] == ["m0", "m1"]
    assert [attempt.provider for attempt in response.attempts] == ["p", "p"]


@both
def test_a_member_that_is_out_comes_back(mode):
    """Its sessions go to another one meanwhile, and return after one call has succeeded."""
    clock = Clock()
    session = first_of("m0", "m1")
    first = ScriptedAdapter(RateLimitError("slow", retry_after=40.0), says("home"))
    client = client_of(first, ScriptedAdapter(says("away")), clock=clock, chance=lambda: 0.0)

    answers = [ask(client, mode, retry=ONCE, session_id=session).text for _ in range(3)]

    assert answers == ["away"] * 3
    assert len(first.asked) == 1
    clock.now += 41
    assert [ask(client, mode, session_id=session).text for _ in range(2)] == ["home"] * 2


@both
def test_several_failures_take_a_member_out(mode):
    """Three in a row by default."""
    session = first_of("m0", "m1")
    first = ScriptedAdapter(ServerError("down"))
    client = client_of(first, ScriptedAdapter(says("x")), clock=Clock())

    for _ in range(5):
        assert ask(client, mode, retry=ONCE, session_id=session).text == "x"

    assert len(first.asked) == 3


@both
def test_if_all_are_out_the_least_bad_is_used(mode):
    """The one whose time ends first; the true error comes from it."""
    members = [
        ScriptedAdapter(RateLimitError("a", retry_after=seconds), says(f"{seconds:g}"))
        for seconds in (50.0, 20.0, 30.0)
    ]
    client = client_of(*members, clock=Clock(), chance=lambda: 0.0)
    policy = RetryPolicy(max_retries=2, base_delay=0.0)
    with pytest.raises(RateLimitError):
        ask(client, mode, retry=policy)
    assert [len(member.asked) for member in members] == [1, 1, 1]

    assert ask(client, mode).text == "20"


def test_the_last_failure_keeps_its_wait():
    """If no member is left, the caller gets what the provider asked for."""
    client = client_of(
        ScriptedAdapter(RateLimitError("a", retry_after=50.0)),
        ScriptedAdapter(RateLimitError("b", retry_after=70.0)),
    )

    with pytest.raises(RateLimitError) as caught:
        ask(client, retry=ONCE)

    assert caught.value.retry_after in {50.0, 70.0}
    assert [attempt.error_class for attempt in caught.value.attempts] == [ErrorClass.RATE_LIMIT] * 2


@both
def test_a_wrong_request_is_not_the_fault_of_a_member(mode):
    """It is not tried elsewhere, and the member stays."""
    members = [ScriptedAdapter(InvalidRequestError("wrong")) for _ in range(2)]
    client = client_of(*members)

    with pytest.raises(InvalidRequestError):
        ask(client, mode, retry=ONCE)

    assert sum(len(member.asked) for member in members) == 1
    balance = client.calls.adapters["p"]
    assert asyncio.run(balance.state("m0", "one")) == "closed"


def test_a_stream_that_breaks_is_not_continued_elsewhere():
    """After text was shown, the error is raised; the member has failed once."""
    client = client_of(ScriptedAdapter(Cut(says("half"), 3)), ScriptedAdapter(Cut(says("half"), 3)))

    with pytest.raises(SDKError, match="cut") as caught:
        ask(client, "stream", retry=ONCE)

    assert caught.value.partial.text == "half"
    assert len(caught.value.attempts) == 1


def test_a_stream_without_an_end_is_a_failure():
    """A probe that ends so is over: the member is tried again later."""
    clock = Clock()

    class Empty(ScriptedAdapter):
        async def stream(self, request):
            if self.answers[0] is None:
                self.answers.pop(0)
                return
            async for event in super().stream(request):
                yield event

    down = ServerError("down")
    client = client_of(Empty(down, None, says("back")), failures=1, clock=clock)
    balance = client.adapter("p")
    for failure in (ServerError, StreamError):
        with pytest.raises(failure):
            ask(client, "stream")
        clock.now += 40

    assert ask(client, "stream").text == "back"
    assert asyncio.run(balance.state("m0", "one")) == "closed"


@both
def test_a_breaker_does_not_open_the_provider_while_another_member_is_left(mode):
    """A wrong key is the problem of one member."""
    session = first_of("m0", "m1")
    members = [ScriptedAdapter(AuthenticationError("key")), ScriptedAdapter(says("x"))]
    for number, member in enumerate(members):
        member.name = f"m{number}"
    client = Client({"p": Balance(*members)}, middleware=[CircuitBreaker(failures=1)])

    for _ in range(3):
        assert ask(client, mode, retry=ONCE, session_id=session).text == "x"


def test_processes_share_the_health():
    """Through a store."""
    store, clock = MemoryStore(), Clock()
    session = first_of("m0", "m1")
    first = [ScriptedAdapter(AuthenticationError("key")) for _ in range(2)]
    clients = [
        client_of(each, ScriptedAdapter(says("x")), store=store, clock=clock) for each in first
    ]

    for client in clients:
        assert ask(client, retry=ONCE, session_id=session).text == "x"

    assert [len(each.asked) for each in first] == [1, 0]


# As an adapter of a client.


@pytest.fixture
def peer():
    """Two keys at one server: one is refused."""
    app = Simulator(text("Hello."), key="good")
    with serve_in_thread(app) as server:
        yield app, server


def http(server, key, **settings):
    return HttpAdapter("openai", key, base_url=server.url, **settings)


def test_everything_works_over_http(peer):
    """Calls, streams, operations, explain, profiles, estimates, events, close."""
    _, server = peer
    events = []
    session = first_of("eu", "us")
    request = Request(model="house:gpt-5.2", messages="Hi.", session_id=session)

    async def work():
        balance = Balance(http(server, "bad", name="eu"), http(server, "good", name="us"))
        async with Client({"house": balance}) as client:
            client.subscribe(events.append)
            whole = await client.complete(request, retry=ONCE)
            streamed = [event async for event in client.stream(request, retry=ONCE)][-1].response
            listed = await client.list_models("house")
            assert await client.retrieve_model(f"house:{listed[0].id}") == listed[0]
            assert await balance.rebind("house").retrieve_model(listed[0].id) == listed[0]
            counted = await client.count_tokens(request)
            explanation = client.explain(request)
            profile = client.profile_for(request)
            estimate = client.estimate_input_tokens(request)
        return whole, streamed, listed, counted, explanation, profile, estimate

    whole, streamed, listed, counted, explanation, profile, estimate = asyncio.run(work())

    assert whole.text == streamed.text == "Hello."
    assert whole.provider == streamed.provider == explanation.provider == "house"
    assert all(model.provider == "house" for model in listed)
    assert counted > 0
    assert estimate == explanation.estimated_input_tokens > 0
    assert profile == explanation.profile
    served = {event.member for event in events if event.type == "call_completed"}
    assert served == {"us"}
    assert {event.member for event in events if event.type == "call_failed"} == {"eu"}
    assert {event.provider for event in events} == {"house"}


def test_errors_have_the_name_of_the_client(peer):
    """Not that of the member."""
    _, server = peer
    balance = Balance(http(server, "bad", name="eu"))

    async def work():
        async with Client({"house": balance}) as client:
            await client.complete(Request(model="house:gpt-5.2", messages="Hi."))

    with pytest.raises(AuthenticationError) as caught:
        asyncio.run(work())
    assert caught.value.provider == "house"
    assert balance.name == "eu"


def test_a_key_of_the_caller_is_used_instead(peer):
    """`api_key=` of one call; headers go to every member."""
    app, server = peer
    balance = Balance(http(server, "bad"), http(server, "worse"))

    async def work():
        async with Client({"openai": balance}) as client:
            answered = await generate(
                "openai:gpt-5.2", "Hi.", client=client, api_key="good", headers={"x-team": "a"}
            )
            good = Client({"openai": Balance(http(server, "good"))})
            await generate("openai:gpt-5.2", "Hi.", client=good, headers={"x-team": "b"})
        return answered

    assert asyncio.run(work()).text == "Hello."
    assert [exchange.call.headers["x-team"] for exchange in app.script.received[-2:]] == ["a", "b"]


def test_cancel_ends_a_call_of_a_member():
    """By the request id, whole and streamed."""
    client = client_of(ScriptedAdapter(Slow(5, says("x"))))

    async def work():
        call = asyncio.create_task(
            client.complete(Request(model="p:one", messages="Hi.", request_id="1"))
        )
        await asyncio.sleep(0.01)
        assert await client.cancel("1")
        with pytest.raises(AbortError):
            await call
        events = client.stream(Request(model="p:one", messages="Hi.", request_id="2"))
        reading = asyncio.create_task(anext(events))
        await asyncio.sleep(0.01)
        assert await client.cancel("2")
        await reading
        return [event async for event in events][-1].finish_reason.reason

    assert virtual_time.run(work()) == "cancelled"


def test_two_servers_one_down():
    """Real endpoints: the sessions of the one that is down are served by the other."""
    with (
        serve_in_thread(Simulator(error(503))) as down,
        serve_in_thread(Simulator(text("Up."))) as up,
    ):

        async def work():
            balance = Balance(http(down, "k"), http(up, "k"))
            async with Client({"openai": balance}) as client:
                calls = (
                    client.complete(
                        Request(model=MODELS["openai"], messages="Hi.", session_id=f"s{number}"),
                        retry=ONCE,
                    )
                    for number in range(20)
                )
                return await asyncio.gather(*calls)

        responses = asyncio.run(work())

    assert {response.text for response in responses} == {"Up."}
    assert {response.attempts[-1].member for response in responses} == {"openai#2"}


def test_blocking_code():
    """Through `interlingua.sync`."""
    client = client_of(ScriptedAdapter(says("x")), ScriptedAdapter(says("x")))

    assert sync.generate("p:one", "Hi.", client=client).text == "x"
    assert "".join(sync.stream("p:one", "Hi.", client=client).text_stream) == "x"


def test_it_stands_alone():
    """As an adapter without a client."""
    balance = Balance(ScriptedAdapter(says("x")))

    async def work():
        response = await balance.complete(Request(model="one", messages="Hi."))
        return response, [event async for event in balance.stream(Request(messages="Hi."))]

    response, events = asyncio.run(work())
    assert response.text == "x"
    assert events[-1].type == "finish"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (Balance, "one adapter"),
        (lambda: Balance("openai"), "OpenAIAdapter"),
        (lambda: Balance(ScriptedAdapter(), weights=(1, 2)), "2 weights"),
        (lambda: Balance(ScriptedAdapter(), weights=(0,)), "not all 0"),
        (lambda: Balance(ScriptedAdapter(), weights=(float("nan"),)), "from 0"),
        (lambda: Balance(HttpAdapter("openai", "k"), HttpAdapter("gemini", "k")), "Fallback"),
    ],
)
def test_wrong_settings(make, text):
    """They are refused when it is made."""
    with pytest.raises(ConfigurationError, match=text):
        make()


@both
def test_prices_of_the_client_count(peer, mode):
    """A table over that of the catalog is used for every member."""
    _, server = peer
    prices = {"gpt-5.2": {"input": 1_000_000.0, "output": 0.0}}

    async def work():
        members = Balance(http(server, "good"), http(server, "good"))
        async with Client({"openai": members}, prices=prices) as client:
            request = Request(model="openai:gpt-5.2", messages="Hi.")
            if mode == "whole":
                return await client.complete(request)
            return [event async for event in client.stream(request)][-1].response

    response = asyncio.run(work())

    assert response.cost.total == pytest.approx(response.usage.input_tokens)
    assert response.attempts[0].cost == response.cost
