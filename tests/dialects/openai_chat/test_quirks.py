"""Quirks of servers."""

import msgspec

from interlingua.dialects.openai_chat.quirks import DEFAULT_QUIRKS, ChatQuirks, quirks_of
from interlingua.spec.contracts import Profile


def test_defaults_say_nothing():
    """The neutral record is empty as a document."""
    assert msgspec.to_builtins(DEFAULT_QUIRKS) == {}


def test_quirks_of_a_profile():
    """A profile's quirks count only if they are this dialect's."""
    quirks = ChatQuirks(max_tokens_field="max_tokens")

    assert quirks_of(Profile(quirks=quirks)) is quirks
    assert quirks_of(Profile()) is DEFAULT_QUIRKS
    assert quirks_of(Profile(quirks={"top_k": True})) is DEFAULT_QUIRKS
