"""Fields of a foreign dialect in `extra` do not change what is encoded."""

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.conformance.strategies import conversations
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.messages import ROLES, Message
from interlingua.spec.request import Request
from interlingua.wire.json_text import dumps

ELSEWHERE = {"elsewhere": {"id": "x"}}  # nothing that any dialect reads
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
def test_foreign_extra_changes_nothing(name, history):
    """Parts and messages with and without foreign fields give equal bytes and warnings."""
    encode = dialects.get(name).encode_request
    bare = encode(Request(messages=history))
    with_extra = encode(Request(messages=tuple(map(marked, history))))

    assert dumps(bare.body) == dumps(with_extra.body)
    assert bare.warnings == with_extra.warnings


EACH_KIND = (
    Text("hi"),
    Image(data=b"\x89PNG"),
    Audio(data=b"RIFF"),
    Document(text="hi"),
    ToolCall(id="a", name="f"),
    ToolResult(tool_call_id="a"),
    Thinking("hm"),
    Refusal(text="no"),
    Opaque(dialect="elsewhere"),
)


@pytest.mark.parametrize("name", dialects.names())
def test_every_kind_of_part_is_encoded_or_named_in_a_warning(name):
    """A part of any kind, also of a new one, gives a body or a warning, not an internal error."""
    assert {type(part) for part in EACH_KIND} == set(get_args(Part))
    encode = dialects.get(name).encode_request
    for part in EACH_KIND:
        call = encode(Request(messages=(Message(role="assistant", content=(part,)),)))
        assert call.body or call.warnings
