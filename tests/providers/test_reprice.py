"""`catalog.reprice`: stored records with the prices of another table."""

from datetime import UTC, date, datetime
from math import isclose

import pytest

from interlingua import GenerateResult, StepResult, from_json, to_json
from interlingua.catalog import Price, Rates, reprice
from interlingua.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.response import (
    Attempt,
    Cost,
    FinishReason,
    Response,
    Usage,
    UsagePass,
    label_message,
)

OLD, NEW = {"m": {"input": 1, "output": 2}}, {"m": {"input": 3, "output": 4}}
USAGE = Usage(input_tokens=1000, output_tokens=100)


def response(**fields):
    attempt = Attempt(number=0, provider="own", model="m", usage=USAGE)
    bare = Response(
        provider="own",
        model="m",
        usage=USAGE,
        message=Message.assistant("a"),
        finish_reason=FinishReason(reason="stop"),
        attempts=(attempt,),
        **fields,
    )
    return Response(
        **{name: getattr(bare, name) for name in Response.__struct_fields__ if name != "message"},
        message=label_message(bare, "id", "own", "m"),
    )


def test_a_response():
    """Its cost, that of its attempts, and the metadata of its message; the version changes."""
    (old,) = reprice([response()], OLD)
    (new,) = reprice([old], NEW)

    assert isclose(old.cost.total, 0.0012)
    assert isclose(new.cost.total, 0.0034)
    assert old.cost.pricing_version != new.cost.pricing_version
    assert new.attempts[0].cost == new.cost
    assert new.message.metadata["cost"]["total"] == new.cost.total
    assert new.message.metadata["cost"]["pricing_version"] == new.cost.pricing_version
    assert old.message.metadata["cost"]["total"] == old.cost.total


def test_all_kinds_of_records():
    """Attempts, steps, results, messages and mappings, also after JSON."""
    whole = response()
    step = StepResult(response=whole)
    result = GenerateResult(steps=(step,), messages=(Message.user("?"), whole.message))
    message = from_json(to_json(whole.message), Message)
    records = [
        whole.attempts[0],
        step,
        result,
        message,
        {"provider": "own", "model": "m", "usage": {"input_tokens": 1000, "output_tokens": 100}},
        {"role": "assistant", "metadata": {"model": "m", "usage": {"input_tokens": 1000}}},
    ]
    attempt, step, result, message, mapping, stored = reprice(records, NEW)

    assert isclose(attempt.cost.total, 0.0034)
    assert isclose(step.cost.total, 0.0034)
    assert isclose(result.total_cost.total, 0.0034)
    assert isclose(result.messages[1].metadata["cost"]["total"], 0.0034)
    assert isclose(message.metadata["cost"]["total"], 0.0034)
    assert isclose(mapping["cost"]["total"], 0.0034)
    assert isclose(stored["metadata"]["cost"]["total"], 0.003)
    assert "cost" not in records[4]


def test_the_catalog_is_the_default_table():
    """Aliases and dated ids included; a local provider costs nothing."""
    usage = {"input_tokens": 1000, "output_tokens": 0}
    known = {"provider": "anthropic", "model": "claude-haiku-4-5-20251001", "usage": usage}
    local = {"provider": "ollama", "model": "any", "usage": usage}
    priced, free = reprice([known, local])

    assert isclose(priced["cost"]["total"], 0.001)
    assert priced["cost"]["source"] == "catalog"
    assert (free["cost"]["total"], free["cost"]["source"]) == (0.0, "local")


def test_the_figure_of_a_provider():
    """It stays, unless another table is given."""
    record = {"model": "m", "usage": {"input_tokens": 1000, "reported_cost": 0.5}}

    assert reprice([record])[0]["cost"]["total"] == 0.5
    assert isclose(reprice([record], NEW)[0]["cost"]["total"], 0.003)


def test_unknown():
    """A table without the model: no cost, and a warning; a known price removes the warning."""
    (unknown,) = reprice([response(cost=Cost(total=1.0))], {"other": {"input": 1}})
    (known,) = reprice([unknown], NEW)

    assert unknown.cost is None
    assert [warning.code for warning in unknown.warnings] == ["price_unknown"]
    assert "cost" not in unknown.message.metadata
    assert known.warnings == ()


def test_the_time_of_the_calls():
    """One for all, or one for each record."""
    rows = [
        Price(rates=Rates(input=1)),
        Price(rates=Rates(input=2), starts=date(2026, 5, 1)),
    ]
    before, after = (datetime(2026, 4, 30, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC))
    record = {"model": "m", "usage": {"input_tokens": 1_000_000}, "time": before}
    one = reprice([record], {"m": rows}, at=before)
    each = reprice([record, {**record, "time": after}], {"m": rows}, at=lambda each: each["time"])

    assert one[0]["cost"]["total"] == 1.0
    assert [record["cost"]["total"] for record in each] == [1.0, 2.0]


@pytest.mark.parametrize(
    "record",
    [
        7,
        {"model": "m"},
        {"model": "m", "usage": {"input_tokens": "x"}},
        {"model": "m", "usage": {"prompt_tokens": 1000, "completion_tokens": 5}},
        {"model": "m", "usage": {}},
        {"model": 7, "usage": {"input_tokens": 1}},
    ],
)
def test_what_is_no_record(record):
    """It says what a record is."""
    with pytest.raises(ConfigurationError, match="usage"):
        reprice([record], NEW)


def test_a_time_that_is_none():
    """It is refused."""
    with pytest.raises(ConfigurationError, match="`at` must be a datetime, not '2026-05-01'"):
        reprice([response()], NEW, at="2026-05-01")


def test_messages_of_others_stay():
    """A message without usage has no cost."""
    message = Message.user("?")

    assert reprice([message], NEW) == [message]


def test_passes_of_other_models_after_json():
    """A stored message still knows which model made which pass."""
    passes = (
        UsagePass(usage=Usage(input_tokens=10)),
        UsagePass(model="other", usage=Usage(input_tokens=5)),
    )
    bare = Response(
        model="m",
        message=Message.assistant("Hi."),
        finish_reason=FinishReason(reason="stop"),
        usage=Usage(input_tokens=15, passes=passes),
    )
    stored = from_json(to_json(label_message(bare, "id", "own", "m")), Message)
    (priced,) = reprice([stored], {"m": Rates(input=1, output=1), "other": Rates(input=100)})

    assert isclose(priced.metadata["cost"]["total"] * 1e6, 510)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-2.1"),
        ("anthropic", "claude-3-sonnet-20240229"),
        ("anthropic", "claude-3-5-sonnet-20240620"),
        ("openai", "gpt-4.5-preview"),
        ("openai", "o1-mini-2024-09-12"),
        ("openai", "gpt-4-32k-0613"),
        ("gemini", "gemini-1.5-pro-002"),
        ("gemini", "gemini-2.0-flash"),
    ],
)
def test_a_model_that_is_served_no_longer_is_priced(provider, model):
    """The prices of retired models stay in the catalog, for the records of old calls."""
    record = {"provider": provider, "model": model, "usage": USAGE}
    (priced,) = reprice([record])

    assert priced["cost"]["total"] > 0
    assert priced["cost"]["source"] == "catalog"


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("vertex", "gemini-3.8-flash"),
        ("vertex_anthropic", "claude-opus-5@default"),
        ("vertex_anthropic", "claude-haiku-4-5-20251001"),
        ("bedrock", "anthropic.claude-sonnet-5-5"),
        ("bedrock", "openai.gpt-oss-120b"),
        ("bedrock_invoke", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
        ("perplexity", "sonar-pro"),
        ("cohere", "command-a-03-2025"),
        ("voyage", "voyage-3.5"),
        ("github_copilot", "claude-sonnet-5.5"),
        ("databricks", "databricks-claude-sonnet-5"),
        ("vercel", "openai/gpt-5.5"),
    ],
)
def test_clouds_and_hosts_have_prices(provider, model):
    """A call at a cloud, a host or a gateway has a cost, by its own name of the model."""
    (priced,) = reprice([{"provider": provider, "model": model, "usage": USAGE}])

    assert priced["cost"]["total"] > 0
