"""Short names of the catalog, such as `sonnet`, in calls: resolved, and told."""

import asyncio

import pytest
from msgspec.structs import replace

from interlingua import Audio, Session, generate, transcribe
from interlingua.batch import submit
from interlingua.client.client import Client
from interlingua.providers.catalog.search import find_short_name
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.request import Request
from support.simulated import KEY

SONNET = find_short_name("sonnet").id
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "


async def _read(items):
    return [item async for item in items]


@pytest.fixture
def simulated():
    """A simulator, and a client of an environment that has its address."""
    with serve_in_thread(Simulator(text("Hello."), key=KEY)) as server:
        environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
        yield Client.from_env(environ)


@pytest.mark.parametrize("model", ["sonnet", "anthropic:sonnet"])
def test_a_short_name_is_resolved_and_told(simulated, model):
    """A call, a stream and `explain` name the model that a short name stands for."""
    request = Request(model=model, messages="hi")
    response = asyncio.run(simulated.complete(request))
    events = asyncio.run(_read(simulated.stream(request)))
    plan = simulated.explain(request)

    for warnings in (response.warnings, events[0].warnings, events[-1].response.warnings):
        (notice,) = [each for each in warnings if each.code == "model_resolved"]
        assert notice.message == f"'sonnet' is a short name; anthropic:{SONNET} was used."
    assert [each.code for each in plan.warnings] == ["model_resolved"]
    assert plan.body["model"] == plan.model == SONNET
    assert plan.chosen_because == f"'sonnet' is a short name of {SONNET!r}"
    assert response.message.metadata["chosen_because"] == plan.chosen_because


def test_a_full_name_gives_no_such_warning(simulated):
    """Neither an id nor a model that a middleware puts in place of a short name is told."""

    async def swap(request, call_next):
        return await call_next(replace(request, model="claude-haiku-4-5"))

    for client, model in (
        (simulated, SONNET),
        (simulated.with_middleware(swap), "sonnet"),
    ):
        response = asyncio.run(client.complete(Request(model=model, messages="hi")))
        assert "model_resolved" not in [each.code for each in response.warnings]


def test_a_fallback_may_be_a_short_name(simulated):
    """A model that a middleware names is resolved as one of the caller is."""

    async def swap(request, call_next):
        return await call_next(replace(request, provider=None, model="sonnet"))

    client = simulated.with_middleware(swap)
    response = asyncio.run(client.complete(Request(model="claude-haiku-4-5", messages="hi")))

    assert "model_resolved" in [each.code for each in response.warnings]


def test_runs_sessions_and_batches_resolve_short_names(simulated):
    """Every function that takes a model takes its short name."""
    result = asyncio.run(generate("sonnet", "hi", client=simulated))
    turn = asyncio.run(Session("sonnet", client=simulated).send("hi"))
    batch = asyncio.run(submit([{"prompt": "hi"}], model="sonnet", client=simulated))

    assert {"model_resolved"} == {each.code for each in (*result.warnings, *turn.warnings)}
    assert [each.code for each in batch.warnings] == ["model_resolved"]


def test_an_operation_of_a_chat_model_takes_its_short_name():
    """A chat model that transcribes is found by its short name too, and the result tells it."""
    with serve_in_thread(Simulator(text("Hello."), key=KEY)) as server:
        client = Client.from_env({"GEMINI_API_KEY": KEY, "GEMINI_BASE_URL": server.url})
        result = asyncio.run(transcribe("flash", Audio(data=WAV), client=client))

    flash = find_short_name("flash", "gemini").id
    assert f"'flash' is a short name; gemini:{flash} was used." in [
        each.message for each in result.warnings
    ]
