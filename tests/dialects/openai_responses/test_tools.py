"""Tools and the choice among them <-> body."""

import pytest
from hypothesis import given
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from interlingua.dialects.openai_responses import decode_request, encode_request
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolDefinition
from support.schemas import schemas

NAME = "openai_responses"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
STRICT = {**SCHEMA, "required": ["a"], "additionalProperties": False}


def read(**body):
    return decode_request(WireCall(body={"input": [], **body}))


def say(**fields):
    call = encode_request(Request(**fields))
    return call.body, [warning.code for warning in call.warnings]


@pytest.mark.parametrize(
    ("wire", "tool"),
    [
        (
            {
                "type": "function",
                "name": "f",
                "description": "d",
                "parameters": STRICT,
                "strict": True,
            },
            ToolDefinition(name="f", description="d", parameters=STRICT, strict=True),
        ),
        (
            {"type": "function", "name": "f", "parameters": SCHEMA},
            ToolDefinition(name="f", parameters=SCHEMA, extra={NAME: {}}),
        ),
        (
            {
                "type": "function",
                "name": "f",
                "parameters": None,
                "strict": None,
                "description": None,
            },
            ToolDefinition(
                name="f", extra={NAME: {"parameters": None, "strict": None, "description": None}}
            ),
        ),
        (
            {"type": "function", "name": "f", "parameters": SCHEMA, "defer_loading": True},
            ToolDefinition(
                name="f",
                parameters=SCHEMA,
                deferred="server",
                extra={NAME: {"defer_loading": True}},
            ),
        ),
        (
            {"type": "custom", "name": "c", "description": "d", "format": {"type": "text"}},
            ToolDefinition(
                name="c", description="d", type="custom", extra={NAME: {"format": {"type": "text"}}}
            ),
        ),
        (
            {"type": "web_search"},
            BuiltinTool(dialect=NAME, data={"type": "web_search"}, name="web_search"),
        ),
        (
            {"type": "function", "function": {"name": "f"}},
            BuiltinTool(dialect=NAME, data={"type": "function", "function": {"name": "f"}}),
        ),
    ],
)
def test_tools_both_ways(wire, tool):
    """Function and custom tools are definitions; every other tool is carried."""
    assert (tool,) == read(tools=[wire]).tools
    assert [wire] == say(tools=[tool])[0]["tools"]


def test_tool_without_input():
    """A tool of ours without parameters gets an empty schema."""
    body, codes = say(tools=[ToolDefinition(name="f")])

    assert body["tools"][0]["parameters"] == {"type": "object", "properties": {}}
    assert codes == []


def test_strict_tool_without_input():
    """The empty schema is closed like any other."""
    body, _ = say(tools=[ToolDefinition(name="f", strict=True)])

    assert body["tools"][0]["parameters"] == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
        "required": [],
    }


def test_strict_tools_are_narrowed():
    """An optional property is required and may be null; to say so is no loss."""
    tool = ToolDefinition(name="f", parameters=SCHEMA, strict=True)
    body, codes = say(messages="x", tools=[tool])

    assert body["tools"][0]["parameters"] == {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}},
        "additionalProperties": False,
        "required": ["a"],
    }
    assert body["tools"][0]["strict"] is True
    assert codes == []
    assert tool.parameters == SCHEMA


def test_tools_that_cannot_be_strict():
    """A map of any names is sent as it is, not strict, with a warning."""
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    body, codes = say(
        messages="x", tools=[ToolDefinition(name="f", parameters=schema, strict=True)]
    )

    assert body["tools"] == [
        {"type": "function", "name": "f", "parameters": schema, "strict": False}
    ]
    assert codes == ["schema_not_strict"]


@given(schemas(hinted=True))
def test_tools_are_what_the_sdk_takes(schema):
    """Any plausible schema, strict or not, fits the type of the vendor's own client."""
    tools = [ToolDefinition(name="f", parameters=schema, strict=strict) for strict in (True, False)]

    TypeAdapter(list[FunctionToolParam]).validate_python(say(tools=tools)[0]["tools"])


def test_builtin_tool_of_others():
    """It is left out with a warning."""
    body, codes = say(tools=[BuiltinTool(dialect="gemini_generate", data={"googleSearch": {}})])

    assert "tools" not in body
    assert codes == ["builtin_tool_dropped"]


ALLOWED = {
    "type": "allowed_tools",
    "mode": "auto",
    "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "g"}],
}


@pytest.mark.parametrize(
    ("wire", "choice"),
    [
        ("auto", ToolChoice(mode="auto")),
        ("none", ToolChoice(mode="none")),
        ("required", ToolChoice(mode="required")),
        ({"type": "function", "name": "f"}, ToolChoice(mode="named", tool_name="f")),
        (
            {"type": "custom", "name": "c"},
            ToolChoice(mode="named", tool_name="c", extra={NAME: {"type": "custom"}}),
        ),
        (ALLOWED, ToolChoice(mode="auto", allowed=("f", "g"))),
    ],
)
def test_choice_both_ways(wire, choice):
    """Each way of choosing has its canonical form."""
    assert choice == read(tool_choice=wire).tool_choice
    assert wire == say(tool_choice=choice)[0]["tool_choice"]


@pytest.mark.parametrize(
    "wire",
    [
        {"type": "web_search"},
        {"type": "mcp", "server_label": "x", "name": "y"},
        {"type": "function", "name": "f", "more": 1},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "x"}]},
        {**ALLOWED, "more": 1},
        "sometimes",
        None,
    ],
)
def test_other_choices_are_carried(wire):
    """They come back as they were."""
    request = read(tool_choice=wire)

    assert None is request.tool_choice
    assert wire == encode_request(request).body["tool_choice"]


def test_custom_tools_are_named_as_such():
    """A choice of ours says which kind of tool it means."""
    tools = [ToolDefinition(name="c", type="custom"), ToolDefinition(name="f")]

    named, _ = say(tools=tools, tool_choice=ToolChoice(mode="named", tool_name="c"))
    allowed, _ = say(tools=tools, tool_choice=ToolChoice(mode="required", allowed=("c", "f")))

    assert named["tool_choice"] == {"type": "custom", "name": "c"}
    assert [tool["type"] for tool in allowed["tool_choice"]["tools"]] == ["custom", "function"]


def test_parallel_tool_calls_needs_no_choice_beside_it():
    """`parallel_tool_calls` needs no choice beside it (field bug 23)."""
    body, _ = say(parallel_tool_calls=False)

    assert body["parallel_tool_calls"] is False
    assert "tool_choice" not in body
    assert read(parallel_tool_calls=False).parallel_tool_calls is False


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [{"type": "function", "name": 5}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "name": "f", "parameters": []}]}, "tools[0].parameters"),
        ({"tools": [{"type": "function", "name": "f", "strict": "yes"}]}, "tools[0].strict"),
        ({"tool_choice": 5}, "tool_choice"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
    ],
)
def test_wrong_types(body, path):
    """A wrong type is a 400 that names the place."""
    with pytest.raises(InvalidRequestError, match=rf"^{path}: ".replace("[", r"\[")):
        read(**body)
