"""Steps of the event loop: a reply of thousands of parts does not hold up other tasks."""

import asyncio
import gzip
import json
import threading

import pytest

from interlingua import Client, Request
from interlingua.providers.adapter import HttpAdapter
from interlingua.runtime import fold
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import SDKError, StreamError
from interlingua.transport import CannedReply, CannedTransport, bodies
from interlingua.wire.aws_event_stream import encode_event
from interlingua.wire.sse import encode_sse
from support.servers import Server, answering, reply

COUNT = 3_000
MOST = 300  # events in one step: a batch of 256, and a few at its start and end
ROWS = {
    "openai_chat": "openai_compatible",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini_generate": "gemini",
    "bedrock_converse": "bedrock_converse",
}


ADDRESSED = ("openai_chat", "bedrock_converse")
"""Their rows have no address without a name or a region."""


def chat(calls):
    delta = {"index": 0, "delta": {"tool_calls": calls}}
    last = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    return [{"id": "c", "choices": [delta]}, {"id": "c", "choices": [last]}, "[DONE]"]


def chat_calls(count):
    function = {"name": "f", "arguments": "{}"}
    return [{"index": n, "id": f"c{n}", "function": function} for n in range(count)]


def responses(count):
    items = [
        {"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"}
        for n in range(count)
    ]
    last = {"id": "r", "status": "completed", "output": items}
    return [{"type": "response.completed", "response": last}]


def messages(count):
    start = {"type": "message_start", "message": {"id": "m"}}
    blocks = [
        {"type": "content_block_start", "index": n,
         "content_block": {"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}}}
        for n in range(count)
    ]  # fmt: skip
    return [start, *blocks, {"type": "message_stop"}]


def contents(count):
    parts = [{"functionCall": {"name": "f", "args": {}}}] * count
    return [{"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}]


def converse(count):
    uses = [{"toolUseId": f"c{n}", "name": "f"} for n in range(count)]
    starts = [
        ("contentBlockStart", {"start": {"toolUse": use}, "contentBlockIndex": n})
        for n, use in enumerate(uses)
    ]
    last = {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}
    return [*starts, ("messageStop", {"stopReason": "tool_use"}), ("metadata", last)]


STREAMS = {
    "openai_chat": chat(chat_calls(COUNT)),
    "openai_responses": responses(COUNT),
    "anthropic_messages": messages(COUNT),
    "gemini_generate": contents(COUNT),
    "bedrock_converse": converse(COUNT),
}
WHOLE = {
    "openai_chat": {
        "choices": [{"message": {"role": "assistant", "tool_calls": chat_calls(COUNT)}}]
    },
    "openai_responses": responses(COUNT)[0]["response"],
    "anthropic_messages": {
        "type": "message",
        "role": "assistant",
        "content": [block["content_block"] for block in messages(COUNT)[1:-1]],
    },
    "gemini_generate": contents(COUNT)[0],
    "bedrock_converse": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": f"c{n}", "name": "f", "input": {}}}
                    for n in range(COUNT)
                ],
            }
        },
        "stopReason": "tool_use",
    },
}


def events_body(values):
    if isinstance(values[0], tuple):  # the events of AWS have names, in frames of bytes
        frames = [Frame(event=name, data=json.dumps(data)) for name, data in values]
        return b"".join(map(encode_event, frames))
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return b"".join(encode_sse(Frame(data=text)) for text in texts)


def adapter_for(dialect, body, content_type=None):
    if content_type is None:
        is_aws = dialect == "bedrock_converse"
        content_type = "application/vnd.amazon.eventstream" if is_aws else "text/event-stream"
    transport = CannedTransport([CannedReply(headers={"content-type": content_type}, body=body)])
    url = {} if dialect not in ADDRESSED else {"base_url": "http://host/v1"}
    return HttpAdapter(ROWS[dialect], api_key="k", transport=transport, **url)


class Steps:
    """How many events are delivered between two turns of another task, at most."""

    def __init__(self):
        self.events = self.most = self._since = 0

    async def count(self, events):
        task = asyncio.ensure_future(self._turn())
        try:
            async for event in events:
                self.events += 1
                self._since += 1
                self.most = max(self.most, self._since)
                assert event is not None
        finally:
            task.cancel()

    async def _turn(self):
        while True:
            self._since = 0
            await asyncio.sleep(0)


class DecoderThreads:
    """The number of events that decoding gave in one step in the main thread, at most."""

    def __init__(self, monkeypatch, adapter):
        self.most = 0
        self._dialect = adapter.configuration.dialect
        monkeypatch.setattr(adapter.configuration, "dialect", self)

    def __getattr__(self, name):
        return getattr(self._dialect, name)

    def stream_decoder(self, **options):
        decoder = self._dialect.stream_decoder(**options)
        feed = decoder.feed

        def watched(frame):
            events = feed(frame)
            if threading.current_thread() is threading.main_thread():
                self.most = max(self.most, len(events))
            return events

        decoder.feed = watched
        return decoder


REQUEST = Request(model="m", messages="Hi")


@pytest.mark.parametrize("is_client", [False, True], ids=["adapter", "client"])
@pytest.mark.parametrize("dialect", ROWS)
def test_thousands_of_tool_calls_are_passed_on_in_steps(dialect, is_client, monkeypatch):
    """Of a few hundred events each; what takes long is decoded in a thread."""
    adapter, steps = adapter_for(dialect, events_body(STREAMS[dialect])), Steps()
    threads = DecoderThreads(monkeypatch, adapter)
    target = Client({"one": adapter}) if is_client else adapter

    asyncio.run(steps.count(target.stream(REQUEST)))

    assert steps.events >= 2 * COUNT
    assert steps.most <= MOST
    assert threads.most <= MOST


@pytest.mark.parametrize("dialect", ROWS)
def test_a_whole_body_for_a_stream_is_passed_on_in_steps(dialect):
    """A server that does not stream answers with one body."""
    body = json.dumps(WHOLE[dialect]).encode()
    steps = Steps()

    asyncio.run(steps.count(adapter_for(dialect, body, "application/json").stream(REQUEST)))

    assert steps.events >= 2 * COUNT
    assert steps.most <= MOST


@pytest.mark.parametrize("dialect", ROWS)
def test_a_body_of_many_parts_is_decoded_in_a_thread(dialect, monkeypatch):
    """Also one that is much smaller than a megabyte."""
    adapter = adapter_for(dialect, json.dumps(WHOLE[dialect]).encode(), "application/json")
    own, is_main = adapter.configuration.dialect, []

    class Watched:
        def __getattr__(self, name):
            return getattr(own, name)

        def decode_response(self, *args, **options):
            is_main.append(threading.current_thread() is threading.main_thread())
            return own.decode_response(*args, **options)

    monkeypatch.setattr(adapter.configuration, "dialect", Watched())
    response = asyncio.run(adapter.complete(REQUEST))

    assert len(response.tool_calls) == COUNT
    assert is_main == [False]


def test_a_bad_frame_keeps_the_events_before_it():
    """Also where several frames are decoded in a thread."""
    body = events_body([*STREAMS["openai_chat"][:1], "{not JSON"])
    seen = []

    async def main():
        async for event in adapter_for("openai_chat", body).stream(REQUEST):
            seen.append(event.type)  # noqa: PERF401 -- events before the error are kept

    with pytest.raises(SDKError, match="Cannot decode a stream event"):
        asyncio.run(main())

    assert seen.count("tool_call_delta") == COUNT


def test_open_calls_of_a_cut_stream_are_closed_in_a_thread(monkeypatch):
    """Each is parsed as far as it goes, which takes long for thousands."""
    is_main = []
    end = fold._Fold.end

    def watched(self):
        is_main.append(threading.current_thread() is threading.main_thread())
        return end(self)

    monkeypatch.setattr(fold._Fold, "end", watched)
    body = events_body(STREAMS["openai_chat"][:1])

    with pytest.raises(StreamError):
        asyncio.run(Steps().count(adapter_for("openai_chat", body).stream(REQUEST)))

    assert is_main == [False]


def test_packed_blank_lines_are_refused_after_a_million(monkeypatch):
    """32 MiB of them are 33 kB on the wire; of those about 1 MB is unpacked."""
    pieces = []
    step = bodies.Inflater._step

    def watched(self, data):
        pieces.append(step(self, data))
        return pieces[-1]

    monkeypatch.setattr(bodies.Inflater, "_step", watched)
    headers = ("content-type: text/event-stream", "content-encoding: gzip")
    body = gzip.compress(b"\n" * (32 * 1024 * 1024))

    async def main():
        adapter = HttpAdapter("openai_compatible", base_url=server.url)
        try:
            async for _ in adapter.stream(REQUEST):
                pass
        finally:
            await adapter.close()

    with (
        Server(answering(reply(body, headers=headers))) as server,
        pytest.raises(StreamError, match="more than 1000000 events"),
    ):
        asyncio.run(main())

    assert sum(map(len, pieces)) < 1_200_000
