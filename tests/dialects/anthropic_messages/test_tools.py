"""Tools and the choice among them."""

import pytest
from anthropic.types import ToolParam
from hypothesis import given
from pydantic import TypeAdapter

from interlingua.dialects.anthropic_messages import decode_request, encode_request
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolDefinition
from support.schemas import schemas

NAME = "anthropic_messages"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CLOSED = {**SCHEMA, "additionalProperties": False}


def decode(**fields):
    return decode_request(WireCall(body={"model": "m", "max_tokens": 1, "messages": [], **fields}))


def encode(**fields):
    return encode_request(Request(model="m", **fields))


def test_function_tool_both_ways():
    """A client tool has a name, a description, a schema and its marks."""
    wire = {
        "name": "f",
        "description": "d",
        "input_schema": CLOSED,
        "strict": True,
        "cache_control": {"type": "ephemeral"},
    }
    tool = ToolDefinition(
        name="f",
        description="d",
        parameters=CLOSED,
        strict=True,
        extra={NAME: {"cache_control": {"type": "ephemeral"}}},
    )

    assert decode(tools=[wire]).tools == (tool,)
    assert encode(tools=[tool]).body["tools"] == [wire]


def test_builtin_tools_are_carried():
    """A tool the provider runs goes through untouched."""
    wire = {"type": "web_search_20260318", "name": "web_search", "max_uses": 3}

    (tool,) = decode(tools=[wire]).tools
    assert (tool.dialect, tool.data, tool.name) == (NAME, wire, "web_search")
    assert encode(tools=[BuiltinTool(dialect=NAME, data=wire)]).body["tools"] == [wire]


def test_foreign_builtin_tools_are_left_out():
    """Another provider's own tool is dropped with a warning."""
    call = encode(tools=[BuiltinTool(dialect="gemini_generate", data={"googleSearch": {}})])

    assert "tools" not in call.body
    assert [(w.code, w.path) for w in call.warnings] == [("builtin_tool_dropped", "tools[0]")]


def test_tool_without_input():
    """A tool without parameters still has a schema, which this API requires."""
    call = encode(tools=[ToolDefinition(name="now")])

    assert call.body["tools"] == [
        {"name": "now", "input_schema": {"type": "object", "properties": {}}}
    ]


def test_custom_tool_takes_its_text_in_an_object():
    """A free-text tool becomes one with a single string."""
    call = encode(tools=[ToolDefinition(name="run", type="custom")])

    assert call.body["tools"][0]["input_schema"]["required"] == ["input"]
    assert [w.code for w in call.warnings] == ["custom_tool_as_function"]


@pytest.mark.parametrize(
    ("wire", "choice", "parallel"),
    [
        ({"type": "auto"}, ToolChoice(), None),
        ({"type": "none"}, ToolChoice(mode="none"), None),
        ({"type": "any"}, ToolChoice(mode="required"), None),
        ({"type": "tool", "name": "f"}, ToolChoice(mode="named", tool_name="f"), None),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice(mode="required"), False),
        ({"type": "auto", "disable_parallel_tool_use": False}, ToolChoice(), True),
    ],
)
def test_choice_both_ways(wire, choice, parallel):
    """Each form of the choice, with the parallel switch inside it."""
    request = decode(tool_choice=wire)

    assert (request.tool_choice, request.parallel_tool_calls) == (choice, parallel)
    assert encode(tool_choice=choice, parallel_tool_calls=parallel).body["tool_choice"] == wire


def test_the_parallel_switch_alone_is_an_auto_choice():
    """`parallel_tool_calls=False` alone is a valid auto choice with the switch (field bug 23)."""
    call = encode(tools=[ToolDefinition(name="f")], parallel_tool_calls=False)

    assert call.body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_unknown_choice_is_carried():
    """A form of choice we do not know goes back as it came."""
    request = decode(tool_choice={"type": "maybe", "odds": 0.5})

    assert request.tool_choice is None
    assert encode_request(request).body["tool_choice"] == {"type": "maybe", "odds": 0.5}


def test_allowed_list_narrows_the_tools():
    """There is no allowed list here: only the allowed tools are sent."""
    tools = [ToolDefinition(name="a"), ToolDefinition(name="b")]
    call = encode(tools=tools, tool_choice=ToolChoice(mode="required", allowed=("b",)))

    assert [tool["name"] for tool in call.body["tools"]] == ["b"]
    assert call.body["tool_choice"] == {"type": "any"}
    assert [w.code for w in call.warnings] == ["allowed_tools_narrowed"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [{"name": 5, "input_schema": {}}]}, "tools[0].name"),
        ({"tools": [{"name": "f", "input_schema": []}]}, "tools[0].input_schema"),
        ({"tool_choice": "auto"}, "tool_choice"),
        (
            {"tool_choice": {"type": "any", "disable_parallel_tool_use": 1}},
            "tool_choice.disable_parallel",
        ),
    ],
)
def test_wrong_types_name_their_path(fields, path):
    """A tool of the wrong shape is refused with its place."""
    with pytest.raises(InvalidRequestError, match=path.replace("[", r"\[")):
        decode(**fields)


def test_strict_tools_are_narrowed():
    """Objects are closed and bounds are said in words; the caller's schema is not touched."""
    tool = ToolDefinition(
        name="f",
        parameters={"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}},
        strict=True,
    )
    call = encode(tools=[tool])

    assert call.body["tools"] == [
        {
            "name": "f",
            "input_schema": {
                "type": "object",
                "properties": {"n": {"type": "integer", "description": "(minimum: 1)"}},
                "additionalProperties": False,
            },
            "strict": True,
        }
    ]
    assert [(w.code, w.path) for w in call.warnings if w.path != "messages"] == [
        ("schema_narrowed", "tools[0].parameters")
    ]
    assert tool.parameters["properties"] == {"n": {"type": "integer", "minimum": 1}}


def test_tools_that_cannot_be_strict():
    """A map of any names is sent as it is, not strict, with a warning; others are left alone."""
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    strict, plain = (
        encode(messages="x", tools=[ToolDefinition(name="f", parameters=schema, strict=asked)])
        for asked in (True, None)
    )

    assert strict.body["tools"] == [{"name": "f", "input_schema": schema, "strict": False}]
    assert [w.code for w in strict.warnings] == ["schema_not_strict"]
    assert plain.body["tools"] == [{"name": "f", "input_schema": schema}]
    assert plain.warnings == ()


@given(schemas(hinted=True))
def test_tools_are_what_the_sdk_takes(schema):
    """Any plausible schema, strict or not, fits the type of the vendor's own client."""
    tools = [ToolDefinition(name="f", parameters=schema, strict=strict) for strict in (True, None)]

    TypeAdapter(list[ToolParam]).validate_python(encode(tools=tools).body["tools"])
