"""Known models as data."""

import subprocess
import sys
from datetime import date

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.providers import profile_for
from interlingua.providers.catalog import models as catalog
from interlingua.providers.catalog.models import (
    get_latest_model,
    get_model_info,
    list_models,
    providers_of,
)
from interlingua.providers.rows import ROWS, find_provider
from interlingua.spec.errors import ConfigurationError

MODELS = list_models()
PROVIDERS = sorted({model.provider for model in MODELS})
WRITTEN = date(2026, 11, 15)


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
            assert provider in providers_of(model_id)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_safe_21_profile_and_catalog_agree(provider):
    """What the catalog knows of a model, its profile says too."""
    for model in list_models(provider):
        profile = profile_for(find_provider(provider).dialect, model.id, provider)
        images = None if profile.image_types is None else bool(profile.image_types)
        said = {
            "context": (model.context_window, profile.context_window),
            "output": (model.max_output, profile.max_output_tokens),
            "tools": (model.supports_tools, profile.tools),
            "reasoning": (model.supports_reasoning, profile.thinking),
            "vision": (model.supports_vision, images),
        }
        assert model.kind == profile.kind, model.id
        if model.kind == "chat":
            known = {about: pair for about, pair in said.items() if pair[0] is not None}
            assert {a: pair for a, pair in known.items() if pair[0] != pair[1]} == {}, model.id


def test_entries_make_sense():
    """Limits and prices are in their ranges, and a date of retirement is one to come."""
    for model in MODELS:
        costs = (model.input_cost_per_million, model.output_cost_per_million)
        assert model.max_output is None or model.max_output <= model.context_window, model.id
        assert all(cost is None or 0 < cost < 1_000 for cost in costs), model.id
        assert model.retires is None or model.retires > WRITTEN, model.id


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
    assert (model.provider, model.kind, model.retires) == (provider, "chat", None)
    assert not model.is_gated
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
    assert providers_of("openai/gpt-oss-120b") == ("groq", "openrouter")
    assert providers_of("claude-opus-5-5") == ("anthropic",)
    assert providers_of("claude-opus") == ()


@pytest.mark.parametrize(
    "text",
    [
        b'{"models": [{"id": "a", "provider": "b", "display_name": "c", "colour": "red"}]}',
        b'{"models": [{"id": "a", "provider": "b"}]}',
        b'{"models": [], "prices": {}}',
        b"{",
    ],
)
def test_bad_data_is_refused(text):
    """Unknown keys, missing ones and broken JSON are errors, not surprises later."""
    with pytest.raises(ConfigurationError, match="catalog"):
        catalog._read(text)


def test_loaded_on_first_use():
    """Importing the package does not read the catalog."""
    code = "import sys, interlingua; print('interlingua.providers.catalog.models' in sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert loaded.strip() == "False"
