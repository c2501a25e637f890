"""The short ways say just what the long ways say."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.conformance.strategies import conversations
from interlingua.prepare.plain import may_hold_media, plain_result, plain_text, plain_turn
from interlingua.spec.content import Image, Text, ToolCall, ToolResult
from interlingua.spec.messages import ROLES, Message
from interlingua.spec.request import Request
from interlingua.wire.json_text import dumps

ELSEWHERE = {"elsewhere": {"id": "x"}}  # nothing that any dialect reads, but it is not plain
texts = st.sampled_from(["hi", "", " ", "naïve", "half \ud83d", '{"a": 1}'])
parts = st.one_of(
    texts.map(lambda text: Text(text=text)),
    st.builds(
        ToolCall,
        id=st.sampled_from(["a", "b"]),
        name=st.just("f"),
        arguments=st.sampled_from([{}, {"x": 1}]),
        raw_arguments=st.sampled_from([None, "", '{"x": 1}', "[1]"]),
        type=st.sampled_from(["function", "custom"]),
    ),
    st.builds(
        ToolResult,
        tool_call_id=st.sampled_from(["a", "b"]),
        content=texts | st.just({"x": 1}) | st.just(()) | st.just((Text(text="so"),)),
        is_error=st.booleans(),
        name=st.sampled_from([None, "f"]),
    ),
)
messages = st.builds(
    Message,
    role=st.sampled_from(sorted(ROLES)),
    content=st.lists(parts, max_size=3).map(tuple) | texts.map(lambda text: (Text(text=text),)),
    name=st.none() | st.just("Ada"),
)
histories = conversations() | st.lists(messages, max_size=6).map(tuple)


def marked(found):
    """The same message or part, with something told beside it and beside all that is in it."""
    found = msgspec.structs.replace(found, extra=ELSEWHERE)
    content = getattr(found, "content", None)
    if isinstance(content, tuple):
        return msgspec.structs.replace(found, content=tuple(map(marked, content)))
    return found


@pytest.mark.parametrize("name", dialects.names())
@given(histories)
def test_both_ways_say_the_same(name, history):
    """To the byte, and with the same warnings."""
    encode = dialects.get(name).encode_request
    short = encode(Request(messages=history))
    long = encode(Request(messages=tuple(map(marked, history))))

    assert dumps(short.body) == dumps(long.body)
    assert short.warnings == long.warnings


def test_one_text_alone_is_plain():
    """Empty text is text; a second part, a mark or a name is more than text."""
    text = Text(text="hi")

    assert plain_text(Message.user("hi")) == "hi"
    assert plain_text(Message.assistant("")) == ""
    assert plain_text(Message(role="user")) is None
    assert plain_text(Message(role="user", content=(text, text))) is None
    assert plain_text(Message(role="user", content=(text,), name="Ada")) is None
    assert plain_text(Message(role="user", content=(text,), extra=ELSEWHERE)) is None
    assert plain_text(Message(role="user", content=(marked(text),))) is None
    assert plain_text(Message.tool_result("a", "hi")) is None


def test_a_turn_of_texts_and_calls_is_plain():
    """The model's own, in any order, with nothing told beside it."""
    turn = (Text(text="hi"), ToolCall(id="a", name="f"))

    assert plain_turn(Message(role="assistant", content=turn)) == turn
    assert plain_turn(Message(role="user", content=turn)) is None
    assert plain_turn(Message(role="assistant", content=turn, extra=ELSEWHERE)) is None
    assert plain_turn(Message(role="assistant", content=tuple(map(marked, turn)))) is None
    assert plain_turn(Message(role="assistant", content=(*turn, Image(url="u")))) is None


def test_one_result_of_text_is_plain():
    """A failure, a value, parts or a mark is more than text."""
    result = ToolResult(tool_call_id="a", content="4 C")

    assert plain_result(Message(role="tool", content=(result,))) == result
    assert plain_result(Message(role="user", content=(result,))) is None
    assert plain_result(Message(role="tool", content=(result, result))) is None
    assert plain_result(Message(role="tool", content=(marked(result),))) is None
    assert plain_result(Message.tool_result("a", {"x": 1})) is None
    assert plain_result(Message.tool_result("a", "no", is_error=True)) is None


def test_media_are_seen_wherever_they_stand():
    """In a message or in a result; most hold none, which is seen without looking further."""
    image = Image(url="./a.png")
    inside = ToolResult(tool_call_id="a", content=(image,))

    assert not may_hold_media((Message.user("hi"), Message.tool_result("a", "yes")))
    assert may_hold_media((Message.user([image]),))
    assert may_hold_media((Message(role="tool", content=(inside,)),))
