"""Parts <-> content parts."""

import pytest

from interlingua.dialects.openai_responses.content import decode_content, decode_part, encode_part
from interlingua.dialects.openai_responses.facts import INPUT_TEXT, OUTPUT_TEXT
from interlingua.spec.content import Opaque, Refusal, Text, Thinking
from interlingua.spec.errors import DecodeError
from interlingua.spec.warnings import WarningList

NAME = "openai_responses"


def say(part, kind=INPUT_TEXT):
    losses = WarningList()
    return encode_part(part, kind, losses), [warning.code for warning in losses.warnings]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "input_text", "text": " a\n"}, Text(text=" a\n")),
        (
            {"type": "output_text", "text": "a", "annotations": []},
            Text(text="a", extra={NAME: {"annotations": [], "type": "output_text"}}),
        ),
        (
            {"type": "hologram", "x": [1]},
            Opaque(dialect=NAME, data={"type": "hologram", "x": [1]}),
        ),
    ],
)
def test_both_ways(block, part):
    """Each kind of content part has its canonical part, and back."""
    assert part == decode_part(block, "", INPUT_TEXT)
    assert (block, []) == say(part)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "not a kind of this API"},
        {"type": "input_text", "text": "", "prompt_cache_breakpoint": {"mode": "explicit"}},
    ],
)
def test_odd_forms_come_back_as_they_were(block):
    """A kind that is unusual here, and fields of the API's own, are kept as they came."""
    assert (block, []) == say(decode_part(block, "", INPUT_TEXT))


def test_string_is_one_text():
    """Content may be a string."""
    assert (Text(text="a"),) == decode_content("a", "", OUTPUT_TEXT)


def test_refusal():
    """The model's refusal is a part of its own; anyone else's is text, with a warning."""
    block = {"type": "refusal", "refusal": "No."}

    assert Refusal(text="No.") == decode_part(block, "", OUTPUT_TEXT)
    assert (block, []) == say(Refusal(text="No."), OUTPUT_TEXT)
    assert say(Refusal(text="No.")) == ({"type": "input_text", "text": "No."}, ["refusal_as_text"])


@pytest.mark.parametrize(
    ("part", "code"),
    [
        (Opaque(dialect="gemini_generate", data={}), "foreign_block_dropped"),
        (Thinking(text="x"), "misplaced_part_dropped"),
    ],
)
def test_what_cannot_be_said(part, code):
    """It is left out with a warning."""
    assert (None, [code]) == say(part)


@pytest.mark.parametrize(
    ("block", "path"),
    [
        (5, "c[0]"),
        ({"type": "input_text"}, "c[0].text"),
        ({"type": "input_text", "text": 5}, "c[0].text"),
    ],
)
def test_wrong_types(block, path):
    """A wrong type is an error that names the place."""
    with pytest.raises(DecodeError) as caught:
        decode_content([block], "c", INPUT_TEXT)

    assert path == caught.value.path
