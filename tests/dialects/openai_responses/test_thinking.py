"""Thinking <-> reasoning items."""

import pytest

from interlingua.dialects.openai_responses.messages import ItemEncoder, decode_turn, read_item
from interlingua.spec.content import Thinking
from interlingua.spec.errors import DecodeError
from interlingua.spec.warnings import WarningList

NAME = "openai_responses"


def say(*parts, role="assistant", **options):
    losses = WarningList()
    encoder = ItemEncoder(losses, **options)
    encoder.message(role, parts, "m")
    return encoder.items, [warning.code for warning in losses.warnings]


def answer(*parts):
    return say(*parts, response_id="resp_7")[0]


def read(item):
    return read_item(item, lambda: "made")


REASONING = [
    ({"id": "rs", "summary": []}, ""),
    ({"id": "rs", "summary": [{"type": "summary_text", "text": "a"}]}, "a"),
    (
        {
            "id": "rs",
            "status": "completed",
            "summary": [
                {"type": "summary_text", "text": "a\n\nb"},
                {"type": "summary_text", "text": "c"},
            ],
            "encrypted_content": "E",
        },
        "a\n\nb\n\nc",
    ),
    (
        {
            "id": "rs",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "raw"}],
            "encrypted_content": None,
        },
        "raw",
    ),
    ({"content": [{"type": "reasoning_text", "text": "raw"}]}, "raw"),
    ({"id": "rs", "summary": [{"type": "summary_text", "text": "a"}], "content": []}, "a"),
    ({"id": "rs", "summary": [], "content": None, "format": "x"}, ""),
]


@pytest.mark.parametrize(("fields", "text"), REASONING)
def test_reasoning(fields, text):
    """A reasoning item is one thought, its lists rebuilt exactly."""
    item = {"type": "reasoning", **fields}

    (part,) = read(item)

    assert text == part.text
    assert fields.get("encrypted_content") == part.data
    assert NAME in part.extra
    assert [item] == say(part)[0] == answer(part)


def test_changed_reasoning_is_said_anew():
    """Lists that no longer say the text are not sent."""
    part = Thinking(
        text="new", data="E", extra={NAME: {"id": "rs", "summary": [{"type": "x", "text": "old"}]}}
    )

    assert say(part)[0] == [
        {
            "type": "reasoning",
            "id": "rs",
            "encrypted_content": "E",
            "summary": [{"type": "summary_text", "text": "new"}],
        }
    ]


def test_thinking_of_others():
    """Another model's thought is not sent to this one, but is shown in an answer."""
    part = Thinking(text="hm", signature="S", extra={"anthropic_messages": {}})

    assert say(part) == ([], ["foreign_thinking_dropped"])
    assert answer(part) == [
        {
            "type": "reasoning",
            "id": "rs_7_0",
            "summary": [{"type": "summary_text", "text": "hm"}],
        }
    ]
    assert answer(Thinking(redacted=True, data="x")) == []


def test_wrong_types():
    """In a request a wrong type is an error that names the place."""
    with pytest.raises(DecodeError) as caught:
        decode_turn({"type": "reasoning", "summary": "x"}, "input[0]", marked=False)

    assert caught.value.path == "input[0].summary"
