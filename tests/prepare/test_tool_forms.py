"""Tools that a target does not have are sent in another form, or later; warnings say so."""

import json

import pytest

from interlingua import dialects
from interlingua.dialects import WireCall
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Opaque, Text, ToolCall, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.request import Grammar, Request, ToolChoice, ToolDefinition
from interlingua.wire.tool_names import flat_name, sent_names
from support.corpus import is_here, records
from support.deferred_tools import deferred_request

ANTHROPIC = dialects.get("anthropic_messages")
OTHERS = ("openai_responses", "gemini_generate", "openai_chat")
CUSTOM = ToolDefinition(
    name="apply_patch",
    description="Edits files.",
    type="custom",
    grammar=Grammar(syntax="lark", definition="start: /x/"),
)
DEFERRED = deferred_request("Mail Ada.", "ToolSearch")


def codes(call):
    return [(warning.code, warning.path) for warning in call.warnings]


def names(dialect, request):
    call = dialects.get(dialect).encode_request(request)
    return [tool.name for tool in dialects.get(dialect).decode_request(call).tools]


@pytest.mark.parametrize("dialect", ["anthropic_messages", "gemini_generate"])
def test_a_custom_tool_is_a_function_with_one_text(dialect):
    """The grammar is in the description, and a warning says so."""
    target = dialects.get(dialect)
    call = target.encode_request(Request(model="m", messages="Hi.", tools=(CUSTOM,)))
    (tool,) = target.decode_request(call).tools

    assert tool.parameters["properties"] == {"input": {"type": "string"}}
    assert tool.description.startswith("Edits files.\n\n")
    assert tool.description.endswith("(lark):\n\nstart: /x/")
    assert codes(call) == [("custom_tool_as_function", "tools[0]")]


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_a_custom_tool_keeps_its_grammar(dialect):
    """Both of OpenAI's formats have custom tools, each with its own form of a grammar."""
    target = dialects.get(dialect)
    call = target.encode_request(Request(model="m", messages="Hi.", tools=(CUSTOM,)))

    assert call.warnings == ()
    assert target.decode_request(call).tools == (CUSTOM,)


def test_hosts_without_custom_tools():
    """Servers that copy Chat Completions have only functions; OpenAI itself has custom tools."""
    chat = dialects.get("openai_chat")
    history = (
        Message.user("Hi."),
        Message.assistant([ToolCall(id="c", name="f", raw_arguments="x", type="custom")]),
        Message.tool_result("c", "ok"),
    )
    request = Request(model="m", messages=history, tools=(CUSTOM,))
    other = chat.encode_request(request, profile_for("openai_chat", "m", "groq"))
    own = chat.encode_request(request, profile_for("openai_chat", "gpt-5.2", "openai"))

    assert other.body["tools"][0]["type"] == "function"
    assert other.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"input":"x"}'
    assert own.body["tools"][0]["type"] == "custom"
    assert own.body["messages"][1]["tool_calls"][0]["custom"]["input"] == "x"


@pytest.mark.parametrize("dialect", OTHERS)
def test_a_deferred_tool_is_sent_once_a_reference_has_named_it(dialect):
    """A deferred tool is sent once a reference has named it; the reference becomes a text.

    Field bug 101.
    """
    request = ANTHROPIC.decode_request(WireCall(body=DEFERRED))
    call = dialects.get(dialect).encode_request(request)
    back = dialects.get(dialect).decode_request(call)
    results = [part for m in back.messages for part in m.content if isinstance(part, ToolResult)]

    assert names(dialect, request) == ["ToolSearch", "send"]
    assert json.dumps(results[0].content if isinstance(results[0].content, str) else "") != '""'
    assert "Now available: the tool send." in str(results[0].content)
    assert codes(call) == [
        ("tool_reference_as_text", "messages[2].content[0].content[0]"),
        ("deferred_tools_withheld", "tools[1]"),
    ]


def test_the_own_dialect_is_untouched():
    """Anthropic gets the tools and references as they came."""
    request = ANTHROPIC.decode_request(WireCall(body=DEFERRED))
    call = ANTHROPIC.encode_request(request)

    assert call.body["tools"] == DEFERRED["tools"]
    assert call.body["messages"] == DEFERRED["messages"]
    assert call.warnings == ()


@pytest.mark.parametrize("dialect", OTHERS)
def test_tools_of_a_hosted_search(dialect):
    """Another provider cannot search, so it gets all tools at once, and a warning says so."""
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    body = {**DEFERRED, "tools": [search, *DEFERRED["tools"]]}
    request = ANTHROPIC.decode_request(WireCall(body=body))
    call = dialects.get(dialect).encode_request(request)

    assert names(dialect, request) == ["ToolSearch", "lost", "send"]
    assert ("deferred_tools_sent", "tools[2]") in codes(call)
    assert ("builtin_tool_dropped", "tools[0]") in codes(call)


def test_a_chosen_or_called_tool_is_sent():
    """A deferred tool that the tool choice names, or that was called before, is there."""
    tools = [ToolDefinition(name=name, deferred="client") for name in ("a", "b", "c")]
    history = (
        Message.user("Hi."),
        Message.assistant([ToolCall(id="1", name="b")]),
        Message.tool_result("1", "ok"),
    )
    request = Request(
        model="m",
        messages=history,
        tools=tools,
        tool_choice=ToolChoice(mode="named", tool_name="a"),
    )

    assert names("openai_chat", request) == ["a", "b"]


def test_paths_of_later_warnings():
    """A tool after one that was left out is still named by its place in the caller's list."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "format": "iri"}}}
    tools = (
        ToolDefinition(name="lost", deferred="client"),
        ToolDefinition(name="f", parameters=schema, strict=True),
    )
    call = dialects.get("openai_chat").encode_request(
        Request(model="m", messages="Hi.", tools=tools)
    )

    assert {path.partition(".")[0] for code, path in codes(call) if "schema" in code} == {
        "tools[1]"
    }


def test_a_choice_in_a_namespace():
    """The tool choice has the name that was sent."""
    tools = (ToolDefinition(name="send", namespace="mail"),)
    choice = ToolChoice(mode="named", tool_name="send")
    request = Request(model="m", messages="Hi.", tools=tools, tool_choice=choice)
    body = ANTHROPIC.encode_request(request).body

    assert body["tool_choice"]["name"] == body["tools"][0]["name"] == "mail__send"


def test_names():
    """They are valid everywhere and unique; a tool without a namespace keeps its own."""
    tools = [
        ToolDefinition(name="a__b"),
        ToolDefinition(name="b", namespace="a"),
        ToolDefinition(name="b", namespace="a__"),
        ToolDefinition(name="x" * 70, namespace="long"),
        ToolDefinition(name="é.ü", namespace="a b"),
    ]
    sent = list(sent_names(tools).values())

    assert sent[0] == "a__b"
    assert len(set(sent)) == len(sent)
    assert all(len(name) <= 64 and name.isascii() for name in sent)
    assert flat_name("get_weather", "get_weather") == "get_weather"


def test_a_reference_among_texts():
    """The other parts of the result stay."""
    found = Opaque(dialect="anthropic_messages", data={}, loaded_tools=("a", "b"))
    result = ToolResult(tool_call_id="1", content=(Text("Found:"), found))
    history = (
        Message.user("Hi."),
        Message.assistant([ToolCall(id="1", name="find")]),
        Message(role="tool", content=(result,)),
    )
    body = dialects.get("gemini_generate").encode_request(Request(model="m", messages=history)).body

    assert "Now available: the tools a, b." in json.dumps(body)


@pytest.mark.skipif(not is_here(), reason="there are no recordings")
def test_recorded_searches_reach_every_dialect():
    """No deferred tool of a recording is lost: it is sent, or it was not named yet."""
    count = 0
    for record in records("anthropic_messages"):
        if "defer_loading" not in json.dumps(record["request_body"]):
            continue
        request = ANTHROPIC.decode_request(
            WireCall(body=record["request_body"], path=record["path"])
        )
        deferred = {tool.name for tool in request.tools if getattr(tool, "deferred", None)}
        for dialect in OTHERS:
            call = dialects.get(dialect).encode_request(request)
            warned = {code for code, _ in codes(call)}
            missing = deferred - set(names(dialect, request))
            assert not missing or "deferred_tools_withheld" in warned
            count += 1
    assert count > 30


@pytest.mark.parametrize("dialect", ["anthropic_messages", "gemini_generate", "openai_chat"])
def test_a_deferred_tool_is_sent_once_a_search_has_loaded_it(dialect):
    """A deferred tool of Codex is sent once a search has loaded it; its own API gets all as is.

    Field bug 101.
    """
    responses = dialects.get("openai_responses")
    tool = {"type": "function", "name": "send", "parameters": {"type": "object"}, "strict": False}
    deferred = [{**tool, "defer_loading": True}, {**tool, "name": "lost", "defer_loading": True}]
    search = {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}}
    head = {"call_id": "c1", "execution": "client", "status": "completed"}
    items = [
        {"role": "user", "content": "Mail Ada."},
        {"type": "tool_search_call", **head, "arguments": {"query": "mail"}},
        {"type": "tool_search_output", **head, "tools": [deferred[0]]},
    ]
    body = {"model": "m", "input": items, "tools": [search, *deferred]}
    request = responses.decode_request(WireCall(body=body))
    before = responses.decode_request(WireCall(body={**body, "input": items[:1]}))

    assert names(dialect, before) == ["tool_search"]
    assert names(dialect, request) == ["tool_search", "send"]
    call = dialects.get(dialect).encode_request(request)
    assert "Now available: the tool send." in json.dumps(call.body)
    assert {code for code, _ in codes(call)} == {
        "tool_reference_as_text", "deferred_tools_withheld", "tool_search_as_function",
    }  # fmt: skip
    assert responses.encode_request(request).body == body
    assert responses.encode_request(request).warnings == ()
