"""Steps of the event loop at the end of an answer with thousands of calls, however it ends."""

import asyncio
import json
import sys
from asyncio import Handle

import pytest

from interlingua import (
    AbortController,
    Client,
    Message,
    Request,
    Session,
    ToolCall,
    ToolResult,
    stream,
)
from interlingua.api.session.tool_ids import ToolIds
from interlingua.client.middleware.shown import refuse_hidden_calls
from interlingua.middleware import Fallback
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.content import Text
from interlingua.spec.contracts import Frame
from interlingua.spec.defaults import MANY_PARTS
from interlingua.spec.errors import SDKError
from interlingua.spec.response import Response
from interlingua.transport import CannedReply, CannedTransport
from interlingua.wire.aws_event_stream import encode_event
from interlingua.wire.sse import encode_sse
from support import patterns

COUNTS = (MANY_PARTS + 100, MANY_PARTS + 600)
FEW = 8  # function calls in one step for each part: for 100,000 parts, some 50 ms
ARGUMENTS = '{"a": [1, "te'
MINUTE = 60.0
ROWS = {
    "openai_chat": "openai_compatible",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini_generate": "gemini",
    "bedrock_converse": "bedrock_converse",
}


def chat(number):
    function = {"name": "f", "arguments": ARGUMENTS}
    call = {"index": number, "id": f"c{number}", "function": function}
    return [{"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}]


def responses(number):
    item = {"type": "function_call", "id": f"i{number}", "call_id": f"c{number}", "name": "f"}
    delta = {"type": "response.function_call_arguments.delta", "delta": ARGUMENTS}
    return [
        {"type": "response.output_item.added", "output_index": number, "item": item},
        {**delta, "output_index": number, "item_id": f"i{number}"},
    ]


def messages(number):
    block = {"type": "tool_use", "id": f"c{number}", "name": "f", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": ARGUMENTS}
    return [
        {"type": "content_block_start", "index": number, "content_block": block},
        {"type": "content_block_delta", "index": number, "delta": delta},
    ]


def contents(_):
    return [{"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]}]


def converse(number):
    use = {"toolUseId": f"c{number}", "name": "f"}
    delta = {"delta": {"toolUse": {"input": ARGUMENTS}}, "contentBlockIndex": number}
    return [
        ("contentBlockStart", {"start": {"toolUse": use}, "contentBlockIndex": number}),
        ("contentBlockDelta", delta),
    ]


FRAMES = {
    "openai_chat": chat,
    "openai_responses": responses,
    "anthropic_messages": messages,
    "gemini_generate": contents,
    "bedrock_converse": converse,
}
STARTS = {
    "openai_responses": {"type": "response.created", "response": {"id": "r", "model": "m"}},
    "anthropic_messages": {"type": "message_start", "message": {"id": "m"}},
    "bedrock_converse": ("messageStart", {"role": "assistant"}),
}
ERRORS = {
    "openai_chat": {"error": {"message": "Boom.", "type": "server_error", "code": 500}},
    "openai_responses": {"type": "error", "code": "server_error", "message": "Boom."},
    "anthropic_messages": {"type": "error", "error": {"type": "api_error", "message": "Boom."}},
    "gemini_generate": {"error": {"code": 500, "message": "Boom.", "status": "INTERNAL"}},
    "bedrock_converse": ("internalServerException", {"message": "Boom."}),
}


def packed(values):
    if isinstance(values[0], tuple):  # the events of AWS have names, in frames of bytes
        frames = [Frame(event=name, data=json.dumps(data)) for name, data in values]
        return b"".join(map(encode_event, frames))
    return b"".join(encode_sse(Frame(data=json.dumps(value))) for value in values)


def adapter_for(dialect, count, *ends):
    """An adapter whose stream opens this many calls, and then has these ends."""
    starts = [STARTS[dialect]] if dialect in STARTS else []
    calls = [frame for number in range(count) for frame in FRAMES[dialect](number)]
    body = (packed([*starts, *calls]), *ends)
    is_aws = dialect == "bedrock_converse"
    kind = "application/vnd.amazon.eventstream" if is_aws else "text/event-stream"
    reply = CannedReply(headers={"content-type": kind}, body=body)
    url = {"base_url": "http://host/v1"} if is_aws or dialect == "openai_chat" else {}
    return HttpAdapter(ROWS[dialect], "k", transport=CannedTransport([reply]), **url)


def whole_adapter(count):
    """An adapter that answers with this many calls in one body."""
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": f"c{number}", "function": function} for number in range(count)]
    message = {"role": "assistant", "tool_calls": calls}
    body = json.dumps(
        {
            "choices": [{"message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }
    ).encode()
    reply = CannedReply(headers={"content-type": "application/json"}, body=body)
    transport = CannedTransport([reply])
    return HttpAdapter("openai_compatible", "k", transport=transport, base_url="http://host/v1")


class StepWork:
    """The most function calls in one step of the event loop, in its own thread."""

    def __init__(self):
        self.most = self._now = 0

    def __enter__(self):
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _note(self, frame, kind, _):
        if frame.f_code is Handle._run.__code__:
            self._now = 0
        elif kind in ("call", "c_call"):
            self._now += 1
            self.most = max(self.most, self._now)


async def read(events, count, act):
    """Read events to their end; `act` is called by another task when all calls have come."""
    seen, task = 0, None
    try:
        async for _ in events:
            seen += 1
            if seen == 2 * count and act is not None:  # the start of each, and its text
                task = asyncio.ensure_future(act())
    except (SDKError, asyncio.CancelledError):
        pass
    assert seen >= 2 * count
    if task is not None:
        await task


ENDS = {
    "cut": lambda _: (),
    "error": lambda dialect: (packed([ERRORS[dialect]]),),
    "cancel": lambda _: (MINUTE,),
    "abort": lambda _: (MINUTE,),
    "close": lambda _: (MINUTE,),
    "task": lambda _: (MINUTE,),
}


def end(way, dialect, count, open_events, middleware=()):
    """Read a stream that ends in this way; its body is made before."""
    adapter = adapter_for(dialect, count, *ENDS[way](dialect))
    return end_with(way, adapter, count, open_events, middleware)


async def end_with(way, adapter, count, open_events, middleware):
    client, controller = Client({"one": adapter}, middleware=middleware), AbortController()
    events, task = open_events(client, controller.signal), asyncio.current_task()

    async def act():
        if way == "cancel":
            assert await client.cancel("id")
        elif way == "abort":
            controller.abort()
        elif way == "close":
            await events.aclose()
        else:
            task.cancel()

    await read(events, count, act if MINUTE in ENDS[way]("openai_chat") else None)


def work_for_each(make):
    """The function calls that each further part adds to the largest step."""
    asyncio.run(make(10))  # what is imported or loaded once
    fewer, more = (work(make(count)) for count in COUNTS)
    return (more - fewer) / (COUNTS[1] - COUNTS[0])


def work(main):
    with StepWork() as steps:
        asyncio.run(main)
    return steps.most


def as_call(client, _):
    return client.stream(Request(model="m", messages="Hi", request_id="id"))


def as_run(client, signal):
    return stream("one:m", "Hi", client=client, request_id="id", abort_signal=signal)


def as_turn(client, signal):
    session = Session("one:m", client=client)
    return session.stream("Hi", request_id="id", abort_signal=signal)


@pytest.mark.parametrize("way", [way for way in ENDS if way != "abort"])
@pytest.mark.parametrize("dialect", ROWS)
def test_open_calls_make_no_step_longer(dialect, way):
    """What is done for each of them, metering included, is done in a thread or in many steps."""
    assert work_for_each(lambda count: end(way, dialect, count, as_call)) < FEW


@pytest.mark.parametrize("way", ENDS)
@pytest.mark.parametrize("front", [as_run, as_turn])
def test_nor_in_a_run_and_in_a_session(front, way):
    """Their partial answers, errors and histories have all calls, too."""
    assert work_for_each(lambda count: end(way, "openai_chat", count, front)) < FEW


async def pass_answer(request, call_next):
    return await call_next(request)


async def hold_answer(request, call_next):
    return await call_next(request)


async def pass_events(request, call_next):
    async for event in call_next(request):
        yield event


hold_answer.hold = True
LAYERS = {
    "function": pass_answer,
    "holding": hold_answer,
    "generator": pass_events,
    "fallback": Fallback("one:other", midstream="hold"),
}
FINISH = {
    "openai_chat": (
        {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        "[DONE]",
    ),
    "anthropic_messages": ({"type": "message_stop"},),
}


@pytest.mark.parametrize("way", ["cut", "cancel"])
@pytest.mark.parametrize("layer", ["function", "generator"])
def test_nor_through_middleware(layer, way):
    """A layer that sees every event has its own count of the parts."""
    layers = [LAYERS[layer]]

    assert work_for_each(lambda count: end(way, "openai_chat", count, as_call, layers)) < FEW


@pytest.mark.parametrize("layer", LAYERS)
def test_nor_at_the_end_of_a_stream_through_middleware(layer):
    """What a layer withheld is passed on in steps, and its answer is compared in a thread."""
    last = packed(FINISH["openai_chat"]).replace(b'"[DONE]"', b"[DONE]")

    def make(count):
        client = Client(
            {"one": adapter_for("openai_chat", count, last)}, middleware=[LAYERS[layer]]
        )
        return read(as_call(client, None), count, None)

    assert work_for_each(make) < FEW


@pytest.mark.parametrize("layer", [None, "generator"])
def test_nor_in_a_whole_answer(layer):
    """Which is replayed as events through a layer of events."""
    layers = [] if layer is None else [LAYERS[layer]]

    def make(count):
        client = Client({"one": whole_adapter(count)}, middleware=layers)
        return client.complete(Request(model="m", messages="Hi"))

    assert work_for_each(make) < FEW


def test_nor_in_a_turn_of_a_session():
    """Each call gets an id of the session."""

    def make(count):
        return Session("one:m", client=Client({"one": whole_adapter(count)})).send("Hi")

    assert work_for_each(make) < FEW


@pytest.mark.parametrize("is_cut", [False, True])
def test_nor_in_a_whole_answer_that_is_streamed_underneath(is_cut):
    """It is joined in a thread, also if it was cut."""
    request = Request(model="m", messages="Hi", max_tokens=100_000)
    last = () if is_cut else (packed(FINISH["anthropic_messages"]),)

    async def complete(adapter):
        try:
            response = await Client({"one": adapter}).complete(request)
        except SDKError as error:
            response = error.partial
        assert len(response.tool_calls) == len(response.message.content) > 0

    assert work_for_each(lambda n: complete(adapter_for("anthropic_messages", n, *last))) < FEW


def test_nor_in_a_request():
    """A history of thousands of calls is encoded in a thread, however short they are."""

    def make(count):
        calls = [ToolCall(id=f"c{number}", name="f") for number in range(count)]
        results = [ToolResult(tool_call_id=f"c{number}", content="") for number in range(count)]
        turns = [Message(role="assistant", content=calls), Message(role="tool", content=results)]
        request = Request(model="m", messages=[Message.user("Hi"), *turns])
        return Client({"one": whole_adapter(1)}).complete(request)

    assert work_for_each(make) < 2 * FEW  # a call and its result


def test_one_id_for_all_calls_takes_linear_time():
    """Each gets another id, in a session."""

    def use(count):
        ids = ToolIds()
        for _ in range(count):
            ids.adopt("c", "one")

    assert patterns.growth(use, lambda size: size) < patterns.LINEAR


def test_comparing_the_calls_of_a_layer_takes_linear_time():
    """Also if all of them have the same id."""

    def make(size):
        calls = [ToolCall(id="c", name="f", arguments={"n": number}) for number in range(size)]
        copies = [ToolCall(id="c", name="f", arguments={"n": number}) for number in range(size)]
        response = Response(message=Message(role="assistant", content=[Text("Hi"), *copies]))
        return response, calls

    assert patterns.growth(lambda pair: refuse_hidden_calls(*pair), make) < patterns.LINEAR
