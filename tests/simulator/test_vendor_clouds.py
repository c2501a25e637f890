"""The vendors' clients for clouds talk to the simulator, and send what ours sends."""

import asyncio
import json

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from google.oauth2.credentials import Credentials

from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.request import Request
from support.clouds import Guard, has_header

CLAUDE = "us.anthropic.claude-opus-4-5-20251101-v1:0"
MESSAGES = [{"role": "user", "content": "Hello"}]
KEY = "planted-key"


class Bedrock:
    """Anthropic's client for Bedrock, with a bearer key."""

    row, model, base = "bedrock_invoke", CLAUDE, ""
    settings = {"places": {"region": "us-east-1"}}  # noqa: RUF012 -- never changed
    check = staticmethod(has_header("authorization", f"Bearer {KEY}"))

    @staticmethod
    def client(url):
        return anthropic.AnthropicBedrock(
            api_key=KEY, aws_region="us-east-1", base_url=url, max_retries=0
        )

    def whole(self, client):
        answer = client.messages.create(model=self.model, max_tokens=50, messages=MESSAGES)
        return answer.content[0].text

    def stream(self, client):
        with client.messages.stream(model=self.model, max_tokens=50, messages=MESSAGES) as stream:
            return "".join(stream.text_stream)


class Vertex(Bedrock):
    """Anthropic's client for Vertex."""

    row, model = "vertex_anthropic", "claude-opus-4-5@20251101"
    base = "/v1/projects/p/locations/global/publishers/anthropic"
    settings = {}  # noqa: RUF012 -- never changed

    @staticmethod
    def client(url):
        return anthropic.AnthropicVertex(
            access_token=KEY, region="global", project_id="p", base_url=f"{url}/v1", max_retries=0
        )


class Mantle(Bedrock):
    """Anthropic's client for the newer address of Bedrock."""

    row, model = "bedrock", "anthropic.claude-opus-5"
    settings = {**Bedrock.settings, "dialect": "anthropic_messages"}  # noqa: RUF012

    @staticmethod
    def client(url):
        return anthropic.AnthropicBedrockMantle(
            api_key=KEY, aws_region="us-east-1", base_url=f"{url}/anthropic", max_retries=0
        )


class Gemini:
    """Google's client for Vertex."""

    row, model = "vertex", "gemini-3-pro"
    base = "/v1/projects/p/locations/global/publishers/google"
    settings = {}  # noqa: RUF012 -- never changed
    check = staticmethod(has_header("authorization", f"Bearer {KEY}"))

    @staticmethod
    def client(url):
        options = types.HttpOptions(
            base_url=f"{url}/v1/projects/p/locations/global",
            base_url_resource_scope=types.ResourceScope.COLLECTION,
        )
        return genai.Client(
            vertexai=True,
            project="p",
            location="global",
            credentials=Credentials(KEY),
            http_options=options,
        )

    config = types.GenerateContentConfig(max_output_tokens=50)

    def whole(self, client):
        return client.models.generate_content(
            model=self.model, contents="Hello", config=self.config
        ).text

    def stream(self, client):
        chunks = client.models.generate_content_stream(
            model=self.model, contents="Hello", config=self.config
        )
        return "".join(chunk.text or "" for chunk in chunks)


class Azure:
    """OpenAI's client for Azure, with an API version."""

    row, model, base = "azure", "my-gpt", ""
    settings = {"api_version": "2024-10-21"}  # noqa: RUF012 -- never changed
    check = staticmethod(has_header("api-key", KEY))

    @staticmethod
    def client(url):
        return openai.AzureOpenAI(
            api_key=KEY, azure_endpoint=url, api_version="2024-10-21", max_retries=0
        )

    def whole(self, client):
        answer = client.chat.completions.create(
            model=self.model, messages=MESSAGES, max_completion_tokens=50
        )
        return answer.choices[0].message.content

    def stream(self, client):
        chunks = client.chat.completions.create(
            model=self.model,
            messages=MESSAGES,
            max_completion_tokens=50,
            stream=True,
            stream_options={"include_usage": True},
        )
        pieces = (chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        return "".join(pieces)


CLOUDS = {
    "bedrock": Bedrock(),
    "mantle": Mantle(),
    "vertex": Vertex(),
    "vertex gemini": Gemini(),
    "azure": Azure(),
}


def normal(body):
    """A body without what each client may add: cache marks, and a text as one part."""
    body = {name: value for name, value in body.items() if name != "model"}
    for message in body.get("messages", ()):
        content = message["content"]
        if isinstance(content, list):
            assert [part["type"] for part in content] == ["text"]
            message["content"] = content[0]["text"]
    return json.loads(json.dumps(body))


@pytest.mark.parametrize("way", ["whole", "stream"])
@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_clients_of_the_vendors_and_ours_send_the_same(cloud, way, closed):
    """The same path, query and body; and both read the same answer."""
    case = CLOUDS[cloud]
    app = Simulator(text("Good morning."), text("Good morning."))
    guard = Guard(app, case.check)

    async def ours(url):
        adapter = HttpAdapter(case.row, KEY, base_url=url + case.base, **case.settings)
        request = Request(model=case.model, messages="Hello", max_tokens=50)
        try:
            if way == "whole":
                return (await adapter.complete(request)).text
            events = [event async for event in adapter.stream(request)]
            return "".join(event.delta for event in events if event.type == "text_delta")
        finally:
            await adapter.close()

    with serve_in_thread(guard) as server:
        theirs = getattr(case, way)(closed(case.client(server.url)))
        assert theirs == asyncio.run(ours(server.url)) == "Good morning."
    vendor, own = guard.received
    assert vendor.target == own.target
    assert normal(vendor.body) == normal(own.body)
    if cloud == "bedrock" and way == "stream":
        assert own.headers["accept"] == "application/vnd.amazon.eventstream"
