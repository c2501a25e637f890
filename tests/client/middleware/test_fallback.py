"""`Fallback`: which model answers, what the reader sees, and what is said about the others."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import sync
from interlingua.api.objects.functions import stream_object
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.client.middleware.budget import Budget
from interlingua.client.middleware.cache import Cache
from interlingua.client.middleware.fallback import Fallback
from interlingua.client.middleware.other_model import OtherModel
from interlingua.client.retry_policy import RetryPolicy
from interlingua.simulator import (
    Simulator,
    by_model,
    cut,
    error,
    results,
    serve_in_thread,
    text,
    tool_call,
    usage,
)
from interlingua.spec.content import Image, ToolCall
from interlingua.spec.errors import (
    AbortError,
    AuthenticationError,
    BudgetExceededError,
    ConfigurationError,
    ContentFilterError,
    ContextLengthError,
    ErrorClass,
    InvalidRequestError,
    NotFoundError,
    RateLimitError,
    SDKError,
    ServerError,
    StreamError,
)
from interlingua.spec.events import Finish, StreamRestart, TextDelta
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.grammar import Grammar
from support.scripted_adapter import Cut, ScriptedAdapter, says
from support.simulated import MODELS, adapters
from support.warning_codes import codes

ASK = Request(model="a:one", messages="Hi.")


def client_of(*scripts, **settings):
    """A client with adapters a, b, c, … and a fallback from the first to the others."""
    named = {
        name: script if isinstance(script, ScriptedAdapter) else ScriptedAdapter(*script)
        for name, script in zip("abcdef", scripts, strict=False)
    }
    others = [f"{name}:one" for name in list(named)[1:]]
    return Client(named, middleware=[Fallback(*others, **settings)]), named


def whole(client, request=ASK, **options):
    return asyncio.run(client.complete(request, **options))


def read(client, request=ASK):
    """The events of a stream that obey the grammar, and the error that it raised."""

    async def work():
        events, grammar = [], Grammar()
        try:
            async for event in client.stream(request):
                grammar.feed(event)
                events.append(event)
        except SDKError as error:
            return events, error
        grammar.finish()
        return events, None

    return asyncio.run(work())


def either(mode, client, request=ASK):
    """The response or the error, whole or streamed."""
    if mode == "stream":
        events, failure = read(client, request)
        if failure is not None:
            raise failure
        return events[-1].response
    return whole(client, request)


def run_of(mode, client):
    """The result of a run without retries, whole or streamed."""

    async def work():
        if mode == "whole":
            return await generate("a:one", "Hi.", client=client, max_retries=0)
        events = stream("a:one", "Hi.", client=client, max_retries=0)
        async for _ in events:
            pass
        return events.result()

    return asyncio.run(work())


both = pytest.mark.parametrize("mode", ["whole", "stream"])


def shown(events):
    """What a reader has on the screen at the end."""
    pieces = []
    for event in events:
        if isinstance(event, StreamRestart):
            pieces.clear()
        elif isinstance(event, TextDelta):
            pieces.append(event.delta)
    return "".join(pieces)


# Which model answers.


@both
@pytest.mark.parametrize(
    "failure",
    [
        RateLimitError("slow down"),
        AuthenticationError("wrong key"),
        ServerError("overloaded"),
        ContextLengthError("too long"),
        NotFoundError("no such model"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_another_model_answers(mode, failure):
    """After an error where another model may help; the response says who failed."""
    client, named = client_of([failure], [says("from b")], [says("from c")])

    response = either(mode, client)

    assert (response.text, response.provider) == ("from b", "b")
    assert response.message.metadata["provider"] == "b"
    assert response.message.metadata["chosen_because"].startswith("fallback: a:one")
    (warning,) = (each for each in response.warnings if each.code != "price_unknown")
    assert warning.code == (
        "model_skipped" if isinstance(failure, ContextLengthError) else "model_failed"
    )
    assert "a:one" in warning.message
    assert failure.message in warning.message
    assert not named["c"].asked


@both
@pytest.mark.parametrize(
    "failure",
    [
        InvalidRequestError("wrong"),
        ContentFilterError("blocked"),
        BudgetExceededError("used up"),
        AbortError("stop"),
        ConfigurationError("wrong", provider="a"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_other_errors_are_raised_as_they_are(mode, failure):
    """A wrong request of ours, a budget and a cancellation are not the fault of the model."""
    client, named = client_of([failure], [says("from b")])

    with pytest.raises(type(failure)) as caught:
        either(mode, client)

    assert caught.value is failure
    assert not named["b"].asked


@both
def test_the_errors_can_be_chosen(mode):
    """By class, and by type."""
    chosen = (ErrorClass.RATE_LIMIT, ContentFilterError)
    client, _ = client_of([ContentFilterError("blocked")], [says("from b")], errors=chosen)
    assert either(mode, client).text == "from b"

    client, _ = client_of([ServerError("down")], [says("from b")], errors=chosen)
    with pytest.raises(ServerError):
        either(mode, client)


@both
def test_a_finish_reason_asks_the_next_model(mode):
    """Where nothing of the answer was shown; the attempt is metered all the same."""
    client, _ = client_of(
        [says("", reason="content_filter")], [says("b")], finish_reasons=["content_filter"]
    )

    response = either(mode, client)

    assert (response.text, response.message.metadata["provider"]) == ("b", "b")
    assert codes(response) == ["answer_rejected"]
    assert [attempt.usage.output_tokens for attempt in response.attempts] == [0, 1]


@both
@pytest.mark.parametrize("is_async", [False, True])
def test_a_validator_asks_the_next_model(mode, is_async):
    """Sync or async; a stream that is held shows only what was accepted."""

    def accept(response):
        return "yes" in response.text

    async def accept_later(response):
        return accept(response)

    client, _ = client_of(
        [says("no")],
        [says("yes")],
        accept=accept_later if is_async else accept,
        midstream="hold",
    )

    assert either(mode, client).text == "yes"
    events, _ = read(client)
    assert shown(events) == "yes"


@both
def test_an_error_of_accept_is_raised(mode):
    """It says nothing about the model, so no other one is asked."""

    def accept(_):
        raise RateLimitError("the judge is busy")

    client, named = client_of([says("x")], [says("y")], accept=accept, midstream="hold")

    with pytest.raises(RateLimitError, match="the judge"):
        either(mode, client)
    assert not named["b"].asked


@both
def test_an_answer_that_nobody_accepted_is_returned_with_a_warning(mode):
    """It was paid for; the last one counts, also if a model after it failed."""
    client, _ = client_of(
        [says("one")],
        [says("two")],
        [ServerError("down")],
        accept=lambda _: False,
        midstream="hold",
    )

    response = either(mode, client)

    assert (response.text, response.message.metadata["provider"]) == ("two", "b")
    assert set(codes(response)) == {"answer_rejected", "answer_not_accepted", "model_failed"}
    assert [attempt.provider for attempt in response.attempts] == ["a", "c", "b"]
    assert [attempt.number for attempt in response.attempts] == [0, 2, 1]  # the answer is last


@both
def test_an_earlier_answer_is_paid_once(mode):
    """If a later model fails, the run costs no more, and the message names the model it is of."""
    refusing = {"accept": lambda _: False, "midstream": "hold"}
    client, _ = client_of([says("one")], [ServerError("down")], **refusing)
    client = client.with_prices({"one": {"input": 1000, "output": 1000}})

    result = run_of(mode, client)

    assert result.total_cost.total == pytest.approx(result.response.cost.total)
    assert result.response.message.metadata["provider"] == "a"
    assert "chosen_because" not in result.response.message.metadata


@both
def test_what_a_cache_around_it_stores(mode):
    """Nothing of a call that needed another model, also if that is the same with other settings."""
    adapter = ScriptedAdapter(ServerError("down"), says("short"), says("long"))
    layers = [Cache(), Fallback(OtherModel("a:one", max_tokens=5))]
    client = Client({"a": adapter}, middleware=layers)

    assert [either(mode, client).text for _ in range(3)] == ["short", "long", "long"]
    assert len(adapter.asked) == 3


@both
def test_a_cached_answer_after_a_failure(mode):
    """What the attempt before it cost is in the cost of the run."""
    cuts = [Cut(says("half"), 2, StreamError("cut", partial=says("half"))) for _ in range(2)]
    named = {"a": ScriptedAdapter(*cuts), "b": ScriptedAdapter(says("b"))}
    prices = {"one": {"input": 1000, "output": 1000}}
    client = Client(named, middleware=[Fallback("b:one"), Cache()], prices=prices)

    run_of(mode, client)
    result = run_of(mode, client)

    assert result.response.cost.source == "cache"
    (attempt,) = result.response.attempts
    assert result.total_cost.total == pytest.approx(attempt.cost.total)


def test_a_stream_that_was_shown_is_not_replaced():
    """The answer stands, with a warning, because the reader has seen it."""
    client, named = client_of([says("no")], [says("yes")], accept=lambda r: r.text == "yes")

    events, failure = read(client)

    assert failure is None
    assert shown(events) == events[-1].response.text == "no"
    assert codes(events[-1].response) == ["answer_not_accepted"]
    assert not named["b"].asked


@both
def test_settings_of_a_model(mode):
    """Settings of its own are for that model only; the others stay."""
    adapters = {"a": ScriptedAdapter(ServerError("down")), "b": ScriptedAdapter(says("b"))}
    model = OtherModel("b:two", max_tokens=9, temperature=None, provider_options={"b": {"x": 1}})
    client = Client(adapters, middleware=[Fallback(model)])
    request = Request(
        model="a:one",
        messages="Hi.",
        max_tokens=5,
        temperature=0.5,
        top_p=0.1,
        provider_options={"a": {"y": 2}},
    )

    either(mode, client, request)

    (sent,) = adapters["b"].asked
    assert (sent.model, sent.max_tokens, sent.temperature, sent.top_p) == ("two", 9, None, 0.1)
    assert sent.provider_options == {"a": {"y": 2}, "b": {"x": 1}}
    assert adapters["a"].asked[0].max_tokens == 5


def test_wrong_settings_are_refused():
    """At once, with the right name."""
    with pytest.raises(ConfigurationError, match="max_tokens="):
        OtherModel("b:two", max_output_tokens=3)
    with pytest.raises(ConfigurationError, match="name"):
        Fallback(3)
    with pytest.raises(ConfigurationError, match="restart-marked"):
        Fallback("b:two", midstream="always")
    with pytest.raises(ConfigurationError, match="content_filter"):
        Fallback("b:two", finish_reasons=["filtered"])
    for wrong in ("rate_limit", ValueError, 5):
        with pytest.raises(ConfigurationError, match="ErrorClass"):
            Fallback("b:two", errors=[ErrorClass.AUTH, wrong])


@both
def test_the_requested_model_is_not_asked_twice(mode):
    """A client-wide list may contain it."""
    client, named = client_of([ServerError("down")], [says("b")])
    both_models = client.with_middleware()
    layers = [Fallback("a:one", "b:one")]
    both_models = Client(named, middleware=layers)

    assert either(mode, both_models).text == "b"
    assert len(named["a"].asked) == 1


# FIELD-BUG 71.


@both
def test_every_attempt_is_metered(mode):
    """Retries and models, in order, each with its provider, model and usage (field bug 71)."""
    client, _ = client_of([ServerError("a"), ServerError("a")], [ServerError("b"), says("b")])
    policy = RetryPolicy(max_retries=1, base_delay=0)

    async def streamed():
        return [event async for event in client.stream(ASK, retry=policy)][-1].response

    response = whole(client, retry=policy) if mode == "whole" else asyncio.run(streamed())

    listed = [
        (each.number, each.provider, each.model, each.error_class) for each in response.attempts
    ]
    failed = ErrorClass.SERVER_ERROR
    assert listed == [
        (0, "a", "one", failed),
        (1, "a", "one", failed),
        (2, "b", "one", failed),
        (3, "b", "one", None),
    ]
    assert response.attempts[-1].usage == response.usage
    assert response.provider == response.message.metadata["provider"] == "b"


@both
def test_layers_inside_see_the_model_that_is_asked(mode):
    """A budget prices it, a cache stores its answer, and other layers get provider and model."""
    seen = []

    async def look(request, call_next):
        seen.append((request.provider, request.model))
        return await call_next(request)

    budget = Budget(usd=1)
    named = {
        "anthropic": ScriptedAdapter(ServerError("down"), name="anthropic"),
        "openai": ScriptedAdapter(says("fine", provider="openai"), name="openai"),
    }
    layers = [Fallback("openai:gpt-5.2"), budget, Cache(), look]
    client = Client(named, middleware=layers)
    ask = Request(model="anthropic:claude-haiku-4-5", messages="Hi.")

    for _ in range(2):
        assert either(mode, client, ask).text == "fine"
    assert seen == [
        ("anthropic", "claude-haiku-4-5"),
        ("openai", "gpt-5.2"),
        ("anthropic", "claude-haiku-4-5"),
    ]
    assert len(named["openai"].asked) == 1
    assert asyncio.run(budget.used()) > 0


@both
def test_one_error_names_all_models(mode):
    """The first failure is raised; it has all attempts, and says what became of the others."""
    client, _ = client_of([RateLimitError("slow")], [ServerError("down")], [NotFoundError("gone")])

    with pytest.raises(RateLimitError) as caught:
        either(mode, client)

    error = caught.value
    assert error.provider == "a"
    assert [attempt.provider for attempt in error.attempts] == ["a", "b", "c"]
    assert str(error) == (
        "a:one: slow (3 attempts; other models: b:one: ServerError: down; "
        "c:one: NotFoundError: gone)"
    )


@both
def test_a_model_that_is_not_configured_does_not_hide_the_failure(mode):
    """It is named with its own error."""
    layers = [Fallback("nobody:x", "b:one")]
    named = {"a": ScriptedAdapter(ServerError("down")), "b": ScriptedAdapter(ServerError("too"))}

    with pytest.raises(ServerError, match=r"down.*nobody.*Unknown provider.*b:one"):
        either(mode, Client(named, middleware=layers))


# Capabilities.


@contextlib.contextmanager
def serve_models(first, others):
    app = Simulator(by_model({MODELS["anthropic"]: first}, others))
    with serve_in_thread(app) as server:
        yield app, server


@pytest.fixture
def peer():
    """Two real dialects over HTTP: the first fails, the second answers."""
    with serve_models(error(529), text("Hello from the other one.")) as served:
        yield served


def peer_client(server, *others, profiles=None):
    rows = adapters(server.url)
    for name, profile in (profiles or {}).items():
        rows[name] = adapters(server.url, profile=profile)[name]
    return Client(rows, middleware=[Fallback(*others)])


def ask_peer(server, request, mode, *others, **profiles):
    async def work():
        async with peer_client(server, *others, profiles=profiles) as client:
            if mode == "whole":
                return await client.complete(request)
            return [event async for event in client.stream(request)][-1].response

    return asyncio.run(work())


IMAGE = Message.user(
    "What is this?", Image(data=b"\x89PNG\r\n\x1a\n" + b"0" * 30, media_type="image/png")
)
CASES = {
    "images": ({"messages": [IMAGE]}, {"image_types": ()}, "image"),
    "tools": (
        {"tools": [{"name": "look", "parameters": {"type": "object"}}]},
        {"tools": False},
        "tools",
    ),
    "context": ({"messages": "word " * 3000}, {"context_window": 1000}, "tokens"),
}


@both
@pytest.mark.parametrize("case", CASES)
def test_a_model_that_cannot_take_the_request_is_skipped(peer, mode, case):
    """Nothing is sent to it, and the response says why; the next one is asked."""
    app, server = peer
    fields, profile, why = CASES[case]
    request = Request(
        provider="anthropic", model=MODELS["anthropic"], **{"messages": "Hi.", **fields}
    )

    response = ask_peer(
        server,
        request,
        mode,
        f"openai_compatible:{MODELS['openai_compatible']}",
        f"openai:{MODELS['openai']}",
        openai_compatible=profile,
    )

    assert response.provider == "openai"
    kinds = [code for code in codes(response) if code.startswith("model_")]
    assert kinds == ["model_failed", "model_skipped"]
    skipped = next(each for each in response.warnings if each.code == "model_skipped")
    assert "openai_compatible" in skipped.message
    assert why in skipped.message
    asked = [request.model for request in app.script.requests]
    assert asked == [MODELS["anthropic"], MODELS["openai"]]


@both
def test_unknown_capabilities_are_sent(peer, mode):
    """A profile that says nothing about images excludes nothing."""
    _, server = peer
    request = Request(provider="anthropic", model=MODELS["anthropic"], messages=[IMAGE])

    response = ask_peer(server, request, mode, f"openai_compatible:{MODELS['openai_compatible']}")

    assert response.provider == "openai_compatible"


# Streams: FIELD-BUG 77.


def test_a_failure_after_text_is_the_true_error_and_no_text_comes_twice():
    """By default nothing follows what was shown (field bug 77)."""
    client, named = client_of([Cut(says("half of it"), 3)], [says("whole")])

    events, failure = read(client)

    assert type(failure) is StreamError
    assert failure.provider == "a"
    assert shown(events) == failure.partial.text == "half of it"
    assert events[-1].finish_reason.reason == "error"
    assert not named["b"].asked


def test_a_marked_restart_replaces_what_was_shown():
    """One event says so; the response, the history and the screen have the new text only.

    Field bug 77.
    """
    client, _ = client_of([Cut(says("half of it"), 3)], [says("whole")], midstream="restart-marked")

    events, failure = read(client)

    assert failure is None
    (restart,) = [event for event in events if isinstance(event, StreamRestart)]
    assert (restart.start.provider, "cut" in restart.reason) == ("b", True)
    response = events[-1].response
    assert shown(events) == response.text == "whole"
    assert (response.provider, response.message.metadata["provider"]) == ("b", "b")
    assert codes(response) == ["model_failed"]
    assert [attempt.error_class for attempt in response.attempts] == [ErrorClass.SERVER_ERROR, None]


def test_a_run_and_an_object_restart():
    """Through `stream` and `stream_object`, whose objects grow anew (field bug 77)."""
    first, second = Cut(says('{"name": "Al'), 3), says('{"name": "Bea"}')
    client, _ = client_of([first], [second], midstream="restart-marked")

    async def run():
        result = stream("a:one", "Hi.", client=client)
        async for _ in result:
            pass
        return result.result()

    assert asyncio.run(run()).text == '{"name": "Bea"}'
    client, _ = client_of([first], [second], midstream="restart-marked")

    async def objects():
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        result = stream_object("a:one", "Hi.", schema=schema, client=client)
        return [value async for value in result][-1]

    assert asyncio.run(objects()) == {"name": "Bea"}


@pytest.mark.parametrize("midstream", ["never", "restart-marked"])
def test_nothing_follows_a_tool_call(midstream):
    """It may have been run already (field bug 77)."""
    call = ToolCall(id="1", name="look", arguments={})
    calling = Response(
        message=Message.assistant([call]), finish_reason=FinishReason(reason="tool_calls")
    )
    client, named = client_of([Cut(calling, 3)], [says("whole")], midstream=midstream)

    events, failure = read(client)

    assert type(failure) is StreamError
    assert not named["b"].asked
    assert not any(isinstance(event, StreamRestart) for event in events)


@both
@pytest.mark.parametrize(
    "context", [{"disable_fallbacks": True}, type("Deps", (), {"disable_fallbacks": True})()]
)
def test_a_request_may_disable_fallbacks(mode, context):
    """A request may ask for its own model only (field bug 77)."""
    client, named = client_of([ServerError("down")], [says("b")])
    request = Request(model="a:one", messages="Hi.", context=context)

    with pytest.raises(ServerError, match=r"^a:one: down$"):
        either(mode, client, request)
    assert not named["b"].asked
    assert either(mode, client, Request(model="a:one", messages="Hi.", context={})).text == "b"


def test_a_text_that_breaks_over_http_restarts_in_another_dialect():
    """A connection that breaks in the middle of a text, and another dialect after it.

    Field bug 77.
    """

    async def work(midstream):
        layers = [Fallback(f"gemini:{MODELS['gemini']}", midstream=midstream)]
        async with Client(adapters(server.url), middleware=layers) as client:
            request = Request(provider="anthropic", model=MODELS["anthropic"], messages="Hi.")
            return [event async for event in client.stream(request)]

    words = " ".join(map(str, range(50)))
    with serve_models(text(words) + cut(at=1500), text("four")) as (_, server):
        with pytest.raises(SDKError) as caught:
            asyncio.run(work("never"))
        assert caught.value.provider == "anthropic"
        assert caught.value.partial.text
        assert words.startswith(caught.value.partial.text)
        assert shown(asyncio.run(work("restart-marked"))) == "four"


# The law.

answers = st.one_of(
    st.builds(says, st.sampled_from(["", "x", "good", "bad"])),
    st.builds(Cut, st.builds(says, st.sampled_from(["half", "part"])), st.integers(0, 4)),
    st.sampled_from([ServerError, RateLimitError, InvalidRequestError]).map(lambda kind: kind("f")),
)


@given(
    st.lists(answers, min_size=1, max_size=4),
    st.sampled_from(["never", "restart-marked", "hold"]),
    st.booleans(),
)
def test_law_no_text_is_shown_twice(scripts, midstream, has_validator):
    """
    The screen, the response and the partial of the error are the same, and of one model.

    The grammar holds, every model is asked at most once, and every one that was asked is metered.
    """
    settings = {"accept": lambda response: response.text != "bad"} if has_validator else {}
    client, named = client_of(*([script] for script in scripts), midstream=midstream, **settings)

    events, failure = read(client)

    asked = [name for name, adapter in named.items() if adapter.asked]
    assert all(len(adapter.asked) <= 1 for adapter in named.values())
    last = failure.partial if failure is not None else events[-1].response
    attempts = failure.attempts if failure is not None else last.attempts
    in_time = sorted(attempts, key=lambda attempt: attempt.number)
    assert [attempt.provider for attempt in in_time] == asked
    assert failure is not None or attempts[-1].error_class is None
    assert shown(events) == ("" if last is None else last.text)
    restarts = [event for event in events if isinstance(event, StreamRestart)]
    assert midstream == "restart-marked" or not restarts
    if failure is None and midstream == "hold":
        client, _ = client_of(*([script] for script in scripts), **settings)
        assert whole(client).text == last.text
    assert sum(isinstance(event, Finish) for event in events) <= 1


def test_it_works_in_blocking_code():
    """`interlingua.sync` has the same layers."""
    client, _ = client_of([ServerError("down")], [says("b")])

    assert sync.generate("a:one", "Hi.", client=client, max_retries=0).text == "b"
    stream = sync.stream("a:one", "Hi.", client=client, max_retries=0)
    assert "".join(stream.text_stream) == "b"


def test_tools_go_on_with_the_model_that_answers():
    """Each step of a run may use another model; the run has one history."""

    @tool
    def look() -> str:
        """Look."""
        return "a cat"

    def first(request):
        return error(529) if results(request) else tool_call("look")

    async def work():
        layers = [Fallback(f"openai:{MODELS['openai']}")]
        async with Client(adapters(server.url), middleware=layers) as client:
            return await generate(
                f"anthropic:{MODELS['anthropic']}",
                "Look.",
                tools=[look],
                client=client,
                max_retries=0,
            )

    with serve_models(first, text("Found.")) as (_, server):
        result = asyncio.run(work())

    assert [step.response.provider for step in result.steps] == ["anthropic", "openai"]
    assert result.text == "Found."


def served_costs(mode, *layers, first, others):
    """The response of a call over HTTP, whose attempts have costs."""

    async def work():
        async with Client(adapters(server.url), middleware=layers) as client:
            request = Request(provider="anthropic", model=MODELS["anthropic"], messages="Hi.")
            if mode == "whole":
                return await client.complete(request)
            return [event async for event in client.stream(request)][-1].response

    with serve_models(first, others) as (_, server):
        return asyncio.run(work())


@both
def test_the_served_model_prices_the_response(mode):
    """Each attempt has the cost of its own model; the response has that of the last one.

    Field bug 71.
    """
    tokens = usage(1000, 100)
    response = served_costs(
        mode,
        Fallback(f"openai:{MODELS['openai']}", accept=lambda r: r.text == "b", midstream="hold"),
        first=text("a") + tokens,
        others=text("b") + tokens,
    )

    rejected, accepted = response.attempts
    assert (rejected.provider, accepted.provider) == ("anthropic", "openai")
    assert rejected.cost.total > 0
    assert accepted.cost.total > 0
    assert rejected.cost.total != accepted.cost.total
    assert response.cost == accepted.cost


def test_a_stream_that_was_given_up_is_metered_with_what_it_delivered():
    """And a model that failed before its first text is not charged for the text of another.

    Field bug 71.
    """
    words = " ".join(map(str, range(50)))

    async def work():
        layers = [
            Fallback(
                f"openai:{MODELS['openai']}",
                f"gemini:{MODELS['gemini']}",
                midstream="restart-marked",
            )
        ]
        async with Client(adapters(server.url), middleware=layers) as client:
            request = Request(provider="anthropic", model=MODELS["anthropic"], messages="Hi.")
            return [event async for event in client.stream(request)][-1].response

    answers = {MODELS["anthropic"]: text(words) + cut(at=1500), MODELS["openai"]: error(503)}
    with serve_in_thread(Simulator(by_model(answers, text("four")))) as server:
        response = asyncio.run(work())

    first, second, third = response.attempts
    assert first.usage.output_tokens > 1
    assert first.cost.total > 0
    assert second.usage is None
    assert third.usage == response.usage


def test_a_run_may_disable_fallbacks_through_deps():
    """Through `deps=`, which are the context of middleware (field bug 77)."""
    client, named = client_of([ServerError("down")], [says("b")])

    with pytest.raises(ServerError):
        sync.generate(
            "a:one", "Hi.", client=client, max_retries=0, deps={"disable_fallbacks": True}
        )
    assert not named["b"].asked
