"""Tool calls and results <-> their blocks."""

from interlingua.dialects.anthropic_messages.content import encode_part
from interlingua.spec.content import (
    ToolCall,
    ToolResult,
)
from interlingua.spec.warnings import WarningList

NAME = "anthropic_messages"


def test_json_results_are_sent_as_text():
    """A result that is a JSON value is sent as its text."""
    block = encode_part(ToolResult(tool_call_id="t", content={"a": 1}), WarningList())

    assert block["content"] == '{"a":1}'


def test_invalid_input_is_wrapped():
    """Argument text that is no object goes into one (field bug 12)."""
    call = ToolCall(id="a", name="f", arguments={}, raw_arguments="{cut")

    assert encode_part(call, WarningList())["input"] == {"input": "{cut"}


def test_free_text_call_is_wrapped():
    """A custom tool's text goes into an object."""
    call = ToolCall(id="a", name="f", raw_arguments="print(1)", type="custom")

    assert encode_part(call, WarningList())["input"] == {"input": "print(1)"}
