"""Tools and the choice among them."""

import pytest
from hypothesis import given
from openai.types.chat import ChatCompletionFunctionToolParam
from pydantic import TypeAdapter

from interlingua.dialects.openai_chat import decode_request, encode_request
from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolDefinition
from support.schemas import schemas

NAME = "openai_chat"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
STRICT = {**SCHEMA, "required": ["city"], "additionalProperties": False}


def decode(**fields):
    return decode_request(WireCall(body={"model": "m", "messages": [], **fields}))


def encode(quirks=None, **fields):
    return encode_request(Request(model="m", **fields), Profile(quirks=quirks))


TOOLS = [
    (
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": STRICT, "strict": True},
        },
        ToolDefinition(name="f", description="d", parameters=STRICT, strict=True),
    ),
    ({"type": "function", "function": {"name": "f"}}, ToolDefinition(name="f")),
    (
        {"function": {"name": "f"}},
        ToolDefinition(name="f", extra={NAME: {"~without": ["type"]}}),
    ),
    (
        {
            "type": "function",
            "function": {"name": "f", "strict": None, "x": 1},
            "cache_control": {"type": "ephemeral"},
        },
        ToolDefinition(
            name="f",
            extra={
                NAME: {
                    "cache_control": {"type": "ephemeral"},
                    "function": {"strict": None, "x": 1},
                }
            },
        ),
    ),
    (
        {"type": "custom", "custom": {"name": "f", "format": {"type": "text"}}},
        ToolDefinition(
            name="f", type="custom", extra={NAME: {"custom": {"format": {"type": "text"}}}}
        ),
    ),
    (
        {"type": "openrouter:web_search", "parameters": {"max_results": 2}},
        BuiltinTool(
            dialect=NAME, data={"type": "openrouter:web_search", "parameters": {"max_results": 2}}
        ),
    ),
]


@pytest.mark.parametrize(("wire", "tool"), TOOLS)
def test_tools_both_ways(wire, tool):
    """Functions are nested here; what is no function or custom tool is carried."""
    assert decode(tools=[wire]).tools == (tool,)
    assert encode(tools=[tool]).body["tools"] == [wire]


CHOICES = [
    ("auto", ToolChoice(mode="auto")),
    ("none", ToolChoice(mode="none")),
    ("required", ToolChoice(mode="required")),
    ("any", ToolChoice(mode="required", extra={NAME: {"~sent_as": "any"}})),
    (
        {"type": "function", "function": {"name": "f"}},
        ToolChoice(mode="named", tool_name="f"),
    ),
    (
        {"function": {"name": "f"}},
        ToolChoice(mode="named", tool_name="f", extra={NAME: {"~without": ["type"]}}),
    ),
    (
        {"type": "custom", "custom": {"name": "f"}},
        ToolChoice(mode="named", tool_name="f", extra={NAME: {"~sent_as": "custom"}}),
    ),
    (
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "f"}}],
            },
        },
        ToolChoice(mode="required", allowed=("f",)),
    ),
]


@pytest.mark.parametrize(("wire", "choice"), CHOICES)
def test_choices_both_ways(wire, choice):
    """Each form of `tool_choice` is read and written back."""
    assert decode(tool_choice=wire).tool_choice == choice
    assert encode(tool_choice=choice).body["tool_choice"] == wire


@pytest.mark.parametrize(
    "wire",
    [
        "sometimes",
        {"type": "mcp", "server": "s"},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "mcp"}]}},
        {"type": "function", "function": {}},
    ],
)
def test_unknown_choices_are_carried(wire):
    """A form of some server's own is neither refused nor lost."""
    request = decode(tool_choice=wire)

    assert request.tool_choice is None
    assert encode_request(request).body["tool_choice"] == wire


def test_named_custom_tool():
    """The form of a named choice follows from the tool it names."""
    call = encode(
        tools=[ToolDefinition(name="sql", type="custom")],
        tool_choice=ToolChoice(mode="named", tool_name="sql"),
    )

    assert call.body["tool_choice"] == {"type": "custom", "custom": {"name": "sql"}}


def test_word_for_required():
    """One server says `any`."""
    choice = ToolChoice(mode="required")

    assert encode(ChatQuirks(required_word="any"), tool_choice=choice).body["tool_choice"] == "any"


def test_legacy_functions_both_ways():
    """The older form of tools and choice is read as tools, and written back as it was."""
    wire = {
        "functions": [{"name": "f", "description": "d", "parameters": SCHEMA}],
        "function_call": {"name": "f"},
    }
    request = decode(**wire)

    assert request.tools[0].name == "f"
    assert (request.tool_choice.mode, request.tool_choice.tool_name) == ("named", "f")
    body = encode_request(request).body
    assert {name: body[name] for name in wire} == wire
    assert "tools" not in body
    assert encode_request(decode(function_call="auto")).body["function_call"] == "auto"


def test_parallel_calls_both_ways():
    """False is a value."""
    assert decode(parallel_tool_calls=False).parallel_tool_calls is False
    assert encode(parallel_tool_calls=False).body["parallel_tool_calls"] is False


def test_foreign_builtin_tools_are_left_out():
    """Another provider's own tool is dropped with a warning; no empty list is sent."""
    call = encode(tools=[BuiltinTool(dialect="gemini_generate", data={"googleSearch": {}})])

    assert "tools" not in call.body
    assert [(w.code, w.path) for w in call.warnings] == [("builtin_tool_dropped", "tools[0]")]
    assert "tools" not in encode(tools=[]).body


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [{"type": "function", "function": {"name": 5}}]}, "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]},
            "tools[0].function.parameters",
        ),
        ({"tool_choice": 5}, "tool_choice"),
        ({"parallel_tool_calls": "yes"}, "parallel_tool_calls"),
        ({"functions": [{"name": None}]}, "functions[0].name"),
    ],
)
def test_wrong_types_name_their_path(fields, path):
    """What cannot be read is a 400 that says where."""
    with pytest.raises(InvalidRequestError, match=path.replace("[", r"\[")) as caught:
        decode(**fields)

    assert caught.value.status_code == 400


def test_strict_tools_are_narrowed():
    """An optional property is required and may be null; to say so is no loss."""
    call = encode(messages="x", tools=[ToolDefinition(name="f", parameters=SCHEMA, strict=True)])

    assert call.body["tools"][0]["function"] == {
        "name": "f",
        "parameters": {**STRICT, "properties": {"city": {"type": ["string", "null"]}}},
        "strict": True,
    }
    assert call.warnings == ()


def test_tools_that_cannot_be_strict():
    """A map of any names is sent as it is, not strict, with a warning; others are left alone."""
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    strict, plain = (
        encode(messages="x", tools=[ToolDefinition(name="f", parameters=schema, strict=asked)])
        for asked in (True, None)
    )

    assert strict.body["tools"][0]["function"] == {
        "name": "f",
        "parameters": schema,
        "strict": False,
    }
    assert [(w.code, w.path) for w in strict.warnings] == [
        ("schema_not_strict", "tools[0].parameters")
    ]
    assert plain.body["tools"][0]["function"] == {"name": "f", "parameters": schema}
    assert plain.warnings == ()


@given(schemas(hinted=True))
def test_tools_are_what_the_sdk_takes(schema):
    """Any plausible schema, strict or not, fits the type of the vendor's own client."""
    tools = [ToolDefinition(name="f", parameters=schema, strict=strict) for strict in (True, None)]

    TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(
        encode(tools=tools).body["tools"]
    )
