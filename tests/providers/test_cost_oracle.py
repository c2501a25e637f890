"""Our costs, compared with those that `genai-prices` computes from the same prices."""

import json
import random
from datetime import UTC, datetime
from importlib.metadata import version
from math import isclose
from pkgutil import get_data

import pytest
from genai_prices import Usage as TheirUsage
from genai_prices import calc_price, extract_usage

from interlingua import dialects
from interlingua.providers.catalog.models import table
from interlingua.providers.cost import price_usage
from interlingua.providers.tariffs import Seller, Tariffs
from interlingua.spec.contracts import NEUTRAL_PROFILE
from interlingua.spec.errors import SDKError
from interlingua.spec.response import Usage
from support import corpus

NOON = datetime(2026, 11, 10, 12, tzinfo=UTC)
THEIR_NAMES = {"openai": "openai", "anthropic": "anthropic", "gemini": "google", "xai": "x-ai"}


def usages(seed):
    """A short and a long input, in part cached."""
    draw = random.Random(seed)
    for size in (90_000, 900_000):
        tokens = draw.randint(size // 2, size)
        yield tokens, draw.randint(1, 5000), draw.randint(0, tokens // 2)


SOURCES = json.loads(get_data("interlingua.providers.catalog", "data/index.json"))["sources"]


same_prices = pytest.mark.skipif(
    version("genai-prices") != SOURCES["genai-prices"], reason="other prices than the catalog's"
)


@same_prices
@pytest.mark.parametrize("provider", THEIR_NAMES)
def test_the_same_amounts(provider):
    """For every chat model that both know, with short and with long input."""
    tariffs, compared = Tariffs(), 0
    for model in table().models[provider]:
        tariff = tariffs[Seller(provider), model.id, model.id]
        if model.kind != "chat" or tariff is None or model.price_disputed:
            continue
        for tokens, output, read in usages(model.id):
            counts = {"input_tokens": tokens, "output_tokens": output}
            try:
                theirs = calc_price(
                    TheirUsage(**counts, cache_read_tokens=read),
                    model_ref=model.id,
                    provider_id=THEIR_NAMES[provider],
                    genai_request_timestamp=NOON,
                )
            except LookupError:  # they do not know the model
                continue
            if theirs.model_price.cache_read_mtok is None:
                continue  # the rate of our catalog is from another source
            usage = Usage(**counts, cache_read_tokens=read)
            ours = price_usage(usage, tariff, NOON.timestamp())
            assert isclose(ours.total, float(theirs.total_price), rel_tol=1e-9), model.id
            assert ours.pricing_version == table().version
            compared += 1

    assert compared >= 10


@same_prices
@pytest.mark.skipif(not corpus.is_here(), reason="no recordings")
@pytest.mark.parametrize(
    ("dialect", "provider", "flavor", "least"),
    [
        ("openai_responses", "openai", "responses", 700),
        ("openai_chat", "openai", "chat", 1400),
        ("anthropic_messages", "anthropic", "default", 800),
        ("gemini_generate", "gemini", "default", 400),
    ],
)
def test_the_same_amounts_from_recorded_bodies(dialect, provider, flavor, least):
    """They read the usage of the body themselves; audio they price as text."""
    tariffs, compared = Tariffs(), 0
    settings = {"headers": {}, "new_id": str, "profile": NEUTRAL_PROFILE}
    for record in corpus.records(dialect):
        body = record["response_body"]
        if not isinstance(body, dict) or body.get("error"):
            continue
        try:
            response = dialects.get(dialect).decode_response(body, **settings)
            theirs = calc_price(
                extract_usage(body, provider_id=THEIR_NAMES[provider], api_flavor=flavor).usage,
                model_ref=response.model,
                provider_id=THEIR_NAMES[provider],
                genai_request_timestamp=NOON,
            )
        except (SDKError, LookupError, ValueError, AttributeError):
            continue  # no answer, an unknown model, or a body without usage
        usage = response.usage
        ours = price_usage(usage, tariffs[Seller(provider), response.model, ""], NOON.timestamp())
        if ours is None or usage.input_audio_tokens or usage.output_audio_tokens:
            continue
        if usage.passes:  # they price the totals, which leave passes out
            continue
        assert isclose(ours.total, float(theirs.total_price), rel_tol=1e-9), record["id"]
        compared += 1

    assert compared >= least
