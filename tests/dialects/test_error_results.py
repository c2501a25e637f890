"""Results of tools that failed."""

import pytest

from interlingua import dialects
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.wire.json_text import dump_text


@pytest.mark.parametrize("name", dialects.names())
@pytest.mark.parametrize("text", ["error 404", "Error: no such file", "ERRORS", "no such file", ""])
def test_an_error_result_crosses_with_its_flag_or_with_a_warning(name, text):
    """Whatever its text begins with."""
    history = (
        Message.user("?"),
        Message.assistant(ToolCall(id="call_1", name="look")),
        Message.tool_result("call_1", text, is_error=True, name="look"),
    )
    call = dialects.get(name).encode_request(Request(model="m", messages=history))
    (back,) = dialects.get(name).decode_request(call).messages[-1].content

    assert back.is_error or "tool_error_as_text" in [warning.code for warning in call.warnings]


@pytest.mark.parametrize("name", dialects.names())
@pytest.mark.parametrize("content", ["Error: no such file", (Text("Error: no such file"),)])
def test_an_error_is_called_an_error_once(name, content):
    """No "Error: Error:", whoever wrote the first."""
    history = (
        Message.user("?"),
        Message.assistant(ToolCall(id="call_1", name="look")),
        Message.tool_result("call_1", content, is_error=True, name="look"),
    )
    body = dump_text(dialects.get(name).encode_request(Request(model="m", messages=history)).body)

    assert body.count("Error:") == 1
