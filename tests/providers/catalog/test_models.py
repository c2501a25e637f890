"""Known models as data."""

import asyncio
import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog import models as catalog
from interlingua.providers.catalog.models import find_model, ids_of, providers_of, table
from interlingua.providers.catalog.profiles import matching, profile_for
from interlingua.providers.catalog.search import (
    get_latest_model,
    get_model_info,
    is_available,
    list_models,
    writes_text,
)
from interlingua.providers.catalog.update import update
from interlingua.providers.rows import ROWS, find_provider
from interlingua.spec.errors import ConfigurationError, ContextLengthError, UnsupportedError
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedTransport

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
    is_routed = bool(find_provider(provider).base_url) and provider in table().routed
    for model in list_models(provider):
        for name in (model.id, *model.aliases):
            assert get_model_info(name, provider) is model
            assert get_model_info(f"{provider}:{name}") is model
            is_id = name not in model.short_names
            assert (provider in providers_of(name)) == (is_id and is_routed)


def test_short_names_are_aliases_that_no_request_may_contain():
    """The aliases of a model list its short names; as an id, a short name finds nothing."""
    named = [model for model in MODELS if model.short_names]
    assert "sonnet" in get_model_info("sonnet").aliases
    assert len(named) > 100
    for model in named:
        assert {*model.short_names} <= {*model.aliases}
        assert not {*model.short_names} & {*ids_of(model)}
        assert find_model(model.short_names[0], model.provider) is None


# The profile and the catalog.

EXCEPTIONS = {
    ("", "claude-3", "schema"): "structured outputs begin with Claude 4.5; sources count a tool",
    ("", "claude-opus-4", "schema"): "as above; later versions have rows of their own",
    ("", "claude-sonnet-4", "schema"): "as above",
    ("deepseek", "deepseek-", "schema"): "DeepSeek has JSON mode, and no schemas",
    (
        "ollama_cloud",
        "",
        "schema",
    ): "docs.ollama.com: its cloud has no structured outputs",
    ("cloudflare", "", "schema"): "seen in recordings: models that sources deny take schemas",
    ("snowflake", "mistral", "schema"): "as its tools, below",
    (
        "snowflake",
        "llama",
        "tools",
    ): "docs.snowflake.com: of Claude and GPT models only",
    ("snowflake", "snowflake-", "tools"): "as above",
    ("snowflake", "mistral", "tools"): "as above",
    ("snowflake", "deepseek", "tools"): "as above",
    ("", "gpt-6-astra", "tools"): "it has tools in Responses, not in Chat Completions",
    ("", "gpt-6.1-sol", "tools"): "as above",
    ("azure", "o1-mini", "tools"): "OpenAI's o1-mini has no tools",
    ("azure", "gpt-5.1", "audio"): "GPT-5.1 reads text and images",
    ("alibaba", "qwen3.8-max", "pdf"): "Alibaba's compatible endpoint has no files",
    (
        "bedrock_converse",
        "llama3-2-1b",
        "tools",
    ): "AWS's table of Converse: they have no tools",
    ("bedrock_converse", "llama3-2-3b", "tools"): "as above",
    ("bedrock_converse", "llama4", "pdf"): "AWS's table: Converse reads documents for them",
    ("bedrock_converse", "pixtral", "pdf"): "as above",
    ("bedrock_converse", "kimi-k2.5", "pdf"): "as above",
    ("bedrock_converse", "nemotron-nano", "pdf"): "as above",
}
"""Where a profile contradicts the catalog: the provider, the prefix of the model, the field."""


def is_exception(model, field):
    """Whether a contradiction about this model has a name and a reason."""
    return any(
        provider in ("", model.provider) and name == field and matching({prefix: {}}, model.id)
        for provider, prefix, name in EXCEPTIONS
    )


def claims(model):
    """What the catalog says and what the profile says of a chat model, by field."""
    profile = profile_for(find_provider(model.provider).dialect, model.id, model.provider)
    types = {"images": profile.image_types, "audio": profile.audio_types}
    has = {name: None if known is None else known != () for name, known in types.items()}
    files, ways = profile.document_types, profile.structured_output
    return {
        "kind": (model.kind, profile.kind),
        "window": (model.context_window, profile.context_window),
        "output": (model.max_output, profile.max_output_tokens),
        "tools": (model.supports_tools, profile.tools),
        "reasoning": (model.supports_reasoning, profile.thinking),
        "vision": (model.supports_vision, has["images"]),
        "audio": (model.supports_audio, has["audio"]),
        "schema": (model.supports_structured_output, None if ways is None else "native" in ways),
        "pdf": (model.supports_pdf, None if files is None else "application/pdf" in files),
    }


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_profile_does_not_contradict_the_catalog(provider):
    """What the catalog knows of a model, its profile says too, or an exception has a reason."""
    found = {
        (model.id, field): pair
        for model in list_models(provider)
        for field, pair in claims(model).items()
        if None not in pair and pair[0] != pair[1] and not is_exception(model, field)
    }
    assert found == {}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_profile_knows_what_the_catalog_knows(provider):
    """Windows, tools, thinking, vision, audio and schemas are unknown only where they are so."""
    unknown = {
        (model.id, field)
        for model in list_models(provider, kind="chat")
        for field, (known, profile) in claims(model).items()
        if known is not None and profile is None and field != "pdf"
    }
    assert unknown == set()


def test_every_exception_is_needed():
    """An exception that no model needs any more is removed."""
    needed = {
        (provider, prefix, field)
        for model in MODELS
        for field, (known, profile) in claims(model).items()
        if None not in (known, profile) and known != profile
        for provider, prefix, name in EXCEPTIONS
        if provider in ("", model.provider) and name == field and matching({prefix: {}}, model.id)
    }
    assert needed == {*EXCEPTIONS}


WINDOWED = ["groq", "fireworks", "together", "openrouter", "novita", "deepinfra", "mistral"]


@pytest.mark.parametrize("provider", WINDOWED)
@pytest.mark.parametrize("stream", [False, True])
def test_a_request_longer_than_the_window_of_the_catalog_is_not_sent(provider, stream):
    """200,000 words do not fit into a window of 131,072 tokens, whole or as a stream."""
    window = 131_072
    model = next(
        model
        for model in list_models(provider, kind="chat")
        if model.context_window == window and writes_text(model)
    )
    transport = CannedTransport([])
    adapter = HttpAdapter(provider, "key", transport=transport)
    request = Request(model=model.id, messages="word " * 200_000)

    async def ask():
        if not stream:
            return await adapter.complete(request)
        return [event async for event in adapter.stream(request)]

    with pytest.raises(ContextLengthError, match="the context window is 131072"):
        asyncio.run(ask())
    assert transport.requests == []


def test_tools_for_a_model_that_has_none_are_refused():
    """A capability that only the catalog denies is enforced."""
    model = next(one for one in list_models("novita") if one.supports_tools is False)
    adapter = HttpAdapter("novita", "key", transport=CannedTransport([]))
    tools = [{"name": "look", "parameters": {"type": "object"}}]
    request = Request(model=model.id, messages="hi", tools=tools)

    with pytest.raises(UnsupportedError, match="does not support tools"):
        asyncio.run(adapter.complete(request))


def test_what_nobody_states_is_unknown():
    """A model of the catalog without a flag has no flag in its profile, and no limit."""
    model = get_model_info("doubleword:moonshotai/kimi-k3")
    profile = profile_for("openai_chat", "my-own-model", "openai_compatible")

    assert (model.supports_tools, model.supports_vision) == (None, None)
    assert (profile.kind, profile.tools, profile.context_window) == (None, None, None)


def test_a_row_of_ones_own_is_in_the_profile(tmp_path):
    """What is merged over the catalog is enforced by adapters that were made before."""
    adapter = HttpAdapter("groq", "key")
    before = adapter.profile_for("house-model")
    path = tmp_path / "own.json"
    row = {"id": "house-model", "provider": "groq", "context_window": 9, "supports_tools": False}
    path.write_text(json.dumps({"models": [row]}), "utf-8")
    try:
        update(path)
        after = adapter.profile_for("house-model")
    finally:
        catalog.reset_table()

    assert (before.context_window, before.tools) == (None, None)
    assert (after.context_window, after.tools) == (9, False)
    assert adapter.profile_for("house-model") == before


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


WITHOUT_PRICES = {
    "chatgpt": "a subscription",
    "github": "no source lists its models",
    "litellm": "a proxy of one's own",
    "ollama_cloud": "a subscription",
    "openai_compatible": "any server",
    "portkey": "a gateway that bills nothing itself",
}


def test_every_row_whose_models_a_source_prices_has_prices():
    """A cost is known wherever one of the sources knows it; the other rows have a reason."""
    priced = {model.provider for model in MODELS if model.prices}
    remote = {row.name for row in ROWS if not row.is_local}

    assert remote - priced == {*WITHOUT_PRICES}


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


@pytest.mark.parametrize("provider", sorted({*PROVIDERS} - {"jina", "voyage"}))
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
        "print([*m.table().models.read])\n"
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
