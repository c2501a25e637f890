"""Attempts: how often, in which order, what is told of them, and what stays the same."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from interlingua import sync
from interlingua.api.execute.execution import execute
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import Tool
from interlingua.client.call_events import CallCompleted, CallFailed, CallStarted
from interlingua.client.client import Client
from interlingua.client.middleware.contract import per_attempt
from interlingua.client.retry_policy import RetryPolicy
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.content import Image
from interlingua.spec.errors import (
    AbortError,
    ErrorClass,
    RateLimitError,
    ServerError,
    StreamError,
)
from interlingua.spec.events import (
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningStart,
    StreamStart,
    TextDelta,
    TextStart,
    ToolCallStart,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.json_text import dumps
from support import virtual_time
from support.patience import PATIENCE

REQUEST = Request(model="here:m", messages="hi", request_id="r")
FAST = RetryPolicy(base_delay=0.0)
DONE = Response(
    message=Message.assistant("done"),
    finish_reason=FinishReason(reason="stop"),
    usage=Usage(input_tokens=1, output_tokens=2),
)


class Adapter:
    """Gives these answers in turn: an error is raised, a list is the events of a stream."""

    name = "here"
    max_retries = 0

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    async def complete(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def stream(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0)
        for event in answer if isinstance(answer, list) else [answer]:
            if isinstance(event, BaseException):
                raise event
            if isinstance(event, Response):
                for each in events_from_response(event):
                    yield each
            else:
                yield event

    async def close(self):
        pass


async def ask(client, mode, **options):
    if mode == "complete":
        return await client.complete(REQUEST, **options)
    events = [event async for event in client.stream(REQUEST, **options)]
    return events[-1].response


both = pytest.mark.parametrize("mode", ["complete", "stream"])


# Through every function.


OVERLOADED = CannedReply(status=529, body=b'{"error": {"type": "overloaded_error"}}')
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
    "usage": {"input_tokens": 8, "output_tokens": 1},
}
WHOLE = CannedReply(
    headers={"content-type": "application/json"},
    body=dumps(
        {**MESSAGE, "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}
    ),
)
FRAMES = [
    {"type": "message_start", "message": MESSAGE},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "done"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
STREAMED = CannedReply(
    headers={"content-type": "text/event-stream"},
    body=b"".join(b"data: " + dumps(frame) + b"\n\n" for frame in FRAMES),
)
MODEL = "anthropic:m"


async def by_generate(client, **options):
    return (await generate(MODEL, "hi", client=client, **options)).response


async def by_stream(client, **options):
    events = stream(MODEL, "hi", client=client, **options)
    assert [event.type for event in [event async for event in events]].count("stream_start") == 1
    return events.response()


async def by_execute(client, **options):
    result = await execute(MODEL, "hi", client=client, **options)
    assert result.error is None
    assert result.text == "done"


async def by_sync(client, **options):
    result = await asyncio.to_thread(sync.generate, MODEL, "hi", client=client, **options)
    return result.response


@pytest.mark.parametrize(
    ("ask", "reply"),
    [(by_generate, WHOLE), (by_stream, STREAMED), (by_execute, STREAMED), (by_sync, WHOLE)],
)
@pytest.mark.usefixtures("no_backoff")
def test_two_retries_through_every_function(ask, reply):
    """One id, attempts 0 to 2; what is about requests ran once, what is about attempts thrice."""
    outer, inner, events = [], [], []

    async def once(request, following):
        outer.append(request)
        return await following(request)

    @per_attempt
    async def each(request, following):
        inner.append(request)
        return await following(request)

    transport = CannedTransport([OVERLOADED, OVERLOADED, reply])
    adapter = HttpAdapter("anthropic", "sk-0123456789", transport=transport)
    client = Client({"anthropic": adapter}, middleware=[once, each])
    client.subscribe(events.append)

    response = asyncio.run(ask(client, max_retries=2))

    assert (len(outer), len(inner)) == (1, 3)
    assert [(type(event), event.attempt) for event in events] == [
        (CallStarted, 0),
        (CallFailed, 0),
        (CallStarted, 1),
        (CallFailed, 1),
        (CallStarted, 2),
        (CallCompleted, 2),
    ]
    assert {(event.request_id, event.step) for event in events} == {(outer[0].request_id, 0)}
    assert len({request.body for request in transport.requests}) == 1
    if response is not None:
        assert response.request_id == outer[0].request_id
        assert [(attempt.number, attempt.error_class) for attempt in response.attempts] == [
            (0, ErrorClass.SERVER_ERROR),
            (1, ErrorClass.SERVER_ERROR),
            (2, None),
        ]
        assert response.attempts[-1].usage == response.usage


@both
def test_encoding_and_files_once_for_all_attempts(mode, monkeypatch, tmp_path):
    """The next attempt sends the same bytes, also if the file has changed meanwhile."""
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n1")
    replies = [OVERLOADED, WHOLE if mode == "complete" else STREAMED]

    def reply(_):
        path.write_bytes(b"\x89PNG\r\n\x1a\n2")
        return replies.pop(0)

    transport = CannedTransport(reply)
    encoded = []
    adapter = HttpAdapter("anthropic", "sk-0123456789", transport=transport)
    encode = adapter.generation.encode
    monkeypatch.setattr(
        adapter.generation, "encode", lambda *a, **k: encoded.append(1) or encode(*a, **k)
    )
    client = Client({"anthropic": adapter})
    request = Request(model=MODEL, messages=Message.user([Image(path=path)]))

    async def work():
        if mode == "complete":
            return await client.complete(request, retry=FAST)
        return [event async for event in client.stream(request, retry=FAST)]

    asyncio.run(work())

    assert len(encoded) == 1
    assert len(transport.requests) == 2
    assert transport.requests[0].body == transport.requests[1].body


# Which policy.


@both
@pytest.mark.parametrize(
    ("own", "given", "attempts"),
    [(0, None, 1), (2, None, 3), (2, FAST, 3), (3, RetryPolicy(max_retries=0), 1)],
)
@pytest.mark.usefixtures("no_backoff")
def test_which_policy(mode, own, given, attempts):
    """A client alone does not retry; the call's policy goes before the adapter's."""
    adapter = Adapter(*[ServerError("down") for _ in range(9)])
    adapter.max_retries = own

    with pytest.raises(ServerError) as caught:
        asyncio.run(ask(Client({"here": adapter}), mode, retry=given))

    assert len(adapter.requests) == attempts
    assert [attempt.number for attempt in caught.value.attempts] == list(range(attempts))


@both
def test_a_wait_that_is_too_long_is_told_in_the_error(mode):
    """At once, with the reason."""
    adapter = Adapter(RateLimitError("slow down", retry_after=3600))

    with pytest.raises(RateLimitError, match="asked to wait 3600 s, more than max_delay 60 s"):
        asyncio.run(ask(Client({"here": adapter}), mode, retry=RetryPolicy()))


# Streams.


EMPTY = [StreamStart(), TextStart(id="t", index=0), TextDelta(id="t", index=0, delta="")]
CONTENT = {
    "text": [*EMPTY, TextDelta(id="t", index=0, delta="x")],
    "reasoning": [
        StreamStart(),
        ReasoningStart(id="t", index=0),
        ReasoningDelta(id="t", index=0, delta="x"),
    ],
    "call": [StreamStart(), ToolCallStart(id="t", index=0, tool_call_id="c", name="f")],
    "media": [StreamStart(), ProviderEvent(part=Image(url="https://a.example/b.png"), index=0)],
}


async def until_error(client):
    """The events of a stream that fails, and its error."""
    events = []
    try:
        async for event in client.stream(REQUEST, retry=FAST):
            events.append(event)  # noqa: PERF401 -- what came before the error is kept
    except StreamError as error:
        return events, error
    raise AssertionError("it did not fail")


@pytest.mark.parametrize("begun", range(len(EMPTY) + 1))
def test_a_stream_is_retried_until_the_first_content(begun):
    """What came before it is not seen: there is one start."""
    usage = StreamStart(usage=Usage(input_tokens=5))
    broken = [usage if type(event) is StreamStart else event for event in EMPTY[:begun]]
    adapter = Adapter([*broken, StreamError("cut")], [DONE])

    async def work():
        client = Client({"here": adapter})
        return [event async for event in client.stream(REQUEST, retry=FAST)]

    events = asyncio.run(work())

    assert [event.type for event in events].count("stream_start") == 1
    assert events[-1].response.text == "done"
    failed, _ = events[-1].response.attempts
    assert failed.usage == (Usage(input_tokens=5) if begun else None)


@pytest.mark.parametrize("kind", CONTENT)
def test_a_stream_is_not_retried_after_content(kind):
    """It would be seen twice."""
    adapter = Adapter([*CONTENT[kind], StreamError("cut")], [DONE])

    events, error = asyncio.run(until_error(Client({"here": adapter})))

    assert len(adapter.answers) == 1
    assert [event.type for event in events][-2:] == ["error", "finish"]
    assert error.partial is events[-1].response


def test_what_was_withheld_is_shown_when_it_is_given_up():
    """An error that is not retried takes nothing from what came before it."""
    adapter = Adapter([*EMPTY, StreamError("cut", retryable=False)])

    events, _ = asyncio.run(until_error(Client({"here": adapter})))

    assert [event.type for event in events] == [
        "stream_start",
        "text_start",
        "text_delta",
        "text_end",
        "error",
        "finish",
    ]


def test_an_empty_answer_is_an_answer():
    """Its end passes, though there was no content."""
    adapter = Adapter([StreamStart(), Finish(finish_reason=FinishReason(reason="stop"))])
    response = asyncio.run(ask(Client({"here": adapter}), "stream", retry=FAST))

    assert response.finish_reason.reason == "stop"


# Cancelling a wait.


@both
def test_a_wait_can_be_cancelled(mode):
    """The call ends as cancelled, and its id is free again."""

    async def work():
        client = Client({"here": Adapter(RateLimitError("slow down", retry_after=30))})
        waiting = asyncio.ensure_future(ask(client, mode, retry=RetryPolicy()))
        await asyncio.sleep(0.01)
        answers = await client.cancel("r"), await client.cancel("r")
        if mode == "complete":
            with pytest.raises(AbortError) as caught:
                await waiting
            assert caught.value.request_id == "r"
        else:
            assert (await waiting).finish_reason.reason == "cancelled"
        return (*answers, await client.cancel("r"))

    assert virtual_time.run(work()) == (True, False, False)


def test_all_waits_end_when_the_client_is_closed():
    """Nobody is left waiting for an attempt that cannot be made."""

    async def work():
        adapter = Adapter(*[RateLimitError("slow down", retry_after=30) for _ in range(2)])
        client = Client({"here": adapter})
        waiting = [
            asyncio.ensure_future(ask(client, "complete", retry=RetryPolicy())) for _ in range(2)
        ]
        await asyncio.sleep(0.01)
        await client.close()
        done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), PATIENCE)
        return [type(error) for error in done]

    assert virtual_time.run(work()) == [AbortError, AbortError]


# Who listens.


@both
def test_a_listener_that_fails_ends_nothing(mode, caplog):
    """It is logged; the others hear, and the call is answered."""
    client, events = Client({"here": Adapter(DONE)}), []

    def broken(event):
        raise ValueError(event)

    client.subscribe(broken)
    client.subscribe(events.append)
    answer = asyncio.run(ask(client, mode))

    assert answer.finish_reason.reason == "stop"
    assert [event.type for event in events] == ["call_started", "call_completed"]
    assert (events[-1].finish_reason, events[-1].usage) == ("stop", DONE.usage)
    assert "A subscriber raised an exception on call_started" in caplog.text


@both
def test_an_error_that_is_not_ours_is_an_end_too(mode):
    """An adapter may be anybody's."""
    client, events = Client({"here": Adapter(KeyError("m"))}), []
    client.subscribe(events.append)
    with pytest.raises(KeyError):
        asyncio.run(ask(client, mode, retry=FAST))

    assert [type(event) for event in events] == [CallStarted, CallFailed]
    assert events[-1].message == "KeyError"


@both
def test_a_call_that_is_left_is_an_end_too(mode):
    """Somebody may count what is under way."""

    class Slow(Adapter):
        async def complete(self, _):
            await asyncio.sleep(60)

        async def stream(self, _):
            yield StreamStart()
            await asyncio.sleep(60)

    async def work():
        client, events = Client({"here": Slow()}), []
        client.subscribe(events.append)
        task = asyncio.ensure_future(ask(client, mode))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return [(type(event), getattr(event, "finish_reason", None)) for event in events]

    assert virtual_time.run(work()) == [(CallStarted, None), (CallCompleted, "cancelled")]


# What each attempt sends and logs.


CHAT = dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
)
CHAT_CALL = CHAT.replace(
    b'"content":"Hi"',
    b'"content":null,"tool_calls":[{"id":"t","type":"function",'
    b'"function":{"name":"look","arguments":"{}"}}]',
).replace(b'"stop"', b'"tool_calls"')
CHAT_STREAM = (
    b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
BUSY = CannedReply(status=503, body=b"{}")


def openai(*replies, **settings):
    """A client of the row `openai` in the Chat dialect, and its transport."""
    transport = CannedTransport(list(replies))
    adapter = HttpAdapter(
        "openai", "sk-key", dialect="openai_chat", transport=transport, **settings
    )
    return Client({"openai": adapter}), transport


def sent_ids(transport):
    """The client request ids that were sent."""
    return [request.headers.get("x-client-request-id") for request in transport.requests]


def test_each_attempt_has_its_own_client_request_id():
    """`<request id>-<step>-<attempt>`, in both modes; the numbers are those of the call events."""
    replies = (BUSY, CannedReply(body=CHAT_CALL), BUSY, BUSY, CannedReply(body=CHAT))
    client, transport = openai(*replies)
    events = []
    client.subscribe(events.append)
    look = Tool(name="look", execute=lambda: "a cat")
    options = {"client": client, "retry_policy": FAST, "request_id": "run"}
    result = asyncio.run(generate("openai:m", "hi", tools=[look], **options))

    assert result.text == "Hi"
    started = [event for event in events if isinstance(event, CallStarted)]
    expected = [f"{event.request_id}-{event.step}-{event.attempt}" for event in started]
    assert sent_ids(transport) == expected
    assert expected == ["run-0-0", "run-0-1", "run-1-0", "run-1-1", "run-1-2"]


def test_streams_and_bare_adapters_send_client_request_ids():
    """An adapter without a client makes one attempt of one step."""
    headers = {"content-type": "text/event-stream"}
    streamed = CannedReply(headers=headers, body=CHAT_STREAM)
    client, transport = openai(BUSY, streamed, CannedReply(body=CHAT))
    request = Request(model="openai:m", messages="hi", request_id="s")

    async def work():
        async for _ in client.stream(request, retry=FAST):
            pass
        await client._adapters["openai"].complete(Request(model="m", request_id="alone"))

    asyncio.run(work())

    assert sent_ids(transport) == ["s-0-0", "s-0-1", "alone-0-0"]


def test_per_attempt_middleware_keeps_the_number_of_its_attempt():
    """The id is that of the attempt that runs, although a middleware waits before it sends."""
    client, transport = openai(BUSY, CannedReply(body=CHAT))

    @per_attempt
    async def wait(request, call_next):
        await asyncio.sleep(0)
        return await call_next(request)

    client = Client(client._adapters, middleware=[wait])
    asyncio.run(
        client.complete(Request(model="openai:m", messages="hi", request_id="w"), retry=FAST)
    )

    assert sent_ids(transport) == ["w-0-0", "w-0-1"]


@pytest.mark.parametrize("request_id", ["a\r\nx-evil: 1", "schlüssel", "i" * 600])
def test_an_id_that_is_no_header_is_not_sent(request_id):
    """Callers choose ids; the call works all the same."""
    client, transport = openai(CannedReply(body=CHAT))
    asyncio.run(client.complete(Request(model="openai:m", messages="hi", request_id=request_id)))

    assert sent_ids(transport) == [None]


def test_a_header_of_the_caller_is_kept():
    """Whoever sets the header has ids of their own; other rows have no such header."""
    client, transport = openai(
        CannedReply(body=CHAT), default_headers={"X-Client-Request-Id": "mine"}
    )
    asyncio.run(client.complete(Request(model="openai:m", messages="hi", request_id="r")))
    other = CannedTransport([CannedReply(body=CHAT)])
    adapter = HttpAdapter("openai_compatible", base_url="http://here/v1", transport=other)
    asyncio.run(adapter.complete(Request(model="m", messages="hi", request_id="r")))

    assert (sent_ids(transport), sent_ids(other)) == (["mine"], [None])


@pytest.mark.parametrize("changes", [False, True], ids=["same request", "changed request"])
def test_a_code_is_logged_once_per_run(caplog, changes):
    """Not per attempt and not per step, even if a middleware makes a new request each time."""
    client, transport = openai(
        BUSY,
        CannedReply(body=CHAT_CALL),
        BUSY,
        CannedReply(body=CHAT),
        profile={"seed": False},
    )

    @per_attempt
    async def touch(request, call_next):
        return await call_next(replace(request, metadata={"n": str(len(transport.requests))}))

    client = Client(client._adapters, middleware=[touch] if changes else [])
    look = Tool(name="look", execute=lambda: "a cat")
    options = {"client": client, "retry_policy": FAST, "request_id": "run"}
    result = asyncio.run(generate("openai:m", "hi", tools=[look], seed=1, **options))

    assert len(transport.requests) == 4
    assert [warning.code for warning in result.warnings].count("seed_dropped") == 2
    records = [record for record in caplog.records if record.name == "interlingua"]
    assert [(r.reason, r.request_id, r.model) for r in records] == [("seed_dropped", "run", "m")]


@pytest.mark.parametrize("way", [by_generate, by_stream])
def test_latencies_are_the_milliseconds_of_each_attempt(way):
    """`latency_ms` of attempts, events and response is between the server's delay and our clock."""
    delay = 0.05
    events = []

    async def main():
        async def answer_late(request):
            await asyncio.sleep(delay)
            if len(transport.requests) == 1:
                return CannedReply(status=500, body=b"{}")
            return STREAMED if b'"stream":true' in request.body else WHOLE

        transport = Late(answer_late)
        async with Client(
            {"anthropic": HttpAdapter("anthropic", "k", transport=transport)}
        ) as client:
            client.subscribe(events.append)
            began = time.perf_counter()
            response = await way(client, retry_policy=FAST)
            return response, (time.perf_counter() - began) * 1000

    response, passed = asyncio.run(main())
    shown = [each.latency_ms for each in events if not isinstance(each, CallStarted)]
    counted = [each.latency_ms for each in response.attempts]

    assert shown == counted
    assert len(counted) == 2
    assert all(each >= delay * 1000 for each in counted)
    assert sum(counted) <= passed + 1
    assert delay * 1000 <= response.latency_ms <= passed + 1


class Late:
    """A transport whose replies are made by a coroutine."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []

    @asynccontextmanager
    async def send(self, request):
        self.requests.append(request)
        async with CannedTransport([await self.answer(request)]).send(request) as reply:
            yield reply

    async def close(self):
        """Nothing to close."""
