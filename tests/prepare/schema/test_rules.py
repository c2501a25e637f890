"""What the targets accept."""

import pytest

from interlingua.prepare.schema.keywords import ANNOTATIONS, STRUCTURE, VOCABULARY
from support.facts import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT

ALL = [OPENAI_STRICT, ANTHROPIC, GEMINI_JSON_SCHEMA]


@pytest.mark.parametrize("rules", ALL, ids=lambda rules: rules.name)
def test_a_keyword_has_one_fate(rules):
    """No keyword is both accepted and removed, or both removed and in the way."""
    assert not rules.keywords & rules.silent
    assert not rules.keywords & rules.blocking
    assert not rules.silent & rules.blocking
    assert rules.keywords | rules.silent | rules.blocking <= VOCABULARY


@pytest.mark.parametrize("rules", ALL, ids=lambda rules: rules.name)
def test_only_strict_targets_refuse(rules):
    """A target without a strict mode takes every schema; all take hints."""
    assert rules.strict or not rules.blocking
    assert {"type", "description", "anyOf", "enum"} <= rules.keywords


def test_annotations_constrain_nothing():
    """The two groups of keywords that forbid no value do not overlap."""
    assert not ANNOTATIONS & STRUCTURE
