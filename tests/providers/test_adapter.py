"""One row and one transport: over real HTTP, in every dialect."""

import asyncio
import logging
import threading
from copy import copy
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.provider import Provider
from interlingua.simulator import error, header, rate_limit, text, thinking, tool_call, usage
from interlingua.spec.content import Audio, Image, Text
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import (
    AbortError,
    AuthenticationError,
    ConfigurationError,
    RequestTimeoutError,
    UnsupportedError,
)
from interlingua.spec.events import Finish, StreamStart
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from interlingua.streams.grammar import Grammar
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.json_text import dumps
from support.simulated import (
    DIALECTS,
    KEY,
    complete,
    in_virtual_time,
    run,
    settled,
    simulated,
    stream,
)

TOOLS = (ToolDefinition(name="get_weather", parameters={"type": "object", "properties": {}}),)
ANSWER = (
    text("Let me look.")
    + tool_call("get_weather", city="Oslo")
    + tool_call("get_weather", city="Rome")
    + usage(20, 9)
    + rate_limit(requests_limit=50, requests_remaining=49)
)
every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))


@every_provider
def test_whole_and_streamed_answers_agree(provider):
    """In text, calls, usage, finish reason, and in what only the adapter knows."""
    with simulated(ANSWER) as peer:
        whole = complete(peer, peer.ask(provider, tools=TOOLS, request_id="r1"))
        events, failure = stream(peer, peer.ask(provider, tools=TOOLS, request_id="r2"))

    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.finish()
    streamed = events[-1].response
    assert failure is None
    for answer in (whole, streamed):
        assert answer.text == "Let me look."
        cities = [call.arguments for call in answer.tool_calls]
        assert cities == [{"city": "Oslo"}, {"city": "Rome"}]
        assert len({call.id for call in answer.tool_calls}) == 2
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (20, 9)
        assert answer.finish_reason.reason == "tool_calls"
        assert answer.provider == provider
        assert answer.rate_limit is None or answer.rate_limit.requests_limit == 50
        assert answer.latency_ms is not None
    assert (whole.request_id, streamed.request_id) == ("r1", "r2")


WRONG_KEY = {"gemini": 400, "bedrock_converse": 403}
"""What others answer with 401."""


@every_provider
def test_the_key_is_shown_where_the_provider_looks(provider):
    """A wrong one is refused in that vendor's words, and not repeated in ours."""
    with simulated(text("hi"), key=KEY) as peer:
        assert complete(peer, peer.ask(provider)).text == "hi"
        wrong = HttpAdapter(provider, "sk-wrong", base_url=f"{peer.server.url}/v1")
        with pytest.raises(AuthenticationError) as caught:
            asyncio.run(closing(wrong, wrong.complete(peer.ask(provider, request_id="mine"))))

    assert caught.value.status_code == WRONG_KEY.get(provider, 401)
    assert (caught.value.provider, caught.value.request_id) == (provider, "mine")
    assert "sk-wrong" not in repr(vars(caught.value))


async def closing(adapter, awaited):
    try:
        return await awaited
    finally:
        await adapter.close()


@every_provider
def test_a_thinking_stream(provider):
    """Thoughts come before the answer, in every dialect that tells them."""
    with simulated(thinking("Oslo is cold.") + text("4 C.")) as peer:
        events, _ = stream(peer, peer.ask(provider, include_thinking=True))

    assert events[-1].response.text == "4 C."
    assert events[-1].response.reasoning == "Oslo is cold."


def test_cancel_before_the_head_and_while_it_streams():
    """By id, once; a call that waits whole raises, a stream ends with what had come."""
    slow = text("one two three four five six") + latency_of(0.02)

    async def work(client):
        adapter = client._adapters["anthropic"]
        waiting = asyncio.ensure_future(adapter.complete(ask("anthropic", request_id="a")))
        await settled(lambda: peer.app.script.received)
        assert await adapter.cancel("a")
        with pytest.raises(AbortError) as caught:
            await waiting
        assert caught.value.request_id == "a"
        assert not await adapter.cancel("a")
        events = []
        async for event in adapter.stream(ask("anthropic", request_id="b")):
            events.append(event)
            if event.type == "text_delta":
                await adapter.cancel("b")
        return events

    with simulated(text("never") + latency_of(first=30), slow) as peer:
        ask = peer.ask
        events = run(peer, work)

    assert isinstance(events[-1], Finish)
    assert events[-1].finish_reason.reason == "cancelled"
    assert events[-1].response.text.startswith("one")
    assert [event.type for event in events[-2:]] == ["text_end", "finish"]


def latency_of(between=0.0, first=0.0):
    from interlingua.simulator import latency

    return latency(first=first, between=between, write_bytes=64 if between else None)


def test_calls_that_share_an_id_are_cancelled_together():
    """As two hedged requests are; and the id is free again."""

    async def work(client):
        calls = [
            asyncio.ensure_future(client.complete(peer.ask("openai", request_id="x")))
            for _ in range(2)
        ]
        await settled(lambda: len(peer.app.script.received) == 2)
        assert await client.cancel("x")
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in errors] == [AbortError, AbortError]
        assert not await client.cancel("x")

    with simulated(text("a") + latency_of(first=30)) as peer:
        run(peer, work)


def test_a_server_that_does_not_stream():
    """A whole body where a stream was asked: the same events."""
    body = {
        "id": "1",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
        ],
    }
    reply = CannedReply(headers={"content-type": "application/json"}, body=dumps(body))
    canned = CannedTransport([reply])
    adapter = HttpAdapter("openai_compatible", base_url="https://a.example/v1", transport=canned)

    async def work():
        request = Request(model="m", messages="hi")
        return [event async for event in adapter.stream(request)]

    events = asyncio.run(work())

    assert isinstance(events[0], StreamStart)
    assert events[-1].response.text == "hi"


def test_losses_are_logged(caplog):
    """One record each, with the ids a reader needs, at WARN."""
    image = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
    picture = Message(role="user", content=(image, Text(text="What is it?")), id="m7")
    with simulated(text("hi"), profile={"image_types": ()}) as peer:
        request = peer.ask("openai", messages=(picture,), request_id="r9", on_loss="warn")
        with caplog.at_level(logging.WARNING, logger="interlingua"):
            response = complete(peer, request)

    (record,) = [entry for entry in caplog.records if entry.name == "interlingua"]
    assert record.levelno == logging.WARNING
    assert (record.request_id, record.message_id, record.part_kind) == ("r9", "m7", "image")
    assert (record.adapter, record.reason) == ("openai", response.warnings[0].code)


def test_strict_refuses_before_anything_is_sent():
    """On the adapter, or on one call."""
    with simulated(text("hi")) as peer:
        request = peer.ask("anthropic", seed=7)
        adapter = peer.client._adapters["anthropic"]
        with pytest.raises(UnsupportedError, match="seed"):
            asyncio.run(closing(adapter, adapter.complete(request, strict=True)))

        assert peer.app.script.received == ()
        assert complete(peer, request).warnings[0].path == "seed"


PICTURE = Message.user(["What is it?", Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")])
BLIND = {"image_types": ()}


def test_a_lost_image_of_the_current_turn_raises_before_anything_is_sent():
    """By default; `on_loss` of the call wins over that of the adapter."""
    with simulated(text("hi"), profile=BLIND) as peer:
        request = peer.ask("openai", messages=(PICTURE,))
        with pytest.raises(UnsupportedError, match=r"image/png.*image_dropped.*on_loss='warn'"):
            complete(peer, request)
        assert peer.app.script.received == ()

        (warning,) = complete(peer, replace(request, on_loss="warn")).warnings
        assert (warning.code, warning.path) == ("image_dropped", "messages[0].content[1]")


def test_an_image_of_an_earlier_turn_is_dropped_with_a_warning():
    """Warnings about the current turn come first."""
    history = (PICTURE, Message.assistant("A cat."), Message.user("Sure?"))
    with simulated(text("hi"), profile=BLIND) as peer:
        response = complete(peer, peer.ask("anthropic", messages=history, seed=7))

    assert [warning.code for warning in response.warnings] == ["seed_dropped", "image_dropped"]


def test_on_loss_of_an_adapter():
    """`strict=True` is short for `on_loss="strict"`; a call may say otherwise."""
    assert HttpAdapter("openai", "k", strict=True).on_loss == "strict"
    with simulated(text("hi"), on_loss="strict") as peer:
        request = peer.ask("anthropic", seed=7)
        with pytest.raises(UnsupportedError, match="seed_dropped"):
            complete(peer, request)
        assert complete(peer, replace(request, on_loss="content")).text == "hi"
    with simulated(text("hi"), profile=BLIND, on_loss="warn") as peer:
        assert complete(peer, peer.ask("openai", messages=(PICTURE,))).warnings

    with pytest.raises(ConfigurationError, match="on_loss must be"):
        HttpAdapter("openai", "k", on_loss="never")


def test_what_it_needs_is_told():
    """A key, an address."""
    with pytest.raises(ConfigurationError, match=r"No API key for openai\. Set OPENAI_API_KEY"):
        HttpAdapter("openai").initialize()
    with pytest.raises(ConfigurationError, match="must look like https"):
        HttpAdapter("azure", "key")
    HttpAdapter("ollama").initialize()


def test_headers_and_options():
    """The caller's own go over the row's; flags are joined; options lie under the request's."""
    adapter = HttpAdapter(
        "anthropic",
        KEY,
        default_headers={"Anthropic-Beta": "a, b", "X-Team": "search"},
        options={"betas": ["b", "c"], "service_tier": "auto", "top": {"x": 1, "y": 1}},
    )
    call = adapter.dry_run(
        Request(
            model="claude-haiku-4-5",
            messages="hi",
            provider_options={"anthropic_messages": {"top": {"y": 2}}},
        )
    )

    assert call.headers["anthropic-beta"] == "a,b,c"
    assert call.headers["x-team"] == "search"
    assert call.body["service_tier"] == "auto"
    assert call.body["top"] == {"x": 1, "y": 2}
    assert KEY not in repr(call)
    assert KEY not in repr(adapter)


@pytest.mark.parametrize("name", ["openai_chat", "groq", "fast", "route"])
def test_options_by_any_name_it_goes_by(name):
    """Its dialect, its row, its own name, the provider that a client knows it by."""
    adapter = HttpAdapter("groq", KEY, name="fast", options={"store": True, "metadata": {"x": 1}})
    request = Request(
        model="m", messages="hi", provider="route", provider_options={name: {"metadata": {"y": 2}}}
    )

    call = adapter.dry_run(request)

    assert (call.body["store"], call.body["metadata"]) == (True, {"x": 1, "y": 2})
    assert not call.warnings
    assert request.provider_options == {name: {"metadata": {"y": 2}}}


def test_it_does_not_remember_without_end():
    """Names of models come from callers, who may have any."""
    adapter = HttpAdapter("openai", KEY)
    for number in range(2_000):
        adapter.profile_for(f"m{number}")

    assert len(adapter.configuration.profiles) <= 512
    assert adapter.profile_for("m1") == adapter.profile_for("m1")


class Gate:
    """A server that is being started until somebody opens it."""

    def __init__(self):
        self.opened = threading.Event()
        self.asked = threading.Event()

    def start(self):
        self.asked.set()
        assert self.opened.wait(10)
        return "http://127.0.0.1:9"


@pytest.mark.parametrize("mode", ["complete", "stream"])
def test_cancel_while_it_is_made_ready(mode):
    """A call is known by its id before its server runs, its files are read or its URLs fetched."""
    gate = Gate()
    adapter = HttpAdapter("local", server=gate)

    async def work():
        request = Request(model="m", messages="hi", request_id="r")
        if mode == "stream":
            waiting = asyncio.ensure_future(collect(adapter.stream(request)))
        else:
            waiting = asyncio.ensure_future(adapter.complete(request))
        await asyncio.to_thread(gate.asked.wait, 10)
        assert await adapter.cancel("r")
        if mode == "complete":
            with pytest.raises(AbortError) as caught:
                await waiting
            assert caught.value.request_id == "r"
        else:
            events = await waiting
            assert [event.type for event in events] == ["stream_start", "finish"]
            assert events[-1].finish_reason.reason == "cancelled"
            assert events[0].request_id == "r"
        gate.opened.set()
        assert not len(adapter._scopes)

    asyncio.run(work())


async def collect(events):
    return [event async for event in events]


@pytest.mark.parametrize("mode", ["complete", "stream"])
def test_errors_before_anything_is_sent_have_the_id(mode):
    """A file that is not there, a key that is missing, a loss in strict mode, an id taken."""
    lost = Message.user([Image(path="/no/such/file.png")])
    for adapter, fields in (
        (HttpAdapter("anthropic", KEY), {"messages": [lost]}),
        (HttpAdapter("anthropic"), {}),
        (HttpAdapter("anthropic", KEY, strict=True), {"seed": 1}),
    ):
        request = Request(**{"model": "m", "messages": "hi", "request_id": "r", **fields})
        with pytest.raises(ConfigurationError) as caught:
            asyncio.run(
                adapter.complete(request)
                if mode == "complete"
                else collect(adapter.stream(request))
            )
        assert caught.value.request_id == "r"


def test_a_refusal_that_is_cancelled_while_it_is_read():
    """The stream ends as cancelled, not with the status."""
    transport = CannedTransport([CannedReply(status=503, body=(b"{", 60.0))])
    adapter = HttpAdapter("anthropic", KEY, transport=transport)

    async def work():
        request = Request(model="m", messages="hi", request_id="r")
        waiting = asyncio.ensure_future(collect(adapter.stream(request)))
        await asyncio.sleep(0.05)
        assert await adapter.cancel("r")
        return await waiting

    assert asyncio.run(work())[-1].finish_reason.reason == "cancelled"


@every_provider
def test_text_is_kept_to_the_byte(provider):
    """Spaces and line ends at either side of it, whole and streamed (field bug 94)."""
    said = "\n  one \t\r\n two\u00a0\n\n"
    with simulated(text(said)) as peer:
        assert complete(peer, peer.ask(provider)).text == said
        events, _ = stream(peer, peer.ask(provider))

    assert events[-1].response.text == said
    assert "".join(event.delta for event in events if event.type == "text_delta") == said


def test_timeouts():
    """A number is the whole exchange's; 0 is a value."""
    with simulated(text("never") + latency_of(first=30)) as peer:
        for timeout in (0.05, 0, Timeouts(first_byte=0.05)):
            adapter = HttpAdapter("openai", KEY, base_url=peer.server.url, timeout=timeout)
            with pytest.raises(RequestTimeoutError):
                asyncio.run(closing(adapter, adapter.complete(peer.ask("openai"))))


def test_capabilities_come_from_the_profile():
    """Per provider, per model, with what the caller knows better."""
    row = Provider(name="mine", dialect="openai_chat", base_url="https://a.example/v1")
    adapter = HttpAdapter(
        row, KEY, profile={"tools": False}, model_profiles={"big": {"context_window": 9}}
    )

    assert not adapter.capabilities.supports_tools
    assert adapter.capabilities_for("big").max_context_tokens == 9
    assert not adapter.supports_tool_choice("auto")
    assert HttpAdapter("openai", KEY).supports_tool_choice("required", "gpt-5.2")


def test_models_are_listed_live():
    """In each vendor's words, page by page; the API of Converse has no such list."""
    with simulated(text("hi")) as peer:
        for provider in DIALECTS.keys() - {"bedrock_converse"}:
            found = run(peer, lambda client, name=provider: client.list_models(name))
            assert found
            assert {model.provider for model in found} == {provider}
            assert all(model.id and "/" not in model.id for model in found)


def test_an_error_knows_the_providers_id():
    """Ours to find the call, theirs for their support."""
    with simulated(error(500) + header("x-request-id", "req_theirs")) as peer:
        _, failure = stream(peer, peer.ask("openai", request_id="ours"))

    assert (failure.request_id, failure.provider_request_id) == ("ours", "req_theirs")


@pytest.mark.parametrize(
    ("provider", "model"), [("openai", "gpt-5.2"), ("openai_compatible", "gpt-5.2")]
)
def test_nulls_that_strictness_added_do_not_come_back(provider, model):
    """An optional property is required and nullable on the wire; the caller does not see that."""
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"type": "string"}},
        "required": ["city"],
    }
    tool = ToolDefinition(name="get_weather", parameters=schema, strict=True)
    with simulated(tool_call("get_weather", city="Oslo", unit=None)) as peer:
        whole = complete(peer, peer.ask(provider, model=model, tools=(tool,)))
        events, _ = stream(peer, peer.ask(provider, model=model, tools=(tool,)))
        (sent,) = peer.app.script.received[0].request.tools

    assert set(sent.parameters["required"]) == {"city", "unit"}
    assert whole.tool_calls[0].arguments == {"city": "Oslo"}
    assert events[-1].response.tool_calls[0].arguments == {"city": "Oslo"}
    (ended,) = (event for event in events if event.type == "tool_call_end")
    assert ended.tool_call.arguments == {"city": "Oslo"}


def test_a_copy_has_its_own_configuration():
    """A copy that is renamed leaves the first adapter as it was; connections are shared."""
    first = HttpAdapter("openai", KEY)
    twin = copy(first)
    twin.name = "other"

    assert (first.name, twin.name) == ("openai", "other")
    assert twin.transport is first.transport
    assert twin.generation is not first.generation


def test_a_local_server_starts_only_for_a_request_that_can_be_encoded():
    """A request that is refused before it is sent starts nothing."""
    gate = Gate()
    adapter = HttpAdapter("local", server=gate)
    lossy = Request(model="m", messages=Message.user([Audio(data=b"x", media_type="audio/x-odd")]))

    with pytest.raises(ConfigurationError):
        asyncio.run(adapter.complete(lossy, strict=True))
    assert not gate.asked.is_set()


@every_provider
def test_the_moment_of_a_reset_is_known_without_a_date(provider):
    """A duration is counted from our clock where the server sends no date, whole and streamed."""
    peer = in_virtual_time(text("Hi.") + header("x-ratelimit-reset-requests", "1h0m0s"))
    earliest = datetime.now(UTC) + timedelta(seconds=3_599)  # a date has no fractions
    whole = complete(peer, peer.ask(provider))
    events, _ = stream(peer, peer.ask(provider))
    latest = datetime.now(UTC) + timedelta(seconds=3_600)

    for answer in (whole, events[-1].response):
        assert answer.rate_limit.reset_after == 3_600
        assert earliest <= answer.rate_limit.reset_at <= latest
