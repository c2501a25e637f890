"""Safe 21: more effort never sends less thinking, to any model of any provider."""

import pytest

from interlingua import dialects
from interlingua.prepare.settings import adjust_settings
from interlingua.prepare.thinking import EFFORTS
from interlingua.providers.catalog import profiles
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList

DATA = profiles._load()
SECTIONS = (*DATA.dialects.values(), *DATA.providers.values())
MODELS = sorted({"", *DATA.models, *(model for section in SECTIONS for model in section.models)})
OWN = len(EFFORTS)  # an effort by a host's own name, or the model's default
TRIED: set[str] = set()
"""The profiles that hold: most models have one that another model has too."""


def amount(request, profile):
    """How much thinking is asked for: 0 for none, a budget, or the rank of an effort."""
    sent = adjust_settings(request, profile, WarningList())
    if sent.thinking_budget is not None:
        return sent.thinking_budget
    return EFFORTS.index(sent.reasoning_effort) if sent.reasoning_effort in EFFORTS else OWN


@pytest.mark.parametrize("dialect", dialects.names())
@pytest.mark.parametrize("provider", [None, *DATA.providers])
def test_more_effort_never_sends_less_thinking(dialect, provider):
    """Whatever is lowered, raised or turned into a budget, and whatever `max_tokens` allows."""
    for model in MODELS:
        profile = profiles.profile_for(dialect, model, provider)
        if repr(profile) in TRIED:
            continue
        for limit in (None, 100, 5000, 40_000):
            amounts = [
                amount(Request(reasoning_effort=effort, max_tokens=limit), profile)
                for effort in EFFORTS
            ]
            assert amounts == sorted(amounts), (model, limit)
        TRIED.add(repr(profile))
