"""Warnings about models that end."""

import asyncio
import logging
from datetime import date

import msgspec
import pytest

from interlingua import Client, Request, generate, stream, tool
from interlingua.catalog import list_models
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog import search
from interlingua.providers.catalog.models import NOTICES, find_model
from interlingua.providers.catalog.search import is_available, lifecycle_notices, replacement
from interlingua.simulator import Simulator, error, serve_in_thread, text, tool_call


def codes(warnings):
    return [warning.code for warning in warnings]


@pytest.fixture
def client():
    """A client whose provider answers twice."""
    with serve_in_thread(Simulator(text("Hello."), text("Hello."))) as server:
        yield Client({"anthropic": HttpAdapter("anthropic", "k", base_url=server.url)})


# Laws.


def test_every_model_that_ends_has_a_warning_and_no_other():
    """It names the model, what happens to it, and a model to use that has no end in sight."""
    today = date(2026, 11, 16)
    for model in list_models():
        found = search._notices(model, model.id, today)
        near = model.retires is not None and model.retires <= date(2027, 11, 16)
        assert bool(found) == (model.deprecated or near), model.id
        for warning in found:
            assert warning.code == "model_deprecated"
            assert f"{model.provider}:{model.id} " in warning.message
            assert str(model.retires or "is deprecated") in warning.message
            other = replacement(model)
            assert other is None or (is_available(other) and other.id in warning.message)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_a_model_to_use_instead_is_of_the_same_kind_and_tier(provider):
    """Where the provider has one."""
    for model in list_models(provider):
        other = replacement(model)
        if other is not None and model.kind == "chat":
            assert (other.kind, other.tier) == (model.kind, model.tier or other.tier)


# Examples.


@pytest.mark.parametrize(
    ("today", "sentence"),
    [
        (date(2026, 11, 29), "anthropic:claude-sonnet-4-5 retires on 2026-11-30; "),
        (date(2026, 11, 30), "anthropic:claude-sonnet-4-5 was retired on 2026-11-30; "),
    ],
)
def test_the_sentence(today, sentence):
    """What, when, and what to do."""
    (warning,) = search._notices(find_model("claude-sonnet-4-5"), "claude-sonnet-4-5", today)

    assert warning.message == f"{sentence}use claude-sonnet-5-5."


def test_a_model_without_a_date():
    """It is deprecated, and no more is known."""
    (warning,) = search._notices(
        find_model("claude-opus-4-1"), "claude-opus-4-1", date(2026, 11, 16)
    )

    assert warning.message == "anthropic:claude-opus-4-1 is deprecated; use claude-fable-5-2."


def test_nothing_to_use_instead():
    """The advice is general."""
    lonely = msgspec.structs.replace(find_model("claude-opus-4-1"), provider="nobody")
    (warning,) = search._notices(lonely, "m", date(2026, 11, 16))

    assert warning.message == "nobody:m is deprecated; choose another model."


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929"])
def test_whole_and_streamed(client, model, caplog):
    """The response has the warning once, by the id that was asked for, and so has the log."""

    async def both():
        whole = await generate(f"anthropic:{model}", "hi", client=client)
        streamed = stream(f"anthropic:{model}", "hi", client=client)
        async for _ in streamed:
            pass
        return whole.warnings, streamed.result().warnings

    with caplog.at_level(logging.WARNING, "interlingua"):
        whole, streamed = asyncio.run(both())

    assert codes(whole) == codes(streamed) == ["model_deprecated"]
    assert model in whole[0].message
    assert len([one for one in caplog.records if "retire" in one.getMessage()]) == 2


def test_once_per_run_in_the_log(caplog):
    """Not per attempt and not per step; each step's response has it."""

    @tool
    def add(a: int) -> int:
        """Add."""
        return a

    turns = [error(529), tool_call("add", {"a": 1}), text("Two.")]
    with serve_in_thread(Simulator(*turns)) as server:
        client = Client({"anthropic": HttpAdapter("anthropic", "k", base_url=server.url)})
        with caplog.at_level(logging.WARNING, "interlingua"):
            result = asyncio.run(
                generate("anthropic:claude-sonnet-4-5", "hi", client=client, tools=[add])
            )

    assert [codes(step.response.warnings) for step in result.steps] == [["model_deprecated"]] * 2
    assert len([one for one in caplog.records if "retire" in one.getMessage()]) == 1


def test_strict_is_about_losses():
    """Nothing is lost, so that nothing raises."""
    explanation = Client({"openai": HttpAdapter("openai", "k")}).explain(
        Request(model="gpt-5", messages="hi", on_loss="strict")
    )

    assert codes(explanation.warnings) == ["model_deprecated"]


@pytest.mark.parametrize(
    ("provider", "model"),
    [("anthropic", "claude-opus-5-5"), ("openai", "gpt-9-new"), ("ollama", "gpt-4o")],
)
def test_no_warning(provider, model):
    """For a model in service, an unknown one, and one of the same name on this machine."""
    assert lifecycle_notices(provider, model) == ()
    assert NOTICES[provider, model] == ()


def test_names_of_strangers_do_not_fill_the_memory():
    """What is remembered has a limit."""
    for number in range(search._MOST_NOTICES + 10):
        lifecycle_notices("openai", f"made-up-{number}")

    assert len(NOTICES) <= search._MOST_NOTICES
