"""Adapter options lie under the request, and the request under its provider options."""

import asyncio

import pytest

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter, OpenAIAdapter
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from interlingua.transport.canned import CannedReply, CannedTransport

ROWS = {
    "openai": ("temperature", "max_output_tokens", "input"),
    "groq": ("temperature", "max_completion_tokens", "messages"),
    "anthropic": ("temperature", "max_tokens", "messages"),
    "gemini": ("generationConfig.temperature", "generationConfig.maxOutputTokens", "contents"),
}
MODEL = "claude-3-haiku"
PROFILE = {"api_version": "2023-06-01"}  # the version of Anthropic that takes sampling settings


def nest(path, value):
    first, dot, rest = path.partition(".")
    return {first: nest(rest, value) if dot else value}


def find(body, path):
    for name in path.split("."):
        body = body[name]
    return body


def join(*options):
    joined = {}
    for each in options:
        for key, value in each.items():
            both = isinstance(value, dict) and key in joined
            joined[key] = {**joined[key], **value} if both else value
    return joined


def body_of(row, adapter_options, by="arguments", stream=False, tmp=None, **fields):
    if by == "arguments":
        client = Client({row: HttpAdapter(row, "k", options=adapter_options, profile=PROFILE)})
    else:
        path = tmp / "models.yaml"
        path.write_text(
            f"adapters: {{{row}: {{api_key: k, profile: {PROFILE}, options: {adapter_options}}}}}"
        )
        client = Client.from_file(path, {})
    return client.explain(
        Request(model=f"{row}:{MODEL}", messages="hi", **fields), stream=stream
    ).body


@pytest.mark.parametrize("by", ["arguments", "file"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("row", ROWS)
def test_options_of_the_adapter_give_way_to_the_request_and_that_to_provider_options(
    row, stream, by, tmp_path
):
    """In every dialect, whole and streamed, from arguments and from a file."""
    temperature, limit, _ = ROWS[row]
    options = join(nest(temperature, 0.1), nest(limit, 5))
    how = {"by": by, "stream": stream, "tmp": tmp_path}

    alone = body_of(row, options, **how)
    assert (find(alone, temperature), find(alone, limit)) == (0.1, 5)
    asked = body_of(row, options, **how, temperature=0.0, max_tokens=9)
    assert (find(asked, temperature), find(asked, limit)) == (0.0, 9)
    last = {row: join(nest(temperature, 0.7), nest(limit, 11))}
    over = body_of(row, options, **how, temperature=0.0, max_tokens=9, provider_options=last)
    assert (find(over, temperature), find(over, limit)) == (0.7, 11)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("tokens", [1, 2, 4096, 32_000])
def test_a_request_for_the_default_goes_before_the_options_of_the_adapter(row, tokens):
    """A value that the encoder would write anyway is still the request's."""
    limit = ROWS[row][1]
    default = body_of("anthropic", {})["max_tokens"]
    for asked in (tokens, default):
        assert find(body_of(row, nest(limit, 5), max_tokens=asked), limit) == asked


@pytest.mark.parametrize("row", ROWS)
def test_the_conversation_and_the_model_are_the_requests(row):
    """Options of an adapter do not replace them."""
    messages = ROWS[row][2]
    plain = body_of(row, {})
    assert (
        body_of(row, {messages: [], "model": "evil"} if row != "gemini" else {messages: []})
        == plain
    )


def test_fields_inside_of_objects_are_merged():
    """What the request does not set stays the adapter's."""
    options = {"reasoning": {"effort": "high", "summary": "auto"}, "service_tier": "flex"}
    client = Client({"openai": OpenAIAdapter("k", options=options)})
    body = client.explain(Request(model="gpt-5.2", messages="hi", reasoning_effort="low")).body

    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["service_tier"] == "flex"


def test_instructions_of_the_request_go_before_those_of_the_adapter():
    """A system message goes before the adapter's own instructions, where there is one."""
    options = {"system": "By the adapter."}
    asked = (Message.system("By the request."), Message.user("hi"))

    assert "By the adapter." in str(body_of("anthropic", options)["system"])
    client = Client({"anthropic": HttpAdapter("anthropic", "k", options=options)})
    body = client.explain(Request(model="anthropic:m", messages=asked)).body
    assert "By the request." in str(body["system"])
    assert "By the adapter." not in str(body["system"])


def test_a_setting_that_the_model_lacks_is_dropped_with_a_warning():
    """It is dropped with a warning; the adapter's value does not take its place."""
    client = Client({"anthropic": HttpAdapter("anthropic", "k", options={"temperature": 0.1})})
    plan = client.explain(Request(model="claude-opus-5", messages="hi", temperature=0.5))

    assert "temperature" not in plan.body
    assert [warning.path for warning in plan.warnings] == ["temperature"]


def test_tools_of_the_adapter_are_added():
    """A tool that the provider runs, for every call, beside the tools of a request."""
    search = {"type": "web_search"}
    client = Client({"openai": OpenAIAdapter("k", options={"tools": [search]})})
    tool = ToolDefinition(name="look", parameters={"type": "object", "properties": {}})
    body = client.explain(Request(model="gpt-5.2", messages="hi", tools=[tool])).body

    assert [each.get("name") or each for each in body["tools"]] == ["look", search]


def test_options_are_found_by_an_alias():
    """Options of `google` are those of `gemini`."""
    client = Client({"gemini": HttpAdapter("gemini", "k")})
    options = {"google": {"generationConfig": {"temperature": 0.3}}}
    plan = client.explain(Request(model="gemini:m", messages="hi", provider_options=options))

    assert plan.body["generationConfig"]["temperature"] == 0.3
    assert plan.warnings == ()


# Headers.

HEADERS = {"openai-organization": "org", "openai-project": "proj"}
BOTH = {"organization": "org", "project": "proj"}


def sent(adapter, **fields):
    call = adapter.dry_run(Request(model="m", messages="hi", **fields))
    assert not BOTH.keys() & call.body.keys()
    return {name: call.headers.get(name) for name in HEADERS}


def test_organization_and_project_are_headers(tmp_path):
    """As arguments, as options, in a file, and as provider options; never in the body."""
    path = tmp_path / "models.yaml"
    path.write_text(
        "adapters:\n  openai: {api_key: k, organization: org, project: proj}\n"
        "  other: {type: openai, api_key: k, options: {organization: org, project: proj}}\n"
    )
    client = Client.from_file(path, {"OPENAI_ORG_ID": "of-the-environment"})

    assert sent(OpenAIAdapter("k", **BOTH)) == HEADERS
    assert sent(OpenAIAdapter("k", options=BOTH)) == HEADERS
    assert sent(OpenAIAdapter("k"), provider_options={"openai": BOTH}) == HEADERS
    assert sent(OpenAIAdapter("k", organization="x"), provider_options={"openai": BOTH}) == HEADERS
    for name in ("openai", "other"):
        assert sent(client._adapters[name]) == HEADERS


@pytest.mark.parametrize("stream", [False, True])
def test_organization_and_project_are_sent_on_the_wire(stream):
    """On the wire too, and for counting tokens."""
    transport = CannedTransport(lambda _: CannedReply(status=400, body=b"{}"))
    adapter = OpenAIAdapter("k", transport=transport)
    request = Request(model="m", messages="hi", provider_options={"openai": BOTH})

    async def work():
        if stream:
            return [event async for event in adapter.stream(request)]
        return await adapter.count_tokens(request)

    with pytest.raises(Exception, match="400"):
        asyncio.run(work())
    assert transport.requests[0].headers.items() >= HEADERS.items()


def test_a_row_without_an_organization_says_so():
    """It says so, and where in a file."""
    with pytest.raises(ConfigurationError, match="'groq' has no organization"):
        HttpAdapter("groq", "k", organization="x")
