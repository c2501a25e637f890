"""Every row over HTTP: its dialects, path, key and quirks, with the simulator as the server."""

import asyncio
from urllib.parse import urlsplit

import pytest

from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import tool
from interlingua.client.client import Client
from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.rows import ROWS
from interlingua.simulator import Simulator, serve_in_thread, text, tool_call
from interlingua.spec.modalities.embeddings import EmbedInput
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedTransport
from support.clouds import Guard
from support.rows import answers_chats

KEY = "planted-key"
RESPONSES, CHAT, MESSAGES = "openai_responses", "openai_chat", "anthropic_messages"
GEMINI = "gemini_generate"
VERTEX = "https://p-aiplatform.googleapis.com/v1/projects/p/locations/p/publishers"


def chat(start):
    return {CHAT: f"{start}/chat/completions"}


def both(start):
    return {CHAT: f"{start}/chat/completions", RESPONSES: f"{start}/responses"}


def three(start):
    return {**both(start), MESSAGES: f"{start}/messages"}


URLS = {
    "openai": both("https://api.openai.com/v1"),
    "anthropic": {
        MESSAGES: "https://api.anthropic.com/v1/messages",
        CHAT: "https://api.anthropic.com/v1/chat/completions",
    },
    "gemini": {
        GEMINI: "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        CHAT: "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
    },
    "chatgpt": {RESPONSES: "https://chatgpt.com/backend-api/codex/responses"},
    "xai": both("https://api.x.ai/v1"),
    "mistral": chat("https://api.mistral.ai/v1"),
    "deepseek": both("https://api.deepseek.com"),
    "moonshot": chat("https://api.moonshot.ai/v1"),
    "zai": chat("https://api.z.ai/api/paas/v4"),
    "perplexity": chat("https://api.perplexity.ai"),
    "cohere": chat("https://api.cohere.ai/compatibility/v1"),
    "ai21": chat("https://api.ai21.com/studio/v1"),
    "alibaba": chat("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
    "minimax": both("https://api.minimax.io/v1"),
    "stepfun": chat("https://api.stepfun.ai/v1"),
    "nvidia": chat("https://integrate.api.nvidia.com/v1"),
    "fireworks": both("https://api.fireworks.ai/inference/v1"),
    "groq": both("https://api.groq.com/openai/v1"),
    "together": chat("https://api.together.xyz/v1"),
    "cerebras": chat("https://api.cerebras.ai/v1"),
    "huggingface": both("https://router.huggingface.co/v1"),
    "databricks": chat("https://here.example/serving-endpoints"),
    "snowflake": {
        CHAT: "https://p.snowflakecomputing.com/api/v2/cortex/v1/chat/completions",
        MESSAGES: "https://p.snowflakecomputing.com/api/v2/cortex/v1/messages",
    },
    "cloudflare": chat("https://api.cloudflare.com/client/v4/accounts/p/ai/v1"),
    "github": chat("https://models.github.ai/inference"),
    "sambanova": chat("https://api.sambanova.ai/v1"),
    "novita": chat("https://api.novita.ai/openai/v1"),
    "deepinfra": chat("https://api.deepinfra.com/v1/openai"),
    "hyperbolic": chat("https://api.hyperbolic.xyz/v1"),
    "nebius": both("https://api.tokenfactory.nebius.com/v1"),
    "baseten": chat("https://inference.baseten.co/v1"),
    "venice": chat("https://api.venice.ai/api/v1"),
    "doubleword": chat("https://api.doubleword.ai/v1"),
    "crusoe": chat("https://api.inference.crusoecloud.com/v1"),
    "avian": chat("https://api.avian.io/v1"),
    "ollama_cloud": chat("https://ollama.com/v1"),
    "azure": both("https://here.example/openai/v1"),
    "bedrock": {
        **both("https://bedrock-mantle.p.api.aws/v1"),
        MESSAGES: "https://bedrock-mantle.p.api.aws/anthropic/v1/messages",
    },
    "bedrock_invoke": {MESSAGES: "https://bedrock-runtime.p.amazonaws.com/model/m/invoke"},
    "bedrock_converse": {
        "bedrock_converse": "https://bedrock-runtime.p.amazonaws.com/model/m/converse"
    },
    "vertex": {GEMINI: f"{VERTEX}/google/models/m:generateContent"},
    "vertex_anthropic": {MESSAGES: f"{VERTEX}/anthropic/models/m:rawPredict"},
    "openrouter": both("https://openrouter.ai/api/v1"),
    "vercel": chat("https://ai-gateway.vercel.sh/v1"),
    "github_copilot": both("https://api.githubcopilot.com"),
    "portkey": chat("https://api.portkey.ai/v1"),
    "litellm": three("https://here.example/v1"),
    "ollama": three("http://localhost:11434/v1"),
    "vllm": three("http://localhost:8000/v1"),
    "llamacpp": three("http://localhost:8080/v1"),
    "lmstudio": three("http://localhost:1234/v1"),
    "mistralrs": both("http://localhost:1234/v1"),
    "sglang": chat("http://localhost:30000/v1"),
    "gpustack": chat("http://localhost:80/v1"),
    "openai_compatible": {
        CHAT: "https://here.example/chat/completions",
        RESPONSES: "https://here.example/v1/responses",
        MESSAGES: "https://here.example/v1/messages",
    },
}
"""The address of a call in each dialect of each row, written by hand from the rows' sources."""

HEADERS = {
    ("anthropic", MESSAGES): "x-api-key",
    ("gemini", GEMINI): "x-goog-api-key",
    ("azure", CHAT): "api-key",
    ("azure", RESPONSES): "api-key",
    ("portkey", CHAT): "x-portkey-api-key",
}
"""Where the key is no bearer token."""

STREAM_PATHS = {
    ":generateContent": ":streamGenerateContent",
    ":rawPredict": ":streamRawPredict",
    "/invoke": "/invoke-with-response-stream",
    "/converse": "/converse-stream",
}

CASES = [
    (row, dialect)
    for row in ROWS
    if answers_chats(row) and not row.is_embedded
    for dialect in (row.dialect, *row.other_dialects)
]
every_case = pytest.mark.parametrize(
    ("row", "dialect"), CASES, ids=[f"{row.name}-{dialect}" for row, dialect in CASES]
)


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 4 C, rain"


def adapter_for(row, dialect, base_url=None, transport=None):
    if base_url is None and not row.base_url:
        base_url = "https://here.example"
    return HttpAdapter(
        row,
        KEY,
        dialect=dialect,
        base_url=base_url,
        places=dict.fromkeys(row.url_env, "p"),
        transport=transport,
    )


def test_the_table_is_whole():
    """Every row that answers is in it, with each of its dialects."""
    listed = {(name, dialect) for name, urls in URLS.items() for dialect in urls}
    assert listed == {(row.name, dialect) for row, dialect in CASES}


@every_case
def test_the_address_of_a_row(row, dialect):
    """It is the one that the vendor documents."""
    adapter = adapter_for(row, dialect, transport=CannedTransport([]))
    assert adapter.dry_run(Request(model="m", messages="Hi")).url == URLS[row.name][dialect]


def has_key(row, dialect):
    """A check of the header in which the row sends its key."""
    header = HEADERS.get((row.name, dialect), "authorization")
    value = f"Bearer {KEY}" if header == "authorization" else KEY
    others = {*HEADERS.values(), "authorization"} - {header}

    def check(request):
        return request.headers.get(header) == value and not others & request.headers.keys()

    return check


@pytest.mark.parametrize("way", ["whole", "stream"])
@every_case
def test_a_run_with_a_tool_call(row, dialect, way):
    """A call, its result and the answer, at the row's path, with its key and its field names."""
    app = Simulator(tool_call("get_weather", city="Oslo"), text("It rains."))
    guard = Guard(app, has_key(row, dialect))
    url = urlsplit(URLS[row.name][dialect])
    base = urlsplit(adapter_for(row, dialect, transport=CannedTransport([])).base_url).path

    async def work(address):
        adapter = adapter_for(row, dialect, address + base)
        async with Client({row.name: adapter}) as client:
            options = {
                "client": client,
                "provider": row.name,
                "tools": [get_weather],
                "max_tokens": 50,
                "on_loss": "warn",
            }
            if way == "whole":
                return await generate("m", "Weather?", **options)
            result = stream("m", "Weather?", **options)
            async for _ in result:
                pass
            return result.result()

    with serve_in_thread(guard) as server:
        result = asyncio.run(work(server.url))

    assert result.text == "It rains."
    (call,) = (call for message in result.messages for call in message.tool_calls)
    assert (call.name, call.arguments) == ("get_weather", {"city": "Oslo"})
    path = url.path
    for whole, streamed in STREAM_PATHS.items() if way == "stream" else ():
        path = path.removesuffix(whole) + streamed if path.endswith(whole) else path
    assert [urlsplit(request.target).path for request in guard.received] == [path, path]
    assert [each.request.model for each in app.script.received] == ["m", "m"]
    check_fields(row, dialect, way, guard.received[0])


def check_fields(row, dialect, way, received):
    """The names of fields are those that the quirks of the row say."""
    for name, value in row.headers.items():
        assert received.headers[name] == value
    if dialect != CHAT:
        return
    quirks = HttpAdapter(row, KEY, base_url="https://h.example", dialect=dialect).profile_for("m")
    quirks = quirks.quirks or ChatQuirks()
    assert received.body[quirks.max_tokens_field] == 50
    assert not {"max_tokens", "max_completion_tokens"} - {quirks.max_tokens_field} & (
        received.body.keys()
    )
    asks_for_usage = way == "stream" and quirks.stream_usage
    assert ("stream_options" in received.body) == asks_for_usage


NO_CHAT = [row for row in ROWS if not answers_chats(row)]


@pytest.mark.parametrize("row", NO_CHAT, ids=lambda row: row.name)
def test_a_row_without_chat(row):
    """Its embeddings are at its path, with its key."""
    guard = Guard(Simulator(), has_key(row, row.dialect))

    async def work(address):
        adapter = HttpAdapter(row, KEY, base_url=address + urlsplit(row.base_url).path)
        try:
            return await adapter.perform("embed", EmbedInput(model="m", inputs=("one", "two")))
        finally:
            await adapter.close()

    with serve_in_thread(guard) as server:
        result = asyncio.run(work(server.url))
    assert len(result.embeddings) == 2
    assert [request.target for request in guard.received] == ["/v1/embeddings"]


def test_every_row_is_used():
    """By one of the tests above; the embedded server has tests of its own."""
    used = {row.name for row, _ in CASES} | {row.name for row in NO_CHAT}
    assert {row.name for row in ROWS} - used == {"local"}


def test_a_wrong_key_is_refused_by_the_guard():
    """So that the test above can fail."""
    row = next(row for row in ROWS if row.name == "groq")
    guard = Guard(Simulator(text("Hi.")), lambda _request: False)

    async def work(address):
        adapter = adapter_for(row, CHAT, f"{address}/openai/v1")
        try:
            return await adapter.complete(Request(model="m", messages="Hi"))
        finally:
            await adapter.close()

    with serve_in_thread(guard) as server, pytest.raises(Exception, match="401"):
        asyncio.run(work(server.url))
