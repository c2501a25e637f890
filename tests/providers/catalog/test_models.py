"""Known models as data."""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.providers import profile_for
from interlingua.providers.catalog import models as catalog
from interlingua.providers.catalog.models import providers_of
from interlingua.providers.catalog.search import (
    get_latest_model,
    get_model_info,
    is_available,
    list_models,
)
from interlingua.providers.rows import ROWS, find_provider
from interlingua.spec.errors import ConfigurationError
from interlingua.tokens.estimate import ESTIMATE_ERROR

MODELS = list_models()
PROVIDERS = sorted({model.provider for model in MODELS})
BIG_THREE = ("openai", "anthropic", "gemini")
HAND = Path(__file__).parents[3] / "scripts/catalog_build/hand.json"
BY_HAND = {
    (row["provider"], row["id"]): row for row in json.loads(HAND.read_text("utf-8"))["models"]
}


# Laws.


@given(st.text(), st.none() | st.text())
def test_unknown_ids_are_no_error(model_id, provider):
    """The catalog advises; what it does not know is not its business."""
    assert get_model_info(model_id, provider) is None
    assert providers_of(model_id) == ()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_entries_are_found(provider):
    """Every entry is found by its id and its aliases, at its provider, which is a row of ours."""
    assert provider in {row.name for row in ROWS}
    for model in list_models(provider):
        for model_id in (model.id, *model.aliases):
            assert get_model_info(model_id, provider) is model
            assert get_model_info(f"{provider}:{model_id}") is model
            assert (provider in providers_of(model_id)) == bool(find_provider(provider).base_url)


def limits(model):
    """What the catalog and the profile say: context, output, tools, reasoning, vision."""
    profile = profile_for(find_provider(model.provider).dialect, model.id, model.provider)
    images = None if profile.image_types is None else bool(profile.image_types)
    assert model.kind == profile.kind, model.id
    return {
        "context": (model.context_window, profile.context_window),
        "output": (model.max_output, profile.max_output_tokens),
        "tools": (model.supports_tools, profile.tools),
        "reasoning": (model.supports_reasoning, profile.thinking),
        "vision": (model.supports_vision, images),
    }


@pytest.mark.parametrize("provider", PROVIDERS)
def test_profile_and_catalog_agree(provider):
    """What we wrote about a model ourselves, its profile says too."""
    fields = {
        "context": "context_window",
        "output": "max_output",
        "tools": "supports_tools",
        "reasoning": "supports_reasoning",
        "vision": "supports_vision",
    }
    for model in list_models(provider):
        said, row = limits(model), BY_HAND.get((provider, model.id), {})
        if model.kind == "chat":
            ours = {about: said[about] for about, field in fields.items() if field in row}
            assert {a: pair for a, pair in ours.items() if pair[0] != pair[1]} == {}, model.id


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_profile_is_not_stricter_than_the_catalog(provider):
    """No request is refused that the model would take, as far as the catalog knows."""
    for model in list_models(provider):
        said = limits(model)
        if provider == "azure":
            del said[
                "tools"
            ]  # Chat Completions there have none for models that have them elsewhere
        context, window = said.pop("context")
        assert None in (context, window) or context <= window * (1 + ESTIMATE_ERROR), model.id
        most, limit = said.pop("output")
        assert None in (most, limit) or most <= limit, model.id
        if model.kind == "chat":
            assert (True, False) not in said.values(), model.id


@pytest.mark.parametrize("row", BY_HAND.values(), ids=lambda row: f"{row['provider']}-{row['id']}")
def test_nothing_that_we_wrote_ourselves_is_lost(row):
    """The models of the hand-made list are there with its aliases, dates and marks."""
    model = get_model_info(row["id"], row["provider"])

    assert model.display_name == row["display_name"]
    assert {*row.get("aliases", ())} <= {*model.aliases}
    assert model.is_gated is (row.get("is_gated", False) or model.is_gated)
    for key in ("retires", "released"):
        if key in row:
            assert str(getattr(model, key)) <= row[key]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_order_is_the_order_of_the_hand_made_list(provider):
    """Best first: of one kind, the models that we ranked come first, as we ranked them."""
    for kind in ("chat", "image", "embedding"):
        listed = [model.id for model in list_models(provider, kind=kind)]
        ranked = [one for known, one in BY_HAND if known == provider and one in listed]

        assert listed[: len(ranked)] == ranked


@pytest.mark.parametrize("provider", BIG_THREE)
def test_a_price_or_a_reason(provider):
    """Every chat model of the big three has a price, or a sentence that says why it has none."""
    for model in list_models(provider, kind="chat"):
        assert bool(model.prices) != bool(model.price_note), model.id


def test_entries_make_sense():
    """Limits and prices are in their ranges, and prices are in the order of their dates."""
    for model in MODELS:
        assert None in (model.max_output, model.context_window) or (
            model.max_output <= model.context_window
        ), model.id
        for price in model.prices:
            tokens = (price.rates.input, price.rates.output)
            assert all(rate is None or 0 <= rate < 1_000 for rate in tokens), model.id
            assert [step.above for step in price.long_context] == sorted(
                {step.above for step in price.long_context}
            )
        for tier in {price.tier for price in model.prices}:
            starts = [price.starts or date.min for price in model.prices if price.tier == tier]
            assert starts == sorted(starts), model.id
        if model.prices:
            assert model.prices[0].tier == "standard", model.id
            assert model.prices[0].starts is None, model.id


def test_no_id_is_said_twice():
    """A provider's id or alias names one entry."""
    named = [(m.provider, model_id) for m in MODELS for model_id in (m.id, *m.aliases)]

    assert len(named) == len(set(named))


def test_entries_come_back_from_json():
    """What is listed can be stored and read again."""
    text = msgspec.json.encode(MODELS)

    assert msgspec.json.decode(text, type=tuple[catalog.ModelInfo, ...]) == MODELS


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("capability", [None, "tools", "vision", "reasoning"])
def test_the_latest_model_is_one_to_build_on(provider, capability):
    """It chats, is open to all, has no end in sight, and can do what was asked for."""
    model = get_latest_model(provider, capability)

    if model is None:
        assert capability is not None
        return
    assert (model.provider, model.kind) == (provider, "chat")
    assert is_available(model)
    assert capability is None or getattr(model, f"supports_{capability}") is True


# Examples.


def test_one_model():
    """An entry says what a caller needs to choose."""
    model = get_model_info("claude-haiku-4-5-20251001")

    assert (model.id, model.provider) == ("claude-haiku-4-5", "anthropic")
    assert (model.context_window, model.max_output) == (200_000, 64_000)
    assert (model.input_cost_per_million, model.output_cost_per_million) == (1, 5)
    assert model.supports_tools
    assert model.supports_vision
    assert model.supports_reasoning


@pytest.mark.parametrize(
    ("provider", "model_id"),
    [("openai", "gpt-6-astra"), ("anthropic", "claude-fable-5-2"), ("gemini", "gemini-4-argon")],
)
def test_the_latest_models(provider, model_id):
    """The best of the three makers."""
    assert get_latest_model(provider).id == model_id


def test_nobody_knows_the_provider():
    """A provider without models has no latest one."""
    assert get_latest_model("llamacpp") is None
    assert list_models("llamacpp") == ()


def test_unknown_capabilities_are_refused():
    """The error names those there are."""
    with pytest.raises(ConfigurationError, match=r"'smell'.*tools, vision, reasoning"):
        get_latest_model("openai", "smell")


def test_ids_may_have_several_providers():
    """The same id at two hosts is two entries, and resolution has to choose."""
    assert providers_of("openai/gpt-oss-120b") == ("groq", "together", "openrouter")
    assert providers_of("claude-opus-5-5") == ("anthropic",)
    assert providers_of("claude-opus") == ()


@pytest.mark.parametrize(
    "text",
    [
        b'{"version": "1", "sources": {}, "models": {"b": [{"id": "a", "provider": "b"}]}}',
        b'{"version": "1", "sources": {}, "models": {}, "prices": {}}',
        b'{"models": {}}',
        b"{",
    ],
)
def test_bad_data_is_refused(text):
    """Unknown keys, missing ones and broken JSON are errors, not surprises later."""
    with pytest.raises(ConfigurationError, match="catalog"):
        dict(catalog._read(text).models)


def test_loaded_on_first_use():
    """Importing the package does not read the catalog."""
    code = "import sys, interlingua; print('interlingua.providers.catalog.models' in sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert loaded.strip() == "False"


def test_only_what_a_call_needs_is_decoded():
    """In a new process: the models of one provider; no packages are searched for providers."""
    code = (
        "import sys, interlingua.providers.catalog.models as m\n"
        "m.find_model('claude-haiku-4-5', 'anthropic'); m.providers_of('gpt-5.2')\n"
        "print([n for n, s in m.table().models.sections.items() if isinstance(s, tuple)])\n"
        "print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["['anthropic']", "False"]


def test_no_rate_is_zero_beside_a_price_of_input():
    """A 0 of a source that did not know better would make tokens free."""
    free = [
        (model.provider, model.id, name)
        for model in list_models()
        if model.kind == "chat"
        for price in model.prices
        if price.rates.input
        for name in ("output", "cache_read", "cache_write", "cache_write_1h", "reasoning")
        if getattr(price.rates, name) == 0
    ]

    assert free == []
