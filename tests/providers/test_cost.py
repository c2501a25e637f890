"""What calls cost. The amounts in the table are computed by hand, in millionths of a dollar."""

from datetime import UTC, date, datetime, time
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua import dialects
from interlingua.providers.catalog.prices import LongContext, Price, Rates
from interlingua.providers.cost import Tariff, price_usage
from interlingua.spec.response import Cost, Usage, UsagePass

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()

PLAIN = Price(rates=Rates(input=2.5, output=10))
OPENAI = Price(rates=Rates(input=2.5, output=10, cache_read=1.25))
CLAUDE = Price(
    rates=Rates(input=3, output=15, cache_read=0.3, cache_write=3.75, cache_write_1h=6),
    long_context=(
        LongContext(
            above=200_000,
            rates=Rates(input=6, output=22.5, cache_read=0.6, cache_write=7.5, cache_write_1h=12),
        ),
    ),
)
CLAUDE_BATCH = Price(
    tier="batch",
    rates=Rates(input=1.5, output=7.5, cache_read=0.15, cache_write=1.875, cache_write_1h=3),
)
GPT = Price(
    rates=Rates(input=5, output=30, cache_read=0.5),
    long_context=(LongContext(above=272_000, rates=Rates(input=10, output=45, cache_read=1)),),
)
GPT_FLEX = Price(
    tier="flex",
    rates=Rates(input=2.5, output=15, cache_read=0.25),
    long_context=(LongContext(above=272_000, rates=Rates(input=5, output=22.5, cache_read=0.5)),),
)
GPT_PRIORITY = Price(tier="priority", rates=Rates(input=10, output=60, cache_read=1))
GPT_BATCH = Price(tier="batch", rates=Rates(input=2.5, output=15))
GEMINI = Price(rates=Rates(input=0.3, output=2.5, cache_read=0.03, input_audio=1))
GEMINI_AUDIO = Price(
    rates=Rates(input=0.3, output=2.5, cache_read=0.03, input_audio=1, cache_read_audio=0.1)
)
SPEECH = Price(rates=Rates(input=2.5, output=10, input_audio=40, output_audio=80))
PAINTER = Price(rates=Rates(input=5, output=10, input_image=8, output_image=32))
GROK = Price(rates=Rates(input=0.2, output=0.5, cache_read=0.05))
SEARCH = Price(rates=Rates(input=1, output=1, per_request=0.005))
THINKER = Price(rates=Rates(input=1, output=4, reasoning=8))
DATED = (
    Price(rates=Rates(input=4, output=16)),
    Price(rates=Rates(input=2, output=8), starts=date(2026, 3, 11)),
)
HOURLY = (
    Price(rates=Rates(input=1, output=2)),
    Price(rates=Rates(input=0.5, output=1), hours=(time(16, 30), time(0, 30))),
)


def chat(usage, **body):
    answer = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}
    return _usage("openai_chat", {"model": "m", "choices": [answer], "usage": usage, **body})


def responses(usage, **body):
    return _usage("openai_responses", {"model": "m", "output": [], "usage": usage, **body})


def messages(usage):
    return _usage("anthropic_messages", {"model": "m", "content": [], "usage": usage})


def gemini(usage):
    candidates = [{"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]
    return _usage("gemini_generate", {"candidates": candidates, "usageMetadata": usage})


def _usage(dialect, body):
    return dialects.get(dialect).decode_response(body).usage


def at(day, hour, minute=0):
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC).timestamp()


def details(**counts):
    return {"prompt_tokens_details": counts}


CASES = {
    # usage, prices, micro-dollars[, time]
    "plain": (Usage(input_tokens=1532, output_tokens=100), PLAIN, 3830 + 1000),
    "nothing": (Usage(), PLAIN, 0),
    "chat": (chat({"prompt_tokens": 1532, "completion_tokens": 100}), PLAIN, 4830),
    "chat cached": (
        chat({"prompt_tokens": 1532, "completion_tokens": 100, **details(cached_tokens=1024)}),
        OPENAI,
        508 * 2.5 + 1024 * 1.25 + 1000,  # 1270 + 1280 + 1000
    ),
    "cached without a rate": (
        chat({"prompt_tokens": 1532, "completion_tokens": 0, **details(cached_tokens=1024)}),
        PLAIN,
        3830,
    ),
    "chat reasoning once": (
        chat(
            {
                "prompt_tokens": 10,
                "completion_tokens": 300,
                "completion_tokens_details": {"reasoning_tokens": 256},
            }
        ),
        OPENAI,
        25 + 3000,
    ),
    "reasoning rate": (
        Usage(input_tokens=10, output_tokens=300, reasoning_tokens=100),
        THINKER,
        10 + 200 * 4 + 100 * 8,
    ),
    "responses cached": (
        responses(
            {
                "input_tokens": 2000,
                "input_tokens_details": {"cached_tokens": 1920},
                "output_tokens": 50,
                "output_tokens_details": {"reasoning_tokens": 40},
            }
        ),
        GPT,
        80 * 5 + 1920 * 0.5 + 50 * 30,
    ),
    "responses flex": (
        responses({"input_tokens": 1000, "output_tokens": 100}, service_tier="flex"),
        (GPT, GPT_FLEX),
        2500 + 1500,
    ),
    "responses priority": (
        responses({"input_tokens": 1000, "output_tokens": 100}, service_tier="priority"),
        (GPT, GPT_PRIORITY),
        10_000 + 6000,
    ),
    "responses fast is priority": (
        responses({"input_tokens": 1000, "output_tokens": 100}, service_tier="fast"),
        (GPT, GPT_PRIORITY),
        16_000,
    ),
    "responses default": (
        responses({"input_tokens": 1000, "output_tokens": 100}, service_tier="default"),
        (GPT_PRIORITY, GPT, GPT_FLEX),
        5000 + 3000,
    ),
    "chat flex": (
        chat({"prompt_tokens": 1000, "completion_tokens": 100}, service_tier="flex"),
        (GPT, GPT_FLEX),
        4000,
    ),
    "batch": (
        chat({"prompt_tokens": 1000, "completion_tokens": 100}, service_tier="batch"),
        (GPT, GPT_BATCH),
        2500 + 1500,
    ),
    "a tier without a price": (
        chat({"prompt_tokens": 1000, "completion_tokens": 100}, service_tier="priority"),
        (GPT, GPT_FLEX),
        None,
    ),
    "at the limit of 272k": (
        Usage(input_tokens=272_000, output_tokens=10),
        GPT,
        1_360_000 + 300,
    ),
    "above 272k": (
        Usage(input_tokens=272_001, cache_read_tokens=1, output_tokens=10),
        GPT,
        2_720_000 + 1 + 450,
    ),
    "flex above 272k": (
        Usage(input_tokens=300_000, output_tokens=10, service_tier="flex"),
        (GPT, GPT_FLEX),
        1_500_000 + 225,
    ),
    "anthropic": (messages({"input_tokens": 1532, "output_tokens": 100}), CLAUDE, 4596 + 1500),
    "anthropic reads": (
        messages({"input_tokens": 32, "cache_read_input_tokens": 1500, "output_tokens": 100}),
        CLAUDE,
        96 + 450 + 1500,
    ),
    "anthropic writes of five minutes": (
        messages(
            {
                "input_tokens": 32,
                "cache_creation_input_tokens": 1500,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 1500,
                    "ephemeral_1h_input_tokens": 0,
                },
                "output_tokens": 100,
            }
        ),
        CLAUDE,
        96 + 5625 + 1500,
    ),
    "anthropic writes of an hour": (
        messages(
            {
                "input_tokens": 32,
                "cache_creation_input_tokens": 1500,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 500,
                    "ephemeral_1h_input_tokens": 1000,
                },
                "output_tokens": 100,
            }
        ),
        CLAUDE,
        96 + 500 * 3.75 + 1000 * 6 + 1500,  # 96 + 1875 + 6000 + 1500
    ),
    "an hour without a rate": (
        Usage(input_tokens=100, cache_write_tokens=100, cache_write_1h_tokens=100),
        Price(rates=Rates(input=3, output=15, cache_write=3.75)),
        375,
    ),
    "writes without a rate": (Usage(input_tokens=100, cache_write_tokens=100), PLAIN, 250),
    "anthropic above 200k": (
        messages(
            {
                "input_tokens": 1000,
                "cache_read_input_tokens": 150_000,
                "cache_creation_input_tokens": 50_000,
                "output_tokens": 1000,
            }
        ),
        CLAUDE,
        6000 + 90_000 + 375_000 + 22_500,
    ),
    "anthropic batch": (
        messages(
            {
                "input_tokens": 1000,
                "cache_read_input_tokens": 1000,
                "output_tokens": 100,
                "service_tier": "batch",
            }
        ),
        (CLAUDE, CLAUDE_BATCH),
        1500 + 150 + 750,
    ),
    "anthropic standard": (
        messages({"input_tokens": 1000, "output_tokens": 100, "service_tier": "standard"}),
        (CLAUDE, CLAUDE_BATCH),
        3000 + 1500,
    ),
    "anthropic thinking once": (
        messages(
            {
                "input_tokens": 10,
                "output_tokens": 400,
                "output_tokens_details": {"thinking_tokens": 300},
            }
        ),
        CLAUDE,
        30 + 6000,
    ),
    "gemini": (
        gemini(
            {
                "promptTokenCount": 1000,
                "cachedContentTokenCount": 600,
                "candidatesTokenCount": 100,
                "thoughtsTokenCount": 300,
                "totalTokenCount": 1400,
            }
        ),
        GEMINI,
        400 * 0.3 + 600 * 0.03 + 400 * 2.5,  # 120 + 18 + 1000
    ),
    "gemini tool prompts": (
        gemini(
            {
                "promptTokenCount": 1000,
                "toolUsePromptTokenCount": 500,
                "candidatesTokenCount": 100,
            }
        ),
        GEMINI,
        450 + 250,
    ),
    "gemini audio": (
        gemini(
            {
                "promptTokenCount": 1000,
                "candidatesTokenCount": 100,
                "promptTokensDetails": [
                    {"modality": "TEXT", "tokenCount": 200},
                    {"modality": "AUDIO", "tokenCount": 800},
                ],
            }
        ),
        GEMINI,
        60 + 800 + 250,
    ),
    "gemini cached audio": (
        gemini(
            {
                "promptTokenCount": 1000,
                "cachedContentTokenCount": 700,
                "candidatesTokenCount": 0,
                "promptTokensDetails": [
                    {"modality": "TEXT", "tokenCount": 200},
                    {"modality": "AUDIO", "tokenCount": 800},
                ],
                "cacheTokensDetails": [
                    {"modality": "TEXT", "tokenCount": 100},
                    {"modality": "AUDIO", "tokenCount": 600},
                ],
            }
        ),
        GEMINI_AUDIO,
        # text 100 fresh, 100 cached; audio 200 fresh, 600 cached
        100 * 0.3 + 100 * 0.03 + 200 * 1 + 600 * 0.1,  # 30 + 3 + 200 + 60
    ),
    "speech in and out": (
        chat(
            {
                "prompt_tokens": 120,
                "completion_tokens": 60,
                "total_tokens": 180,
                "prompt_tokens_details": {"audio_tokens": 100},
                "completion_tokens_details": {"audio_tokens": 40},
            }
        ),
        SPEECH,
        20 * 2.5 + 100 * 40 + 20 * 10 + 40 * 80,  # 50 + 4000 + 200 + 3200
    ),
    "speech without a rate is text": (
        Usage(input_tokens=120, input_audio_tokens=100, output_tokens=0),
        PLAIN,
        300,
    ),
    "images in and out": (
        responses(
            {
                "input_tokens": 300,
                "input_tokens_details": {"image_tokens": 200},
                "output_tokens": 1100,
                "output_tokens_details": {"image_tokens": 1000},
            }
        ),
        PAINTER,
        100 * 5 + 200 * 8 + 100 * 10 + 1000 * 32,  # 500 + 1600 + 1000 + 32,000
    ),
    "seconds of video": (
        Usage(input_tokens=10, video_seconds=8),
        Price(rates=Rates(input=1, output=1, per_video_second=0.1)),
        10 + 800_000,
    ),
    "xai counts reasoning beside the output": (
        chat(
            {
                "prompt_tokens": 165,
                "completion_tokens": 2,
                "total_tokens": 292,
                "prompt_tokens_details": {"cached_tokens": 156},
                "completion_tokens_details": {"reasoning_tokens": 125},
            }
        ),
        GROK,
        9 * 0.2 + 156 * 0.05 + 127 * 0.5,  # 1.8 + 7.8 + 63.5, as in xAI's own figure below
    ),
    "xai's own figure": (
        chat(
            {
                "prompt_tokens": 165,
                "completion_tokens": 2,
                "total_tokens": 292,
                "cost_in_usd_ticks": 731_000,
            }
        ),
        (),
        73.1,
    ),
    "openrouter's own figure": (
        chat({"prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.00234}),
        PLAIN,
        2340,
    ),
    "openrouter with the caller's key": (
        chat(
            {
                "prompt_tokens": 1000,
                "completion_tokens": 100,
                "cost": 0.0001,
                "is_byok": True,
                "cost_details": {"upstream_inference_cost": 0.002},
            }
        ),
        PLAIN,
        2100,
    ),
    "a free model of openrouter": (
        chat({"prompt_tokens": 1000, "completion_tokens": 100, "cost": 0}),
        (),
        0,
    ),
    "more cached than input": (
        chat({"prompt_tokens": 100, "completion_tokens": 0, **details(cached_tokens=140)}),
        OPENAI,
        125,
    ),
    "read and written each near the input": (
        chat(
            {
                "prompt_tokens": 1010,
                "completion_tokens": 0,
                **details(cached_tokens=1000, cache_write_tokens=1000),
            }
        ),
        CLAUDE,
        1000 * 0.3 + 10 * 3.75,  # 300 + 37.5
    ),
    "negative counts": (chat({"prompt_tokens": 100, "completion_tokens": -5}), PLAIN, 250),
    "before a change": (Usage(input_tokens=1000, output_tokens=10), DATED, 4160, at(10, 23, 59)),
    "after a change": (Usage(input_tokens=1000, output_tokens=10), DATED, 2080, at(11, 0)),
    "before the first price": (Usage(input_tokens=1000), DATED[1:], None, at(10, 23)),
    "at noon": (Usage(input_tokens=1000, output_tokens=10), HOURLY, 1020, at(10, 12)),
    "in cheaper hours": (Usage(input_tokens=1000, output_tokens=10), HOURLY, 510, at(10, 16, 30)),
    "past midnight": (Usage(input_tokens=1000, output_tokens=10), HOURLY, 510, at(11, 0, 29)),
    "after them": (Usage(input_tokens=1000, output_tokens=10), HOURLY, 1020, at(11, 0, 30)),
    "per request": (Usage(input_tokens=1000, output_tokens=10), SEARCH, 5000 + 1010),
    "web searches": (
        messages(
            {
                "input_tokens": 1000,
                "output_tokens": 10,
                "server_tool_use": {"web_search_requests": 2},
            }
        ),
        Price(rates=Rates(input=1, output=1, per_web_search=0.01)),
        1010 + 20_000,
    ),
    "web searches without a price": (
        Usage(input_tokens=1000, web_searches=1),
        PLAIN,
        None,
    ),
    "unknown model": (Usage(input_tokens=1000, output_tokens=10), (), None),
    "output without a price": (
        Usage(input_tokens=1000, output_tokens=10),
        Price(rates=Rates(input=1)),
        None,
    ),
    "embeddings have no output": (Usage(input_tokens=1000), Price(rates=Rates(input=0.02)), 20),
}  # fmt: skip


def cost_of(usage, prices, moment=NOON, **more):
    rows = (prices,) if isinstance(prices, Price) else prices
    tariff = Tariff(rows, "2026-03-01", "catalog") if rows else None
    return price_usage(usage, tariff, moment, **more)


@pytest.mark.parametrize("name", CASES)
def test_the_table(name):
    """Exact to a millionth of a millionth of a dollar; what is unknown is None, never 0."""
    usage, prices, expected, *moment = CASES[name]
    cost = cost_of(usage, prices, *moment)

    if expected is None:
        assert cost is None
        return
    assert cost is not None
    assert isclose(cost.total * 1_000_000, expected, rel_tol=1e-12, abs_tol=1e-6)
    assert all(getattr(cost, part) >= 0 for part in PARTS)
    if cost.source == "provider":
        assert cost == Cost(total=cost.total, source="provider")
    else:
        assert isclose(sum(getattr(cost, part) for part in PARTS), cost.total, abs_tol=1e-12)
        assert (cost.pricing_version, cost.currency) == ("2026-03-01", "USD")


PARTS = ("input", "cache_read", "cache_write", "output", "media")


def test_there_are_enough_cases():
    """At least forty."""
    assert len(CASES) >= 40


def test_the_same_input_costs_the_same_in_every_form():
    """1,532 input tokens, of which 1,500 are cached, as OpenAI, Anthropic and Gemini say it."""
    forms = [
        chat({"prompt_tokens": 1532, "completion_tokens": 0, **details(cached_tokens=1500)}),
        responses(
            {
                "input_tokens": 1532,
                "input_tokens_details": {"cached_tokens": 1500},
                "output_tokens": 0,
            }
        ),
        messages({"input_tokens": 32, "cache_read_input_tokens": 1500, "output_tokens": 0}),
        gemini({"promptTokenCount": 1532, "cachedContentTokenCount": 1500}),
    ]
    costs = [cost_of(usage, CLAUDE) for usage in forms]

    assert {usage.input_tokens for usage in forms} == {1532}
    assert costs == costs[:1] * len(forms)
    assert isclose(costs[0].total, (32 * 3 + 1500 * 0.3) / 1e6)


def test_images_that_are_made():
    """Some models have a price per image."""
    painter = Price(rates=Rates(input=1, output=1, per_image=0.04))

    usage = Usage(input_tokens=10, images=3)

    assert isclose(cost_of(usage, painter).total, 0.12001)
    assert isclose(cost_of(usage, painter).media, 0.12)


def test_reasoning_is_priced_once_within_the_output():
    """It is a part of `output`, not an addition to it (field bug 67)."""
    usage = Usage(input_tokens=10, output_tokens=300, reasoning_tokens=256)
    cost = cost_of(usage, OPENAI)

    assert isclose(cost.output, 0.003)
    assert isclose(cost.reasoning, 0.00256)
    assert isclose(cost.total, cost.input + cost.output)


def test_every_tier_has_its_own_price():
    """Writes of five minutes and of an hour, long context, served tiers and batches.

    Field bug 68.
    """
    parts = {
        name: cost_of(*CASES[name][:2]).total
        for name in (
            "anthropic writes of five minutes",
            "anthropic writes of an hour",
            "anthropic above 200k",
            "anthropic batch",
            "above 272k",
            "flex above 272k",
            "responses flex",
            "responses priority",
        )
    }

    assert len(set(parts.values())) == len(parts)


def test_an_unknown_price_is_none():
    """Never 0: not for the model, not for the tier, not for the output alone (field bug 69)."""
    for name in ("unknown model", "a tier without a price", "output without a price"):
        usage, prices, *_ = CASES[name]
        assert cost_of(usage, prices) is None


COUNTS = st.integers(0, 10**6)
MAYBE = st.none() | COUNTS


@st.composite
def usages(draw):
    """Any counts, also those that contradict each other."""
    fields = {
        name: draw(MAYBE)
        for name in (
            *("reasoning_tokens", "cache_read_tokens", "cache_write_tokens"),
            *("cache_write_1h_tokens", "cache_read_audio_tokens", "input_audio_tokens"),
            *("input_image_tokens", "output_audio_tokens", "output_image_tokens"),
        )
    }
    return Usage(input_tokens=draw(COUNTS), output_tokens=draw(COUNTS), **fields)


RICH = Rates(
    input=3,
    output=15,
    cache_read=0.3,
    cache_write=3.75,
    cache_write_1h=6,
    input_audio=40,
    cache_read_audio=4,
    output_audio=80,
    input_image=5,
    output_image=30,
    reasoning=20,
)


@given(usages())
def test_no_part_is_negative_and_the_parts_add_up(usage):
    """Whatever a host reports."""
    cost = cost_of(usage, Price(rates=RICH))

    assert all(getattr(cost, part) >= 0 for part in (*PARTS, "reasoning"))
    assert isclose(sum(getattr(cost, part) for part in PARTS), cost.total, rel_tol=1e-9)
    assert cost.reasoning <= cost.output


@given(usages())
def test_at_one_rate_only_the_totals_count(usage):
    """If everything costs the same, how the tokens are divided makes no difference."""
    same = Rates(**dict.fromkeys(RICH.__struct_fields__[:11], 2.0))
    cost = cost_of(usage, Price(rates=same))

    expected = 2.0 * usage.total_tokens / 1e6
    assert isclose(cost.total, expected, rel_tol=1e-9, abs_tol=1e-12)


@given(usages(), st.floats(0.1, 10))
def test_cost_is_linear_in_the_rates(usage, factor):
    """Rates that are twice as high cost twice as much."""
    scaled = {
        name: None if (rate := getattr(RICH, name)) is None else rate * factor
        for name in RICH.__struct_fields__
    }
    cost, more = cost_of(usage, Price(rates=RICH)), cost_of(usage, Price(rates=Rates(**scaled)))

    assert isclose(more.total, cost.total * factor, rel_tol=1e-9, abs_tol=1e-12)


@given(
    st.sampled_from(["standard", "longer", "changing", "without output", "media"]),
    st.integers(0, 500_000),
    st.integers(0, 50_000),
)
def test_the_short_way_gives_the_same(kind, input_tokens, output_tokens):
    """`Tariff.price_tokens` is the total of `price_usage` for plain input and output."""
    later = Price(rates=Rates(input=1, output=2), starts=date(2026, 1, 1))
    prices = {
        "standard": (PLAIN,),
        "longer": (CLAUDE, CLAUDE_BATCH),
        "changing": (PLAIN, later),
        "without output": (Price(rates=Rates(input=1, per_request=0.01)),),
        "media": (Price(rates=RICH),),
    }
    tariff = Tariff(prices[kind], "", "catalog")
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    cost = price_usage(usage, tariff, NOON)

    amount = tariff.price_tokens(input_tokens, output_tokens, lambda: NOON)

    assert (amount is None) == (cost is None)
    assert cost is None or isclose(amount, cost.total, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("unit", "rate", "amount", "expected"),
    [
        ("images", "per_image", 3, 0.12),
        ("characters", "per_million_characters", 2_000, 0.00008),
        ("audio_seconds", "per_audio_hour", 90.0, 0.001),
        ("video_seconds", "per_video_second", 8.0, 0.32),
    ],
)
def test_what_is_paid_for_without_tokens(unit, rate, amount, expected):
    """It has its rate, or no price at all: never 0."""
    usage = Usage(**{unit: amount})

    assert isclose(cost_of(usage, Price(rates=Rates(**{rate: 0.04}))).total, expected)
    assert cost_of(usage, Price(rates=Rates(input=1, output=1))) is None


def test_each_pass_of_an_answer_has_the_price_of_its_model():
    """A pass of another model has its rates, and no pass is long because all are together."""
    others = {
        "other": Tariff((Price(rates=Rates(input=100, output=1000)),), "2026-03-01", "catalog")
    }
    tariff = Tariff((CLAUDE,), "2026-03-01", "catalog", find=others.get)
    usage = Usage(
        input_tokens=450_010,
        output_tokens=12,
        cache_read_tokens=150_000,
        web_searches=2,
        passes=(
            UsagePass(usage=Usage(input_tokens=150_000, output_tokens=10)),
            UsagePass(model="other", usage=Usage(input_tokens=10, output_tokens=1)),
            UsagePass(usage=Usage(input_tokens=150_000, cache_read_tokens=150_000)),
            UsagePass(usage=Usage(input_tokens=150_000, output_tokens=1)),
        ),
    )

    assert price_usage(usage, tariff, NOON) is None  # a web search has no rate
    cost = price_usage(replace(usage, web_searches=None), tariff, NOON)
    assert isclose(cost.total * 1e6, 300_000 * 3 + 150_000 * 0.3 + 11 * 15 + 10 * 100 + 1000)
    assert cost.pricing_version == "2026-03-01"


def test_a_pass_of_a_model_without_a_price_makes_the_cost_unknown():
    """The rest alone would be too small."""
    tariff = Tariff((CLAUDE,), "2026-03-01", "catalog", find=lambda _: None)
    usage = Usage(
        input_tokens=20,
        passes=(
            UsagePass(usage=Usage(input_tokens=10)),
            UsagePass(model="other", usage=Usage(input_tokens=10)),
        ),
    )

    assert price_usage(usage, tariff, NOON) is None
    assert tariff.unknown_model(usage) == "other"
