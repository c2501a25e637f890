"""What `extra` remembers."""

from interlingua.dialects.openai_chat.facts import absent, complete, extra_for, mark_of
from interlingua.spec.content import Text

NAME = "openai_chat"


def test_complete_puts_back_what_was_kept():
    """Kept fields come back beside and inside the block's own, which win."""
    part = Text(text="", extra={NAME: {"a": {"x": 1, "y": 1}, "b": 2}})

    assert complete({"type": "t", "a": {"x": 5}}, part) == {
        "type": "t",
        "a": {"x": 5, "y": 1},
        "b": 2,
    }


def test_marks_are_not_fields():
    """What only we need is never written."""
    part = Text(text="", extra={NAME: {"~sent_as": "x", "~in_place": True, "~position": 1}})

    assert complete({"type": "t"}, part) == {"type": "t"}


def test_what_was_absent_stays_absent():
    """Also inside another field; nothing else is touched."""
    part = Text(text="", extra={NAME: {"~without": ["type", "a.x", "c.d", 5]}})

    assert complete({"type": "t", "a": {"x": 5, "y": 1}}, part) == {"a": {"y": 1}}


def test_other_dialects_marks_are_not_ours():
    """Only this dialect's own memory counts."""
    part = Text(text="", extra={"gemini_generate": {"~sent_as": "x", "b": 2}})

    assert complete({"type": "t"}, part) == {"type": "t"}
    assert mark_of(part, "~sent_as") is None


def test_helpers():
    """Nothing to keep is no extra; absent names are told with their place."""
    assert extra_for({}) == {}
    assert extra_for({"a": 1}) == {NAME: {"a": 1}}
    assert absent({"a": 1}, "a", "b", inside="o") == ["o.b"]
