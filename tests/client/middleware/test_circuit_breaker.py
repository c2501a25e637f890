"""`CircuitBreaker`: when calls are refused, the one probe, and what counts."""

import asyncio
import contextlib
import itertools
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import sync
from interlingua.client.client import Client
from interlingua.client.middleware.circuit_breaker import CircuitBreaker
from interlingua.client.middleware.circuits import (
    LONGEST_WAIT,
    Circuit,
    CircuitRules,
    Circuits,
    Closed,
    Entry,
    Failure,
    judge,
    opened,
    state_of,
)
from interlingua.client.middleware.fallback import Fallback
from interlingua.client.middleware.rate_limit import RateLimit
from interlingua.client.retry_policy import RetryPolicy
from interlingua.client.stores.memory import MemoryStore
from interlingua.client.stores.sqlite import SQLiteStore
from interlingua.simulator import Simulator, error, serve_in_thread, text
from interlingua.spec.errors import (
    AbortError,
    AccessDeniedError,
    AuthenticationError,
    BudgetExceededError,
    CircuitOpenError,
    ConfigurationError,
    ContextLengthError,
    ErrorClass,
    InvalidRequestError,
    NetworkError,
    NotFoundError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
    ServerError,
    StoreError,
    StreamError,
)
from interlingua.spec.request import Request
from support import stores as store_support
from support import virtual_time
from support.scripted_adapter import Cut, ScriptedAdapter, Slow, says
from support.simulated import MODELS, adapters
from support.stores import KINDS

ASK = Request(model="a:one", messages="Hi.")
DOWN = ServerError("down")


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def breaker_of(clock, **settings):
    settings = {"failures": 2, "cooldown": 10.0, "chance": lambda: 0.0, **settings}
    return CircuitBreaker(clock=clock, **settings)


async def asking(client, mode, request=ASK, **options):
    if mode == "whole":
        return await client.complete(request, **options)
    return [event async for event in client.stream(request, **options)][-1].response


def ask(client, mode, request=ASK, **options):
    return asyncio.run(asking(client, mode, request, **options))


both = pytest.mark.parametrize("mode", ["whole", "stream"])


def state(breaker, provider="a", model="one"):
    return asyncio.run(breaker.state(provider, model))


# The life of a circuit.


@both
def test_it_opens_probes_and_closes(mode):
    """N failures open it; the probe after the cooldown closes it."""
    clock = Clock()
    adapter = ScriptedAdapter(DOWN, DOWN, says("back"))
    breaker = breaker_of(clock)
    client = Client({"a": adapter}, middleware=[breaker])
    for _ in range(2):
        assert state(breaker) == "closed"
        with pytest.raises(ServerError):
            ask(client, mode)
    assert state(breaker) == "open"

    with pytest.raises(CircuitOpenError, match=r"next 10\.0 s.*ServerError: down") as caught:
        ask(client, mode)

    assert caught.value.retry_after == pytest.approx(10.0)
    assert caught.value.retryable
    assert (caught.value.provider, caught.value.model) == ("a", "one")
    assert len(adapter.asked) == 2
    clock.now += 10.1
    assert state(breaker) == "half_open"
    assert ask(client, mode).text == "back"
    assert state(breaker) == "closed"


def test_it_refuses_without_the_server():
    """Over real HTTP: the server is not touched, and one probe closes the circuit."""
    clock = Clock()
    app = Simulator(error(503), error(503), error(503), text("back"))
    with serve_in_thread(app) as server:
        client = Client(adapters(server.url), middleware=[breaker_of(clock, failures=3)])
        request = Request(provider="openai", model=MODELS["openai"], messages="Hi.")

        async def work():
            async with client:
                for _ in range(3):
                    with pytest.raises(ServerError):
                        await client.complete(request)
                for _ in range(20):
                    with pytest.raises(CircuitOpenError):
                        await client.complete(request)
                assert len(app.script.received) == 3
                clock.now += 11
                calls = [client.complete(request) for _ in range(10)]
                results = await asyncio.gather(*calls, return_exceptions=True)
                after = await client.complete(request)
            return results, after

        results, after = asyncio.run(work())

    answers = [result for result in results if not isinstance(result, Exception)]
    assert [answer.text for answer in answers] == ["back"]
    assert {type(result) for result in results if result not in answers} == {CircuitOpenError}
    assert after.text == "back"
    assert len(app.script.received) == 5


def test_a_probe_that_fails_opens_it_for_longer():
    """Twice as long each time, up to the maximum; a success resets that."""
    clock = Clock()
    adapter = ScriptedAdapter(DOWN, DOWN, DOWN, DOWN, DOWN, says("back"), DOWN, DOWN)
    breaker = breaker_of(clock, max_cooldown=30)
    client = Client({"a": adapter}, middleware=[breaker])
    waits = []
    for _ in range(2):
        with pytest.raises(ServerError):
            ask(client, "whole")
    for _ in range(3):
        with pytest.raises(CircuitOpenError) as caught:
            ask(client, "whole")
        waits.append(caught.value.retry_after)
        clock.now += caught.value.retry_after + 0.1
        with pytest.raises(ServerError):
            ask(client, "whole")
    assert waits == pytest.approx([10, 20, 30])
    clock.now += 31
    assert ask(client, "whole").text == "back"
    for _ in range(2):
        with pytest.raises(ServerError):
            ask(client, "whole")
    with pytest.raises(CircuitOpenError) as caught:
        ask(client, "whole")
    assert caught.value.retry_after == pytest.approx(10)


def test_a_success_starts_the_count_anew():
    """Failures count in a row, and only within the window."""
    clock = Clock()
    breaker = breaker_of(clock, window=60)
    client = Client({"a": ScriptedAdapter(DOWN, says("x"), DOWN, DOWN)}, middleware=[breaker])
    with pytest.raises(ServerError):
        ask(client, "whole")
    ask(client, "whole")
    with pytest.raises(ServerError):
        ask(client, "whole")
    assert state(breaker) == "closed"
    clock.now += 61
    with pytest.raises(ServerError):
        ask(client, "whole")
    assert state(breaker) == "closed"


# What counts.


@pytest.mark.parametrize(
    "failure",
    [
        InvalidRequestError("wrong"),
        ContextLengthError("long"),
        NotFoundError("gone"),
        AbortError("stop"),
        BudgetExceededError("used up"),
        ConfigurationError("wrong"),
        CircuitOpenError("inner"),
        asyncio.CancelledError(),
        ValueError("of a middleware"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_what_never_counts(failure):
    """It says nothing about the health of the provider."""
    assert judge(failure) is None


@pytest.mark.parametrize(
    "failure",
    [ServerError("x"), NetworkError("x"), RateLimitError("x"), RequestTimeoutError("x")],
    ids=lambda failure: type(failure).__name__,
)
def test_what_counts(failure):
    """One of several failures."""
    assert judge(failure) == Failure(f"{type(failure).__name__}: x")


@both
def test_a_wrong_key_opens_the_provider(mode):
    """At once, for all models; the others go on."""
    clock = Clock()
    named = {
        "a": ScriptedAdapter(AuthenticationError("key"), says("x")),
        "b": ScriptedAdapter(says("b")),
    }
    breaker = breaker_of(clock, failures=5)
    client = Client(named, middleware=[breaker])
    with pytest.raises(AuthenticationError):
        ask(client, mode)

    with pytest.raises(CircuitOpenError, match="No model of the provider"):
        ask(client, mode, Request(model="a:two", messages="Hi."))
    assert state(breaker, model=None) == state(breaker, model="two") == "open"
    assert ask(client, mode, Request(model="b:one", messages="Hi.")).text == "b"
    clock.now += 11
    assert ask(client, mode, Request(model="a:two", messages="Hi.")).text == "x"
    assert state(breaker, model=None) == "closed"


@both
def test_a_missing_permission_opens_the_model(mode):
    """403 is about one model, most of the time."""
    breaker = breaker_of(Clock(), failures=5)
    adapter = ScriptedAdapter(AccessDeniedError("no"), says("x"))
    client = Client({"a": adapter}, middleware=[breaker])
    with pytest.raises(AccessDeniedError):
        ask(client, mode)

    with pytest.raises(CircuitOpenError):
        ask(client, mode)
    assert ask(client, mode, Request(model="a:two", messages="Hi.")).text == "x"


@both
def test_retry_after_opens_for_so_long(mode):
    """At once; other models are not affected."""
    clock = Clock()
    breaker = breaker_of(clock, failures=5)
    adapter = ScriptedAdapter(RateLimitError("slow", retry_after=42.0), says("x"))
    client = Client({"a": adapter}, middleware=[breaker])
    with pytest.raises(RateLimitError):
        ask(client, mode)

    with pytest.raises(CircuitOpenError) as caught:
        ask(client, mode)
    assert caught.value.retry_after == pytest.approx(42.0)
    assert state(breaker, model="two") == "closed"
    clock.now += 42.1
    assert ask(client, mode).text == "x"


def test_a_very_long_retry_after_is_limited():
    """A server cannot switch itself off for ever."""
    assert judge(RateLimitError("x", retry_after=1e9)).wait == LONGEST_WAIT


def test_a_cancelled_probe_lets_another_one_through():
    """A cancellation is no result."""
    clock = Clock()
    adapter = ScriptedAdapter(DOWN, DOWN, Slow(5, says("never")), says("back"))
    breaker = breaker_of(clock)
    client = Client({"a": adapter}, middleware=[breaker])
    for _ in range(2):
        with pytest.raises(ServerError):
            ask(client, "whole")
    clock.now += 11

    async def work():
        probe = asyncio.create_task(client.complete(ASK))
        await asyncio.sleep(0.01)
        with pytest.raises(CircuitOpenError):
            await client.complete(ASK)
        probe.cancel()
        await asyncio.wait({probe})
        return await client.complete(ASK)

    assert virtual_time.run(work()).text == "back"
    assert state(breaker) == "closed"


def test_a_stream_closes_it_with_the_first_text_and_may_fail_after_that():
    """The probe has succeeded; what comes later counts as a failure of its own."""
    clock = Clock()
    adapter = ScriptedAdapter(DOWN, DOWN, Cut(says("half"), 3), DOWN)
    breaker = breaker_of(clock)
    client = Client({"a": adapter}, middleware=[breaker])
    for _ in range(2):
        with pytest.raises(ServerError):
            ask(client, "stream")
    clock.now += 11

    async def read(states):
        async for event in client.stream(ASK):
            if event.type == "text_delta":
                states.add(await breaker.state("a", "one"))

    async def work():
        states = set()
        with pytest.raises(StreamError, match="cut"):
            await read(states)
        return states

    assert asyncio.run(work()) == {"closed"}
    assert state(breaker) == "closed"
    with pytest.raises(ServerError):
        ask(client, "whole")
    assert state(breaker) == "open"


@both
def test_a_clock_that_goes_back(mode):
    """An open circuit is probed then: it does not stay open until the clock is there again."""
    clock = Clock()
    adapter = ScriptedAdapter(DOWN, DOWN, DOWN, says("back"))
    breaker = breaker_of(clock)
    client = Client({"a": adapter}, middleware=[breaker])
    for _ in range(2):
        with pytest.raises(ServerError):
            ask(client, mode)
    clock.now -= 3600
    assert state(breaker) == "half_open"

    with pytest.raises(ServerError):
        ask(client, mode)

    with pytest.raises(CircuitOpenError) as caught:
        ask(client, mode)
    assert caught.value.retry_after == pytest.approx(20.0)
    clock.now += 21
    assert ask(client, mode).text == "back"


# With others.


@both
def test_a_retry_after_the_wait_that_was_asked_for(mode):
    """It is let through: the call needs no more attempts than without the breaker."""
    adapter = ScriptedAdapter(RateLimitError("slow", retry_after=5.0), says("x"))

    async def work():
        breaker = CircuitBreaker(clock=virtual_time.now, chance=lambda: 1.0)
        client = Client({"a": adapter}, middleware=[breaker])
        policy = RetryPolicy(max_retries=1)
        if mode == "whole":
            return await client.complete(ASK, retry=policy)
        return [event async for event in client.stream(ASK, retry=policy)][-1].response

    assert len(virtual_time.run(work()).attempts) == 2


@both
def test_a_limit_of_the_program_is_no_failure(mode):
    """In any order of the two."""
    breaker = breaker_of(Clock(), failures=1)
    limit = RateLimit(requests_per_minute=1, max_wait=0)
    client = Client({"a": ScriptedAdapter(says("x"))}, middleware=[breaker, limit])
    ask(client, mode)

    with pytest.raises(RateLimitError, match="not sent"):
        ask(client, mode)

    assert state(breaker) == "closed"


# With others.


@both
def test_retries_wait_for_it(mode):
    """`retry_after` of the refusal is the delay of the next attempt."""
    adapter = ScriptedAdapter(DOWN, DOWN, says("back"))
    client = Client({"a": adapter}, middleware=[CircuitBreaker(failures=2, cooldown=0.05)])
    policy = RetryPolicy(max_retries=4, base_delay=0.0)

    response = ask(client, mode, retry=policy)

    assert response.text == "back"
    assert len(adapter.asked) == 3


@both
def test_a_fallback_goes_to_the_next_model_at_once(mode):
    """Also with retries: it does not wait for the circuit."""
    clock = Clock()
    named = {"a": ScriptedAdapter(DOWN), "b": ScriptedAdapter(says("b"))}
    layers = [Fallback("b:one"), breaker_of(clock, cooldown=50)]
    client = Client(named, middleware=layers)
    policy = RetryPolicy(max_retries=1, base_delay=0.0)
    assert ask(client, mode, retry=policy).text == "b"

    async def timed():
        began = virtual_time.now()
        return await asking(client, mode, retry=policy), virtual_time.now() - began

    response, seconds = virtual_time.run(timed())

    assert (response.text, seconds) == ("b", 0)
    assert len(named["a"].asked) == 2
    assert any("CircuitOpenError" in warning.message for warning in response.warnings)


def test_operations_have_a_circuit():
    """By their model, or by their name."""

    class Lists(ScriptedAdapter):
        async def list_models(self):
            self.asked.append("list_models")
            raise DOWN

    adapter = Lists(says("x"))
    breaker = breaker_of(Clock())
    client = Client({"a": adapter}, middleware=[breaker])

    async def work():
        for _ in range(2):
            with pytest.raises(ServerError):
                await client.list_models("a")
        with pytest.raises(CircuitOpenError):
            await client.list_models("a")
        return await client.complete(ASK)

    assert asyncio.run(work()).text == "x"
    assert adapter.asked.count("list_models") == 2


def test_keys_of_customers_are_apart():
    """A wrong key of one does not stop the others."""
    breaker = breaker_of(Clock(), key=lambda request: request.user or "")
    adapter = ScriptedAdapter(AuthenticationError("key"), says("x"))
    client = Client({"a": adapter}, middleware=[breaker])
    with pytest.raises(AuthenticationError):
        ask(client, "whole", Request(model="a:one", messages="Hi.", user="eve"))
    with pytest.raises(CircuitOpenError):
        ask(client, "whole", Request(model="a:one", messages="Hi.", user="eve"))

    assert ask(client, "whole").text == "x"


def test_two_breakers_share_a_store():
    """As two processes do: one opens it for both, and one probe goes through in all."""
    clock = Clock()
    store = MemoryStore(clock=clock)
    scripts = [ScriptedAdapter(DOWN, DOWN, Slow(0.05, says("back"))) for _ in range(2)]
    clients = [
        Client({"a": script}, middleware=[breaker_of(clock, store=store)]) for script in scripts
    ]

    async def work():
        for client in clients:
            with pytest.raises(ServerError):
                await client.complete(ASK)
        for client in clients:
            with pytest.raises(CircuitOpenError):
                await client.complete(ASK)
        clock.now += 11
        scripts[0].answers = scripts[1].answers = [Slow(0.05, says("back"))]
        calls = [client.complete(ASK) for client in clients * 5]
        return await asyncio.gather(*calls, return_exceptions=True)

    results = virtual_time.run(work())

    assert sum(not isinstance(result, Exception) for result in results) == 1


def test_without_its_store_calls_go_through(caplog):
    """That is said once, not at every call."""

    class Broken(MemoryStore):
        async def get(self, _):
            raise StoreError("no connection")

    client = Client({"a": ScriptedAdapter(says("x"))}, middleware=[CircuitBreaker(store=Broken())])

    for _ in range(3):
        assert ask(client, "whole").text == "x"
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_changes_are_logged(caplog):
    """Open, half-open, closed; each with the name of the circuit."""
    caplog.set_level("INFO", "interlingua")
    clock = Clock()
    client = Client({"a": ScriptedAdapter(DOWN, DOWN, says("x"))}, middleware=[breaker_of(clock)])
    for _ in range(2):
        with pytest.raises(ServerError):
            ask(client, "whole")
    clock.now += 11
    ask(client, "whole")

    logged = [record.getMessage() for record in caplog.records]
    assert logged == [
        "Circuit a:one is open for 10.0 s: ServerError: down",
        "Circuit a:one is half-open: one call goes through.",
        "Circuit a:one is closed.",
    ]


def test_blocking_code():
    """`interlingua.sync` has the same circuits."""
    client = Client({"a": ScriptedAdapter(DOWN)}, middleware=[CircuitBreaker(failures=1)])
    with pytest.raises(ServerError):
        sync.generate("a:one", "Hi.", client=client, max_retries=0)
    with pytest.raises(CircuitOpenError):
        list(sync.stream("a:one", "Hi.", client=client, max_retries=0))


@pytest.mark.parametrize("settings", [{"failures": 0}, {"cooldown": 0}, {"window": float("nan")}])
def test_wrong_settings(settings):
    """They are refused when it is made."""
    with pytest.raises(ConfigurationError):
        CircuitBreaker(**settings)


# Laws.

RULES = CircuitRules(failures=3, window=60, cooldown=10, max_cooldown=40, probe_lease=1e6)
steps = st.one_of(
    st.tuples(st.just("enter"), st.just(0)),
    st.tuples(st.sampled_from(["succeed", "fail", "leave"]), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 5.0, 11.0, 50.0])),
)


@given(st.lists(steps, max_size=60), st.floats(0, 1))
def test_law_of_one_probe(script, chance):
    """
    At any time at most one probe is under way, and none before the end of the cooldown.

    An open circuit lets nothing else through, and a closed one lets everything through.
    """
    clock = Clock()
    circuits = Circuits(RULES, clock=clock, chance=lambda: chance)
    entries = []

    async def work():
        for name, number in script:
            if name == "wait":
                clock.now += number
            elif name == "enter":
                before = await circuits.state("k")
                entry = await circuits.enter("k")
                if isinstance(entry, Closed):
                    assert before != "closed"
                    assert entry.retry_after > 0
                    continue
                assert entry.is_probe is (before == "half_open")
                entries.append(entry)
                assert sum(each.is_probe for each in entries) <= 1
            elif entries:
                entry = entries.pop(number % len(entries))
                if name == "fail":
                    await circuits.fail(entry, Failure("x"))
                else:
                    await getattr(circuits, name)(entry)
                if entry.is_probe:
                    expected = {"succeed": "closed", "fail": "open", "leave": "half_open"}
                    assert await circuits.state("k") == expected[name]

    asyncio.run(work())


@given(st.integers(0, 40), st.floats(0, 1), st.one_of(st.none(), st.floats(0.1, LONGEST_WAIT)))
def test_law_of_cooldowns(openings, chance, wait):
    """It never shrinks, stays under its maximum, and a wait that was asked for is kept."""
    before = Circuit(until=5.0, openings=openings) if openings else None

    circuit = opened(before, Failure("x", wait=wait), RULES, 10.0, chance)

    seconds = circuit.until - 10.0
    assert circuit.openings == openings + 1
    least, most = (wait, wait) if wait else (RULES.cooldown, RULES.max_cooldown)
    assert least <= seconds + 1e-6
    assert seconds <= (most if wait else most * 1.1) + 1e-6
    assert state_of(circuit, 10.0) == "open"
    assert state_of(circuit, circuit.until) == "half_open"


PROCESS = """
import asyncio, sys
from interlingua.client.middleware.circuits import CircuitRules, Circuits, Closed
from interlingua.stores import SQLiteStore

async def main(path):
    store = SQLiteStore(path)
    circuits = Circuits(CircuitRules(failures=1), store)
    print("ready", flush=True)
    sys.stdin.readline()
    entries = await asyncio.gather(*(circuits.enter("k") for _ in range(20)))
    print(sum(not isinstance(entry, Closed) for entry in entries), flush=True)
    sys.stdin.readline()
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def test_one_probe_in_all_processes(tmp_path):
    """Three processes with twenty calls each, on one file."""
    path = tmp_path / "circuits.db"

    async def open_circuit():
        store = SQLiteStore(path)
        circuits = Circuits(CircuitRules(failures=1, cooldown=0.001), store)
        await circuits.fail(await circuits.enter("k"), Failure("down"))
        await asyncio.sleep(0.01)
        await store.close()

    asyncio.run(open_circuit())
    with contextlib.ExitStack() as stack:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes = [
            stack.enter_context(
                subprocess.Popen([sys.executable, "-c", PROCESS, str(path)], **pipes)
            )
            for _ in range(3)
        ]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            print(file=process.stdin, flush=True)
        admitted = [int(process.stdout.readline()) for process in processes]
        for process in processes:
            print(file=process.stdin, flush=True)

    assert sum(admitted) == 1


class Slowly(MemoryStore):
    """A store whose answers come later, so that other calls go on meanwhile."""

    def __init__(self, clock, waits):
        super().__init__(clock=clock)
        self._waits = waits

    async def _wait(self):
        for _ in range(next(self._waits)):
            await asyncio.sleep(0)

    async def get(self, key):
        await self._wait()
        value = await super().get(key)
        await self._wait()
        return value

    async def put(self, key, value, **settings):
        await self._wait()
        return await super().put(key, value, **settings)

    async def delete(self, key):
        await self._wait()
        return await super().delete(key)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.lists(st.sampled_from(["succeed", "fail", "leave"]), min_size=2, max_size=6),
)
def test_law_of_one_probe_while_calls_overlap(waits, ends):
    """However the steps of several calls mix, one probe at most is under way."""
    clock = Clock()

    async def call(circuits, end, probes):
        entry = await circuits.enter("k")
        if isinstance(entry, Closed):
            return
        if entry.is_probe:
            assert await circuits.state("k") != "closed"
            probes.append(entry)
            assert len(probes) == 1
            await asyncio.sleep(0)
            probes.remove(entry)
        if end == "fail":
            await circuits.fail(entry, Failure("x"))
        else:
            await getattr(circuits, end)(entry)

    async def work():
        circuits = Circuits(RULES, Slowly(clock, itertools.cycle(waits)), clock=clock)
        await circuits.fail(await circuits.enter("k"), Failure("x", opens=True))
        clock.now += 20
        probes = []
        await asyncio.gather(*(call(circuits, end, probes) for end in ends))

    asyncio.run(work())


@pytest.mark.parametrize("end", ["succeed", "fail"])
def test_a_probe_that_ended_meanwhile_is_not_followed_by_another(end):
    """A call that saw the half-open circuit comes late: it goes by what the probe has found."""
    clock = Clock()

    class Gated(MemoryStore):
        gate = None

        async def put(self, key, value, **settings):
            gate, self.gate = self.gate, None
            if gate is not None:
                await gate.wait()
            return await super().put(key, value, **settings)

    async def work():
        store = Gated(clock=clock)
        late_gate = asyncio.Event()
        circuits = Circuits(RULES, store, clock=clock)
        await circuits.fail(await circuits.enter("k"), Failure("x", opens=True))
        clock.now += 20
        store.gate = late_gate
        late = asyncio.create_task(circuits.enter("k"))
        await asyncio.sleep(0)
        probe = await circuits.enter("k")
        assert probe.is_probe
        await (circuits.succeed(probe) if end == "succeed" else circuits.fail(probe, Failure("x")))
        late_gate.set()
        return await late

    entry = asyncio.run(work())

    assert isinstance(entry, Closed) if end == "fail" else not entry.is_probe


class Hanging(MemoryStore):
    """A store that does not answer to a question about a key, after a probe was noted."""

    def __init__(self, hangs_at, **settings):
        super().__init__(**settings)
        self.is_asked = asyncio.Event()
        self._hangs_at = hangs_at
        self._has_probe = False

    async def put(self, key, value, **settings):
        self._has_probe = self._has_probe or key.startswith("circuit-probe:")
        return await super().put(key, value, **settings)

    async def get(self, key):
        if self._has_probe and key == self._hangs_at:
            self._hangs_at = None
            self.is_asked.set()
            await asyncio.Event().wait()
        return await super().get(key)


@pytest.mark.parametrize("hangs_at", ["circuit:a", "circuit:a:one"])
def test_a_call_that_is_cancelled_while_the_store_is_asked(hangs_at):
    """The probe that it was about to make is left to the next call."""
    clock = Clock()
    store = Hanging(hangs_at, clock=clock)
    adapter = ScriptedAdapter(AuthenticationError("wrong key"), says("back"))
    client = Client({"a": adapter}, middleware=[breaker_of(clock, store=store)])

    async def work():
        with pytest.raises(AuthenticationError):
            await client.complete(ASK)
        clock.now += 11
        probe = asyncio.create_task(client.complete(ASK))
        await store.is_asked.wait()
        probe.cancel()
        await asyncio.wait({probe})
        return await client.complete(ASK)

    assert asyncio.run(work()).text == "back"


@both
@pytest.mark.parametrize("failure", [DOWN, AuthenticationError("wrong key")], ids=["one", "all"])
def test_law_of_a_cancelled_probe(mode, failure):
    """Wherever it is cancelled, the next call soon goes through, and no task is left."""
    clock = Clock()

    async def call(client):
        if mode == "whole":
            return await client.complete(ASK)
        return [event async for event in client.stream(ASK)][-1].response

    async def cancel_after(steps):
        adapter = ScriptedAdapter(failure, says("probe"), says("back"))
        store = Slowly(clock, itertools.repeat(2))
        breaker = breaker_of(clock, failures=1, store=store)
        client = Client({"a": adapter}, middleware=[breaker])
        with pytest.raises(type(failure)):
            await call(client)
        clock.now += 11
        probe = asyncio.create_task(call(client))
        for _ in range(steps):
            await asyncio.sleep(0)
        probe.cancel()
        await asyncio.wait({probe})
        for _ in range(30):  # what was begun in the store is ended
            await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1
        assert (await call(client)).text in ("probe", "back")
        assert await breaker.state("a", "one") == "closed"
        return probe.cancelled()

    async def work():
        steps = 0
        while await cancel_after(steps):
            steps += 1
        return steps

    assert asyncio.run(work()) > 20


def test_a_stream_without_an_end_is_a_failure():
    """As an answer that was cut: it counts, and a probe that ends so is over."""
    clock = Clock()

    class Empty(ScriptedAdapter):
        async def stream(self, request):
            if isinstance(self.answers[0], Cut):
                self.answers.pop(0)
                return
            async for event in super().stream(request):
                yield event

    adapter = Empty(DOWN, DOWN, Cut(says("never"), 0), says("back"))
    breaker = breaker_of(clock)
    client = Client({"a": adapter}, middleware=[breaker])
    for failure in (ServerError, ServerError, StreamError):
        with pytest.raises(failure):
            ask(client, "stream")
        clock.now += 11
    clock.now += 20
    assert ask(client, "stream").text == "back"


# Stores that other processes share.


@pytest.mark.parametrize("kind", KINDS)
def test_breakers_of_several_processes_share_a_circuit(kind, tmp_path):
    """In each kind of store: what one opens is open for all, and one of them probes it."""
    clock = store_support.Clock()

    async def work():
        stores = [KINDS[kind](clock, tmp_path) for _ in range(2)]
        if kind != "sqlite":
            stores = stores[:1] * 2
        answers = ScriptedAdapter(DOWN, DOWN, says("back"), says("again"))
        clients = [
            Client({"a": answers}, middleware=[breaker_of(clock, store=store)]) for store in stores
        ]
        for _ in range(2):
            with pytest.raises(ServerError):
                await clients[0].complete(ASK)
        with pytest.raises(CircuitOpenError):
            await clients[1].complete(ASK)
        clock.advance(10.1)
        results = await asyncio.gather(
            *(client.complete(ASK) for client in clients), return_exceptions=True
        )
        after = await clients[1].complete(ASK)
        for store in stores:
            await store.close()
        return results, after

    results, after = asyncio.run(work())

    assert [type(each) for each in results].count(CircuitOpenError) <= 1
    assert "back" in [getattr(each, "text", "") for each in results]
    assert after.text in ("again", "back")


def test_a_probe_that_takes_long():
    """No other one goes through while it is under way, however long that is."""
    clock = Clock()
    store = MemoryStore(clock=virtual_time.now)
    rules = CircuitRules(failures=1, cooldown=10.0, probe_lease=0.09)

    async def work():
        circuits = Circuits(rules, store, clock=clock, chance=lambda: 0.0)
        await circuits.fail(Entry("k"), judge(DOWN))
        clock.now += 10.1
        probe = await circuits.enter("k")
        others = []
        for _ in range(10):
            await asyncio.sleep(0.03)
            others.append(await circuits.enter("k"))
        await circuits.leave(probe)
        await asyncio.sleep(0)
        return probe, others, await circuits.enter("k")

    probe, others, last = virtual_time.run(work())

    assert probe.is_probe
    assert {type(each) for each in others} == {Closed}
    assert last.is_probe


def test_only_some_errors_count():
    """Those of `errors`; a rate limit that does not count opens nothing, also with a wait."""
    busy = RateLimitError("Slow down.", retry_after=60)
    adapter = ScriptedAdapter(*[busy] * 9, DOWN, busy, DOWN)
    breaker = CircuitBreaker(failures=2, errors=(ErrorClass.SERVER_ERROR,))
    client = Client({"a": adapter}, middleware=[breaker])

    async def work():
        seen = []
        for _ in range(13):
            with pytest.raises(SDKError) as caught:
                await client.complete(ASK)
            seen.append(type(caught.value))
        return seen

    limited = [RateLimitError] * 9
    failed = [ServerError, RateLimitError, ServerError, CircuitOpenError]
    assert asyncio.run(work()) == [*limited, *failed]


@pytest.mark.parametrize("wrong", [ErrorClass.INVALID_REQUEST, "nothing", ServerError])
def test_wrong_errors_are_told(wrong):
    """With those that can count."""
    with pytest.raises(ConfigurationError, match="can count: rate_limit, auth, server_error"):
        CircuitBreaker(errors=(wrong,))
