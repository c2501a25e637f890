"""Middleware: three shapes, two modes, and everything that it may do."""

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.client.middleware.contract import per_attempt
from interlingua.client.middleware.layer import Layer
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.errors import AbortError, ConfigurationError, ServerError, StreamError
from interlingua.spec.events import (
    Finish,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.grammar import Grammar
from support import virtual_time
from support.scripted_adapter import ScriptedAdapter, says
from support.warning_codes import codes

STOP = FinishReason(reason="stop")


def answer_of(text, **fields):
    fields.setdefault("finish_reason", STOP)
    return Response(message=Message.assistant(text), **fields)


HELLO = answer_of("hello", usage=Usage(output_tokens=1), raw={"a": 1}, id="1")


class Adapter:
    """Answers with the words it was asked, or with what it is given in turn."""

    name = "here"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def next_answer(self, request):
        self.asked.append(request)
        answer = self.answers.pop(0) if self.answers else HELLO
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def complete(self, request):
        return self.next_answer(request)

    async def stream(self, request):
        answer = self.next_answer(request)
        for event in answer if isinstance(answer, list) else events_from_response(answer):
            if isinstance(event, Exception):
                raise event
            yield event

    async def close(self):
        pass


# A layer of each shape that is given what to do: `before` with the request, `after` with the
# response (or `edit` with each event), and how to go on after an error.


def by_coroutine(act):
    async def layer(request, following):
        return await act(request, following)

    return layer


class CompleteOnly:
    def __init__(self, act):
        self.act = act

    async def complete(self, request, call_next):
        return await self.act(request, call_next)


def by_generator(act):
    async def layer(request, following):
        async for event in act(request, following):
            yield event

    return layer


class StreamOnly:
    def __init__(self, act):
        self.act = act

    def stream(self, request, call_next):
        return self.act(request, call_next)


class Both:
    def __init__(self, whole, streamed):
        self.complete, self.stream = whole, streamed


def made(shape, whole, streamed):
    """A middleware of this shape that does one thing."""
    return {
        "coroutine": lambda: by_coroutine(whole),
        "complete only": lambda: CompleteOnly(whole),
        "generator": lambda: by_generator(streamed),
        "stream only": lambda: StreamOnly(streamed),
        "both": lambda: Both(whole, streamed),
    }[shape]()


shapes = pytest.mark.parametrize(
    "shape", ["coroutine", "complete only", "generator", "stream only", "both"]
)
modes = pytest.mark.parametrize("mode", ["complete", "stream"])
places = pytest.mark.parametrize("place", ["outer", "per_attempt"])


async def ask(client, mode, request=None):
    """The response; the events of a stream keep to the grammar."""
    request = request or Request(model="here:m", messages="hi")
    if mode == "complete":
        return await client.complete(request)
    grammar, events = Grammar(), []
    async for event in client.stream(request):
        grammar.feed(event)
        events.append(event)
    grammar.finish()
    shown = "".join(event.delta for event in events if type(event) is TextDelta)
    if not any(w.code == "answer_replaced" for w in events[-1].response.warnings):
        assert shown == events[-1].response.text
    return events[-1].response


def run(mode, adapter, *layers, place="outer"):
    if place == "per_attempt":
        layers = [per_attempt(layer) for layer in layers]
    return asyncio.run(ask(Client({"here": adapter}, middleware=layers), mode))


@shapes
@modes
@places
def test_observing(shape, mode, place):
    """It sees the request as it is resolved, and the whole response."""
    seen = []

    async def whole(request, following):
        response = await following(request)
        seen.append((request.provider, request.model, response.text))
        return response

    async def streamed(request, following):
        async for event in following(request):
            if type(event) is Finish:
                seen.append((request.provider, request.model, event.response.text))
            yield event

    response = run(mode, Adapter(), made(shape, whole, streamed), place=place)

    assert seen == [("here", "m", "hello")]
    assert (response.text, response.usage, response.id) == ("hello", HELLO.usage, "1")
    if mode == "complete":
        assert response.raw == HELLO.raw  # which no event carries


@shapes
@modes
@places
def test_changing_the_request(shape, mode, place):
    """Its provider and model are resolved again, if they were changed; the id stays."""

    def changed(request):
        return replace(request, provider=None, model="there:n", temperature=1.0, request_id=None)

    async def whole(request, following):
        return await following(changed(request))

    def streamed(request, following):
        return following(changed(request))

    here, there = Adapter(), Adapter()
    layer = made(shape, whole, streamed)
    layers = [per_attempt(layer) if place == "per_attempt" else layer]
    client = Client({"here": here, "there": there}, middleware=layers)
    request = Request(model="here:m", messages="hi", request_id="r")

    assert asyncio.run(ask(client, mode, request)).text == "hello"
    (sent,) = there.asked
    assert (sent.provider, sent.model, sent.temperature) == ("there", "n", 1.0)
    assert sent.request_id == "r"
    assert here.asked == []


@shapes
@modes
@places
def test_changing_the_answer(shape, mode, place):
    """What leaves the layers is what everyone sees."""

    async def whole(request, following):
        response = await following(request)
        return replace(response, message=Message.assistant(response.text.upper()))

    async def streamed(request, following):
        async for event in following(request):
            if type(event) is TextDelta:
                yield replace(event, delta=event.delta.upper())
            elif type(event) is TextEnd:
                yield replace(event, part=Text(text=event.part.text.upper()))
            else:
                yield event

    response = run(mode, Adapter(), made(shape, whole, streamed), place=place)

    assert response.text == "HELLO"
    is_late = mode == "stream" and shape in ("coroutine", "complete only")
    assert codes(response) == (["answer_replaced"] if is_late else [])


@shapes
@modes
@places
def test_stopping(shape, mode, place):
    """By raising: nothing is sent."""
    refused = ConfigurationError("not today")

    async def whole(request, following):  # noqa: ARG001 -- it is not called
        raise refused

    async def streamed(request, following):  # noqa: ARG001 -- as above
        raise refused
        yield

    adapter = Adapter()
    with pytest.raises(ConfigurationError, match="not today"):
        run(mode, adapter, made(shape, whole, streamed), place=place)

    assert adapter.asked == []


@shapes
@modes
@places
def test_answering_itself(shape, mode, place):
    """The call behind it is never made."""
    cached = answer_of("cached")

    async def whole(request, following):  # noqa: ARG001 -- it is not called
        return cached

    async def streamed(request, following):  # noqa: ARG001 -- as above
        for event in events_from_response(cached):
            yield event

    adapter = Adapter()
    response = run(mode, adapter, made(shape, whole, streamed), place=place)

    assert (response.text, response.warnings) == ("cached", ())
    assert adapter.asked == []


@shapes
@modes
@places
def test_calling_next_again_after_a_failure(shape, mode, place):
    """Before anything of the answer was shown: the reader sees the second one only."""

    async def whole(request, following):
        try:
            return await following(request)
        except ServerError:
            return await following(replace(request, temperature=1.0))

    async def streamed(request, following):
        events = []
        try:
            async for event in following(request):
                events.append(event)  # noqa: PERF401 -- it may fail on the way
        except ServerError:
            events = [event async for event in following(replace(request, temperature=1.0))]
        for event in events:
            yield event

    failed = [StreamStart(), TextStart(id="t", index=0), ServerError("down")]
    adapter = Adapter(ServerError("down") if mode == "complete" else failed)
    response = run(mode, adapter, made(shape, whole, streamed), place=place)

    assert response.text == "hello"
    assert [request.temperature for request in adapter.asked] == [None, 1.0]


def test_in_by_order_and_out_by_the_reverse():
    """The first registered is the outermost; what is about attempts is inside."""
    log = []

    def layer(name):
        async def note(request, following):
            log.append(f"{name} in")
            response = await following(request)
            log.append(f"{name} out")
            return response

        return note

    layers = [per_attempt(layer("c")), layer("a"), layer("b")]
    for mode in ("complete", "stream"):
        asyncio.run(ask(Client({"here": Adapter()}, middleware=layers), mode))
        assert log == ["a in", "b in", "c in", "c out", "b out", "a out"]
        log.clear()


def test_what_is_no_middleware_is_refused():
    """At once, not at the first call."""
    for wrong in (object(), len, lambda request, _: request):
        with pytest.raises(ConfigurationError, match="is not a middleware"):
            Layer(wrong)


def test_a_mark_on_the_object():
    """`per_attempt = True` in a class does the same as the decorator."""
    calls = []

    class Counting:
        per_attempt = True

        async def complete(self, request, call_next):
            calls.append(1)
            return await call_next(request)

    adapter = Adapter(ServerError("down"))
    adapter.max_retries = 1
    client = Client({"here": adapter}, middleware=[Counting()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("interlingua.client.retry_policy.RetryPolicy.delay", lambda *_: 0.0)
        asyncio.run(ask(client, "complete"))

    assert len(calls) == 2


# Coroutine functions around streams.


PIECES = [
    StreamStart(),
    TextStart(id="t", index=0),
    TextDelta(id="t", index=0, delta="one "),
    TextDelta(id="t", index=0, delta="two "),
    TextEnd(id="t", index=0, part=Text(text="one two ")),
    Finish(finish_reason=STOP, usage=Usage(input_tokens=1, output_tokens=2)),
]


def test_events_pass_while_it_waits():
    """One at a time: the next one is read when the reader asks for it."""
    log = []

    class Pieces(Adapter):
        async def stream(self, _):
            for event in PIECES:
                log.append(f"sent {event.type}")
                yield event

    async def layer(request, following):
        response = await following(request)
        log.append("returned")
        return response

    async def work():
        client = Client({"here": Pieces()}, middleware=[layer])
        async for event in client.stream(Request(model="here:m", messages="hi")):
            log.append(f"read {event.type}")  # noqa: PERF401 -- the order is what counts

    asyncio.run(work())

    first = log.index("read text_delta")
    assert log[:first].count("sent text_delta") == 1  # the second was not asked for yet
    assert log.index("returned") > log.index("read text_end")
    assert log[-1] == "read finish"


def test_nothing_passes_while_it_holds():
    """A guard sees the whole answer before anybody else does."""
    log = []

    async def guard(request, following):
        response = await following(request)
        log.append("looked")
        return replace(response, message=Message.assistant("[redacted]"))

    guard.hold = True

    async def work():
        client = Client({"here": Adapter(PIECES)}, middleware=[guard])
        events = []
        async for event in client.stream(Request(model="here:m", messages="hi")):
            log.append(event.type)
            events.append(event)
        return events

    events = asyncio.run(work())

    assert log[0] == "looked"
    assert events[-1].response.text == "[redacted]"
    assert codes(events[-1].response) == []
    assert all("one" not in getattr(event, "delta", "") for event in events)


def test_what_it_held_passes_as_it_came():
    """If it returns what it was given."""

    async def guard(request, following):
        return await following(request)

    guard.hold = True

    async def work():
        client = Client({"here": Adapter(PIECES)}, middleware=[guard])
        request = Request(model="here:m", messages="hi")
        return [event.type async for event in client.stream(request)]

    assert asyncio.run(work()) == [event.type for event in PIECES]


@pytest.mark.parametrize("hold", [False, True])
def test_next_again_after_content(hold):
    """Only if nothing of it was shown."""

    async def layer(request, following):
        await following(request)
        return await following(request)

    layer.hold = hold
    if not hold:
        with pytest.raises(ConfigurationError, match="called `next` again"):
            run("stream", Adapter(PIECES, PIECES), layer)
    else:
        assert run("stream", Adapter(PIECES, PIECES), layer).text == "one two "


def test_an_answer_in_place_of_one_that_broke():
    """What was shown of the first is closed; the last event has the other, and says so."""

    async def fallback(request, following):
        try:
            return await following(request)
        except StreamError:
            return answer_of("other")

    response = run("stream", Adapter([*PIECES[:3], StreamError("cut")]), fallback)

    assert response.text == "other"
    assert [w.code for w in response.warnings] == ["answer_replaced"]


def test_a_layer_that_changes_no_word():
    """Other fields may be changed without a warning."""

    async def priced(request, following):
        return replace(await following(request), cost=Cost(total=1.5))

    response = run("stream", Adapter(PIECES), priced)

    assert (response.text, response.cost, codes(response)) == ("one two ", Cost(total=1.5), [])


def test_a_timeout_of_the_layer_while_the_reader_works():
    """The reader gets the layer's error."""

    async def layer(request, call_next):
        async with asyncio.timeout(1.0):
            return await call_next(request)

    async def work():
        client = Client({"a": ScriptedAdapter(says("one two"))}, middleware=[layer])
        async for _ in client.stream(Request(model="a:one", messages="Hi.")):
            await asyncio.sleep(0.9)

    with pytest.raises(TimeoutError):
        virtual_time.run(work())


@pytest.mark.parametrize("how", ["close", "cancel", "task"])
def test_its_task_ends_with_the_call(how):
    """However the reader leaves."""
    ended = []

    async def patient(request, following):
        try:
            return await following(request)
        finally:
            ended.append(request.request_id)

    class Slow(Adapter):
        async def stream(self, _):
            for event in PIECES[:3]:
                yield event
            await asyncio.sleep(60)

    async def read(events):
        return [event async for event in events]

    async def work():
        client = Client({"here": Slow()}, middleware=[patient])
        events = client.stream(Request(model="here:m", messages="hi", request_id="r"))
        if how == "close":
            await anext(events)
            await events.aclose()
        else:
            task = asyncio.ensure_future(read(events))
            await asyncio.sleep(0.01)
            if how == "cancel":
                assert await client.cancel("r")
                assert (await task)[-1].finish_reason.reason == "cancelled"
            else:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        return [task for task in asyncio.all_tasks() if "patient" in repr(task)]

    assert virtual_time.run(asyncio.wait_for(work(), 10)) == []
    assert ended == ["r"]


@pytest.mark.parametrize("mode", ["complete", "stream"])
def test_a_queue_can_be_cancelled(mode):
    """A middleware that waits before it calls `next` is ended too."""

    async def queue(request, following):
        await asyncio.sleep(60)
        return await following(request)

    async def work():
        adapter = Adapter()
        client = Client({"here": adapter}, middleware=[per_attempt(queue)])
        request = Request(model="here:m", messages="hi", request_id="r")
        task = asyncio.ensure_future(ask(client, mode, request))
        await asyncio.sleep(0.01)
        assert await client.cancel("r")
        if mode == "complete":
            with pytest.raises(AbortError):
                await task
        else:
            assert (await task).finish_reason.reason == "cancelled"
        return adapter.asked

    assert virtual_time.run(asyncio.wait_for(work(), 10)) == []


# What everyone sees.


CALL = answer_of(
    [Text(text="secret"), ToolCall(id="c", name="f", arguments={})],
    finish_reason=FinishReason(reason="tool_calls"),
)
CALL_EVENTS = (ToolCallStart, ToolCallDelta, ToolCallEnd)


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_a_call_that_was_dropped_is_not_run(whole):
    """And it is in no history, response or result; nor is a text that was redacted."""
    runs = []

    async def guard(request, following):
        async for event in following(request):
            if type(event) is TextDelta:
                yield replace(event, delta="***")
            elif type(event) is TextEnd:
                yield replace(event, part=Text(text="***"))
            elif not isinstance(event, CALL_EVENTS):
                yield event

    async def work():
        client = Client({"here": Adapter(CALL)}, middleware=[guard])
        options = {"client": client, "tools": [Tool(name="f", execute=lambda: runs.append(1))]}
        if whole:
            return await generate("here:m", "?", **options)
        events = stream("here:m", "?", **options)
        async for _ in events:
            pass
        return events.result()

    result = asyncio.run(work())

    assert runs == []
    assert (result.text, result.tool_calls, len(result.steps)) == ("***", (), 1)
    assert "secret" not in repr(msgspec.to_builtins(result))
    assert result.messages[-1].content == (Text(text="***"),)


def test_a_wire_response_is_kept_if_nobody_changed_the_events():
    """Some wires end with a response that says more than their events did."""
    wire = answer_of([Text(text="hello", extra={"x": {"id": "9"}})])
    *events, last = events_from_response(HELLO)
    told = [*events, replace(last, response=wire)]

    async def watch(request, following):
        async for event in following(request):
            yield event

    assert run("stream", Adapter(told), watch).message.content == wire.message.content
    assert run("stream", Adapter(told)).message.content == wire.message.content
