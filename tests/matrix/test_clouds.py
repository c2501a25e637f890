"""Bedrock, Vertex and Azure over HTTP: the simulator behind a guard that checks their keys."""

import asyncio
import time
from typing import NamedTuple

import pytest

from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.keys import ApiKey
from interlingua.providers.media import bytes_only
from interlingua.simulator import Simulator, serve_in_thread, text, tool_call
from interlingua.spec.content import Image
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import (
    AuthenticationError,
    ConfigurationError,
    DecodeError,
    RateLimitError,
    StreamError,
)
from interlingua.spec.messages import Message
from interlingua.spec.modalities.embeddings import EmbedInput
from interlingua.spec.request import Request
from interlingua.transport import HttpTransport, HttpxTransport
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.transport.media import fetch_media
from interlingua.wire.aws_credentials import AwsCredentials
from interlingua.wire.aws_event_stream import encode_chunk, encode_exception
from interlingua.wire.framing import AWS_EVENT_STREAM
from support.clouds import Guard, has_header, is_signed

KEYS = AwsCredentials(
    access_key_id="AKIDPLANTED", secret_access_key="planted-secret", session_token="planted/token+"
)
PLACES = {"region": "eu-central-1"}
VERTEX = "/v1/projects/p-1/locations/global/publishers"
CLAUDE = "claude-opus-4-5@20251101"
PROFILE = "arn:aws:bedrock:eu-central-1:123:application-inference-profile/a+b c"
QUOTED = "arn:aws:bedrock:eu-central-1:123:application-inference-profile%2Fa%2Bb%20c"


async def make_token():
    return ApiKey("planted-token", time.time() + 3600)


class Case(NamedTuple):
    """How a row is used, and what must arrive."""

    row: str
    key: object
    check: object
    model: str
    path: str
    stream_path: str
    base: str = ""
    settings: dict = {}  # noqa: RUF012 -- never changed
    has_model: bool = False


BEARER = has_header("authorization", "Bearer planted-token")
CASES = {
    "bedrock chat": Case(
        "bedrock", "planted-token", BEARER, "openai.gpt-oss-120b",
        "/v1/chat/completions", "/v1/chat/completions", has_model=True,
    ),
    "bedrock responses": Case(
        "bedrock", "planted-token", BEARER, "openai.gpt-oss-120b", "/v1/responses",
        "/v1/responses", settings={"dialect": "openai_responses"}, has_model=True,
    ),
    "bedrock messages": Case(
        "bedrock", make_token, BEARER, "anthropic.claude-opus-5", "/anthropic/v1/messages",
        "/anthropic/v1/messages", settings={"dialect": "anthropic_messages"}, has_model=True,
    ),
    "bedrock signed": Case(
        "bedrock_invoke", KEYS, is_signed(KEYS), "us.anthropic.claude-opus-4-5-20251101-v1:0",
        "/model/us.anthropic.claude-opus-4-5-20251101-v1:0/invoke",
        "/model/us.anthropic.claude-opus-4-5-20251101-v1:0/invoke-with-response-stream",
    ),
    "bedrock signed, profile": Case(
        "bedrock_invoke", lambda: KEYS, is_signed(KEYS), PROFILE,
        f"/model/{QUOTED}/invoke", f"/model/{QUOTED}/invoke-with-response-stream",
    ),
    "bedrock invoke with a key": Case(
        "bedrock_invoke", "planted-token", BEARER, "anthropic.claude-opus-5",
        "/model/anthropic.claude-opus-5/invoke",
        "/model/anthropic.claude-opus-5/invoke-with-response-stream",
    ),
    "vertex": Case(
        "vertex", make_token, BEARER, "gemini-3-pro",
        f"{VERTEX}/google/models/gemini-3-pro:generateContent",
        f"{VERTEX}/google/models/gemini-3-pro:streamGenerateContent?alt=sse",
        base=f"{VERTEX}/google",
    ),
    "vertex anthropic": Case(
        "vertex_anthropic", make_token, BEARER, CLAUDE,
        f"{VERTEX}/anthropic/models/{CLAUDE}:rawPredict",
        f"{VERTEX}/anthropic/models/{CLAUDE}:streamRawPredict", base=f"{VERTEX}/anthropic",
    ),
    "azure": Case(
        "azure", "planted-key", has_header("api-key", "planted-key"), "my-gpt",
        "/openai/v1/chat/completions", "/openai/v1/chat/completions", has_model=True,
    ),
    "azure responses, entra": Case(
        "azure", make_token, BEARER, "my-gpt", "/openai/v1/responses", "/openai/v1/responses",
        settings={"dialect": "openai_responses"}, has_model=True,
    ),
    "azure deployments": Case(
        "azure", "planted-key", has_header("api-key", "planted-key"), "my gpt/4",
        "/openai/deployments/my%20gpt%2F4/chat/completions?api-version=2024-10-21",
        "/openai/deployments/my%20gpt%2F4/chat/completions?api-version=2024-10-21",
        settings={"api_version": "2024-10-21"},
    ),
    "azure deployments, entra": Case(
        "azure", make_token, BEARER, "my-gpt",
        "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
        "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
        base="/openai/v1", settings={"api_version": "2024-10-21"},
    ),
    "azure responses, version": Case(
        "azure", "planted-key", has_header("api-key", "planted-key"), "my-gpt",
        "/openai/responses?api-version=2025-03-01-preview",
        "/openai/responses?api-version=2025-03-01-preview",
        settings={"api_version": "2025-03-01-preview", "dialect": "openai_responses"},
        has_model=True,
    ),
}  # fmt: skip
every_case = pytest.mark.parametrize("name", CASES)
TRANSPORTS = {"http1": HttpTransport, "httpx2": HttpxTransport}
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 4 C, rain"


def run(name, way, transport="http1"):
    """One run with a tool call; returns the text, the calls, the requests and the models."""
    case = CASES[name]
    app = Simulator(tool_call("get_weather", city="Oslo"), text("It rains. Take a coat."))
    guard = Guard(app, case.check)

    async def work(url):
        adapter = HttpAdapter(
            case.row,
            case.key,
            base_url=url + case.base,
            transport=TRANSPORTS[transport](),
            **({"places": PLACES} if "bedrock" in case.row else {}),
            **case.settings,
        )
        async with Client({case.row: adapter}) as client:
            options = {"client": client, "tools": [get_weather], "provider": case.row}
            if way == "whole":
                options["max_tokens"] = 1_000  # a long answer would be streamed underneath
                return await generate(case.model, "Weather?", **options)
            result = stream(case.model, "Weather?", **options)
            async for _ in result:
                pass
            return result.result()

    with serve_in_thread(guard) as server:
        result = asyncio.run(work(server.url))
    models = [exchange.request.model for exchange in app.script.received]
    return result, guard.received, models


@every_case
@pytest.mark.parametrize("way", ["whole", "stream"])
def test_a_run_with_a_tool_call(name, way):
    """It passes the guard, at the address of the cloud, with the model where it belongs."""
    case = CASES[name]
    result, received, models = run(name, way)

    assert result.text.replace("\n", " ").split() == ["It", "rains.", "Take", "a", "coat."]
    (call,) = (call for message in result.messages for call in message.tool_calls)
    assert (call.name, call.arguments) == ("get_weather", {"city": "Oslo"})
    wanted = case.path if way == "whole" else case.stream_path
    assert [request.target for request in received] == [wanted, wanted]
    assert [("model" in request.body) for request in received] == [case.has_model] * 2
    assert models == [case.model] * 2
    assert result.usage.input_tokens > 0


@every_transport
@pytest.mark.parametrize("model", [PROFILE, "a:b@c~d", "x!$&'()*,;=y", "ü/é%2F", "a..b", "+"])
def test_the_path_is_sent_as_it_was_signed(transport, model):
    """Whatever the model's name has in it."""
    app = Simulator(text("Hi."))
    guard = Guard(app, is_signed(KEYS))
    with serve_in_thread(guard) as server:
        adapter = HttpAdapter(
            "bedrock_invoke",
            KEYS,
            base_url=server.url,
            places=PLACES,
            transport=TRANSPORTS[transport](),
        )

        async def work():
            try:
                return await adapter.complete(Request(model=model, messages="Hello"))
            finally:
                await adapter.close()

        answer = asyncio.run(work())
    assert answer.text == "Hi."
    assert app.script.received[0].request.model == model


@pytest.mark.parametrize("model", ["", ".", "..", ";x"])
def test_names_that_would_change_the_path(model):
    """They are refused before anything is sent."""
    adapter = HttpAdapter("bedrock_invoke", KEYS, places=PLACES, transport=CannedTransport([]))
    with pytest.raises(ConfigurationError, match="cannot be the name of a model"):
        asyncio.run(adapter.complete(Request(model=model, messages="Hello")))


@pytest.mark.parametrize("wrong", ["secret", "region"])
def test_a_wrong_signature_is_refused(wrong):
    """The guard does check: another secret or region has no access."""
    others = AwsCredentials(
        access_key_id=KEYS.access_key_id, secret_access_key="x", session_token=KEYS.session_token
    )
    guard = Guard(Simulator(text("Hi.")), is_signed(KEYS))
    with serve_in_thread(guard) as server:
        adapter = HttpAdapter(
            "bedrock_invoke",
            others if wrong == "secret" else KEYS,
            base_url=server.url,
            places={"region": "us-east-1"} if wrong == "region" else PLACES,
        )
        with pytest.raises(AuthenticationError) as caught:
            asyncio.run(adapter.complete(Request(model="anthropic.claude-x", messages="Hello")))
    assert caught.value.status_code == 401
    assert "planted" not in str(caught.value)


def body_of(row, request, **settings):
    adapter = HttpAdapter(row, "k", transport=CannedTransport([]), **settings)
    return adapter.dry_run(request)


@pytest.mark.parametrize("row", ["bedrock_invoke", "vertex_anthropic"])
def test_what_is_in_a_body_for_claude(row, monkeypatch):
    """The version in the body, neither model nor header; betas where the cloud takes them."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "global")
    options = {"anthropic_messages": {"betas": ["a-1", "b-2"]}}
    request = Request(model="claude-opus-4-5", messages="Hi", provider_options=options)
    sent = body_of(row, request)

    assert "model" not in sent.body
    assert sent.body["anthropic_version"] == "2026-10-21"
    assert "anthropic-version" not in sent.headers
    if row == "bedrock_invoke":
        assert sent.body["anthropic_beta"] == ["a-1", "b-2"]
        assert "anthropic-beta" not in sent.headers
    else:
        assert sent.headers["anthropic-beta"] == "a-1,b-2"


@pytest.mark.parametrize(
    ("row", "version"),
    [("bedrock_invoke", "bedrock-2023-05-31"), ("vertex_anthropic", "vertex-2023-10-16")],
)
def test_an_older_version_has_the_name_of_the_cloud(row, version):
    """A setting that only the first version accepts chooses that version."""
    request = Request(
        model="claude-opus-4-5",
        messages="Hi",
        provider_options={"anthropic_messages": {"version": "2023-06-01"}},
    )
    base = "https://host.example/x"
    assert body_of(row, request, base_url=base).body["anthropic_version"] == version


@pytest.mark.parametrize(
    ("row", "environ", "url"),
    [
        ("bedrock", {"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "eu-west-3"},
         "https://bedrock-mantle.eu-west-3.api.aws"),
        ("bedrock_invoke", {"AWS_DEFAULT_REGION": "us-west-2"},
         "https://bedrock-runtime.us-west-2.amazonaws.com"),
        ("vertex", {"GOOGLE_CLOUD_PROJECT": "p-1", "GOOGLE_CLOUD_LOCATION": "us5"},
         "https://us5-aiplatform.googleapis.com/v1/projects/p-1/locations/us5/publishers/google"),
        ("vertex_anthropic", {"ANTHROPIC_VERTEX_PROJECT_ID": "p", "CLOUD_ML_REGION": "global"},
         "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic"),
        ("vertex_anthropic", {"ANTHROPIC_VERTEX_PROJECT_ID": "p", "CLOUD_ML_REGION": "eu"},
         "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic"),
        ("azure", {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://r.azure.com/"},
         "https://r.azure.com/openai/v1"),
        ("azure", {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://r.azure.com",
                   "OPENAI_API_VERSION": "2024-10-21"}, "https://r.azure.com/openai"),
    ],
)  # fmt: skip
def test_addresses_from_the_environment(row, environ, url):
    """Each cloud has its own variables for the place and the project."""
    client = Client.from_env(environ)
    client.explain(Request(model=f"{row}:m", messages="Hi"))  # a row that is named is looked up
    assert client.adapter(row).base_url == url


def test_what_counts_as_configured():
    """The keys of a whole cloud do not; they are used only when the row is named."""
    environ = {
        "AWS_ACCESS_KEY_ID": "AKID",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "us-east-1",
        "GOOGLE_CLOUD_PROJECT": "p",
        "GOOGLE_CLOUD_LOCATION": "global",
        "OPENAI_API_KEY": "k",
    }
    names = set(Client.from_env(environ)._adapters)
    assert not names & {"bedrock", "bedrock_invoke", "vertex", "vertex_anthropic"}
    assert "openai" in names
    named = Client.from_env(environ)
    named.explain(Request(model="bedrock_invoke:anthropic.claude-x", messages="Hi"))
    assert "bedrock_invoke" in named._adapters
    assert "bedrock" in Client.from_env({**environ, "AWS_BEARER_TOKEN_BEDROCK": "k"})._adapters


def test_a_signature_needs_a_region():
    """The error names the variables."""
    with pytest.raises(ConfigurationError, match=r"needs the region. Set AWS_REGION or AWS_DEF"):
        HttpAdapter("bedrock_invoke", KEYS, base_url="https://host.example")


def test_api_versions_are_for_rows_that_have_them():
    """Elsewhere the setting is an error."""
    with pytest.raises(ConfigurationError, match="'groq' has no API versions"):
        HttpAdapter("groq", "k", api_version="2024-10-21")


# Streams of Bedrock.

START = (
    '{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],'
    '"model":"claude","stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}'
)
BLOCK = '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
DELTA = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}'


def streamed(body):
    reply = CannedReply(headers={"content-type": AWS_EVENT_STREAM}, body=body)
    adapter = HttpAdapter("bedrock_invoke", KEYS, places=PLACES, transport=CannedTransport([reply]))

    async def work():
        events = []
        try:
            async for event in adapter.stream(Request(model="anthropic.claude-x", messages="Hi")):
                events.append(event)  # noqa: PERF401 -- what came before an error is kept
        except Exception as error:  # noqa: BLE001 -- it is what we look at
            return events, error
        return events, None

    return asyncio.run(work())


def test_an_exception_in_a_stream():
    """A typed error, with the part of the answer that had arrived."""
    begun = b"".join(encode_chunk(Frame(data=data)) for data in (START, BLOCK, DELTA))
    events, error = streamed(begun + encode_exception("throttlingException", "Too many tokens"))

    assert isinstance(error, RateLimitError)
    assert (error.error_code, error.partial.text) == ("throttlingException", "Hel")
    assert events[-1].type == "finish"


def test_a_stream_that_is_cut():
    """At every message and inside one: an error, never a short success."""
    begun = b"".join(encode_chunk(Frame(data=data)) for data in (START, BLOCK, DELTA))
    for cut in (len(begun), len(begun) - 1, 5):
        _, error = streamed(begun[:cut])
        assert isinstance(error, (StreamError, DecodeError))  # the latter before the first event


def test_an_error_of_bedrock():
    """Its type and request id are in headers, its message in the body."""
    reply = CannedReply(
        status=429,
        headers={
            "content-type": "application/json",
            "x-amzn-errortype": "ThrottlingException:http://internal.amazon.com/",
            "x-amzn-requestid": "r-1",
        },
        body=b'{"message":"Too many tokens, please wait."}',
    )
    adapter = HttpAdapter("bedrock_invoke", KEYS, places=PLACES, transport=CannedTransport([reply]))
    with pytest.raises(RateLimitError, match="Too many tokens") as caught:
        asyncio.run(adapter.complete(Request(model="anthropic.claude-x", messages="Hi")))
    assert caught.value.error_code == "ThrottlingException"
    assert caught.value.provider_request_id == "r-1"


# Images by URL.


@pytest.mark.parametrize("row", ["vertex_anthropic", "bedrock_invoke"])
def test_images_by_url_are_fetched_where_they_must_be(row):
    """These read no URLs for Claude, so the bytes are sent."""
    png = b"\x89PNG\r\n\x1a\n" + bytes(24)

    async def app(_scope, _receive, send):
        headers = [(b"content-type", b"image/png")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": png})

    adapter = HttpAdapter(row, "k", base_url="https://host.example/v1")
    with serve_in_thread(app) as server:
        message = Message.user(["See", Image(url=f"{server.url}/cat.png")])
        request = Request(model="claude-opus-4-5", messages=(message,))
        kinds = bytes_only(adapter.profile_for(request.model))
        loaded = asyncio.run(fetch_media(request, kinds, allowed=lambda _address: True))
        with pytest.raises(ConfigurationError, match="address"):  # by default, not from loopback
            asyncio.run(adapter.complete(request))
    source = adapter.dry_run(loaded).body["messages"][0]["content"][1]["source"]
    assert (source["type"], source["media_type"]) == ("base64", "image/png")
    assert bytes_only(HttpAdapter("anthropic", "k").profile_for(request.model)) == ()


def test_embeddings_at_a_deployment_of_azure():
    """The older form of address has the deployment in the path of operations too."""
    guard = Guard(Simulator(), has_header("api-key", "planted-key"))
    with serve_in_thread(guard) as server:
        adapter = HttpAdapter(
            "azure", "planted-key", base_url=server.url, api_version="2023-07-01-preview"
        )
        result = asyncio.run(adapter.perform("embed", EmbedInput(model="my ada", inputs=("hi",))))
    assert len(result.embeddings) == 1
    path = "/openai/deployments/my%20ada/embeddings?api-version=2023-07-01-preview"
    assert guard.received[0].target == path


def test_counting_tokens_at_vertex():
    """It has a model of its own for that; the real one is in the body."""
    app = Simulator(text("Hi."))
    guard = Guard(app, BEARER)
    with serve_in_thread(guard) as server:
        adapter = HttpAdapter(
            "vertex_anthropic", make_token, base_url=f"{server.url}{VERTEX}/anthropic"
        )
        tokens = asyncio.run(adapter.count_tokens(Request(model=CLAUDE, messages="Hello there")))
    assert tokens > 0
    assert guard.received[0].target == f"{VERTEX}/anthropic/models/count-tokens:rawPredict"
    assert guard.received[0].body["model"] == CLAUDE
    assert "anthropic_version" in guard.received[0].body
