"""Middleware that does what it should not, and what a hostile reader tries to get past a guard."""

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from interlingua import sync
from interlingua.api.execute.execution import execute
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.client.middleware.contract import per_attempt
from interlingua.client.middleware.layer import Layer
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.errors import ConfigurationError, SDKError, StreamError
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    StreamStart,
    TextDelta,
    TextEnd,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.json_form import to_json
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Warning
from interlingua.streams.accumulate import events_from_response
from interlingua.streams.grammar import Grammar
from support.simulated import DIALECTS, MODELS, run, simulated

CALL_EVENTS = (ToolCallStart, ToolCallDelta, ToolCallEnd)
SAYING = "the secret word"
CALLING = Response(
    id="1",
    provider="here",
    message=Message.assistant(
        [Text(text=SAYING), ToolCall(id="c", name="wipe", arguments={"disk": "secret"})]
    ),
    finish_reason=FinishReason(reason="tool_calls"),
    raw={"body": SAYING},
)
DONE = Response(message=Message.assistant("done"), finish_reason=FinishReason(reason="stop"))


class Adapter:
    """Answers with a call until it gets a result; it counts its calls."""

    name = "here"

    def __init__(self, calling=CALLING, end=()):
        self.calling = calling
        self.end = end

    async def complete(self, request):
        return DONE if request.messages[-1].role == "tool" else self.calling

    async def stream(self, request):
        answer = await self.complete(request)
        *events, finish = events_from_response(answer)
        is_calling = answer is self.calling
        for event in [*events, *(self.end if self.end and is_calling else [finish])]:
            if isinstance(event, Exception):
                raise event
            yield event

    async def close(self):
        pass


class Tried:
    """A run in one of the ways, with a tool that must not run."""

    def __init__(self, way, *layers, adapter=None, **options):
        self.ran = []
        self.events = []
        self.error = None
        self.result = None
        self.options = options
        kind = sync.Client if way == "blocking" else Client
        self.client = kind({"here": adapter or Adapter()}, middleware=layers)
        try:
            getattr(self, way)()
        except Exception as error:  # noqa: BLE001 -- it is what we look at
            self.error = error
        if self.events:
            grammar = Grammar()
            for event in self.events:
                grammar.feed(event)
            grammar.finish()

    def tools(self):
        def note(name):
            return lambda **arguments: self.ran.append((name, arguments))

        return [
            Tool(name=name, parameters={"type": "object"}, execute=note(name))
            for name in ("wipe", "list")
        ]

    def whole(self):
        options = {"tools": self.tools(), "client": self.client, **self.options}
        self.result = asyncio.run(generate("here:m", "?", **options))

    def streamed(self):
        async def work():
            options = {"tools": self.tools(), "client": self.client, **self.options}
            events = stream("here:m", "?", **options)
            async for event in events:
                self.events.append(event)
            self.result = events.result()

        asyncio.run(work())

    def executed(self):
        async def work():
            return await execute("here:m", "?", tools=self.tools(), client=self.client)

        self.result = asyncio.run(work())
        if self.result.error is not None:
            raise self.result.error.exception

    def blocking(self):
        self.result = sync.generate("here:m", "?", tools=self.tools(), client=self.client)

    @property
    def leaks(self):
        """Where the secret is still written."""
        error = self.error if isinstance(self.error, SDKError) else None
        places = {
            "result": self.result,
            "partial": error and error.partial,
            "messages": error and error.messages,
            "events": self.events,
        }
        return [name for name, value in places.items() if "secret" in everything(value)]


def everything(value):
    """All fields of a value; `repr` of a result is short."""
    return str(msgspec.to_builtins(value, enc_hook=lambda other: repr(vars(other))))


ways = pytest.mark.parametrize("way", ["whole", "streamed", "executed", "blocking"])
modes = pytest.mark.parametrize("way", ["whole", "streamed"])
places = pytest.mark.parametrize("place", [lambda layer: layer, per_attempt], ids=["outer", "each"])


def editing(edit):
    """A stream-shaped layer that passes on what `edit` makes of each event."""

    async def layer(request, following):
        async for event in following(request):
            for edited in edit(event):
                yield edited

    return layer


def hide(event):
    if type(event) is TextDelta:
        return [replace(event, delta="*" * len(event.delta))]
    if type(event) is TextEnd:
        return [replace(event, part=Text(text="***"))]
    return [event]


def without_event(event):
    return [] if isinstance(event, CALL_EVENTS) else hide(event)


without_calls = editing(without_event)


async def only_done(request, following):
    response = await following(request)
    return replace(response, message=DONE.message)


class Held:
    hold = True
    complete = staticmethod(only_done)


class Both:
    complete = staticmethod(only_done)
    stream = staticmethod(without_calls)


class CompleteOnly:
    complete = staticmethod(only_done)


class StreamOnly:
    stream = staticmethod(without_calls)


GUARDS = {
    "generator": lambda: editing(without_event),
    "coroutine": lambda: copy(only_done),
    "hold": Held,
    "both": Both,
    "complete only": CompleteOnly,
    "stream only": StreamOnly,
}


def copy(function):
    async def layer(request, following):
        return await function(request, following)

    return layer


async def noting(request, following):
    """A layer that changes nothing."""
    return await following(request)


def passing():
    async def layer(request, following):
        async for event in following(request):
            yield event

    return layer


@ways
@places
@pytest.mark.parametrize("shape", GUARDS)
@pytest.mark.parametrize("around", ["alone", "inside", "outside"])
def test_what_a_guard_removes_is_gone(way, place, shape, around):
    """In every shape and mode, alone and between layers of other shapes."""
    guard = place(GUARDS[shape]())
    others = [passing(), copy(noting), per_attempt(passing()), per_attempt(copy(noting))]
    layers = {"alone": [guard], "inside": [*others, guard], "outside": [guard, *others]}[around]
    tried = Tried(way, *layers)

    assert tried.error is None
    assert tried.ran == []
    assert "secret" not in everything(tried.result)
    assert not any(b"secret" in to_json(message) for message in tried.result.messages)
    is_late = shape in ("coroutine", "complete only")  # the events had already passed
    if not is_late:
        assert tried.leaks == []


@modes
@pytest.mark.parametrize("provider", sorted(DIALECTS))
def test_a_dropped_call_does_not_run_on_any_dialect(provider, way):
    """Also where the wire ends with the whole response."""
    from interlingua.simulator import text, tool_call

    ran = []

    async def work(client):
        guarded = Client(client._adapters, middleware=[GUARDS["generator"]()])
        options = {"tools": [Tool(name="wipe", execute=lambda: ran.append(1))], "client": guarded}
        model = f"{provider}:{MODELS[provider]}"
        if way == "whole":
            return await generate(model, "?", **options)
        events = stream(model, "?", **options)
        async for _ in events:
            pass
        return events.result()

    with simulated(text("secret") + tool_call("wipe"), text("done")) as peer:
        result = run(peer, work)

    assert ran == []
    assert result.tool_calls == ()
    assert "secret" not in everything(result.messages)
    assert result.response.raw is None


@modes
@places
def test_redacting_only_the_deltas_hides_the_end_too(way, place):
    """The end of the text follows, so the secret is in no event and no result."""

    def edit(event):
        if type(event) is TextDelta:
            return [replace(event, delta="***")]
        return [] if isinstance(event, CALL_EVENTS) else [event]

    tried = Tried(way, place(editing(edit)))

    assert tried.result.text == "***"
    assert tried.leaks == []


@modes
def test_redacting_only_the_end_changes_the_result(way):
    """The deltas had passed; the result has what the end says."""

    def edit(event):
        if type(event) is TextEnd:
            return [replace(event, part=Text(text="***"))]
        return [] if isinstance(event, CALL_EVENTS) else [event]

    tried = Tried(way, editing(edit))

    assert tried.result.text == "***"
    assert "secret" not in everything(tried.result)


@pytest.mark.usefixtures("no_backoff")
@ways
@places
def test_a_call_without_its_end_is_an_error(way, place):
    """The call is incomplete: an error, and the tool does not run."""
    guard = editing(lambda event: [] if type(event) is ToolCallEnd else [event])
    tried = Tried(way, place(guard))

    assert isinstance(tried.error, StreamError)
    assert "must drop all of its events" in str(tried.error)
    assert tried.ran == []


@ways
@pytest.mark.parametrize("dropped", [(ToolCallStart,), (ToolCallStart, ToolCallEnd)])
def test_a_call_without_its_start_is_an_error(way, dropped):
    """An error, and the tool does not run."""
    guard = editing(lambda event: [] if type(event) in dropped else [event])
    tried = Tried(way, guard)

    assert isinstance(tried.error, StreamError)
    assert tried.ran == []


@ways
@places
@pytest.mark.parametrize("where", ["start", "end", "both"])
def test_a_renamed_call_runs_the_tool_of_its_new_name(way, place, where):
    """The tool with the new name runs, and only that one."""

    def edit(event):
        if type(event) is ToolCallStart and where != "end":
            return [replace(event, name="list")]
        if type(event) is ToolCallEnd and where != "start":
            return [replace(event, tool_call=replace(event.tool_call, name="list"))]
        return [event]

    tried = Tried(way, place(editing(edit)))

    assert tried.ran == [("list", {"disk": "secret"})]
    assert "wipe" not in everything(tried.result.messages)


@ways
def test_changed_fragments_of_arguments_reach_the_tool(way):
    """The tool gets the changed arguments."""

    def edit(event):
        return [replace(event, delta="{}") if type(event) is ToolCallDelta else event]

    tried = Tried(way, editing(edit))

    assert tried.ran == [("wipe", {})]


@ways
@pytest.mark.parametrize("order", ["each event twice", "the whole call twice"])
def test_a_call_yielded_twice_is_an_error(way, order):
    """An error; the tool does not run twice."""
    if order == "each event twice":
        layer = editing(lambda event: [event] * (2 if isinstance(event, CALL_EVENTS) else 1))
    else:

        async def layer(request, following):
            calls = []
            async for event in following(request):
                if isinstance(event, CALL_EVENTS):
                    calls.append(event)
                if type(event) is Finish:
                    for call in calls:
                        yield call
                yield event

    tried = Tried(way, layer)

    assert isinstance(tried.error, StreamError)
    assert tried.ran == []


@ways
@places
def test_a_swallowed_finish_is_an_error(way, place):
    """An error, in every mode; the tool does not run."""
    guard = editing(lambda event: [] if type(event) is Finish else [event])
    tried = Tried(way, place(guard), max_retries=0) if way in ("whole", "streamed") else None
    tried = tried or Tried(way, guard)

    assert isinstance(tried.error, StreamError)
    assert "without a finish event" in str(tried.error)
    assert tried.ran == []


@modes
def test_events_after_the_finish_and_a_missing_start_do_not_reach_the_reader(way):
    """What is delivered keeps to the grammar, and code after the end still runs."""
    ended = []

    async def layer(request, following):
        async for event in following(request):
            if type(event) is not StreamStart:
                yield event
            if type(event) is Finish:
                yield event
                yield StreamStart()
        ended.append(1)

    tried = Tried(way, layer)

    assert tried.error is None
    assert tried.result.text == "done"
    assert len(ended) == 2
    assert tried.ran == [("wipe", {"disk": "secret"})]


@ways
@places
@pytest.mark.parametrize("shape", ["generator", "coroutine"])
def test_an_exception_of_a_layer_arrives_as_it_is(way, place, shape):
    """The exception arrives as it is; a stream is closed first, and no tool runs."""

    def edit(event):
        if type(event) is TextEnd:
            raise LookupError("a bug of the layer")
        return hide(event)

    async def late(request, following):
        await following(request)
        raise LookupError("a bug of the layer")

    tried = Tried(way, place(editing(edit) if shape == "generator" else late))

    assert isinstance(tried.error, LookupError)
    assert tried.ran == []
    if way == "streamed":
        assert [event.type for event in tried.events[-2:]] == ["error", "finish"]
        assert tried.events[-1].finish_reason.reason == "error"
        if shape == "generator":
            assert tried.leaks == []


@ways
def test_a_layer_that_returns_nothing_is_named(way):
    """A forgotten `return` is named."""

    async def layer(request, following):
        await following(request)

    tried = Tried(way, layer)

    assert isinstance(tried.error, ConfigurationError)
    assert "returned NoneType, not a Response" in str(tried.error)
    assert tried.ran == []


@ways
def test_what_is_not_an_event_is_refused(way):
    """What is not an event is refused."""
    tried = Tried(way, editing(lambda event: [event, "text"]))

    assert isinstance(tried.error, StreamError)
    assert "Not an event: str" in str(tried.error)


@ways
def test_a_stream_function_that_returns_nothing_is_named(way):
    """A plain function without a `return` is named."""

    class Wrong:
        def stream(self, request, call_next):
            call_next(request)

    tried = Tried(way, Wrong())

    assert isinstance(tried.error, ConfigurationError)
    assert "returned NoneType, not an async iterator" in str(tried.error)


@ways
def test_a_plain_function_may_be_complete(way):
    """It may return the response itself, or what `next` returns."""

    class Plain:
        def complete(self, request, call_next):
            return DONE if request.messages[-1].text == "?" else call_next(request)

    tried = Tried(way, Plain(), copy(noting))

    assert tried.error is None
    assert tried.ran == []
    assert tried.result.text == "done"


def test_a_coroutine_as_stream_is_refused():
    """A common mistake is refused when the client is made."""

    class Wrong:
        async def stream(self, request, call_next):
            return call_next(request)

    with pytest.raises(ConfigurationError, match="is a coroutine function"):
        Layer(Wrong())


OTHER = replace(
    CALLING,
    message=Message.assistant(
        [Text(text="another secret"), ToolCall(id="d", name="wipe", arguments={})]
    ),
)


@ways
@pytest.mark.parametrize("guard", ["generator", "both", "stream only", "coroutine"])
@pytest.mark.parametrize("inner", [lambda layer: layer, per_attempt], ids=["outer", "each"])
def test_an_outer_guard_sees_an_answer_that_was_replaced_inside(way, guard, inner):
    """A guard outside sees the new answer too, though other events had passed."""

    async def other(request, following):
        await following(request)
        return OTHER

    tried = Tried(way, GUARDS[guard](), inner(other))

    assert tried.error is None
    assert tried.ran == []
    assert "secret" not in everything(tried.result)


@modes
def test_a_stored_warning_opens_no_gate(way):
    """An answer from a cache may say `answer_replaced`; the guard still counts."""
    stored = replace(CALLING, warnings=(Warning(code="answer_replaced", message="earlier"),))

    async def cache(request, following):  # noqa: ARG001 -- it is not called
        return stored

    tried = Tried(way, GUARDS["generator"](), cache)

    assert tried.ran == []
    assert tried.leaks == []


@modes
def test_the_partial_of_an_error_does_not_show_what_a_layer_removed(way):
    """An adapter's own partial does not show what a layer has removed."""
    error = StreamError("cut", partial=CALLING)
    adapter = Adapter(end=[ErrorEvent(error=error, response=CALLING)])
    if way == "whole":
        adapter.complete = failing(error)
    tried = Tried(way, GUARDS["generator"](), adapter=adapter, max_retries=0)

    assert tried.error is error
    assert tried.leaks == []
    assert tried.ran == []
    if way == "streamed":
        assert set(tried.error.partial.text) == {"*"}


def failing(error):
    async def complete(_):
        raise error

    return complete


@modes
def test_what_a_guard_removes_is_gone_though_next_is_called_again(way):
    """A layer that asks twice; what a guard inside removes from both is gone."""

    async def twice(request, following):
        await following(request)
        return await following(request)

    twice.hold = True
    tried = Tried(way, twice, GUARDS["generator"](), per_attempt(passing()))

    assert tried.error is None
    assert tried.ran == []
    assert tried.leaks == []


def test_what_a_guard_removes_from_a_request_is_not_sent():
    """A guard on the request holds in both modes: what it removes is not sent."""
    sent = []

    class Noting(Adapter):
        async def complete(self, request):
            sent.append(request)
            return DONE

    async def guard(request, following):
        async for event in following(replace(request, messages=(Message.user("clean"),))):
            yield event

    client = Client({"here": Noting()}, middleware=[guard])
    request = Request(model="here:m", messages="secret")

    async def work():
        await client.complete(request)
        async for _ in client.stream(request):
            pass

    asyncio.run(work())

    assert [request.messages[0].text for request in sent] == ["clean", "clean"]
