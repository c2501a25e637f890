"""Responses and usage."""

import copy
import dataclasses
import pickle
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.conformance.strategies import responses
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.spec.events import StepFinish, StreamEvent
from interlingua.spec.json_form import from_json, to_document, to_json
from interlingua.spec.messages import Message
from interlingua.spec.response import (
    REASONS,
    Cost,
    FinishReason,
    RateLimitInfo,
    Reason,
    Response,
    Usage,
    Warning,
)

counts = st.integers(0, 10**9)
usages = st.builds(
    Usage,
    input_tokens=counts,
    output_tokens=counts,
    reasoning_tokens=st.none() | counts,
    cache_read_tokens=st.none() | counts,
    cache_write_tokens=st.none() | counts,
    estimated=st.booleans(),
)


@given(usages, usages, usages)
def test_usage_is_associative(one, two, three):
    """It does not matter which usages are added first."""
    assert (one + two) + three == one + (two + three)


@given(usages, usages)
def test_usage_is_commutative(one, two):
    """It does not matter in which order usages are added."""
    assert one + two == two + one


@given(usages)
def test_no_usage_changes_nothing(usage):
    """The empty usage is the identity, on both sides."""
    assert usage + Usage() == usage
    assert Usage() + usage == usage


@given(usages, usages)
def test_totals_add_up(one, two):
    """The total is input and output, and the total of a sum is the sum of the totals."""
    assert one.total_tokens == one.input_tokens + one.output_tokens
    assert (one + two).total_tokens == one.total_tokens + two.total_tokens


@given(st.lists(usages))
def test_usages_can_be_summed(many):
    """`sum` with an empty start adds up any number of usages."""
    assert sum(many, Usage()).input_tokens == sum(usage.input_tokens for usage in many)


@pytest.mark.parametrize("field", ["reasoning_tokens", "cache_read_tokens", "cache_write_tokens"])
@pytest.mark.parametrize(
    ("left", "right", "total"), [(None, None, None), (None, 0, 0), (3, None, 3), (3, 4, 7)]
)
def test_unknown_counts(field, left, right, total):
    """Unknown and unknown is unknown; unknown and known is what is known."""
    assert getattr(Usage(**{field: left}) + Usage(**{field: right}), field) == total


def test_estimate_makes_an_estimate():
    """A sum with an estimate in it is an estimate."""
    assert (Usage() + Usage(estimated=True)).estimated
    assert not (Usage() + Usage()).estimated


def test_sum_has_no_raw_figures():
    """The provider's figures belong to one call, not to a sum."""
    assert (Usage(raw={"a": 1}) + Usage(raw={"a": 2})).raw is None


def test_usage_adds_only_to_usage():
    """Adding anything else is a `TypeError`."""
    with pytest.raises(TypeError):
        Usage() + 1


@settings(deadline=None)
@given(responses())
def test_accessors_are_the_message_s(response):
    """Text, calls and thinking of a response are those of its message."""
    assert response.text == response.message.text
    assert response.tool_calls == response.message.tool_calls
    assert response.reasoning == response.message.reasoning


def test_accessors():
    """The words, calls and thoughts of an answer."""
    call = ToolCall(id="1", name="look")
    response = Response(
        message=Message.assistant([Thinking(text="hm"), Text(text="so"), call]), cost=0.0
    )

    assert (response.text, response.tool_calls, response.reasoning) == ("so", (call,), "hm")
    assert response.cost == 0.0


def test_empty_response():
    """A response of which nothing is known says so."""
    response = Response()

    assert (response.text, response.tool_calls, response.reasoning) == ("", (), None)
    assert response.finish_reason == FinishReason(reason="other")
    assert response.usage == Usage()
    assert (response.cost, response.rate_limit, response.latency_ms) == (None, None, None)


def test_warnings_from_a_list():
    """Warnings given in a list are a tuple."""
    warning = Warning(code="seed_dropped", message="no seed", path="seed")

    assert Response(warnings=[warning]).warnings == (warning,)


def test_reasons():
    """The seven reasons, in the type and in the set."""
    assert set(get_args(Reason)) == REASONS
    assert sorted(REASONS) == [
        "cancelled", "content_filter", "error", "length", "other", "stop", "tool_calls",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [
        Response(),
        Usage(),
        FinishReason(reason="stop"),
        RateLimitInfo(),
        Warning(code="a", message="b"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_frozen(value):
    """No field of a response or of what it holds can be set."""
    names = getattr(value, "__struct_fields__", None) or value.__dataclass_fields__
    for field in names:
        with pytest.raises(AttributeError):
            setattr(value, field, None)


def deferred(reads: list[RateLimitInfo]) -> RateLimitInfo:
    """A limit whose figures are not read yet; `reads` counts the readings."""

    def read() -> RateLimitInfo:
        reads.append(RateLimitInfo(requests_limit=50, reset_after=1.5, raw={"x-ratelimit": "50"}))
        return reads[-1]

    return RateLimitInfo.deferred(read)


def test_rate_limit_is_read_once_and_only_on_use():
    """A deferred limit costs nothing until a figure is used, and is read once."""
    reads: list[RateLimitInfo] = []
    limit = deferred(reads)
    response = Response(rate_limit=limit)

    assert not reads
    assert (limit.requests_limit, limit.tokens_limit, limit.reset_after) == (50, None, 1.5)
    assert response.rate_limit.raw == {"x-ratelimit": "50"}
    assert len(reads) == 1
    with pytest.raises(AttributeError, match="no attribute 'request_limit'"):
        limit.request_limit  # noqa: B018


def event_copy(event: StepFinish) -> RateLimitInfo:
    return from_json(to_json(event), StreamEvent).response.rate_limit


@pytest.mark.parametrize(
    "use",
    [
        lambda limit: limit,
        copy.copy,
        copy.deepcopy,
        lambda limit: pickle.loads(pickle.dumps(limit)),  # noqa: S301 -- our own bytes
        dataclasses.replace,
        lambda limit: from_json(to_json(Response(rate_limit=limit)), Response).rate_limit,
        lambda limit: event_copy(StepFinish(step=1, response=Response(rate_limit=limit))),
        lambda limit: msgspec.json.decode(msgspec.json.encode(limit), type=RateLimitInfo),
    ],
    ids=["itself", "copy", "deepcopy", "pickle", "replace", "json", "event", "msgspec"],
)
def test_deferred_rate_limit_is_like_any_other(use):
    """Equality, repr and every copy see the figures, whether they were used before or not."""
    plain = RateLimitInfo(requests_limit=50, reset_after=1.5, raw={"x-ratelimit": "50"})

    assert use(deferred([])) == plain
    assert plain == use(deferred([]))
    assert use(deferred([])) != RateLimitInfo(requests_limit=49)
    assert repr(use(deferred([]))) == repr(plain)
    assert repr(plain) == (
        "RateLimitInfo(requests_limit=50, reset_after=1.5, raw={'x-ratelimit': '50'})"
    )
    assert to_json(Response(rate_limit=use(deferred([])))) == to_json(Response(rate_limit=plain))


def test_rate_limit_document_omits_what_is_unknown():
    """Unknown figures are left out of the JSON form, as every default is."""
    document = to_document(Response(rate_limit=RateLimitInfo(tokens_limit=0)))
    assert document["rate_limit"] == {"tokens_limit": 0}


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.00098, "$0.00098"),
        (0.0123, "$0.012"),
        (0.5, "$0.50"),
        (0.999, "$1.00"),
        (1.5, "$1.50"),
        (1234.567, "$1234.57"),
        (0.0, "$0.00"),
        (0.0000001234, "$0.00000012"),
    ],
)
def test_the_text_of_a_cost_is_an_amount_of_dollars(amount, text):
    """With cents, or with as many digits as a small amount needs."""
    assert str(Cost(total=amount)) == f"{Cost(total=amount)}" == text


def test_a_cost_is_a_number_and_can_be_formatted():
    """`float` gives the total; a format of numbers formats it, any other the text."""
    cost = Cost(total=0.00098, output=0.00098)
    assert float(cost) == 0.00098
    assert f"{cost:.4f}" == "0.0010"
    assert f"{cost:>10}" == "  $0.00098"
    assert "total=0.00098" in repr(cost)


def test_a_sum_that_begins_with_nothing_keeps_the_version_of_the_prices():
    """`Cost()` has no source of its own; two versions have none in common."""
    cost = Cost(total=1.0, output=1.0, pricing_version="2026-01", source="prices")
    assert Cost() + cost == cost + Cost() == cost
    assert sum([cost, cost], Cost()).pricing_version == "2026-01"
    other = Cost(total=1.0, pricing_version="2026-02")
    assert (cost + other).pricing_version == ""
    assert (cost + other).source == "mixed"
