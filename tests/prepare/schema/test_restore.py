"""Answers to strict tools, read by the schemas the caller gave."""

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.dialects import openai_responses
from interlingua.prepare.schema.narrow import narrow
from interlingua.prepare.schema.restore import restore_arguments, restore_event
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.errors import StreamError
from interlingua.spec.events import ErrorEvent, Finish, StepFinish, TextDelta, ToolCallEnd
from interlingua.spec.messages import Message
from interlingua.spec.request import BuiltinTool, Request, ToolDefinition
from interlingua.spec.response import FinishReason, Response
from support.facts import OPENAI_STRICT
from support.schemas import example, schemas

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path"],
}
REQUEST = Request(
    tools=(
        ToolDefinition(name="read", parameters=SCHEMA, strict=True),
        ToolDefinition(name="loose", parameters=SCHEMA),
        ToolDefinition(name="none", strict=True),
        BuiltinTool(dialect="openai_responses", data={"type": "web_search"}),
    )
)
RAW = '{"path": "a", "limit": null}'
GIVEN = {"path": "a", "limit": None}


def call(name="read", arguments=GIVEN, **fields):
    return ToolCall(id="1", name=name, arguments=arguments, **fields)


def answer(*parts):
    return Response(message=Message(role="assistant", content=parts))


@given(schemas(), st.data())
def test_restored_arguments_are_valid_for_the_tool(schema, data):
    """Whatever a strict tool is called with is valid for the caller's schema in the end."""
    request = Request(tools=(ToolDefinition(name="f", parameters=schema, strict=True),))
    sent = openai_responses.encode_request(request).body["tools"][0]["parameters"]
    arguments, _ = example(data.draw, sent, sent)

    restored = restore_arguments(answer(call("f", arguments)), request)

    assert sent == narrow(schema, OPENAI_STRICT).schema
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(restored.tool_calls[0].arguments)


def test_added_nulls_go_and_the_text_stays():
    """The arguments lose the null; what the model wrote is kept as it came."""
    response = answer(Text(text='{"limit": null}'), call(raw_arguments=RAW))

    restored = restore_arguments(response, REQUEST)

    assert restored == answer(
        Text(text='{"limit": null}'), call(arguments={"path": "a"}, raw_arguments=RAW)
    )
    assert response.tool_calls[0].arguments == GIVEN


@pytest.mark.parametrize(
    "part",
    [
        Text(text="null"),
        call(arguments={"path": "a"}),
        call("loose"),
        call("none"),
        call("unknown"),
        call(arguments={}, raw_arguments='{"limit": null'),
    ],
)
def test_all_else_is_the_same_object(part):
    """Tools that are not strict were given no nulls; calls that do not parse have no arguments."""
    response = answer(part)

    assert restore_arguments(response, REQUEST) is response
    assert restore_arguments(answer(call()), Request()).tool_calls[0].arguments == GIVEN


def test_events():
    """A whole call and a whole response are restored wherever an event carries them."""
    end = ToolCallEnd(id="t", index=0, tool_call=call())
    reason = FinishReason(reason="tool_calls")
    whole, clean = answer(call()), answer(call(arguments={"path": "a"}))

    assert restore_event(end, REQUEST) == ToolCallEnd(
        id="t", index=0, tool_call=call(arguments={"path": "a"})
    )
    assert restore_event(Finish(finish_reason=reason, response=whole), REQUEST).response == clean
    assert restore_event(StepFinish(step=1, response=whole), REQUEST).response == clean
    failed = ErrorEvent(error=StreamError("cut"), response=whole)
    assert restore_event(failed, REQUEST).response == clean


@pytest.mark.parametrize(
    "event",
    [
        TextDelta(id="t", index=0, delta="x"),
        ToolCallEnd(id="t", index=0, tool_call=call("loose")),
        Finish(finish_reason=FinishReason(reason="stop")),
        Finish(finish_reason=FinishReason(reason="stop"), response=answer()),
    ],
)
def test_other_events_are_the_same_object(event):
    """Nothing to restore, nothing new."""
    assert restore_event(event, REQUEST) is event
