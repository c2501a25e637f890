"""Tools and the choice among them <-> body."""

import msgspec
import pytest
from google.genai import types
from hypothesis import given

from interlingua.dialects import gemini_generate
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import InvalidRequestError
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolDefinition
from support.schemas import schemas

NAME = "gemini_generate"
SCHEMA = {"type": "object", "properties": {"first_name": {"type": "string"}}}
OPENAPI = {
    "type": "OBJECT",
    "properties": {"age": {"type": "INTEGER", "nullable": True, "format": "int32"}},
    "required": ["age"],
}


def decode(**body):
    return gemini_generate.decode_request(WireCall(body=body))


def again(**body):
    return gemini_generate.encode_request(decode(**body)).body


def encode(**fields):
    return gemini_generate.encode_request(Request(model="m", **fields))


def test_declarations_are_flattened():
    """Each declaration is a definition; a schema in the OpenAPI form is kept beside ours."""
    request = decode(
        tools=[
            {
                "functionDeclarations": [
                    {"name": "f", "description": "F", "parametersJsonSchema": SCHEMA},
                    {"name": "g", "parameters": SCHEMA, "behavior": "NON_BLOCKING"},
                    {"name": "h"},
                ]
            }
        ]
    )

    assert request.tools == (
        ToolDefinition(name="f", description="F", parameters=SCHEMA),
        ToolDefinition(
            name="g",
            parameters=SCHEMA,
            extra={NAME: {"behavior": "NON_BLOCKING", "~schema": SCHEMA}},
        ),
        ToolDefinition(name="h"),
    )


@pytest.mark.parametrize(
    "tools",
    [
        [],
        [{}],
        [{"functionDeclarations": []}],
        [{"functionDeclarations": None, "codeExecution": {}}],
        [{"googleSearch": {}}, {"functionDeclarations": [{"name": "f"}]}, {"urlContext": {}}],
        [{"functionDeclarations": [{"name": "f"}, {"name": "g"}], "codeExecution": None}],
        [{"functionDeclarations": [{"name": "f"}]}, {"functionDeclarations": [{"name": "g"}]}],
        [
            {"functionDeclarations": [{"name": "f"}]},
            {"googleMaps": {}},
            {"functionDeclarations": [{"name": "g"}, {"name": "h"}], "googleSearch": {}},
        ],
        [{"functionDeclarations": [{"name": "f", "parameters": SCHEMA, "response": {"a": 1}}]}],
        [{"functionDeclarations": [{"name": "f", "parameters": OPENAPI}]}],
        [{"functionDeclarations": [{"name": "f", "parameters": {}}]}],
        [
            {
                "functionDeclarations": [
                    {"name": "f", "parameters": SCHEMA, "parametersJsonSchema": SCHEMA}
                ]
            }
        ],
        [{"functionDeclarations": [{"name": "f", "parameters": None, "description": None}]}],
    ],
)
def test_tools_come_back_exactly(tools):
    """How declarations are grouped, and what stands beside them, is the same again."""
    assert again(tools=tools)["tools"] == tools


def test_schemas_go_out_as_json_schema():
    """A JSON Schema is sent whole, in the field that takes one; its keys are never renamed.

    Field bug 84.
    """
    schema = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"$ref": "#/$defs/a_b"}, {"type": "integer"}]},
            "more": {"$ref": "#"},
        },
        "$defs": {"a_b": {"type": "string"}},
    }
    call = encode(tools=(ToolDefinition(name="f", parameters=schema), ToolDefinition(name="g")))

    assert call.body["tools"] == [
        {"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}, {"name": "g"}]}
    ]
    assert types.Tool.model_validate(call.body["tools"][0]).function_declarations[0].name == "f"


def test_openapi_schemas_are_read_as_json_schema():
    """Other dialects can say it; changed, it goes out as JSON Schema; unchanged, as it came."""
    (tool,) = decode(tools=[{"functionDeclarations": [{"name": "f", "parameters": OPENAPI}]}]).tools
    changed = msgspec.structs.replace(tool, parameters={**tool.parameters, "required": []})

    assert tool.parameters == {
        "type": "object",
        "properties": {"age": {"type": ["integer", "null"], "format": "int32"}},
        "required": ["age"],
    }
    assert encode(tools=[tool]).body["tools"] == [
        {"functionDeclarations": [{"name": "f", "parameters": OPENAPI}]}
    ]
    assert encode(tools=[changed]).body["tools"] == [
        {"functionDeclarations": [{"name": "f", "parametersJsonSchema": changed.parameters}]}
    ]


def test_schemas_are_narrowed():
    """What Gemini does not check is said in words, with a warning; so is a strict mark."""
    schema = {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 5}}}
    call = encode(messages="x", tools=[ToolDefinition(name="f", parameters=schema, strict=True)])

    (sent,) = call.body["tools"][0]["functionDeclarations"]
    assert sent["parametersJsonSchema"]["properties"] == {
        "n": {"type": "integer", "description": "(multipleOf: 5)"}
    }
    assert [(w.code, w.path) for w in call.warnings] == [
        ("schema_narrowed", "tools[0].parameters"),
        ("strict_dropped", "tools[0].strict"),
    ]


@given(schemas(hinted=True))
def test_tools_are_what_the_sdk_takes(schema):
    """Any plausible schema fits the types of the vendor's own client, JSON Schema's among them."""
    call = encode(tools=[ToolDefinition(name="f", parameters=schema)])

    (sent,) = types.Tool.model_validate(call.body["tools"][0]).function_declarations
    types.JSONSchema.model_validate(sent.parameters_json_schema)


def test_tools_of_others():
    """Another provider's own tools are left out; a free-text tool takes one text."""
    call = encode(
        tools=(
            BuiltinTool(dialect="openai_responses", data={"type": "web_search"}),
            BuiltinTool(dialect=NAME, data={"googleSearch": {}}),
            ToolDefinition(name="f", type="custom"),
        )
    )

    free_text = {"type": "object", "properties": {"input": {"type": "string"}}}
    assert call.body["tools"] == [
        {"googleSearch": {}},
        {
            "functionDeclarations": [
                {"name": "f", "parametersJsonSchema": {**free_text, "required": ["input"]}}
            ]
        },
    ]
    assert [(w.code, w.path) for w in call.warnings] == [
        ("custom_tool_as_function", "tools[2]"),
        ("builtin_tool_dropped", "tools[0]"),
    ]


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        ({"mode": "AUTO"}, ToolChoice()),
        ({"mode": "NONE"}, ToolChoice(mode="none")),
        ({"mode": "ANY"}, ToolChoice(mode="required")),
        (
            {"mode": "ANY", "allowedFunctionNames": ["f"]},
            ToolChoice(mode="named", tool_name="f"),
        ),
        (
            {"mode": "ANY", "allowedFunctionNames": ["f", "g"]},
            ToolChoice(mode="required", allowed=("f", "g")),
        ),
        (
            {"mode": "ANY", "allowedFunctionNames": []},
            ToolChoice(mode="required", allowed=()),
        ),
        (
            {"mode": "VALIDATED", "allowedFunctionNames": ["f"]},
            ToolChoice(mode="auto", allowed=("f",)),
        ),
        ({"mode": 2}, ToolChoice(mode="required", extra={NAME: {"mode": 2}})),
        (
            {"mode": "AUTO", "allowedFunctionNames": ["f"]},
            ToolChoice(mode="auto", allowed=("f",), extra={NAME: {"mode": "AUTO"}}),
        ),
        (
            {"mode": "AUTO", "streamFunctionCallArguments": True},
            ToolChoice(extra={NAME: {"streamFunctionCallArguments": True}}),
        ),
    ],
)
def test_choices(config, choice):
    """Each choice has one form here and one on the wire; numbers stay numbers."""
    body = {"toolConfig": {"functionCallingConfig": config}}
    request = decode(**body)

    assert request.tool_choice == choice
    assert gemini_generate.encode_request(request).body["toolConfig"] == body["toolConfig"]
    assert encode(tool_choice=choice).body["toolConfig"] == body["toolConfig"]


@pytest.mark.parametrize(
    "config",
    [
        None,
        {},
        {"functionCallingConfig": {}},
        {"functionCallingConfig": None},
        {"functionCallingConfig": {"mode": "VALIDATED"}},
        {"functionCallingConfig": {"mode": "NEXT_YEAR", "allowedFunctionNames": ["f"]}},
        {"includeServerSideToolInvocations": True},
        {"functionCallingConfig": {"mode": "ANY"}, "retrievalConfig": {"languageCode": "no"}},
    ],
)
def test_other_configs_come_back_exactly(config):
    """Modes and fields without a canonical form are carried."""
    assert again(toolConfig=config)["toolConfig"] == config


def test_parallel_calls_have_no_switch():
    """This API always may call in parallel; asking otherwise is warned of."""
    call = encode(parallel_tool_calls=False)

    assert [(w.code, w.path) for w in call.warnings] == [
        ("parallel_tool_calls_dropped", "parallel_tool_calls")
    ]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"tools": "x"}, "tools:"),
        ({"tools": [5]}, "tools[0]:"),
        ({"tools": [{"functionDeclarations": 5}]}, "tools[0].functionDeclarations:"),
        (
            {"tools": [{"functionDeclarations": [{"name": 5}]}]},
            "tools[0].functionDeclarations[0].name:",
        ),
        ({"toolConfig": []}, "toolConfig:"),
        ({"toolConfig": {"functionCallingConfig": 5}}, "toolConfig.functionCallingConfig:"),
    ],
)
def test_wrong_types_name_their_path(body, path):
    """A tool that cannot be read is a 400 that says where."""
    with pytest.raises(InvalidRequestError) as caught:
        decode(**body)

    assert caught.value.message.startswith(path)
