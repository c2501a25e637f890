"""Our costs, compared with those that `genai-prices` computes from the same prices."""

import json
import random
from datetime import UTC, datetime
from importlib.metadata import version
from math import isclose
from pkgutil import get_data

import pytest
from genai_prices import Usage as TheirUsage
from genai_prices import calc_price

from interlingua.providers.catalog.models import table
from interlingua.providers.cost import price_usage
from interlingua.providers.tariffs import Seller, Tariffs
from interlingua.spec.response import Usage

NOON = datetime(2026, 11, 10, 12, tzinfo=UTC)
THEIR_NAMES = {"openai": "openai", "anthropic": "anthropic", "gemini": "google", "xai": "x-ai"}


def usages(seed):
    """A short and a long input, in part cached."""
    draw = random.Random(seed)
    for size in (90_000, 900_000):
        tokens = draw.randint(size // 2, size)
        yield tokens, draw.randint(1, 5000), draw.randint(0, tokens // 2)


SOURCES = json.loads(get_data("interlingua.providers.catalog", "models.json"))["sources"]


@pytest.mark.skipif(
    version("genai-prices") != SOURCES["genai-prices"], reason="other prices than the catalog's"
)
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
