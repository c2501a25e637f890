"""Which model of a tier answers, and why; and requests without a model."""

import asyncio

import pytest

from interlingua import sync
from interlingua.api.execute.execution import execute
from interlingua.api.objects.functions import generate_object, start_object, stream_object
from interlingua.api.run.generate import generate, stream
from interlingua.api.run.run import Run
from interlingua.client.client import Client
from interlingua.client.registry import ModelEntry, Registry
from interlingua.client.tiers import CONDITIONS
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog.search import list_models, mixed_price
from interlingua.simulator import text
from interlingua.spec.content import Audio, Document, Image, ToolResult
from interlingua.spec.contracts import Profile
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from support.simulated import KEY, adapters, run, simulated

IMAGE = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
READ = ToolDefinition(name="read")


class House:
    """An adapter of one's own, whose models are as their profiles say."""

    def __init__(self, name="house", **profiles):
        self.name = name
        self.profiles = profiles

    def profile_for(self, model):
        return Profile(**self.profiles.get(model, {}))

    async def complete(self, request): ...

    def stream(self, request): ...


def entry(name, tier="small", adapter="house", **fields):
    return ModelEntry(id=f"{adapter}:{name}", adapter=adapter, wire_name=name, tier=tier, **fields)


def choose(request, *entries, **profiles):
    """The model that answers, and why."""
    client = Client({"house": House(**profiles)}, registry=Registry(entries))
    addressed = client._routing.address(request)
    return addressed.model, addressed.chosen_because


def ask(messages="?", model="tier:small", **fields):
    return Request(model=model, messages=messages, **fields)


SEES = {"image_types": ("image/*",)}
BLIND = {"image_types": ()}


@pytest.mark.parametrize(
    ("request_", "able", "need"),
    [
        (ask([Message.user("?", IMAGE)]), SEES, "images"),
        (ask([Message.user(Audio(data=b"RIFF", media_type="audio/wav"))]),
         {"audio_types": ("audio/*",)}, "audio"),
        (ask([Message.user(Document(data=b"%PDF", media_type="application/pdf"))]),
         {"document_types": ("application/pdf",)}, "documents"),
        (ask(tools=[READ]), {"tools": True}, "tools"),
        (ask(reasoning_effort="low"), {"thinking": True}, "thinking"),
        (ask(thinking_budget=1000), {"thinking": True}, "thinking"),
        (ask([Message(role="tool", content=(ToolResult(tool_call_id="1", content=(IMAGE,)),))]),
         SEES, "images"),
    ],
    ids=["image", "audio", "document", "tools", "effort", "budget", "image of a tool"],
)  # fmt: skip
def test_a_model_that_can_do_what_the_request_needs(request_, able, need):
    """One that cannot is left out; one that is known to comes before one of which it is unknown."""
    field = next(iter(able))
    unable = {field: () if "types" in field else False}
    models = [entry("unable"), entry("unknown"), entry("able")]

    assert choose(request_, *models, able=able, unable=unable) == (
        "able",
        f"the only model of tier:small known to have {need}; house:unable has no {need}",
    )
    assert choose(request_, *models[:2], unable=unable) == (
        "unknown",
        (
            f"the only model of tier:small; whether it has {need} is unknown; "
            f"house:unable has no {need}"
        ),
    )
    assert choose(request_, models[0], models[2], able=able, unable=unable) == (
        "able",
        f"the only model of tier:small with {need}; house:unable has no {need}",
    )
    assert choose(request_, entry("x"), entry("y")) == (
        "x",
        f"the first of 2 models of tier:small; whether it has {need} is unknown",
    )
    with pytest.raises(ConfigurationError) as caught:
        choose(request_, models[0], entry("unable2"), unable=unable, unable2=unable)
    assert f"No model of 'tier:small' can answer this request: house:unable has no {need}" in str(
        caught.value
    )


def test_a_request_that_needs_nothing_takes_any():
    """The first in the file: no price is known of these."""
    models = (entry("a"), entry("b"))

    assert choose(ask(), *models, a=BLIND) == ("a", "the first of 2 models of tier:small")
    text_only = ask([Message.user(Document(text="x", media_type="text/plain"))])
    assert choose(text_only, *models)[0] == "a"
    assert choose(ask(reasoning_effort="none"), *models, a={"thinking": False})[0] == "a"


def test_a_window_that_is_too_small():
    """The request is longer than the model can read."""
    models = (entry("short"), entry("long"))
    model, reason = choose(ask("word " * 5000), *models, short={"context_window": 1000})

    assert model == "long"
    assert "house:short has a context window of only 1000 tokens" in reason


def test_conditions():
    """They are asked for in the name: properties of the entry or of its profile."""
    models = (entry("a"), entry("b", can_delegate=True), entry("c", can_delegate=True))
    profiles = {"a": {"tools": True}, "b": {"tools": False}, "c": {"tools": True}}

    assert choose(ask(model="tier:small?can_delegate"), *models)[0] == "b"
    assert choose(ask(model="tier:small?can_delegate,tools"), *models, **profiles)[0] == "c"
    assert choose(ask(model="tier:small?can_delegate, tools"), *models, **profiles)[0] == "c"
    with pytest.raises(ConfigurationError, match="Did you mean 'can_delegate'"):
        choose(ask(model="tier:small?delegate"), *models)
    with pytest.raises(ConfigurationError, match="house:a has no can_delegate"):
        choose(ask(model="tier:small?can_delegate"), entry("a"))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_condition_can_be_asked_for(condition):
    """Where nothing is known, each of them lets the model through, or says that it is not so."""
    try:
        model, reason = choose(ask(model=f"tier:small?{condition}"), entry("a"), entry("b"))
    except ConfigurationError as error:
        assert f"has no {condition}" in str(error)
    else:
        assert model == "a"
        assert condition in reason


# Prices.

PRICES = {
    info.id: price
    for info in list_models("openai")
    if info.kind == "chat" and (price := mixed_price(info)) is not None
}
CHEAP, DEAR = min(PRICES, key=PRICES.get), max(PRICES, key=PRICES.get)


def priced(*names):
    return [entry(name, adapter="openai") for name in names]


@pytest.mark.parametrize("names", [(CHEAP, DEAR), (DEAR, CHEAP)])
def test_the_cheapest_by_the_catalog(names):
    """Whatever their order in the file."""
    client = Client({"openai": HttpAdapter("openai", KEY)}, registry=Registry(priced(*names)))
    addressed = client._routing.address(ask())

    assert (addressed.provider, addressed.model) == ("openai", CHEAP)
    assert addressed.chosen_because == "the cheapest of 2 models of tier:small"


def test_the_first_if_a_price_is_unknown():
    """The order of the file is the caller's own."""
    entries = priced(DEAR, "gpt-of-tomorrow", CHEAP)
    client = Client({"openai": HttpAdapter("openai", KEY)}, registry=Registry(entries))

    assert client._routing.address(ask()).model == DEAR


def test_a_model_of_this_machine_costs_nothing():
    """So it comes before all others that can answer."""
    entries = [*priced(CHEAP), entry("llama", adapter="ollama")]
    registry = Registry(entries)
    client = Client({"openai": HttpAdapter("openai", KEY), "ollama": HttpAdapter("ollama")},
                    registry=registry)  # fmt: skip

    assert client._routing.address(ask()).provider == "ollama"


def test_adapters_without_a_key_are_left_out():
    """Another model of the tier answers; if there is none, the error says so."""
    entries = [*priced(CHEAP), entry("claude-haiku-4-5", adapter="anthropic")]
    keyless = HttpAdapter("openai", transport=None)
    both = {"openai": keyless, "anthropic": HttpAdapter("anthropic", KEY)}
    addressed = Client(both, registry=Registry(entries))._routing.address(ask())

    assert addressed.provider == "anthropic"
    assert f"openai:{CHEAP} is not configured (adapter 'openai')" in addressed.chosen_because
    client = Client(both, registry=Registry(entries))
    asyncio.run(client.unregister("anthropic"))
    with pytest.raises(ConfigurationError, match="anthropic:claude-haiku-4-5 is not configured"):
        client._routing.address(ask())


def test_a_tier_at_one_provider():
    """`provider=` and a prefix choose among its models only."""
    entries = [*priced(CHEAP), entry("claude-haiku-4-5", adapter="anthropic")]
    client = Client(
        {"openai": HttpAdapter("openai", KEY), "anthropic": HttpAdapter("anthropic", KEY)},
        registry=Registry(entries),
    )

    assert client._routing.address(ask(provider="anthropic")).model == "claude-haiku-4-5"
    assert client._routing.address(ask(model="anthropic:tier:small")).provider == "anthropic"
    with pytest.raises(ConfigurationError, match="`api_key`, `base_url` and `headers` are for one"):
        client.with_access("tier:small", api_key="k")
    assert client.with_access("tier:small", "openai", api_key="k").adapter("openai")


# Through a call.

FILE = """
default_provider: openai
adapters:
  openai: {{api_key: k, base_url: "{url}"}}
  anthropic: {{api_key: k, base_url: "{url}"}}
models:
  openai:gpt-5-nano: {{tier: small, profile: {{image_types: []}}}}
  anthropic:claude-haiku-4-5: {{tier: small, can_delegate: true, aliases: [haiku]}}
  anthropic:claude-opus-4-6: {{tier: deep, can_delegate: true}}
{more}
"""


@pytest.fixture
def from_file(tmp_path):
    with simulated(text("Fine.")) as peer:

        def make(more=""):
            path = tmp_path / "models.yaml"
            path.write_text(FILE.format(url=peer.server.url, more=more), encoding="utf-8")
            peer.client = Client.from_file(path)
            return peer

        yield make


@pytest.mark.parametrize("is_stream", [False, True])
def test_the_reason_is_in_the_answer_and_in_events(from_file, is_stream):
    """A request with an image goes to the model of the tier that accepts images."""
    peer, events = from_file(), []
    peer.client.subscribe(events.append)
    request = ask([Message.user("What is this?", IMAGE)])

    async def work(client):
        if is_stream:
            return [event async for event in client.stream(request)][-1].response
        return await client.complete(request)

    response = run(peer, work)
    reason = "the only model of tier:small with images; openai:gpt-5-nano has no images"
    assert (response.provider, response.message.metadata["registry_id"]) == (
        "anthropic",
        "anthropic:claude-haiku-4-5",
    )
    assert response.message.metadata["chosen_because"] == reason
    assert [event.reason for event in events] == [reason, reason]
    assert peer.client.explain(request).chosen_because == reason


def test_a_model_that_the_caller_named_has_no_reason(from_file):
    """There was no choice; a reason of the caller's own is kept."""
    peer, events = from_file(), []
    peer.client.subscribe(events.append)

    async def work(client):
        await client.complete(ask(model="haiku"))
        own = await generate("haiku", "?", client=client, chosen_because="the user asked")
        both = await generate("tier:deep", "?", client=client, chosen_because="it is hard")
        return own, both

    own, both = run(peer, work)
    assert events[0].reason is None
    assert own.response.message.metadata["chosen_because"] == "the user asked"
    assert both.response.message.metadata["chosen_because"] == (
        "it is hard; the only model of tier:deep"
    )


def test_an_object_is_asked_of_the_model_that_can_take_the_messages():
    """The way to the object is planned for the model that answers, not for another of the tier."""
    blind = {**BLIND, "structured_output": ("native",)}
    house = House(cheap=blind, sharp={**SEES, "structured_output": ("tool",)})
    client = Client({"house": house}, registry=Registry([entry("cheap"), entry("sharp")]))
    message = Message.user(["What is this?", IMAGE])
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}

    options = {"messages": [message], "client": client}
    _, goal = start_object("tier:small", None, schema, options, Run)

    assert goal.mode == "tool"


def test_a_name_of_ones_own_has_no_price_by_shorthand():
    """`haiku` may be any model of one's own server; the price of the vendor's is not its price."""
    entries = [entry("sonnet", adapter="anthropic"), entry("haiku", adapter="anthropic")]
    client = Client({"anthropic": House("anthropic")}, registry=Registry(entries))

    addressed = client._routing.address(ask())

    assert addressed.model == "sonnet"
    assert "the first of 2 models" in addressed.chosen_because


# No model.


def test_every_function_uses_the_default_model(from_file):
    """`model=None` is the registry's `default_model`, which may be a tier."""
    peer = from_file("default_model: tier:deep")
    schema = {"type": "object"}

    async def work(client):
        answers = [(await generate(None, "?", client=client)).response]
        events = stream(None, "?", client=client)
        assert [event async for event in events]
        answers.append(events.response())
        assert (await execute(None, "?", client=client)).error is None
        for function in (generate_object, stream_object):
            try:
                objects = function(None, "?", schema=schema, client=client)
                if function is stream_object:
                    assert [each async for each in objects]
                else:
                    await objects
            except Exception as error:  # noqa: BLE001 -- the text is no object
                answers.append(error.partial or error.response)
        answers.append((await generate(None, "?", client=client, api_key="own")).response)
        return answers

    answers = run(peer, work)
    assert {answer.model for answer in answers} == {"claude-opus-4-6"}
    reason = "default_model of the registry file; the only model of tier:deep"
    assert answers[0].message.metadata["chosen_because"] == reason
    with sync.Client.wrap(
        Client(peer.client.calls.adapters, registry=peer.client.registry)
    ) as blocking:
        assert sync.generate(None, "?", client=blocking).response.model == "claude-opus-4-6"


def test_without_a_default_the_error_lists_the_choices(from_file):
    """Ids and aliases of the file, or the providers that are configured."""
    peer = from_file()

    async def work(client):
        with pytest.raises(ConfigurationError) as caught:
            await generate(None, "?", client=client)
        return str(caught.value)

    message = run(peer, work)
    assert "openai:gpt-5-nano, anthropic:claude-haiku-4-5 or haiku" in message
    assert "default_model" in message
    bare = Client(adapters("http://127.0.0.1:9"))
    with pytest.raises(ConfigurationError, match=r"openai:model or .*anthropic:model"):
        bare.explain(Request(messages="?"))
    with pytest.raises(ConfigurationError, match=r"gemini has no default_model.*gemini:model"):
        bare.explain(Request(messages="?", provider="gemini"))


def test_a_provider_named_without_a_model_is_not_sent_anothers_default(from_file):
    """The default of the file is a model of another provider."""
    peer = from_file("default_model: anthropic:claude-opus-4-6")

    with pytest.raises(ConfigurationError, match="openai has no default_model"):
        peer.client.explain(Request(messages="?", provider="openai"))
    assert peer.client.explain(Request(messages="?")).model == "claude-opus-4-6"
