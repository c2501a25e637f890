"""The words of the script: how turns add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import Text, ToolCall
from interlingua.errors import ConfigurationError
from interlingua.simulator import (
    Turn,
    cut,
    duplicate,
    error,
    error_event,
    finish,
    header,
    latency,
    malformed,
    pieces,
    rate_limit,
    raw_tool_call,
    refusal,
    reset,
    stall,
    text,
    thinking,
    tool_call,
    usage,
)

places = st.none() | st.integers(0, 500)
turns = st.one_of(
    st.builds(text, st.text(max_size=5)),
    st.builds(thinking, st.text(max_size=5)),
    st.builds(refusal, st.text(max_size=5)),
    st.builds(tool_call, st.sampled_from(("a", "b")), st.just({"x": 1})),
    st.builds(usage, st.integers(0, 9), st.integers(0, 9)),
    st.builds(finish, st.sampled_from(("stop", "length"))),
    st.builds(latency, first=st.floats(0, 1)),
    st.builds(pieces, st.integers(1, 9)),
    st.builds(header, st.sampled_from(("X-A", "x-b")), st.sampled_from("123")),
    st.builds(rate_limit, requests_limit=st.integers(0, 9)),
    st.builds(error, st.integers(400, 599)),
    st.builds(error_event, st.integers(400, 599)),
    st.builds(cut, places, clean=st.booleans()),
    st.builds(reset, places),
    st.builds(stall, places),
    st.builds(malformed, st.integers(-3, 3)),
    st.builds(duplicate, st.integers(-3, 3)),
)
sums = st.lists(turns, max_size=4).map(lambda each: sum(each, Turn()))


@given(sums, sums, sums)
def test_sums_are_associative(a, b, c):
    """How a turn is put together does not show."""
    assert (a + b) + c == a + (b + c)


@given(sums)
def test_an_empty_turn_adds_nothing(turn):
    """`Turn()` is the zero."""
    assert turn + Turn() == turn == Turn() + turn


@given(sums, sums)
def test_parts_and_faults_are_joined(a, b):
    """What is said and what goes wrong stay in order."""
    both = a + b

    assert both.parts == a.parts + b.parts
    assert both.faults == a.faults + b.faults


@given(turns, turns)
def test_the_later_word_counts(a, b):
    """Of a thing that can be only one, the last is taken."""
    for name in ("usage", "finish_reason", "failure", "late_failure", "rate_limit", "pieces"):
        later = getattr(b, name)

        assert getattr(a + b, name) == (getattr(a, name) if later is None else later)


def test_calls():
    """Arguments are a mapping, keywords or both, or a text that is sent as it is."""
    turn = tool_call("f", {"a": 1}, b=2) + raw_tool_call("g", "{", id="c1")

    assert turn.parts == (
        ToolCall(id="", name="f", arguments={"a": 1, "b": 2}),
        ToolCall(id="c1", name="g", raw_arguments="{"),
    )


def test_an_argument_may_be_named_name():
    """The names of arguments are the tool's own."""
    assert tool_call("f", name="x").parts[0].arguments == {"name": "x"}


def test_text_is_a_part():
    """A word alone is a turn."""
    assert text("hi") == Turn(parts=(Text(text="hi"),))


@pytest.mark.parametrize(
    "make",
    [
        lambda: error(200),
        lambda: error_event(600),
        lambda: cut(-1),
        lambda: reset(-1),
        lambda: stall(-1),
        lambda: pieces(0),
        lambda: latency(write_bytes=0),
    ],
)
def test_what_makes_no_sense_is_refused(make):
    """A word that could not be sent is an error where it is written."""
    with pytest.raises(ConfigurationError):
        make()


def test_only_turns_add_up():
    """Anything else beside a turn is a mistake."""
    with pytest.raises(TypeError):
        text("a") + "b"
