"""The laws over hand-written cases and made-up values."""

import pytest
from hypothesis import HealthCheck, given, settings

from interlingua import dialects
from interlingua.conformance import strategies
from interlingua.conformance.canonical import request_survives, response_survives
from interlingua.conformance.equality import same_response
from interlingua.conformance.laws import (
    LAWS,
    check,
    cut_frames,
    decode_frames,
    encode_events,
    fold,
    read_cases,
)
from interlingua.spec.contracts import Dialect
from interlingua.streams.accumulate import events_from_response
from support import corpus
from support.run_profile import examples

MANY = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("dialect", dialects.names())
@pytest.mark.parametrize("law", LAWS)
def test_law_holds_on_fixtures(dialect, law):
    """Each law holds on each hand-written case."""
    cases = list(read_cases(corpus.FIXTURES / dialect))

    report = check(dialects.get(dialect), cases, {law: LAWS[law]})

    assert len(cases) >= 4
    assert report.violations == (), str(report)


@pytest.mark.parametrize("dialect", dialects.names())
@MANY
@given(request=strategies.requests())
def test_a_made_up_request_comes_back_the_same_or_a_warning_says_why_not(dialect, request):
    """A made-up request comes back the same, or a warning names what does not (law 4)."""
    assert request_survives(dialects.get(dialect), request) == []


@pytest.mark.parametrize("dialect", dialects.names())
@MANY
@given(response=strategies.responses())
def test_a_made_up_response_keeps_its_text_calls_and_totals(dialect, response):
    """A made-up response keeps its text, calls and totals (law 4)."""
    assert response_survives(dialects.get(dialect), response) == []


@pytest.mark.parametrize("dialect", dialects.names())
@MANY
@given(response=strategies.responses())
def test_a_made_up_response_is_the_same_whole_and_streamed(dialect, response):
    """A response said as a stream adds up to the same as said whole (law 2)."""
    spoken = dialects.get(dialect)
    whole = spoken.decode_response(spoken.encode_response(response))

    streamed = fold(decode_frames(spoken, encode_events(spoken, events_from_response(whole))))

    assert same_response(whole, streamed) == []


@pytest.mark.parametrize("dialect", dialects.names())
@MANY
@given(response=strategies.responses())
def test_the_parts_of_a_stream_are_numbered_from_zero_without_gaps(dialect, response):
    """The indexes of the parts of a made-up stream are 0, 1, 2, … in the order of their starts."""
    spoken = dialects.get(dialect)
    events = decode_frames(spoken, encode_events(spoken, events_from_response(response)))

    assert list(starts(events)) == list(range(len(list(starts(events)))))


@pytest.mark.parametrize("dialect", dialects.names())
def test_the_parts_of_a_fixture_are_numbered_from_zero_without_gaps(dialect):
    """The indexes of the parts of a vendor's stream are 0, 1, 2, … in the order of their starts."""
    cases = [case for case in read_cases(corpus.FIXTURES / dialect) if case.stream]

    assert cases
    for case in cases:
        frames = cut_frames([case.stream], case.framing)
        numbers = list(starts(decode_frames(dialects.get(dialect), frames)))
        assert numbers == list(range(len(numbers)))


def starts(events):
    """The index of each part, where it begins."""
    for event in events:
        is_whole = event.type == "provider_event" and event.part is not None
        if is_whole or event.type in ("text_start", "reasoning_start", "tool_call_start"):
            yield event.index


@pytest.mark.parametrize("dialect", dialects.names())
def test_module_satisfies_the_contract(dialect):
    """Each dialect has the eight functions and its name."""
    spoken: Dialect = dialects.get(dialect)

    assert dialect == spoken.NAME
    for name in ("request", "response", "error"):
        assert callable(getattr(spoken, f"encode_{name}"))
        assert callable(getattr(spoken, f"decode_{name}"))
    assert callable(spoken.stream_decoder)
    assert callable(spoken.stream_encoder)
