"""Thoughts in fields and tags."""

import pytest

from interlingua.dialects.openai_chat.thinking import (
    TagSplitter,
    decode_thinking,
    encode_thinking,
    in_tags,
    split_tags,
)
from interlingua.spec.content import Text, Thinking
from interlingua.wire.shape import Fields

NAME = "openai_chat"
DETAILS = [
    {"type": "reasoning.summary", "summary": "So", "index": 0},
    {"type": "reasoning.encrypted", "data": "E", "index": 1},
]


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": "a"}, "a"),
        ({"reasoning_content": "a", "reasoning": "a"}, "a"),
        ({"reasoning": "a", "reasoning_details": DETAILS}, "a"),
        ({"reasoning_details": DETAILS}, "So"),
    ],
)
def test_fields_both_ways(wire, text):
    """The thought is one part, whatever fields it came in, and goes back to them."""
    fields = Fields(wire)
    thought = decode_thinking(fields)
    message = {}
    encode_thinking(thought, message)

    assert thought.text == text
    assert fields.left == {}
    assert message == wire


def test_nothing_to_read_is_no_thought():
    """Null, empty text and an empty list stay where they are."""
    wire = {"reasoning": None, "reasoning_content": "", "reasoning_details": []}
    fields = Fields(wire)

    assert decode_thinking(fields) is None
    assert fields.left == wire


def test_two_different_texts_are_not_mixed():
    """The second stays in its field."""
    fields = Fields({"reasoning_content": "a", "reasoning": "b"})

    assert decode_thinking(fields).text == "a"
    assert fields.left == {"reasoning": "b"}


def test_several_thoughts_share_the_fields():
    """They are written one after the other."""
    message = {}
    for text in ("a", "b"):
        encode_thinking(Thinking(text=text), message)

    assert message == {"reasoning_content": "ab"}


@pytest.mark.parametrize(
    ("text", "thought", "rest"),
    [
        ("<think>hm</think>\n\nYes", "hm", "\n\nYes"),
        ("\n<think>hm</think>Yes", "hm", "Yes"),
        ("<think></think>Yes", "", "Yes"),
        ("<think>hm", "hm", None),
        ("Yes <think>no</think>", None, "Yes <think>no</think>"),
        ("<thin", None, "<thin"),
        ("<think>a</thin</think>b", "a</thin", "b"),
    ],
)
def test_tags(text, thought, rest):
    """A thought at the start is told from the text, and both are given back to the byte."""
    parts = split_tags(text)

    assert [p.text for p in parts if isinstance(p, Thinking)] == (
        [] if thought is None else [thought]
    )
    assert [p.text for p in parts if isinstance(p, Text)] == ([] if rest is None else [rest])
    again = "".join(in_tags(p) if isinstance(p, Thinking) else p.text for p in parts)
    assert again == text


def test_field_bug_45_a_tag_cut_anywhere():
    """A tag that comes in pieces never leaks into the text."""
    text = "<think>a < b</think> c </think>"
    for size in range(1, len(text)):
        splitter = TagSplitter()
        pieces = [
            piece
            for start in range(0, len(text), size)
            for piece in splitter.feed(text[start : start + size])
        ]
        pieces += splitter.finish()
        assert "".join(p for is_thought, p in pieces if is_thought) == "a < b"
        assert "".join(p for is_thought, p in pieces if not is_thought) == " c </think>"
