"""Searches in the catalog."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.providers.catalog.models import providers_of
from interlingua.providers.catalog.search import (
    CAPABILITIES,
    cheapest,
    find_short_name,
    get_latest_model,
    get_model_info,
    is_available,
    list_models,
    mixed_price,
)
from interlingua.spec.errors import ConfigurationError

MODELS = list_models()
PROVIDERS = sorted({model.provider for model in MODELS})
KINDS = sorted({model.kind for model in MODELS})

conditions = st.fixed_dictionaries(
    {},
    optional={
        "provider": st.sampled_from(PROVIDERS),
        "capability": st.sampled_from(CAPABILITIES)
        | st.lists(st.sampled_from(CAPABILITIES), max_size=3),
        "kind": st.sampled_from(KINDS),
        "tier": st.sampled_from(["small", "medium", "large"]),
        "max_price": st.floats(0, 100),
        "min_context": st.integers(0, 2_000_000),
        "available": st.booleans(),
    },
)


def satisfies(model, conditions):
    """What the conditions mean, one after another."""
    wanted = conditions.get("capability", ())
    wanted = [wanted] if isinstance(wanted, str) else wanted
    price, limit = mixed_price(model), conditions.get("max_price")
    return (
        conditions.get("provider") in (None, model.provider)
        and all(getattr(model, f"supports_{name}") is True for name in wanted)
        and conditions.get("kind") in (None, model.kind)
        and conditions.get("tier") in (None, model.tier)
        and (limit is None or (price is not None and price <= limit))
        and (model.context_window or 0) >= conditions.get("min_context", 0)
        and (is_available(model) or not conditions.get("available"))
    )


# Laws.


@given(conditions)
def test_a_search_finds_exactly_what_satisfies_it(conditions):
    """All conditions hold for what is found, what satisfies them is found, and the order stays."""
    assert list_models(**conditions) == tuple(m for m in MODELS if satisfies(m, conditions))


@given(conditions)
def test_the_cheapest_is_the_cheapest(conditions):
    """Nothing that can be used costs less, except what is free."""
    for name in ("max_price", "available"):
        conditions.pop(name, None)
    kind = conditions.pop("kind", "chat")
    found = cheapest(kind=kind, **conditions)
    others = list_models(**conditions, kind=kind, available=True)
    prices = [
        mixed_price(model)
        for model in others
        if mixed_price(model)
        and (kind != "chat" or not model.output_modalities or "text" in model.output_modalities)
    ]

    assert (None if found is None else mixed_price(found)) == min(prices, default=None)
    assert found is None or found in others


@given(st.from_regex("[a-z]{3,8}(-[a-z]{3,8})?", fullmatch=True) | st.sampled_from(
    [word for model in MODELS[:200] for word in model.id.split("-")]
))  # fmt: skip
def test_a_shorthand_is_a_model_to_build_on_and_routes_nothing(word):
    """What a word alone finds chats, is open to all, and has no end in sight."""
    found = get_model_info(word)
    if found is None or word in (found.id, *found.aliases):
        return

    assert is_available(found)
    assert found.kind == "chat"
    assert providers_of(word) == ()


# Examples.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sonnet", "anthropic:claude-sonnet-5-5"),
        ("Opus", "anthropic:claude-opus-5-5"),
        ("haiku", "anthropic:claude-haiku-5-5"),
        ("claude", "anthropic:claude-fable-5-2"),
        ("claude-sonnet", "anthropic:claude-sonnet-5-5"),
        ("gpt", "openai:gpt-6-astra"),
        ("gpt mini", "openai:gpt-5.4-mini"),
        ("flash", "gemini:gemini-3.8-flash"),
        ("flash-lite", "gemini:gemini-3.5-flash-lite"),
        ("grok", "xai:grok-4.7"),
        ("glm", "zai:glm-5.3"),
        ("kimi", "moonshot:kimi-k3.1-pro"),
        ("anthropic:haiku", "anthropic:claude-haiku-5-5"),
        ("deepseek:flash", "deepseek:deepseek-v4-flash"),
        ("google:gemini-2.5-pro", "gemini:gemini-2.5-pro"),
        ("openrouter:openai/gpt-5.5", "openrouter:openai/gpt-5.5"),
        ("gpt-5.2-2025-12-11", "openai:gpt-5.2"),
        ("gpt-5.2-2099-01-01", "openai:gpt-5.2"),
        ("claude-sonnet-5-5-20261001", "anthropic:claude-sonnet-5-5"),
        ("claude-haiku-5-5@20261001", "anthropic:claude-haiku-5-5"),
        ("ft:gpt-4o-2024-08-06:acme::x", "openai:ft:gpt-4o-2024-08-06"),
        ("GLM-5.3", "zai:glm-5.3"),
        ("mythos", None),  # gated
        ("tts", None),  # it speaks
        ("gpt-9", None),
        ("house:haiku", None),
        ("", None),
        (":", None),
    ],
)
def test_names(name, expected):
    """An id, an alias, a dated version, a provider before a model, or a word of a name."""
    found = get_model_info(name)

    assert (None if found is None else f"{found.provider}:{found.id}") == expected


@pytest.mark.parametrize(
    ("name", "provider", "expected"),
    [
        ("sonnet", None, "claude-sonnet-5-5"),
        (" Flash Lite ", "gemini", "gemini-3.5-flash-lite"),
        ("claude-sonnet-5-5", None, None),
        ("sonnet", "openai", None),
        ("mistral-embed", "mistral", None),
    ],
)
def test_a_short_name_is_told_from_an_id(name, provider, expected):
    """The lookup of short names answers for short names alone, never for ids or aliases."""
    found = find_short_name(name, provider)

    assert (None if found is None else found.id) == expected


def test_a_provider_limits_every_form():
    """The second argument may be an alias of a provider."""
    assert get_model_info("flash", "google").id == "gemini-3.8-flash"
    assert get_model_info("openai/gpt-oss-120b", "together").provider == "together"
    assert get_model_info("gpt-5.2", "anthropic") is None
    assert list_models("google") == list_models("gemini") != ()


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_the_big_three_have_every_tier(provider):
    """So that a program can change the provider and keep the tier."""
    costs = [mixed_price(get_latest_model(provider, tier=t)) for t in ("small", "medium", "large")]

    assert costs == sorted(costs)


def test_the_mixed_price():
    """Three of four tokens are input, at the price of the moment; embeddings have only input."""
    argon = get_model_info("gemini-4-argon")

    assert mixed_price(argon, datetime(2026, 11, 16, tzinfo=UTC)) == 0.75 * 2 + 0.25 * 10
    assert mixed_price(argon, datetime(2026, 12, 1, tzinfo=UTC)) == 0.75 * 4 + 0.25 * 20
    assert mixed_price(get_model_info("text-embedding-3-small")) == 0.02
    assert mixed_price(get_model_info("claude-mythos-5-2")) is None
    assert mixed_price(get_model_info("sora-2")) is None


def test_free_offers_only_if_asked_for():
    """They have limits of their own."""
    assert mixed_price(cheapest()) > 0
    assert mixed_price(cheapest(free=True)) == 0


def test_any_iterable_of_capabilities():
    """Also one that can be read only once."""
    names = ["tools", "vision"]

    assert list_models(capability=iter(names)) == list_models(capability=names)


@pytest.mark.parametrize("search", [list_models, cheapest, get_latest_model])
def test_an_unknown_capability_is_an_error(search):
    """In every search, also among known ones."""
    with pytest.raises(ConfigurationError, match=r"no capability 'smell'\. Use one of tools, "):
        search("openai", ["tools", "smell"]) if search is get_latest_model else search(
            capability=["tools", "smell"]
        )
