"""Argument text for readers that parse it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.spec.content import Text, ToolCall
from interlingua.spec.messages import Message
from interlingua.wire.tool_calls import ArgumentText, input_object, plain_call, plain_calls

OBJECTS = st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3)


def said(pieces, call, **how):
    """All that goes on of a call's text."""
    text = ArgumentText(**how)
    sent = [text.feed(piece) for piece in pieces]
    return "".join([*sent, text.end(call)])


def cut(text, data):
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@given(OBJECTS, st.sampled_from(("", " ", "\n\t")), st.data())
def test_law_an_object_passes_as_it_came(value, before, data):
    """However it is cut, whoever reads it."""
    raw = before + json.dumps(value)
    call = ToolCall(id="c", name="f", arguments=value, raw_arguments=raw)

    assert said(cut(raw, data), call) == raw
    assert said(cut(raw, data), call, wrap=True) == raw


@given(st.text(max_size=8), st.booleans(), st.data())
def test_law_a_reader_of_objects_gets_one(raw, is_free, data):
    """Unless the text begins as one: then it goes on before it is known."""
    tool_type = "custom" if is_free else "function"
    call = ToolCall(id="c", name="f", raw_arguments=raw, type=tool_type)

    text = said(cut(raw, data), call, wrap=True, is_free=is_free)

    if is_free or not raw.lstrip().startswith("{"):
        assert json.loads(text) == input_object(call)
        assert text in ("{}", json.dumps({"input": raw}, ensure_ascii=False, separators=(",", ":")))
    else:
        assert text == raw


@pytest.mark.parametrize("raw", ["", "  ", "null", " null\n", "[]", "[ ]"])
def test_no_arguments_are_an_empty_object(raw):
    """A client that parses the text finds no error (field bug 10)."""
    call = ToolCall(id="c", name="f", raw_arguments=raw)

    assert plain_call(call).raw_arguments == "{}"
    assert said([raw], call) == said([raw], call, wrap=True) == "{}"


@pytest.mark.parametrize(
    "call",
    [
        ToolCall(id="c", name="f", raw_arguments='{"a": 1', arguments={}),
        ToolCall(id="c", name="f", raw_arguments="[1]"),
        ToolCall(id="c", name="f", raw_arguments=" {} "),
        ToolCall(id="c", name="f", raw_arguments="", type="custom"),
        ToolCall(id="c", name="f", arguments={"a": 1}),
    ],
)
def test_other_texts_are_left_alone(call):
    """Text that is wrong, free or made from the arguments is not ours to change."""
    message = Message(role="assistant", content=(Text(text="x"), call))

    assert plain_call(call) is call
    assert plain_calls(message) is message


def test_calls_of_a_message():
    """Only the calls that need it are changed, in a copy."""
    call = ToolCall(id="c", name="f", raw_arguments="")
    message = Message(role="assistant", content=(Text(text=""), call))

    assert plain_calls(message).tool_calls[0].raw_arguments == "{}"
    assert message.tool_calls[0].raw_arguments == ""


def test_free_text_for_a_reader_of_text():
    """It goes on as it comes."""
    text = ArgumentText(is_free=True)

    assert [text.feed(piece) for piece in ("", "1 +", " 1")] == ["", "1 +", " 1"]
    assert text.end(ToolCall(id="c", name="f", raw_arguments="1 + 1", type="custom")) == ""


def test_a_call_without_text():
    """One made by hand has only its arguments."""
    assert said([], ToolCall(id="c", name="f", arguments={"a": 1})) == '{"a":1}'
