"""Requests without tools."""

import pytest

from interlingua import dialects
from interlingua.spec.contracts import WireCall
from interlingua.spec.request import BuiltinTool, Request

EVERY = pytest.mark.parametrize("name", dialects.names())


@EVERY
def test_no_tools_are_the_empty_tuple(name):
    """An absent and an empty list are both `()`; an empty list is written back."""
    dialect = dialects.get(name)
    call = dialect.encode_request(Request(model="m", messages="hi", tools=()))
    assert "tools" not in call.body

    for body in (call.body, {**call.body, "tools": []}):
        decoded = dialect.decode_request(WireCall(path=call.path, body=body))
        assert decoded.tools == ()
        assert dialect.encode_request(decoded).body == body


@EVERY
def test_no_empty_list_is_sent(name):
    """Another provider's own tool is dropped with a warning."""
    tools = [BuiltinTool(dialect="another", data={})]
    call = dialects.get(name).encode_request(Request(model="m", messages="hi", tools=tools))

    assert "tools" not in call.body
    assert [(w.code, w.path) for w in call.warnings] == [("builtin_tool_dropped", "tools[0]")]
