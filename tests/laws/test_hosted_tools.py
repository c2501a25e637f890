"""Tools that the provider runs: one name for all dialects, and calls that anybody can read."""

import json

import pytest
from anthropic.types.beta import BetaToolUnionParam
from google.genai import types as gemini
from msgspec.structs import replace
from openai.types.responses import ToolParam
from pydantic import TypeAdapter

from interlingua import dialects
from interlingua.conformance.laws import cut_frames, decode_frames, fold
from interlingua.errors import ConfigurationError, UnsupportedError
from interlingua.prepare.tool_forms import HOSTED_BY
from interlingua.spec.content import Opaque
from interlingua.spec.contracts import WireCall
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.request import HOSTED_NAMES, BuiltinTool, Request
from interlingua.spec.request_check import check_request
from interlingua.spec.warnings import check_losses
from support import corpus

here = pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
NAMES = dialects.names()
TOOLS = {
    "web_search": BuiltinTool.web_search(
        max_uses=3, allowed_domains=["a.example"], location={"country": "NO"}
    ),
    "code_execution": BuiltinTool.code_execution(),
    "file_search": BuiltinTool.file_search("vs_1", max_results=4),
    "url_context": BuiltinTool.url_context(max_uses=2),
    "computer": BuiltinTool.computer(width=800, height=600, environment="browser"),
}
HAS = {
    "anthropic_messages": {"web_search", "code_execution", "url_context", "computer"},
    "openai_responses": {"web_search", "code_execution", "file_search", "computer"},
    "openai_chat": set(),
    "gemini_generate": set(TOOLS),
    "bedrock_converse": {"web_search", "code_execution"},
}
VENDOR_NAMES = {
    "anthropic_messages": "Anthropic's Messages",
    "openai_responses": "OpenAI's Responses",
    "gemini_generate": "Gemini",
    "bedrock_converse": "Bedrock's Converse",
}
NOT_RECORDED = ("openai_chat", "bedrock_converse")
"""Chat has no such tools, and of Converse there is no recording: its fixtures have one."""


def tools_of(call):
    """The tools of a body."""
    return call.body.get("toolConfig", call.body).get("tools")


def request_with(*tools):
    return Request(model="m", messages="Hi", max_tokens=50, tools=tools)


def with_tool(source, tool_data):
    field = {"tools": [tool_data]}
    return {"toolConfig": field} if source == "bedrock_converse" else field


def crossed(source, tool_data, target):
    """A request with this tool of one dialect, encoded for another."""
    tools = dialects.get(source).decode_request(
        WireCall(path="", body={"model": "m", "messages": [], **with_tool(source, tool_data)})
    )
    return dialects.get(target).encode_request(request_with(*tools.tools))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_is_written_where_it_exists_and_refused_elsewhere(name, tool):
    """The refusal names the tool, and the APIs that have it."""
    request = request_with(TOOLS[tool])
    call = dialects.get(name).encode_request(request)
    dropped = [w for w in call.warnings if w.code == "builtin_tool_dropped"]

    if tool in HAS[name]:
        assert len(tools_of(call)) == 1
        assert not dropped
        decoded = dialects.get(name).decode_request(call)
        assert decoded.tools[0].name == tool
        assert tools_of(dialects.get(name).encode_request(decoded)) == tools_of(call)
    else:
        assert tools_of(call) is None
        assert repr(tool) in dropped[0].message
        with pytest.raises(UnsupportedError, match=HOSTED_BY[tool]):
            check_losses(call.warnings, request)


def test_the_table_of_owners_is_true():
    """It names exactly the dialects that write the tool."""
    assert set(HOSTED_BY) == set(HOSTED_NAMES) == set(TOOLS)
    for tool, owners in HOSTED_BY.items():
        for name, words in VENDOR_NAMES.items():
            assert (words in owners) == (tool in HAS[name]), (tool, name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tool", TOOLS)
def test_every_option_is_written_or_warned_about(name, tool):
    """After a round trip, each option is there or has a warning."""
    if tool not in HAS[name]:
        return
    call = dialects.get(name).encode_request(request_with(TOOLS[tool]))
    options = dialects.get(name).decode_request(call).tools[0].options
    warned = [w.message for w in call.warnings if w.code == "hosted_option_dropped"]
    for option, value in TOOLS[tool].options.items():
        implied = name == "anthropic_messages" and option == "environment"
        found = options.get(option) == value
        assert implied or found != any(repr(option) in text for text in warned), option


def test_the_vendors_types_accept_the_tools():
    """Anthropic's, OpenAI's and Google's own definitions."""
    vendors = {
        "anthropic_messages": TypeAdapter(BetaToolUnionParam).validate_python,
        "openai_responses": TypeAdapter(ToolParam).validate_python,
        "gemini_generate": gemini.Tool.model_validate,
    }
    for name, validate in vendors.items():
        for tool in sorted(HAS[name]):
            body = dialects.get(name).encode_request(request_with(TOOLS[tool])).body
            validate(body["tools"][0])


def test_the_beta_flag_of_the_computer_is_sent():
    """Only for our own form; a caller who sends the wire form sends its flag too."""
    dialect = dialects.get("anthropic_messages")
    headers = dialect.encode_request(request_with(TOOLS["computer"])).headers

    assert headers["anthropic-beta"] == "computer-use-2025-11-24"
    assert "anthropic-beta" not in dialect.encode_request(request_with()).headers


CROSSINGS = [
    ("anthropic_messages", {"type": "web_search_20260209", "name": "web_search"}),
    ("openai_responses", {"type": "web_search_preview"}),
    ("gemini_generate", {"googleSearch": {}}),
    ("anthropic_messages", {"type": "code_execution_20260120", "name": "code_execution"}),
    ("openai_responses", {"type": "code_interpreter", "container": {"type": "auto"}}),
    ("gemini_generate", {"codeExecution": {}}),
    ("bedrock_converse", {"systemTool": {"name": "nova_grounding"}}),
    ("bedrock_converse", {"systemTool": {"name": "nova_code_interpreter"}}),
]


@pytest.mark.parametrize(("source", "data"), CROSSINGS)
@pytest.mark.parametrize("target", VENDOR_NAMES)
def test_a_tool_of_one_dialect_reaches_another_that_has_it(source, data, target):
    """In the same dialect verbatim, in another in its own form, without warnings."""
    call = crossed(source, data, target)

    assert not [w for w in call.warnings if "tool" in w.code]
    if source == target:
        assert tools_of(call) == [data]
    else:
        assert len(tools_of(call)) == 1


def test_options_that_another_dialect_lacks_are_named():
    """One warning each."""
    data = {
        "type": "web_search_20250305",
        "name": "web_search",
        "max_uses": 2,
        "allowed_domains": ["a.example"],
        "user_location": {"type": "approximate", "city": "Oslo"},
    }
    call = crossed("anthropic_messages", data, "openai_responses")

    assert call.body["tools"] == [
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["a.example"]},
            "user_location": {"type": "approximate", "city": "Oslo"},
        }
    ]
    (warning,) = [w for w in call.warnings if w.code == "hosted_option_dropped"]
    assert "'max_uses'" in warning.message


def test_stores_of_files_stay_with_their_provider():
    """Another provider does not have them, so the tool is refused, not sent with their ids."""
    data = {"type": "file_search", "vector_store_ids": ["vs_1"]}
    call = crossed("openai_responses", data, "gemini_generate")

    assert "tools" not in call.body
    assert [w.code for w in call.warnings] == ["builtin_tool_dropped"]


def test_a_tool_without_a_name_or_a_dialect_is_refused():
    """Before anything is sent."""
    with pytest.raises(ConfigurationError, match="web_search"):
        check_request(request_with(BuiltinTool(name="telepathy")))


@here
@pytest.mark.parametrize("name", NAMES)
def test_recorded_tools_come_back_verbatim_and_cross(name):
    """The body is equal, and every tool reaches each other dialect or has a warning."""
    count = 0
    for record in corpus.records(name):
        if "server_tools" not in record["features"] or not record["request_body"]:
            continue
        call = corpus.to_case(record).call
        request = dialects.get(name).decode_request(call)
        hosted = [tool for tool in request.tools if isinstance(tool, BuiltinTool)]
        assert from_json(to_json(request), Request).tools == request.tools, record["id"]
        sent = dialects.get(name).encode_request(request).body.get("tools") or []
        for tool in hosted:
            assert tool.data in sent, record["id"]
        for target in NAMES:
            if target == name:
                continue
            crossing = dialects.get(target).encode_request(request_with(*hosted))
            dropped = [w for w in crossing.warnings if w.code == "builtin_tool_dropped"]
            assert len(tools_of(crossing) or []) + len(dropped) == len(hosted)
        count += len(hosted)

    assert count or name in NOT_RECORDED


# Calls and results.

USES = {
    "anthropic_messages": ("server_tool_use", "_tool_result", "mcp_tool_use"),
    "openai_responses": (
        *("web_search_call", "code_interpreter_call", "file_search_call", "mcp_call"),
        *("mcp_list_tools", "tool_search_call"),
    ),
    "openai_chat": (),
    "bedrock_converse": ("server_tool_use", "_result"),
    "gemini_generate": ("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
}


def uses(response):
    return [part for part in response.message.content if isinstance(part, Opaque)]


def streamed(name, case):
    frames = cut_frames([case.stream], case.framing)
    return fold(decode_frames(dialects.get(name), frames))


@here
@pytest.mark.parametrize("name", NAMES)
def test_recorded_calls_of_hosted_tools_are_in_the_language(name):
    """Each has its tool, and a call has its input; results have the id of their call."""
    count = 0
    for record in corpus.records(name):
        case = corpus.to_case(record)
        if "server_tools" not in record["features"] or record["status"] != 200:
            continue
        if case.stream is not None:
            if "truncated_stream" in record["features"] or "error" in record["features"]:
                continue
            response = streamed(name, case)
        elif isinstance(case.response, dict):
            response = dialects.get(name).decode_response(case.response)
        else:
            continue
        for part in uses(response):
            text = json.dumps(part.data)
            if not any(f"{word}" in text for word in USES[name]):
                continue
            assert part.tool, record["id"]
            assert (part.input, part.output) != (None, None), (record["id"], text[:200])
            count += 1
        body = dialects.get(name).encode_response(response)
        assert uses(dialects.get(name).decode_response(body)) == uses(response), record["id"]

    assert count or name in NOT_RECORDED


DECLARED = {"functionDeclarations": [{"name": "look"}, {"name": "write"}]}


@pytest.mark.parametrize(
    "tools",
    [
        [{**DECLARED, "googleSearch": {}}],
        [{**DECLARED, "googleSearch": {}, "codeExecution": {}, "newNextYear": {"a": 1}}],
        [{**DECLARED, "codeExecution": None}],
        [{"functionDeclarations": [{"name": "a"}]}, {**DECLARED, "urlContext": {}}],
        [{"googleSearch": {}}, {**DECLARED, "googleSearch": {}}],
        [{**DECLARED, "googleSearch": {}}, {"googleSearch": {"timeRangeFilter": {}}}],
    ],
)
def test_a_hosted_tool_beside_declarations_is_a_tool_of_its_own(tools):
    """Gemini's object may hold both: the tool is known in other dialects, and comes back there."""
    spoken = dialects.get("gemini_generate")
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}], "tools": tools}
    request = spoken.decode_request(WireCall(path="/v1beta/models/m:generateContent", body=body))
    hosted = [tool for tool in request.tools if isinstance(tool, BuiltinTool)]
    asked = [(key, value) for tool in tools for key, value in tool.items() if key != "newNextYear"]

    assert spoken.encode_request(request).body["tools"] == tools
    assert [{key: value} for key, value in asked if isinstance(value, dict)] == [
        tool.data for tool in hosted
    ]
    for name in ("anthropic_messages", "openai_responses", "openai_chat"):
        call = dialects.get(name).encode_request(replace(request, max_tokens=9))
        lost = [found.code for found in call.warnings if found.code == "builtin_tool_dropped"]
        assert len(lost) == sum(tool.name not in HAS[name] for tool in hosted)
        assert len(call.body["tools"]) == len(request.tools) - len(lost)
