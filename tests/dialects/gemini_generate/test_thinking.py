"""Thinking <-> text parts marked as thoughts."""

import pytest

from interlingua.dialects.gemini_generate.content import (
    decode_thinking,
    encode_answer_part,
    encode_part,
    encode_thinking,
    is_signed,
    show_thinking,
)
from interlingua.spec.content import Text, Thinking
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields

NAME = "gemini_generate"


@pytest.mark.parametrize(
    "wire",
    [
        {"text": "hm", "thought": True},
        {"text": "", "thought": True, "thoughtSignature": "U0lH", "new": 1},
    ],
)
def test_thoughts_come_back_exactly(wire):
    """A thought has its text, perhaps its proof, and what else stood beside them."""
    part = decode_thinking(Fields(wire))

    assert encode_thinking(part, WarningList()) == show_thinking(part) == wire


def test_thinking_of_another_model_is_left_out():
    """Another maker's thoughts are not sent as this model's own, and a warning says so."""
    losses = WarningList()
    losses.part = 0
    foreign = Thinking(text="hm", signature="s", extra={"anthropic_messages": {}})

    assert encode_part(foreign, losses) is None
    assert [w.code for w in losses.warnings] == ["foreign_thinking_dropped"]
    assert losses.warnings[0].path == "messages[0].content[0]"


def test_thinking_of_another_model_is_shown_in_an_answer():
    """A server shows the thoughts of whatever model it asked, without their signature."""
    foreign = Thinking(text="hm", signature="s", extra={"anthropic_messages": {}})
    redacted = Thinking(redacted=True, data="x", extra={"anthropic_messages": {}})

    assert encode_answer_part(foreign) == [{"text": "hm", "thought": True}]
    assert encode_answer_part(redacted) == []


def test_thinking_made_by_hand_is_sent():
    """A thought of no maker is taken for this API's."""
    assert encode_part(Thinking(text="hm"), WarningList()) == {"text": "hm", "thought": True}


@pytest.mark.parametrize(
    ("part", "signed"),
    [
        (Thinking(text="hm"), False),
        (Thinking(text="hm", signature="s"), True),
        (Text(text="a"), False),
        (Text(text="a", extra={NAME: {"thoughtSignature": None}}), False),
        (Text(text="a", extra={NAME: {"thoughtSignature": "U0lH"}}), True),
    ],
)
def test_what_is_signed(part, signed):
    """Text may carry a signature too."""
    assert is_signed(part) is signed
