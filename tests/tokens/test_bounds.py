"""How far the true number of tokens may be from an estimate."""

import runpy
from pathlib import Path

import pytest

from interlingua import Audio, Document, Image, Message, Request, ResponseFormat, Text
from interlingua.spec.request import BuiltinTool, ToolDefinition
from interlingua.tokens.bounds import KINDS, bound_tokens, bounds_of, kind_of
from interlingua.tokens.fitted import BOUNDS, SLACK
from support import corpus

TOOL = ToolDefinition(name="f", description="d", parameters={"type": "object"})
HOSTED = BuiltinTool(dialect="openai_responses", data={"type": "web_search"})
FORMAT = ResponseFormat(type="json_schema", json_schema={"type": "object"}, name="x")
PICTURE, FILE = Image(url="https://host/a.png"), Document(url="https://host/a.pdf")
LEAST_HELD = 0.97


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (Request(messages="Hi"), "text"),
        (Request(messages="Hi", tools=[TOOL]), "tools"),
        (Request(messages="Hi", tools=[TOOL], response_format=FORMAT), "schema"),
        (Request(messages=[Message.user([Text("a"), PICTURE])], tools=[TOOL]), "images"),
        (Request(messages=[Message.user([PICTURE, FILE])]), "documents"),
        (Request(messages=[Message.user([Document(text="a")])]), "text"),
        (Request(messages=[Message.user([Audio(url="https://host/a.mp3")])]), "sound and video"),
        (Request(messages=[Message.user([FILE])], tools=[TOOL, HOSTED]), "hosted tools"),
        (
            Request(messages="Hi", provider_options={"anthropic": {"mcp_servers": [{}]}}),
            "hosted tools",
        ),
    ],
)
def test_the_least_known_input_decides_the_kind(request_, kind):
    """A picture is known less exactly than text, and a hosted tool not at all."""
    assert kind_of(request_) == kind


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_enclose_the_estimate(kind):
    """Where a bound is known; the lower one always is."""
    bounds = bounds_of(1_000, kind)

    assert 0 <= bounds.lower <= bounds.estimate == 1_000
    assert bounds.upper is None or bounds.upper >= 1_000 + SLACK
    assert (bounds.upper is None) == (BOUNDS[kind][1] is None)


def test_hosted_tools_have_no_upper_bound():
    """What they read is in no request."""
    assert bound_tokens(Request(messages="Hi", tools=[HOSTED])).upper is None


@pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
def test_bounds_hold_for_requests_that_no_rate_was_fitted_to():
    """For at least 97 of 100 of each kind, where there is a bound."""
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts/token_rates.py"))
    samples = [each for each in script["read_samples"](corpus.FOLDER) if each.is_held_back]
    below, above = {}, {}
    for sample in samples:
        bounds = bound_tokens(sample.request, sample.family)
        below.setdefault(bounds.kind, []).append(bounds.lower <= sample.tokens)
        if bounds.upper is not None:
            above.setdefault(bounds.kind, []).append(sample.tokens <= bounds.upper)

    assert set(below) == set(KINDS)
    for held in (*below.values(), *above.values()):
        assert sum(held) >= LEAST_HELD * len(held)
