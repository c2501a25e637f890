"""Words of the script for what agents use: hosted and custom tools, citations, errors, probes."""

import http.client
import json
from urllib.parse import urlsplit

import openai
import pytest
from msgspec.structs import replace

from interlingua import Citation, Request, TokenLogprob, ToolDefinition, dialects
from interlingua.errors import AccessDeniedError, ContextLengthError, QuotaExceededError
from interlingua.simulator import (
    Simulator,
    custom_call,
    fail,
    hosted_call,
    serve_in_thread,
    signed,
    text,
    tool_call,
)
from interlingua.spec.content import Opaque
from interlingua.spec.request import BuiltinTool
from support.patience import PATIENCE
from support.simulator_calls import ask, call, read

NAMES = dialects.names()
SOURCES = [{"url": "https://a.example/x", "title": "A page"}]
SEARCHERS = [name for name in NAMES if name != "openai_chat"]
HI = Request(model="m", messages="Hi.")


def uses(response):
    parts = [part for part in response.message.content if isinstance(part, Opaque)]
    inputs = [part.input for part in parts if part.input is not None]
    outputs = [part.output for part in parts if part.output is not None]
    return [part.tool for part in parts], inputs[0], outputs[0]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SEARCHERS)
def test_hosted_calls(name, stream):
    """A search and code come in each dialect's form, and are read in the same way."""
    search = hosted_call("web_search", {"query": "foxes"}, SOURCES) + text("Foxes.")
    code = hosted_call("code_execution", {"code": "print(6*7)"}, "42") + text("42.")
    app = Simulator(search, code)
    found = read(name, ask(app, name, HI, stream=stream), stream=stream)
    ran = read(name, ask(app, name, HI, stream=stream), stream=stream)

    tools, asked, sources = uses(found)
    assert set(tools) == {"web_search"}
    assert asked["query"] == "foxes"
    assert "https://a.example/x" in str(sources)
    tools, asked, printed = uses(ran)
    assert (set(tools), asked["code"], printed) == ({"code_execution"}, "print(6*7)", "42")
    assert (found.text, ran.text) == ("Foxes.", "42.")


def test_hosted_calls_are_left_out_where_there_are_none():
    """Chat has no blocks for them."""
    app = Simulator(hosted_call("web_search", {"query": "foxes"}, SOURCES) + text("Foxes."))

    assert [
        part.kind for part in read("openai_chat", ask(app, "openai_chat", HI)).message.content
    ] == ["text"]


def test_a_search_for_deferred_tools():
    """Anthropic's own search names the tools that it has loaded."""
    app = Simulator(hosted_call("tool_search", {"pattern": "fox"}, ["hunt"]) + text("Found."))
    response = read("anthropic_messages", ask(app, "anthropic_messages", HI))

    assert [getattr(part, "loaded_tools", ()) for part in response.message.content] == [
        (),
        ("hunt",),
        (),
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_a_search_that_loads_definitions(stream):
    """OpenAI's own search has the definitions: those of the request, or those of the script."""
    own = {"name": "trap", "description": "Set a trap.", "parameters": {"type": "object"}}
    tools = [ToolDefinition(name="hunt", description="Hunt.", parameters={"type": "object"})]
    request = Request(model="m", messages="Hi.", tools=tools)
    app = Simulator(hosted_call("tool_search", {"query": "fox"}, ["hunt", own]) + text("Found."))
    reply = ask(app, "openai_responses", request, stream=stream)
    response = read("openai_responses", reply, stream=stream)

    called, found, said = response.message.content
    assert (called.tool, called.input) == ("tool_search", {"arguments": {"query": "fox"}})
    loaded = {"type": "function", "defer_loading": True}
    expected = [
        {**loaded, "name": "hunt", "description": "Hunt.", "parameters": {"type": "object"}}
    ]
    assert found.output == [*expected, {**loaded, **own}]
    assert said.text == "Found."


def test_the_vendor_reads_the_search():
    """Its own types take the items."""
    app = Simulator(hosted_call("tool_search", {"query": "fox"}, ["hunt"]) + text("Found."))
    with (
        serve_in_thread(app) as server,
        openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client,
    ):
        call, output, message = client.responses.create(model="m", input="Hi.").output

    assert (call.type, call.execution, call.arguments) == (
        "tool_search_call",
        "server",
        {"query": "fox"},
    )
    assert [(tool.type, tool.name) for tool in output.tools] == [("function", "hunt")]
    assert message.content[0].text == "Found."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_signatures_on_texts_and_calls(name, stream):
    """The dialect that signs parts sends them byte-equal; the others send none."""
    turn = signed(text("Look.") + tool_call("f", a=1) + tool_call("g"), "c2lnbmVk")
    response = read(name, ask(Simulator(turn), name, HI, stream=stream), stream=stream)

    signatures = [
        part.extra.get(name, {}).get("thoughtSignature") for part in response.message.content
    ]
    expected = "c2lnbmVk" if name == "gemini_generate" else None
    assert signatures == [expected] * 3
    assert response.text == "Look."
    assert [call.name for call in response.tool_calls] == ["f", "g"]
    assert "" not in {key for part in response.message.content for key in part.extra}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["openai_chat", "openai_responses"])
def test_custom_calls(name, stream):
    """They have their one text."""
    request = Request(
        model="m", messages="Hi.", tools=[ToolDefinition(name="patch", type="custom")]
    )
    app = Simulator(custom_call("patch", "*** Begin"))
    response = read(name, ask(app, name, request, stream=stream), stream=stream)

    (made,) = response.tool_calls
    assert (made.type, made.raw_arguments) == ("custom", "*** Begin")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_citations(name, stream):
    """A text comes with its sources."""
    source = Citation(url="https://a.example/x", title="A page")
    app = Simulator(text("Foxes.", citations=[source]))
    response = read(name, ask(app, name, HI, stream=stream), stream=stream)

    assert response.message.content[0].citations[0].url == source.url


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["openai_responses", "openai_chat", "gemini_generate"])
def test_tokens_are_sent_if_they_are_asked_for(name, stream):
    """As many alternatives as are asked for, and none without the question; others have none."""
    token = TokenLogprob(token="Hi", logprob=-0.5)
    app = Simulator(text("Hi", logprobs=[replace(token, top=(token, token, token))]))
    for number, alternatives in ((None, []), (0, [0]), (2, [2])):
        asked = replace(HI, logprobs=number)
        response = read(name, ask(app, name, asked, stream=stream), stream=stream)
        (part,) = response.message.content

        assert [len(each.top) for each in part.logprobs] == alternatives


@pytest.mark.parametrize("name", NAMES)
def test_errors_of_ours(name):
    """Each is read as what it was, in the status of the vendor."""
    spent = ask(Simulator(fail(QuotaExceededError("The budget is spent."))), name, HI)
    long = ask(Simulator(fail(ContextLengthError("Too long."))), name, HI, stream=True)

    expected = {"anthropic_messages": 402, "gemini_generate": 403, "bedrock_converse": 400}
    assert spent.status == expected.get(name, 429)
    with pytest.raises(AccessDeniedError if name == "gemini_generate" else QuotaExceededError):
        read(name, spent)
    with pytest.raises(ContextLengthError):
        read(name, long)


def test_head_probes():
    """They are answered without a body, and the connection goes on."""
    with serve_in_thread(Simulator()) as server:
        address = urlsplit(server.url)
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)
        for path in ("/api/hello", "/v1/messages", "/v1/models"):
            connection.request("HEAD", path)
            reply = connection.getresponse()
            assert (reply.status, reply.read()) == (404, b""), path
            connection.request("GET", "/v1/models")
            listed = connection.getresponse()
            assert (listed.status, "data" in json.loads(listed.read())) == (200, True)
        connection.close()


def test_token_counts_with_a_query():
    """Claude Code counts with `?beta=true`."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "a-new-flag-2027-01-01"}
    reply = call(Simulator(), "/v1/messages/count_tokens?beta=true", body, headers)

    assert reply.status == 200
    assert reply.json["input_tokens"] > 0


def test_a_hosted_tool_reaches_the_script():
    """The script sees which tools the client asked for."""
    app = Simulator(text("Hi."))
    request = Request(model="m", messages="Hi.", tools=[BuiltinTool.web_search(max_uses=1)])
    ask(app, "anthropic_messages", request)

    assert [tool.name for tool in app.script.received[0].request.tools] == ["web_search"]
