"""Fields of a foreign dialect in `extra` do not change what is encoded."""

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.conformance.strategies import conversations
from interlingua.dialects.anthropic_messages import content as anthropic_content
from interlingua.spec.content import Part, Text, ToolCall, ToolResult
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


@pytest.mark.parametrize("content", [anthropic_content])
def test_every_kind_of_part_has_an_encoder(content):
    """Encoders are found by type: a new kind of part needs a row."""
    assert content.ENCODERS.keys() == set(get_args(Part))
