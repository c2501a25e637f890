"""What every adapter must do, through a session, and what all must do alike."""

import asyncio
import json
from pathlib import Path

import pytest

from interlingua.api.session.session import Session
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.rows import ROWS
from interlingua.simulator import (
    Simulator,
    error,
    latency,
    pieces,
    raw_tool_call,
    reset,
    stall,
    text,
    tool_call,
    usage,
)
from interlingua.spec.content import Document, Image, ToolCall
from interlingua.spec.errors import ErrorClass, RateLimitError, SDKError, UnsupportedError
from interlingua.spec.messages import Message
from interlingua.streams.grammar import Grammar
from interlingua.transport import AsgiTransport
from interlingua.wire.json_text import dump_text, dumps
from support import virtual_time
from support.rows import answers_chats
from support.runs import named
from support.sessions import calls_in, in_words, look, results_in, sent_ids, session_of
from support.simulated import DIALECTS, MODELS, adapters, in_virtual_time, run, settled, simulated
from support.warning_codes import codes

GOLDEN = Path(__file__).parent / "golden"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
both_ways = pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
FAST = RetryPolicy(base_delay=0.0)


async def turn(session, prompt, whole=True, **options):
    """One turn, whole or streamed; its result."""
    if whole:
        return await session.send(prompt, **options)
    events = session.stream(prompt, **options)
    async for _ in events:
        pass
    return events.result()


def anything(name, parameters=None):
    """A tool that notes what it is called with."""
    received = []

    def execute(**arguments):
        received.append(arguments)
        return "done"

    schema = parameters or {"type": "object", "additionalProperties": True}
    return Tool(name=name, description="Any.", parameters=schema, execute=execute), received


# Each adapter alone.

IDS = [f"tu_01ARZ3NDEKTSV4RRFFQ69G5FA{letter}" for letter in "VWX"]


def look_in(number, city):
    return ToolCall(id=IDS[number], name="look", arguments={"city": city})


def seen_in(number, content, **fields):
    return Message.tool_result(IDS[number], content, name="look", **fields)


HISTORIES = {
    "one_call": (
        Message.user("Weather in Oslo?"),
        Message.assistant(["Let me look.", look_in(0, "Oslo")]),
        seen_in(0, "Oslo: 4 C, rain"),
        Message.assistant("It rains."),
    ),
    "texts": (
        Message.user(["One.", "Two."]),
        Message.assistant('A "quote", a \\, a \n, Æøå — 雨 🌧.'),
        Message.user("Go on."),
        Message.assistant(["Three.", "Four."]),
    ),
    "media": (
        Message.user([
            "What are these?",
            Image(data=PNG, media_type="image/png"),
            Document(data=b"%PDF-1.7", media_type="application/pdf", file_name="a.pdf"),
        ]),
        Message.assistant("A cat and a letter."),
    ),
    "calls_at_once": (
        Message.system("Be kind."),
        Message.user("Oslo, Rome, Bonn?"),
        Message.assistant([look_in(0, "Oslo"), look_in(1, "Rome"), look_in(2, "Bonn")]),
        seen_in(0, {"degrees": 4, "sky": ["rain", None]}),
        seen_in(1, "no such city", is_error=True),
        seen_in(2, ""),
        Message.assistant("4 C in Oslo."),
    ),
}  # fmt: skip


class Recorder:
    """A transport that notes the bytes of each body."""

    def __init__(self, transport):
        self.transport = transport
        self.bodies = []

    def send(self, request):
        self.bodies.append(request.body)
        return self.transport.send(request)

    async def close(self):
        await self.transport.close()


WITHOUT_ERROR_FLAG = ("openai", "openai_compatible")


def parts_in(messages):
    """The parts with their roles: some dialects have no messages of several parts."""
    parts = [
        (role, part)
        for role, parts in in_words(messages)
        if role != "system"  # the session has its own apart from the messages
        for part in parts
    ]
    return [
        (role, (*part[:2], dump_text(part[2]), part[3]))
        if part[0] == "result" and not isinstance(part[2], str)
        else (role, part)
        for role, part in parts
    ]


def as_text_only(part):
    """A part where the text of a result says that the tool failed."""
    role, words = part
    if words[0] != "result" or not words[3]:
        return part
    return role, (*words[:2], f"Error: {words[2]}", False)


@every_provider
@pytest.mark.parametrize("name", HISTORIES)
def test_a_fixed_history_is_these_bytes_and_reads_back_equal(provider, name):
    """A fixed history is these bytes on the wire, and the same history when it is read again."""
    app = Simulator(text("Yes."), strict=True)
    recorder = Recorder(AsgiTransport(app))

    async def work():
        async with Client(adapters("http://simulator.invalid", transport=recorder)) as client:
            session = session_of(
                client, provider, system="Be brief.", messages=HISTORIES[name], max_tokens=100
            )
            await session.send("Still?")
            return session

    session = asyncio.run(work())
    golden = json.loads((GOLDEN / provider / f"{name}.json").read_text(encoding="utf-8"))

    assert recorder.bodies == [dumps(golden)]
    (exchange,) = app.script.received
    assert parts_in(exchange.request.messages) == [
        as_text_only(part) if provider in WITHOUT_ERROR_FLAG else part
        for part in parts_in(session.messages[:-1])
    ]


SHAPES = [
    {},
    {"text": "", "number": 0, "float": 1.5, "yes": True, "no": False, "nothing": None},
    {"nested": {"deeper": {"deepest": [1, [2, [3]], {"a": "b"}]}}},
    {"list": ["a", 1, 2.5, None, True, {}, []], "unicode": "Æøå — 雨 🌧", "quoted": 'a "b" \\ \n'},
]


@every_provider
@both_ways
@pytest.mark.parametrize("shape", SHAPES, ids=["empty", "primitives", "nested", "mixed"])
def test_arguments_of_any_shape_reach_the_tool_unchanged(provider, whole, shape):
    """Arguments of any shape reach the tool, and go back to the provider, unchanged."""
    doer, received = anything("do")
    with simulated(tool_call("do", shape), text("Done.")) as peer:

        async def work(client):
            session = session_of(client, provider, tools=[doer])
            await turn(session, "Do it.", whole)
            return session

        session = run(peer, work)
        again = peer.app.script.received[1].request

    assert received == [shape]
    assert [call.arguments for call in calls_in(session.messages)] == [shape]
    assert [call.arguments for call in calls_in(again.messages)] == [shape]


@every_provider
@both_ways
def test_a_tool_call_has_our_id_in_the_history_and_its_own_on_the_wire(provider, whole, tmp_path):
    """A call has our id in the history, and its own on the wire, in all turns and after a load."""
    answers = tool_call("look", city="Oslo"), text("Rain."), text("Still."), text("Yes.")
    with simulated(*answers) as peer:
        seen = []

        class Observer:
            def on_tool_start(self, call):
                seen.append(call.id)

            def on_tool_end(self, call, result):
                seen.extend((call.id, result.tool_call_id))

            def on_tool_error(self, call, failure):
                raise AssertionError((call, failure))

        async def work(client):
            session = session_of(client, provider, tool_observer=Observer())
            await turn(session, "Weather?", whole)
            await turn(session, "Still?", whole)
            session.save(tmp_path / "s.json")
            loaded = Session.load(tmp_path / "s.json", client=client, tools=[look])
            await turn(loaded, "Sure?", whole)
            return loaded

        session = run(peer, work)
        sent = [sent_ids(exchange) for exchange in peer.app.script.received]
    (call,), (result,) = calls_in(session.messages), results_in(session.messages)

    assert call.id.startswith("tu_")
    assert len(call.id) == 29
    assert {call.id, result.tool_call_id, *seen} == {call.id}
    (wire_id,) = sent[1][0]
    assert not wire_id.startswith("tu_")
    assert sent[1:] == [([wire_id], [wire_id])] * 3
    if provider == "anthropic":
        assert wire_id.startswith("toolu_simulated")
    if provider in ("openai", "openai_compatible"):
        assert wire_id.startswith("call_simulated")
    if provider == "bedrock_converse":
        assert wire_id.startswith("tooluse_simulated")


def prompts_on_the_wire(provider, body):
    """The system prompts, where this provider has them."""
    if provider in ("anthropic", "bedrock_converse"):
        system = body.get("system", [])
        return [system] if isinstance(system, str) else [block["text"] for block in system]
    if provider == "gemini":
        return [part["text"] for part in body.get("systemInstruction", {}).get("parts", [])]
    if provider == "openai":
        first = [body["instructions"]] if body.get("instructions") else []
        later = [item for item in body["input"] if item.get("role") == "system"]
    else:
        first, later = [], [item for item in body["messages"] if item["role"] == "system"]
    texts = [
        item["content"] if isinstance(item["content"], str) else item["content"][0]["text"]
        for item in later
    ]
    return first + texts


@every_provider
@pytest.mark.parametrize(
    ("system", "messages", "expected"),
    [
        (None, (), []),
        ("", (), []),
        ("Be brief.", (), ["Be brief."]),
        ("Be brief.", (Message.system("Be kind."),), ["Be brief.", "Be kind."]),
    ],
    ids=["none", "empty", "one", "two"],
)
def test_system_prompts_are_where_the_provider_wants_them(provider, system, messages, expected):
    """They are where the provider wants them; several stay separate, an empty one is left out."""
    with simulated(text("Yes.")) as peer:

        async def work(client):
            session = session_of(client, provider, tools=(), system=system, messages=messages)
            await session.send("Hello?")

        run(peer, work)
        (exchange,) = peer.app.script.received

    assert prompts_on_the_wire(provider, exchange.call.body) == expected


NEEDS = {
    "tools": ({"tools": False}, {"tools": [look]}),
    "images": ({"image_types": ()}, {}),
    "required tool": ({"tools": False}, {"tools": [look], "tool_choice": "required"}),
}


@every_provider
@pytest.mark.parametrize("need", NEEDS)
def test_what_a_profile_does_not_support_is_refused_before_sending(provider, need):
    """What a profile says no to is refused before anything is sent; the session is unchanged."""
    profile, options = NEEDS[need]
    with simulated(text("Yes."), profile=profile) as peer:

        async def work(client):
            session = Session(named(provider), client=client)
            prompt = ["What is this?", Image(data=PNG, media_type="image/png")]
            with pytest.raises(UnsupportedError):
                await session.send(prompt if need == "images" else "Hello?", **options)
            assert session.messages == ()

        run(peer, work)
        assert peer.app.script.received == ()


@every_provider
def test_an_object_arrives_without_native_support(provider):
    """Without native support an object is asked for in another way, and it arrives."""
    with simulated(text('{"city": "Oslo"}'), profile={"structured_output": ("prompt",)}) as peer:

        async def work(client):
            session = Session(named(provider), client=client)
            schema = {"type": "object", "properties": {"city": {"type": "string"}}}
            return await session.send_object("Where?", schema=schema)

        result = run(peer, work)

    assert result.output == {"city": "Oslo"}


@every_provider
def test_the_events_of_a_turn_keep_to_the_grammar(provider):
    """The events of a turn with two rounds of tools keep to the grammar; ids are ours."""
    one = text("First. ") + tool_call("look", city="Oslo") + tool_call("look", city="Rome")
    with simulated(one, tool_call("look", city="Bonn"), text("It rains.")) as peer:

        async def work(client):
            session = session_of(client, provider)
            return session, [event async for event in session.stream("Weather?")]

        session, events = run(peer, work)
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.finish()
    starts = [event.tool_call_id for event in events if event.type == "tool_call_start"]
    ends = [event.tool_call.id for event in events if event.type == "tool_call_end"]
    results = [event.result.tool_call_id for event in events if event.type == "tool_result"]

    assert starts == ends == [call.id for call in calls_in(session.messages)]
    assert sorted(results) == sorted(starts)
    assert len(set(starts)) == 3


@every_provider
def test_deltas_are_the_providers_own_fragments_of_arguments(provider):
    """The deltas of a call are the provider's own fragments of its argument text."""
    raw = '{ "city" :  "Os\\u006co" }'
    call = tool_call("look", city="Oslo") if provider == "gemini" else raw_tool_call("look", raw)
    with simulated(call + pieces(5), text("Rain.")) as peer:

        async def work(client):
            session = session_of(client, provider)
            return session, [event async for event in session.stream("Weather?")]

        session, events = run(peer, work)
    deltas = [event.delta for event in events if event.type == "tool_call_delta"]

    if provider == "gemini":  # its arguments are never text
        assert json.loads("".join(deltas)) == {"city": "Oslo"}
    else:
        assert [delta for delta in deltas if delta] == [
            raw[i : i + 5] for i in range(0, len(raw), 5)
        ]
    assert calls_in(session.messages)[0].arguments == {"city": "Oslo"}


CLASSES = [
    (error(429), ErrorClass.RATE_LIMIT),
    (error(401), ErrorClass.AUTH),
    (error(403), ErrorClass.AUTH),
    (error(500), ErrorClass.SERVER_ERROR),
    (error(503), ErrorClass.SERVER_ERROR),
    (reset(), ErrorClass.NETWORK),
    (error(413), ErrorClass.CONTEXT_OVERFLOW),
    (error(400), ErrorClass.INVALID_REQUEST),
    (error(422), ErrorClass.INVALID_REQUEST),
]


@every_provider
@both_ways
@pytest.mark.parametrize(("failure", "kind"), CLASSES)
def test_each_failure_has_its_class_and_leaves_the_session_as_it_was(
    provider, whole, failure, kind
):
    """Each failure has its class, and leaves the session as it was."""
    with simulated(failure) as peer:

        async def work(client):
            session = session_of(client, provider, max_retries=0)
            with pytest.raises(SDKError) as caught:
                await turn(session, "Hello?", whole)
            assert session.messages == ()
            assert not session.is_active
            return caught.value

        assert run(peer, work).error_class is kind


@every_provider
def test_an_interrupted_turn_has_the_class_cancelled(provider):
    """An interrupted turn ends with the class `cancelled`."""
    with simulated(text("no") + stall()) as peer:

        async def work(client):
            session = session_of(client, provider)
            task = asyncio.ensure_future(session.send("Hello?"))
            await settled(lambda: bool(peer.app.script.received))
            assert session.interrupt()
            with pytest.raises(SDKError) as caught:
                await task
            assert not session.interrupt()
            return caught.value

        assert run(peer, work).error_class is ErrorClass.CANCELLED


@every_provider
def test_an_answer_without_the_object_that_was_asked_for_has_the_class_other(provider):
    """An answer that is not the object that was asked for ends with the class `other`."""
    with simulated(text("I cannot say."), text("I cannot say.")) as peer:

        async def work(client):
            session = session_of(client, provider, tools=())
            schema = {"type": "object", "properties": {"city": {"type": "string"}}}
            with pytest.raises(SDKError) as caught:
                await session.send_object("Where?", schema=schema, max_retries=0)
            return caught.value

        assert run(peer, work).error_class is ErrorClass.OTHER


def test_every_class_of_errors_is_tested_here():
    """The tests above show a failure of every class of errors."""
    apart = {ErrorClass.CANCELLED, ErrorClass.OTHER}

    assert {kind for _, kind in CLASSES} | apart == set(ErrorClass)


BODIES = [None, {}, {"error": "no"}, {"error": {"message": "no"}}, {"message": "no"}, "no", []]
STATUSES = {
    413: ErrorClass.CONTEXT_OVERFLOW,
    429: ErrorClass.RATE_LIMIT,
    529: ErrorClass.SERVER_ERROR,
    401: ErrorClass.AUTH,
}


@every_provider
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("body", BODIES, ids=repr)
def test_the_status_decides_whatever_the_body_looks_like(provider, status, body):
    """The status decides, whatever the body looks like."""
    with simulated(error(status, body=body)) as peer:

        async def work(client):
            session = session_of(client, provider, max_retries=0)
            with pytest.raises(SDKError) as caught:
                await session.send("Hello?")
            return caught.value

        failure = run(peer, work)

    assert failure.error_class is STATUSES[status]
    assert failure.status_code == status


@every_provider
@both_ways
@pytest.mark.parametrize("failure", [error(429), error(500), reset()], ids=["429", "500", "reset"])
def test_two_failures_are_retried_and_a_third_ends_the_turn(provider, whole, failure):
    """Two failures are retried, with growing waits; a third one ends the turn."""
    with simulated(failure, failure, text("Yes."), failure) as peer:
        delays = []

        async def work(client):
            policy = RetryPolicy(
                max_retries=2,
                base_delay=0.005,
                jitter=False,
                on_retry=lambda _, number, delay: delays.append((number, delay)),
            )
            session = session_of(client, provider, retry_policy=policy)
            result = await turn(session, "Hello?", whole)
            with pytest.raises(SDKError) as caught:
                await turn(session, "And?", whole)
            return session, result, caught.value

        session, result, caught = run(peer, work)
        exchanges = peer.app.script.received

    assert result.text == "Yes."
    assert len(session.messages) == 2
    assert delays == [(0, 0.005), (1, 0.01)] * 2
    again = len(exchanges) - 6  # a reset of a reused connection is no attempt: it is sent again
    assert again in ((0, 1) if failure == reset() else (0,))
    assert exchanges[1].started - exchanges[0].started >= 0.005
    assert exchanges[2].started - exchanges[1].started >= 0.01
    assert caught.retryable
    assert len(caught.attempts) == 3


@every_provider
@both_ways
@pytest.mark.parametrize("wait", [0.25, 20, 60], ids=["short", "long", "longest"])
def test_the_wait_that_a_429_asks_for_is_kept(provider, whole, wait):
    """The next attempt begins after the wait that a 429 asks for: not earlier, and not later."""
    peer = in_virtual_time(error(429, retry_after=wait), text("Yes."))
    delays = []

    async def work(client):
        policy = RetryPolicy(base_delay=3.0, on_retry=lambda *about: delays.append(about[2]))
        session = session_of(client, provider, retry_policy=policy)
        start = virtual_time.now()
        await turn(session, "Hello?", whole)
        return virtual_time.now() - start

    passed = run(peer, work)

    assert delays == [wait]
    assert wait <= passed < wait + 1  # the answer itself takes no time here; the backoff is 3 s
    assert len(peer.app.script.received) == 2


@every_provider
@both_ways
def test_a_429_that_asks_for_more_than_the_longest_wait_is_an_error_at_once(provider, whole):
    """A 429 that asks for more than `max_delay` is an error at once, which says the wait."""
    peer = in_virtual_time(error(429, retry_after=61), text("Yes."))

    async def work(client):
        session = session_of(client, provider)
        start = virtual_time.now()
        with pytest.raises(RateLimitError) as caught:
            await turn(session, "Hello?", whole)
        return caught.value, virtual_time.now() - start

    caught, passed = run(peer, work)

    assert caught.retry_after == 61
    assert "61 s" in str(caught)
    assert passed < 1
    assert len(peer.app.script.received) == 1


@every_provider
def test_a_cancel_during_a_tool_call_leaves_a_valid_history(provider):
    """The open call ends invalid, stream and call end with `cancelled`, the history is valid."""
    half = text("Let me look. ") + raw_tool_call("look", '{"city": "Os' + "l" * 400) + pieces(6)
    reports = []
    with simulated(half + latency(between=0.005), text("Yes.")) as peer:

        async def work(client):
            client.subscribe(reports.append)
            session, events = session_of(client, provider), []
            async for event in session.stream("Weather?"):
                events.append(event)
                kind = "text_delta" if provider == "gemini" else "tool_call_delta"
                if event.type == kind:
                    session.interrupt()
            await session.send("Again?")
            return session, events

        session, events = run(peer, work)
        again = peer.app.script.received[1]
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.finish()
    ends = [event.tool_call for event in events if event.type == "tool_call_end"]

    assert events[-1].finish_reason.reason == "cancelled"
    # Gemini's calls come whole, so that none is open when the text is interrupted.
    assert len(ends) == (0 if provider == "gemini" else 1)
    for call in ends:
        assert call.arguments in ({}, {"city": "Os"}, {"city": ""})
        assert not call.is_valid
    assert [(each.type, getattr(each, "finish_reason", None)) for each in reports] == [
        ("call_started", None),
        ("call_completed", "cancelled"),
        ("call_started", None),
        ("call_completed", "stop"),
    ]
    assert again.status == 200
    roles = ["user", "assistant", "user", "assistant"]
    assert [message.role for message in session.messages] == roles
    assert calls_in(session.messages) == []
    assert session.messages[1].text.startswith("Let m")


COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
          "reasoning_tokens", "estimated")  # fmt: skip
REPORTED = usage(1_532, 42, cache_read=1_000, cache_write=200, reasoning=30)


def expected_counts(provider):
    """
    What a provider says of `REPORTED`.

    Gemini does not report what it writes to its cache, nor Converse what is reasoning.
    """
    written = None if provider == "gemini" else 200
    reasoning = None if provider == "bedrock_converse" else 30
    return (1_532, 42, 1_000, written, reasoning, False)


def counts_of(used):
    return tuple(getattr(used, name) for name in COUNTS)


@every_provider
@both_ways
def test_reported_tokens_have_the_same_meaning_at_every_provider(provider, whole):
    """The tokens that the provider reports, with the same meaning for all."""
    with simulated(text("Yes.") + REPORTED) as peer:

        async def work(client):
            session = session_of(client, provider)
            result = await turn(session, "Hello?", whole)
            return session, result

        session, result = run(peer, work)

    assert counts_of(result.usage) == expected_counts(provider)
    assert counts_of(session.usage) == expected_counts(provider)
    assert result.usage.total_tokens == 1_574


@every_provider
def test_a_stream_reports_the_usage_of_the_whole_answer(provider):
    """The last event of a stream and its result have each count that the whole answer has."""
    with simulated(text("Yes.") + REPORTED, text("Yes.") + REPORTED) as peer:

        async def work(client):
            whole = await session_of(client, provider).send("Hello?")
            stream = session_of(client, provider).stream("Hello?")
            events = [event async for event in stream]
            return whole.usage, events[-1].usage, stream.result().usage

        whole, last, streamed = run(peer, work)

    assert counts_of(whole) == counts_of(last) == counts_of(streamed) == expected_counts(provider)


# Several adapters in one conversation.

SCRIPT = (
    text("Let me look.") + tool_call("look", city="Oslo") + tool_call("look", city="Rome"),
    text("Rain in both."),
    tool_call("look", city="Bonn"),
    text("Rain there too."),
    text("You are welcome."),
)
CHAT_ROWS = tuple(row for row in ROWS if answers_chats(row))


def row_client(row, url):
    base = url if row.name in ("openai", "anthropic", "gemini") else f"{url}/v1"
    return Client({row.name: HttpAdapter(row.name, "key", base_url=base)})


def test_one_script_gives_the_same_history_on_every_row():
    """One script through every row gives the same history."""
    histories = {}
    for row in CHAT_ROWS:
        with simulated(*SCRIPT, strict=False) as peer:

            async def work(row=row, peer=peer):
                async with row_client(row, peer.server.url) as client:
                    model = f"{row.name}:{MODELS.get(row.name, 'some-model')}"
                    session = Session(model, system="Be brief.", tools=[look], client=client)
                    await session.send("Weather in Oslo and Rome?")
                    await turn(session, "And Bonn?", whole=False)
                    await session.send("Thanks.")
                    return session

            session = asyncio.run(work())
            (provider,) = {
                message.metadata["provider"]
                for message in session.messages
                if message.role == "assistant"
            }
            assert provider == row.name
            assert all(call.id.startswith("tu_") for call in calls_in(session.messages))
            histories[row.name] = in_words(session.messages)

    assert len(histories) >= 40
    assert all(history == histories["anthropic"] for history in histories.values())


PAIRS = [("anthropic", "openai"), ("anthropic", "openai_compatible"), ("gemini", "anthropic")]


@both_ways
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_six_turns_may_alternate_between_two_providers(first, second, whole):
    """Six turns alternate between two providers, each with a call; each accepts all of it."""
    cities = ("Oslo", "Rome", "Bonn", "Bern", "Kyiv", "Lima")
    script = [step for city in cities for step in (tool_call("look", city=city), text(city))]
    with simulated(*script) as peer:

        async def work(client):
            session = session_of(client, first)
            results = []
            for number, city in enumerate(cities):
                if number:
                    session.swap(named((first, second)[number % 2]))
                results.append(await turn(session, city, whole))
            return session, results

        session, results = run(peer, work)
        exchanges = peer.app.script.received

    assert [exchange.status for exchange in exchanges] == [200] * 12  # a strict vendor took each
    assert [codes(result) for result in results] == [[]] * 6
    makers = [each.metadata["provider"] for each in session.messages if each.role == "assistant"]
    assert makers == [provider for provider in (first, second) * 3 for _ in range(2)]
    reasons = [
        each.metadata["chosen_because"] for each in session.messages if each.role == "assistant"
    ]
    assert reasons == ["session model"] * 2 + ["swap"] * 10
    stable = {}
    for exchange in exchanges:
        calls, results_ = sent_ids(exchange)
        assert calls == results_
        known = stable.setdefault(exchange.dialect, calls)
        assert calls[: len(known)] == known[: len(calls)]
        stable[exchange.dialect] = max(known, calls, key=len)
    assert [len(ids) for ids in stable.values()] == [5, 6]


@both_ways
def test_a_foreign_tool_call_keeps_one_id_in_all_later_turns(whole):
    """Anthropic's call has one id of OpenAI's in all later turns, nine characters at Mistral."""
    answers = tool_call("look", city="Oslo"), *[text("Rain.")] * 6
    with simulated(*answers) as peer:
        more = HttpAdapter("mistral", "key", base_url=f"{peer.server.url}/v1")
        client = Client({**adapters(peer.server.url), "mistral": more})

        async def work():
            async with client:
                session = session_of(client, "anthropic")
                await turn(session, "Weather?", whole)
                for model in (
                    *("openai:gpt-5.2", "mistral:mistral-large", "openai:gpt-5.2"),
                    *("anthropic:claude-haiku-4-5", "mistral:mistral-large"),
                ):
                    session.swap(model)
                    await turn(session, "Sure?", whole)
                return session

        session = asyncio.run(work())
        sent = [sent_ids(exchange) for exchange in peer.app.script.received]
    first, openai, mistral, openai_again, own, mistral_again = sent[1:]

    assert first[0] == own[0] == ["toolu_simulated000100"]
    assert openai == openai_again
    assert openai[0][0].startswith("call_")
    assert mistral == mistral_again
    assert len(mistral[0][0]) == 9
    assert mistral[0][0].isalnum()
    assert all(calls == results for calls, results in sent)
    assert len({call.id for call in calls_in(session.messages)}) == 1


@pytest.mark.parametrize("failure", [401, 403, 404, 413, 429, 500, 529])
def test_one_failure_has_one_class_at_every_provider(failure):
    """One failure has one class and one type, whichever provider it is of."""
    kinds = set()
    for provider in DIALECTS:
        with simulated(error(failure)) as peer:

            async def work(client, provider=provider):
                session = session_of(client, provider, max_retries=0)
                with pytest.raises(SDKError) as caught:
                    await session.send("Hello?")
                return type(caught.value), caught.value.error_class

            kinds.add(run(peer, work))

    assert len(kinds) == 1


@every_provider
@both_ways
def test_an_image_for_a_text_model_is_refused_before_sending(provider, whole):
    """An image for a model that reads text only is refused before the provider is asked."""
    with simulated(text("A cat."), profile={"image_types": ()}) as peer:

        async def work(client):
            session = session_of(client, provider)
            with pytest.raises(UnsupportedError, match=r"(?i)image"):
                await turn(session, ["What is this?", Image(data=PNG)], whole)
            await turn(session, "Hello?", whole)
            return session

        session = run(peer, work)
        assert len(peer.app.script.received) == 1

    assert len(session.messages) == 2


# Overload.


@both_ways
def test_two_overloads_and_an_answer_are_three_attempts_of_one_call(whole):
    """529, 529, 200: the session sees an answer, the events tell of three attempts of one call."""
    events = []
    with simulated(error(529), error(529), text("Yes.")) as peer:

        async def work(client):
            client.subscribe(events.append)
            session = session_of(client, "anthropic", retry_policy=FAST)
            return session, await turn(session, "Hello?", whole)

        session, result = run(peer, work)

    assert result.text == "Yes."
    assert [event.type for event in events] == [
        *("call_started", "call_failed") * 2,
        *("call_started", "call_completed"),
    ]
    assert [event.attempt for event in events if event.type == "call_failed"] == [0, 1]
    assert {event.error_class for event in events if event.type == "call_failed"} == {
        ErrorClass.SERVER_ERROR
    }
    assert len({event.request_id for event in events}) == 1
    assert {event.session_id for event in events} == {session.session_id}
