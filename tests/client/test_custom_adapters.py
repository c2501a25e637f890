"""Adapters of a program's own: checked when the client is made, and used for all they have."""

import asyncio
from types import SimpleNamespace

import pytest

from interlingua import generate, stream
from interlingua.client.client import Client
from interlingua.client.registry import ModelEntry, Registry
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.content import Image
from interlingua.spec.contracts import AdapterCapabilities, Profile
from interlingua.spec.errors import (
    ConfigurationError,
    ContextLengthError,
    UnsupportedError,
    UnsupportedToolChoiceError,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolDefinition
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response

TOOL = ToolDefinition(name="look", parameters={"type": "object", "properties": {}})
PICTURE = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")


class Parrot:
    """Repeats what it was sent, and keeps the requests."""

    name = "parrot"

    def __init__(self):
        self.requests = []
        self.streams = 0

    def answer(self, request):
        self.requests.append(request)
        return Response(
            model=request.model,
            message=Message.assistant(request.messages[-1].text or "-"),
            finish_reason=FinishReason(reason="stop"),
            usage=Usage(input_tokens=3, output_tokens=2),
        )

    async def complete(self, request):
        return self.answer(request)

    async def stream(self, request):
        self.streams += 1
        for event in events_from_response(self.answer(request)):
            yield event


def parrot(**members):
    adapter = Parrot()
    for name, member in members.items():
        setattr(adapter, name, member)
    return adapter


def ask(client, request, *, streams):
    async def work():
        if streams:
            return [event async for event in client.stream(request)][-1].response
        return await client.complete(request)

    return asyncio.run(work())


both = pytest.mark.parametrize("streams", [False, True])


# Their shape.


class Silent:
    name = "silent"

    async def complete(self, request):
        raise NotImplementedError


class Returning(Parrot):
    async def stream(self, request):  # noqa: ARG002
        return []


class Yielding(Parrot):
    async def complete(self, request):
        yield request


class Blind(Parrot):
    async def complete(self):
        raise NotImplementedError


class Demanding(Parrot):
    async def complete(self, request, more):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("adapter", "what"),
    [
        (Silent(), r"no method `stream\(request\)`"),
        (Returning(), "`stream` must yield events"),
        (Yielding(), "`complete` must return the response"),
        (Blind(), "`complete` must take the request"),
        (Demanding(), "`complete` must take the request"),
        (parrot(name=7), "`name` must be a string"),
        (parrot(name=""), "`name` must be a string"),
        (parrot(stream="events"), "`stream` must be a method"),
        (parrot(profile_for=Profile()), "`profile_for` must be a method"),
        (parrot(estimate_input_tokens=7), "`estimate_input_tokens` must be a method"),
        (Parrot, "must be an adapter"),
        (object(), "must be an adapter"),
        ("openai", "must be an adapter"),
    ],
)
def test_a_wrong_shape_is_refused_when_the_client_is_made(adapter, what):
    """Also when it is registered later; the error names the adapter and the member."""
    with pytest.raises(ConfigurationError, match=what) as caught:
        Client({"mine": adapter})
    assert "'mine'" in caught.value.message
    with pytest.raises(ConfigurationError, match=what):
        asyncio.run(Client({}).register("mine", adapter))


def test_every_usual_shape_is_accepted():
    """Methods, functions, callables with more options, and functions that return an iterator."""

    async def complete(request, **settings):
        assert settings is not None
        return Parrot().answer(request)

    def start(request, *, strict=False):
        assert not strict
        return Parrot().stream(request)

    adapter = SimpleNamespace(name="mine", complete=complete, stream=start)
    client = Client({"mine": adapter})

    assert ask(client, Request(model="m", messages="hi"), streams=False).text == "hi"
    assert ask(client, Request(model="m", messages="hi"), streams=True).text == "hi"


@both
def test_an_answer_of_another_type_is_told(streams):
    """What is no `Response`, or no event, is an error that names the adapter."""

    async def complete(_):
        return "hello"

    async def events(_):
        yield "hello"

    client = Client({"mine": parrot(complete=complete, stream=events)})
    with pytest.raises(ConfigurationError, match="The adapter 'mine' has a wrong shape"):
        ask(client, Request(model="m", messages="hi"), streams=streams)


# What they say about themselves.

LACKS = {
    "profile_for": lambda **fields: {"profile_for": lambda _: Profile(**fields)},
    "capabilities": lambda **fields: {"capabilities": AdapterCapabilities(Profile(**fields))},
}
says = pytest.mark.parametrize("say", LACKS.values(), ids=LACKS)


@both
@says
def test_the_loss_policy_applies(say, streams):
    """A loss of what the turn asks for raises before the adapter is called; others are told."""
    adapter = parrot(**say(tools=False, image_types=(), seed=False, max_output_tokens=10))
    client = Client({"mine": adapter})
    for fields in (
        {"messages": "hi", "tools": [TOOL]},
        {"messages": [Message.user(["Look.", PICTURE])]},
    ):
        with pytest.raises(UnsupportedError, match="mine:m does not support"):
            ask(client, Request(model="m", **fields), streams=streams)
    assert adapter.requests == []

    request = Request(model="m", messages="hi", seed=7, max_tokens=50)
    response = ask(client, request, streams=streams)
    codes = [each.code for each in response.warnings]
    assert codes[:-1] == ["max_tokens_lowered", "seed_dropped"]  # the last is about the price
    (sent,) = adapter.requests
    assert (sent.seed, sent.max_tokens) == (None, 10)
    with pytest.raises(UnsupportedError, match="seed"):
        ask(client, Request(model="m", messages="hi", seed=7, on_loss="strict"), streams=streams)
    lossy = Request(model="m", messages="hi", tools=[TOOL], on_loss="warn")
    assert "tools_dropped" in [w.code for w in ask(client, lossy, streams=streams).warnings]


@both
def test_the_policy_of_the_client_and_of_the_adapter_count(streams):
    """As for other adapters: that of the call, else of the client, else of the adapter."""
    seeded = Request(model="m", messages="hi", seed=7)
    lacks = {"profile_for": lambda _: Profile(seed=False)}
    for client in (
        Client({"mine": parrot(**lacks)}, on_loss="strict"),
        Client({"mine": parrot(**lacks, on_loss="strict")}),
    ):
        with pytest.raises(UnsupportedError, match="seed"):
            ask(client, seeded, streams=streams)
    lenient = Client({"mine": parrot(**lacks, on_loss="strict")}, on_loss="warn")
    assert ask(lenient, seeded, streams=streams).text == "hi"


SEED_CAPABILITIES = {
    "supports_images": False,
    "supports_thinking": False,
    "supports_tools": True,
    "supports_system_prompt": True,
    "supports_structured_output": False,
    "supports_streaming": False,
    "supports_streaming_tool_calls": False,
    "supports_parallel_tool_calls": False,
    "supports_prompt_caching": False,
    "max_context_tokens": 1000,
    "max_output_tokens": 100,
    "accepted_image_media_types": [],
}


@pytest.mark.parametrize("make", [dict, SimpleNamespace])
def test_capabilities_may_be_a_plain_record(make):
    """A dict or an object with the names of `AdapterCapabilities` is read as a profile."""
    adapter = parrot(capabilities=make(**SEED_CAPABILITIES))
    client = Client({"mine": adapter})
    profile = client.profile_for(Request(model="m", messages="hi"))

    assert (profile.tools, profile.streaming, profile.thinking) == (True, False, False)
    assert (profile.context_window, profile.max_output_tokens) == (1000, 100)
    assert (profile.image_types, profile.structured_output) == ((), ("tool", "prompt"))
    form = ResponseFormat(type="json_schema", json_schema={"type": "object"})
    request = Request(model="m", messages="hi", response_format=form, reasoning_effort="high")
    codes = {each.code for each in ask(client, request, streams=False).warnings}
    assert {"structured_output_fallback", "reasoning_effort_dropped"} <= codes


def test_a_stream_that_it_does_not_support_is_a_whole_answer():
    """The answer is delivered as events, and `stream` of the adapter is not called."""
    adapter = parrot(profile_for=lambda _: Profile(streaming=False))

    assert ask(Client({"mine": adapter}), Request(model="m", messages="hi"), streams=True).text
    assert adapter.streams == 0


@both
def test_a_tool_choice_that_it_does_not_support_is_refused(streams):
    """`supports_tool_choice` is asked for each mode."""
    adapter = parrot(supports_tool_choice=lambda mode: mode in ("auto", "none"))
    client = Client({"mine": adapter})
    request = Request(model="m", messages="hi", tools=[TOOL], tool_choice="required")

    with pytest.raises(UnsupportedToolChoiceError, match="mine:m"):
        ask(client, request, streams=streams)
    assert ask(client, Request(model="m", messages="hi", tools=[TOOL]), streams=streams).text


@pytest.mark.parametrize(
    "estimate",
    [
        lambda request: 1000 * len(request.messages),
        lambda messages, tools, system_prompt: (
            1000 * (len(messages) + len(tools)) + (1000 if system_prompt == "Be brief." else 0)
        ),
    ],
)
def test_its_own_estimate_of_tokens_is_used(estimate):
    """In the client, in `explain`, and for the context window; in both forms of the method."""
    window = Profile(context_window=1500)
    adapter = parrot(estimate_input_tokens=estimate, profile_for=lambda _: window)
    client = Client({"mine": adapter})
    request = Request(model="m", messages=[Message.system("Be brief."), Message.user("hi")])

    assert client.estimate_input_tokens(request) == 2000
    with pytest.raises(ContextLengthError, match="2000 tokens"):
        ask(client, request, streams=False)
    assert client.explain(Request(model="m", messages="hi")).estimated_input_tokens == 1000
    assert ask(client, Request(model="m", messages="hi"), streams=True).text == "hi"


def test_explain_shows_what_an_adapter_would_get():
    """There is no wire request to show, so the body is the canonical request, with its changes."""
    adapter = parrot(profile_for=lambda _: Profile(seed=False, tools=False))
    client = Client({"mine": adapter}, prices={"m": {"input": 1, "output": 1}})
    told = client.explain(Request(model="mine:m", messages="hi", seed=7, tools=[TOOL]))

    assert (told.provider, told.model, told.url, told.method) == ("mine", "m", "", "")
    assert {each.code for each in told.warnings} == {"seed_dropped", "tools_dropped"}
    assert [each.code for each in told.refused] == ["tools_dropped"]
    assert told.body["messages"][0]["role"] == "user"
    assert "seed" not in told.body
    assert told.estimated_input_tokens > 0
    assert told.profile.tools is False
    assert adapter.requests == []


def test_an_adapter_that_says_nothing_gets_the_request_as_it_is():
    """Nothing is known, so nothing is changed."""
    adapter = Parrot()
    client = Client({"mine": adapter})
    request = Request(model="m", messages=[Message.user(["a", PICTURE])], tools=[TOOL], seed=7)
    response = ask(client, request, streams=False)

    assert adapter.requests[0].messages is request.messages
    assert [each.code for each in response.warnings] == ["price_unknown"]
    assert client.explain(request).warnings == ()


def test_runs_and_tiers_use_what_it_says():
    """A tier leaves a model out that its adapter cannot serve, and a run raises."""
    plain, able = parrot(capabilities={"supports_tools": False}), Parrot()
    entries = [
        ModelEntry(id="plain:m", adapter="plain", wire_name="m", tier="small"),
        ModelEntry(id="able:m", adapter="able", wire_name="m", tier="small"),
    ]
    client = Client({"plain": plain, "able": able}, registry=Registry(entries))

    result = asyncio.run(generate("tier:small", "hi", tools=[TOOL], client=client))
    assert result.response.provider == "able"

    async def read():
        return [event async for event in stream("plain:m", "hi", tools=[TOOL], client=client)]

    with pytest.raises(UnsupportedError, match="plain:m does not support tools"):
        asyncio.run(read())


# Tool choice of a provider.


def test_a_tool_choice_is_supported_by_a_provider_without_a_model():
    """Without a model the question is about the provider: whether models of its own can do it."""
    for name in ("openai", "anthropic", "gemini"):
        adapter = HttpAdapter(name, "k")
        assert adapter.supports_tool_choice("required") is True
        assert adapter.supports_tool_choice("named") is True
    assert HttpAdapter("groq", "k").supports_tool_choice("required") is None  # unknown
    refusing = HttpAdapter("openai", "k", profile={"tools": False})
    assert refusing.supports_tool_choice("auto") is False
    limited = HttpAdapter("groq", "k", profile={"tool_choice_modes": ["auto"]})
    assert (limited.supports_tool_choice("auto"), limited.supports_tool_choice("named")) == (
        True,
        False,
    )
    with pytest.raises(ConfigurationError, match="no mode of tool choice"):
        HttpAdapter("openai", "k").supports_tool_choice("always")
