"""What is checked before a request is sent."""

import functools
import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings

from interlingua import dialects
from interlingua.api.tools.tool import tool
from interlingua.conformance.strategies import requests
from interlingua.spec.content import (
    PART_TYPES,
    Audio,
    Document,
    Image,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)
from interlingua.spec.request_check import check_request
from support import corpus

NAN, INF = math.nan, math.inf
OBJECT = {"type": "object", "properties": {}}
DEEP = []
for _ in range(100_000):
    DEEP = [DEEP]


def asked(*parts, **fields):
    return {"messages": [Message.user("?"), Message(role="user", content=parts)], **fields}


def told(value, path):
    """A request with a wrong value, and the path that the error must name."""
    return pytest.param(value, path, id=path)


PART = "messages[1].content[0]"
WRONG = [
    told({"model": 5}, "model must be a string, not 5"),
    told({"model": None}, "model must be a string"),
    told({"model": "a\ud800"}, "model contains a lone surrogate"),
    told({"messages": ()}, "messages is empty"),
    told(
        {"messages": [Message(role="user", content="?", extra=[5])]},
        "messages[0].extra must be a mapping",
    ),
    told({"provider": 5}, "provider must be a string"),
    told({"parallel_tool_calls": 1}, "parallel_tool_calls must be True or False"),
    told({"response_format": "json"}, "response_format must be a ResponseFormat"),
    told({"temperature": NAN}, "temperature must be a number of 0 or more, not nan"),
    told({"temperature": -1}, "temperature must be a number of 0 or more"),
    told({"temperature": True}, "temperature must be a number"),
    told({"top_p": "0.5"}, "top_p must be a number"),
    told({"top_k": 1.5}, "top_k must be an integer"),
    told({"max_tokens": 0}, "max_tokens must be an integer of 1 or more, not 0"),
    told({"max_tokens": -5}, "max_tokens must be"),
    told({"max_tokens": 10.0}, "max_tokens must be an integer"),
    told({"thinking_budget": -2}, "thinking_budget must be"),
    told({"seed": "7"}, "seed must be an integer"),
    told({"frequency_penalty": INF}, "frequency_penalty must be a number, not inf"),
    told({"presence_penalty": -INF}, "presence_penalty must be a number"),
    told({"reasoning_effort": 1}, "reasoning_effort must be a string"),
    told({"verbosity": 1}, "verbosity must be a string"),
    told({"user": 7}, "user must be a string"),
    told({"request_id": 7}, "request_id must be a string"),
    told({"on_loss": "x"}, "on_loss must be 'content', 'strict' or 'warn'"),
    told({"metadata": [1]}, "metadata must be a mapping"),
    told({"metadata": {"a": {"b": NAN}}}, "metadata.a.b must be a JSON value, not nan"),
    told({"provider_options": [1]}, "provider_options must be a mapping"),
    told({"provider_options": {1: 2}}, "provider_options must be a mapping by provider"),
    told({"provider_options": {"x": [0, INF]}}, "provider_options.x[1] must be a JSON value"),
    told({"stop_sequences": ["a", 5]}, "stop_sequences must be a list of strings"),
    # parts
    told(asked(Text(text=5)), f"{PART}.text must be a string, not 5"),
    told(asked(Text(text="a", extra=5)), f"{PART}.extra must be a mapping"),
    told(asked(Refusal(text=None)), f"{PART}.text must be a string"),
    told(asked(Thinking(text="a", signature=b"b")), f"{PART}.signature must be a string"),
    told(asked(Opaque(dialect=None)), f"{PART}.dialect must be a string"),
    told(asked(Image()), f"{PART} must have exactly one of url, data, file_id, path; it has none"),
    told(asked(Image(url="u", data=b"d")), f"{PART} must have exactly one of url, data"),
    told(asked(Audio(path="a", file_id="b")), "it has file_id and path"),
    told(asked(Document(text="a", url="b")), "exactly one of url, data, file_id, path, text"),
    told(asked(Image(url="")), f"{PART}.url is empty"),
    told(asked(Image(data=b"")), f"{PART}.data is empty"),
    told(asked(Image(data="text")), f"{PART}.data must be bytes"),
    told(asked(Image(url=5)), f"{PART}.url must be a string"),
    told(asked(ToolCall(id=5, name="f")), f"{PART}.id must be a string"),
    told(asked(ToolCall(id="c", name=None)), f"{PART}.name must be a string"),
    told(
        asked(ToolCall(id="c", name="f", type="x")), f"{PART}.type must be 'function', 'custom' or"
    ),
    told(asked(ToolCall(id="c", name="f", arguments=[])), f"{PART}.arguments must be"),
    told(
        asked(ToolCall(id="c", name="f", arguments={"a": [{"b": NAN}]})),
        f"{PART}.arguments.a[0].b must be a JSON value",
    ),
    told(asked(ToolResult(tool_call_id=None)), f"{PART}.tool_call_id must be a string"),
    told(
        asked(ToolResult(tool_call_id="c", content={"a": NAN})),
        f"{PART}.content.a must be a JSON value",
    ),
    told(
        asked(ToolResult(tool_call_id="c", content=object())),
        f"{PART}.content must be a JSON value",
    ),
    told(
        asked(ToolResult(tool_call_id="c", content=[Image()])),
        f"{PART}.content[0] must have exactly one",
    ),
    told({"messages": Message(role="user", name=5)}, "messages[0].name must be a string"),
    told({"messages": Message(role="user", metadata=5)}, "messages[0].metadata must be a mapping"),
    # tools
    told({"tools": [ToolDefinition(name="")]}, "tools[0].name must be"),
    told({"tools": [ToolDefinition(name="a b")]}, "tools[0].name must be 1 to 128 letters"),
    told({"tools": [ToolDefinition(name="näme")]}, "tools[0].name must be"),
    told({"tools": [ToolDefinition(name=5)]}, "tools[0].name must be a string"),
    told({"tools": [ToolDefinition(name="f", description=5)]}, "tools[0].description must be"),
    told(
        {"tools": [ToolDefinition(name="f", parameters=[])]},
        "tools[0].parameters must be a JSON Schema of type 'object'",
    ),
    told(
        {"tools": [ToolDefinition(name="f", parameters={"type": "string"})]},
        "tools[0].parameters must be",
    ),
    told(
        {"tools": [ToolDefinition(name="f", parameters=OBJECT | {"default": NAN})]},
        "tools[0].parameters.default must be a JSON value",
    ),
    told(
        {"tools": [ToolDefinition(name="f"), ToolDefinition(name="f")]},
        "tools[0] and tools[1] have the same name 'f'",
    ),
    told({"tools": [BuiltinTool(dialect=None)]}, "tools[0].dialect must be a string"),
    told({"tool_choice": ToolChoice(mode="x")}, "tool_choice.mode must be 'auto', 'none'"),
    told({"tool_choice": ToolChoice(mode="named")}, "tool_choice.tool_name is missing"),
    told(
        {"tool_choice": ToolChoice(allowed=["f", 5])},
        "tool_choice.allowed must be a list of strings",
    ),
    told({"tool_choice": 5}, "tool_choice must be a ToolChoice"),
    told(
        {"tools": [ToolDefinition(name="f")], "tool_choice": "g"},
        "tool_choice names 'g', which is neither a mode nor a tool. Tools: f.",
    ),
    # formats
    told({"response_format": ResponseFormat(type="x")}, "response_format.type must be 'text'"),
    told(
        {"response_format": ResponseFormat(type="json_schema")},
        "response_format.json_schema is missing",
    ),
    told(
        {"response_format": ResponseFormat(type="json_schema", json_schema=[])},
        "response_format.json_schema must be a JSON Schema",
    ),
    told({"response_format": ResponseFormat(strict=1)}, "response_format.strict must be True"),
]


@pytest.mark.parametrize(("fields", "path"), WRONG)
def test_wrong_values_are_refused_by_their_path(fields, path):
    """The error names the path, what is wanted, and what was given."""
    with pytest.raises(ConfigurationError) as caught:
        check_request(Request(**{"model": "m", "messages": "?", **fields}))
    assert path in str(caught.value)


@settings(deadline=None)
@given(requests())
def test_right_values_are_accepted(request):
    """What the language can say is not refused."""
    check_request(request)


@pytest.mark.skipif(not corpus.is_here(), reason="no recordings")
@pytest.mark.parametrize("name", dialects.names())
def test_recorded_requests_are_accepted(name):
    """What a provider has accepted is not refused."""
    decode = dialects.get(name).decode_request
    for case in corpus.cases(name):
        if case.call is not None and case.status < 400:
            check_request(decode(case.call))


def test_a_null_is_accepted_and_a_nan_beside_it_refused():
    """A null in arguments or results is right; a NaN beside it is found."""
    call = ToolCall(id="a", name="f", arguments={"x": None})
    check_request(Request(model="m", messages=[Message.assistant([call])]))
    check_request(Request(model="m", messages=[Message.tool_result("a", {"x": None})]))
    for value in ({"x": [None, NAN]}, NAN):
        with pytest.raises(ConfigurationError, match=r"messages\[1\]\.content\[0\]\.content"):
            check_request(
                Request(
                    model="m", messages=[Message.assistant([call]), Message.tool_result("a", value)]
                )
            )


def test_a_wrong_value_of_types_seen_before_is_refused():
    """Types that were right once do not make a wrong value right."""
    thinking = Thinking(text="hm", signature="s")
    check_request(Request(model="m", messages=[Message.assistant([thinking])]))
    call = ToolCall(id="a", name="f", type="custom", raw_arguments="x")
    check_request(Request(model="m", messages=[Message.assistant([call])]))
    wrong = msgspec.structs.replace(call, type="other")
    with pytest.raises(ConfigurationError, match=r"messages\[0\]\.content\[1\]\.type must be"):
        check_request(Request(model="m", messages=[Message.assistant([thinking, wrong])]))
    wrong = msgspec.structs.replace(thinking, signature=5)
    with pytest.raises(ConfigurationError, match=r"messages\[0\]\.content\[1\]\.signature"):
        check_request(Request(model="m", messages=[Message.assistant([thinking, wrong])]))


def test_deep_values_are_refused_without_recursion():
    """They are refused without recursion, and described by their type."""
    cycle = {"again": []}
    cycle["again"].append(cycle)
    shared = {"a": 1}
    check_request(Request(model="m", messages="?", metadata={"b": shared, "c": [shared] * 400}))
    less_deep = functools.reduce(
        lambda inner, _: [inner], range(2_000), 0
    )  # newer Pythons write it
    for value in (cycle, {"deep": DEEP}, less_deep):
        part = ToolResult(tool_call_id="c", content=value)
        with pytest.raises(ConfigurationError, match=r"content\[0\]\.content is nested too deeply"):
            check_request(Request(model="m", messages=[Message(role="user", content=part)]))
    with pytest.raises(ConfigurationError, match="user must be a string, not a list"):
        check_request(Request(model="m", messages="?", user=DEEP))


@pytest.mark.parametrize("kind", [*PART_TYPES, ToolDefinition, ToolChoice, ResponseFormat])
def test_every_field_is_checked(kind):
    """An object of no known type is refused in each field, whatever the field is."""
    required = {field.name: "x" for field in msgspec.structs.fields(kind) if field.required}
    for field in msgspec.structs.fields(kind):
        holder = kind(**required)
        msgspec.structs.force_setattr(holder, field.name, object())
        fields = {"model": "m", "messages": "?"}
        if kind is ToolDefinition:
            fields["tools"] = (holder,)
        elif kind in (ToolChoice, ResponseFormat):
            name = "tool_choice" if kind is ToolChoice else "response_format"
            fields[name] = holder
        else:
            fields["messages"] = Message(role="user", content=(holder,))
        with pytest.raises(ConfigurationError, match=field.name):
            check_request(Request(**fields))


def test_derived_classes_are_checked_by_the_fields_of_ours():
    """A class that an application derived is checked by the fields of ours."""

    class Tagged(Message, frozen=True, kw_only=True):
        tag: int | list[str] = 0

    check_request(Request(model="m", messages=[Tagged(role="user", content="hi", id="1", tag=[])]))
    with pytest.raises(ConfigurationError, match=r"messages\[0\]\.id must be a string"):
        check_request(Request(model="m", messages=[Tagged(role="user", content="hi", id=1)]))


# What constructors accept.


def test_the_one_value_by_position_is_text_url_bytes_or_path():
    """Text, a URL, bytes or a path."""
    assert Text("a") == Text(text="a")
    assert Thinking("a") == Thinking(text="a")
    for kind in (Image, Audio, Document):
        assert kind("https://a/b") == kind(url="https://a/b")
        assert kind(b"data") == kind(bytearray(b"data")) == kind(data=b"data")
        assert kind(Path("a.png")) == kind(url=Path("a.png")) == kind(path="a.png")
        with pytest.raises(TypeError):
            kind("a", b"b")
    for wrong in (5, "", b"a"):
        with pytest.raises(ConfigurationError, match="path must be the path of a file"):
            Image(path=wrong)


def test_arguments_as_text_are_parsed_or_refused():
    """The JSON text of a call is parsed and kept, or refused with its position."""
    call = ToolCall(id="c", name="f", arguments='{"a": 1}')

    assert (call.arguments, call.raw_arguments) == ({"a": 1}, '{"a": 1}')
    assert ToolCall(id="c", name="f", arguments="").arguments == {}
    with pytest.raises(
        ConfigurationError, match=r"arguments are not valid JSON \(.*character [89]"
    ):
        ToolCall(id="c", name="f", arguments='{"a":"1",}')
    with pytest.raises(ConfigurationError, match="arguments are not a JSON object"):
        ToolCall(id="c", name="f", arguments="[1]")


def test_constructors_of_messages_take_several_parts():
    """`Message.user("look", image)`, and the same for the other constructors."""
    image = Image("https://a/b")
    for make in (Message.user, Message.system, Message.assistant, Message.developer):
        assert make("look", image) == make(["look", image])
        assert make("look", [image, "and"], "tell") == make(["look", image, "and", "tell"])


@tool
def look(at: str) -> str:
    """Look at something."""
    return at


LOOK = {
    "name": "look",
    "description": "Look at something.",
    "parameters": look.definition.parameters,
}


@pytest.mark.parametrize(
    "given_as",
    [
        look,
        look.definition,
        LOOK,
        {"type": "function", "function": LOOK},
        {"type": "function", **LOOK},
        {"kind": "function", **LOOK},
        {
            "name": "look",
            "description": "Look at something.",
            "input_schema": look.definition.parameters,
        },
    ],
    ids=["tool", "definition", "bare", "chat", "flat", "ours", "input_schema"],
)
def test_a_tool_may_have_any_of_the_usual_forms(given_as):
    """A tool, its definition, or a dict in one of the usual forms."""
    assert Request(tools=[given_as]).tools == (look.definition,)
    assert Request(tools=(given_as,)).tools == (look.definition,)


def test_custom_tools_keep_their_type_and_builtin_tools_need_a_dialect():
    """A custom tool keeps its type; a provider's own tool needs its dialect."""
    custom = {"type": "custom", "custom": {"name": "run"}}
    ours = {"kind": "builtin", "dialect": "gemini_generate", "data": {"googleSearch": {}}}

    assert Request(tools=[custom]).tools == (ToolDefinition(name="run", type="custom"),)
    assert isinstance(Request(tools=[ours]).tools[0], BuiltinTool)
    with pytest.raises(ConfigurationError, match=r"tools\[0\] is a tool of type 'web_search'"):
        Request(tools=[{"type": "web_search"}])


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        (look, "tools must be a list of tools, not a FunctionTool"),
        ("look", "tools must be a list of tools, not a str"),
        ({"name": "look"}, "tools must be a list of tools, not a dict"),
        (5, "tools must be a list of tools, not a int"),
        ([len], "tools[0] is a builtin_function_or_method, which is not a tool. Decorate"),
        ([look, None], "tools[1] is a NoneType"),
        ([{}], "tools[0] is not the definition of a tool"),
        ([{"name": 5}], "tools[0] is not the definition of a tool"),
        ([{"name": "f", "cache": 1}], "tools[0] has an unknown field 'cache'"),
        ([{"kind": "x"}], "tools[0] is not the definition of a tool"),
    ],
)
def test_what_is_no_tool_is_refused(tools, message):
    """The error says which one, and what to pass."""
    with pytest.raises(ConfigurationError) as caught:
        Request(tools=tools)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("temprature", "Did you mean 'temperature'?"),
        ("max_output_tokens", "Use max_tokens=."),
        ("stop", "Use stop_sequences=."),
        ("prompt", "Use messages=."),
        ("system", "Use Message.system(...)"),
        ("response_model", "Use schema= of generate_object."),
        ("zzz", "There are active_connectors, active_skills, chosen_because, context, "),
    ],
)
def test_unknown_fields_are_refused_with_the_right_name(name, advice):
    """The right name is in the error, also for names of other libraries."""
    with pytest.raises(ConfigurationError, match=f"Request has no field {name!r}") as caught:
        Request(model="m", **{name: 1})
    assert advice in str(caught.value)
    with pytest.raises(ConfigurationError, match="positional"):
        Request("m")


@pytest.mark.parametrize(
    ("tools", "choice", "is_right"),
    [
        ([look], "look", True),
        ([look], "find", False),
        ([], "look", False),
        ([BuiltinTool.web_search()], "web_search", True),
        ([BuiltinTool.web_search()], "look", False),
        ([look, BuiltinTool.web_search()], "find", False),
        ([BuiltinTool(dialect="openai_responses", data={"type": "mcp"})], "find", True),
        ([look], ToolChoice(mode="required", allowed=["find"]), False),
    ],
)
def test_a_choice_of_a_tool_that_is_not_among_the_tools_is_refused(tools, choice, is_right):
    """The tools of a dialect may have any name; with no tools at all there is none to choose."""
    request = Request(model="m", messages="?", tools=tools, tool_choice=choice)
    if is_right:
        assert check_request(request) is request
    else:
        with pytest.raises(ConfigurationError, match="neither a mode nor a tool"):
            check_request(request)


def test_any_tool_choice_means_required():
    """Anthropic and Gemini say `any` for what OpenAI calls `required`."""
    request = Request(model="m", messages="?", tools=[look], tool_choice="any")
    assert request.tool_choice == ToolChoice(mode="required")
