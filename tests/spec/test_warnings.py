"""Losses and notes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.errors import UnsupportedError, UnsupportedToolChoiceError
from interlingua.spec.response import Warning
from interlingua.spec.warnings import NOTES, is_loss, raise_on_loss

codes = st.sampled_from(sorted(NOTES)) | st.from_regex(r"[a-z]+(_[a-z]+)*", fullmatch=True)
warnings = st.builds(lambda code: Warning(code=code, message=f"about {code}"), codes)


@given(st.lists(warnings))
def test_raises_if_and_only_if_something_is_lost(given_warnings):
    """Notes pass; any loss raises, and every loss is listed."""
    lost = [warning for warning in given_warnings if warning.code not in NOTES]

    if not lost:
        raise_on_loss(given_warnings)
        return
    with pytest.raises(UnsupportedError) as caught:
        raise_on_loss(given_warnings)
    assert all(f"{warning.code}: {warning.message}" in str(caught.value) for warning in lost)


def test_unknown_codes_are_losses():
    """A code nobody classified is taken seriously."""
    assert is_loss(Warning(code="never_heard_of", message=""))


@pytest.mark.parametrize("code", ["temperature_implied", "tool_media_moved", "call_id_mapped"])
def test_notes(code):
    """What keeps its meaning is no loss."""
    assert not is_loss(Warning(code=code, message=""))


def test_a_refused_tool_choice_has_its_own_error():
    """A choice that cannot be made is told apart, and tells of the others too."""
    lost = [
        Warning(code="temperature_dropped", message="not taken"),
        Warning(code="tool_choice_relaxed", message="not accepted"),
    ]

    with pytest.raises(UnsupportedToolChoiceError, match="temperature_dropped"):
        raise_on_loss(lost)
