"""The vendors' own clients, fed from memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
from google import genai
from google.genai import types


def _transport(body: bytes, kind: str) -> httpx2.MockTransport:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body, headers={"content-type": kind})

    return httpx2.MockTransport(answer)


class OpenAIPeer:
    """`openai.OpenAI`, for either of its APIs."""

    def __init__(self, api: str) -> None:
        self._api = api

    def _create(self, body: bytes, kind: str) -> Callable[..., Any]:
        http = httpx2.Client(transport=_transport(body, kind))
        client = openai.OpenAI(api_key="none", http_client=http, max_retries=0)
        return (
            client.responses.create if self._api == "responses" else client.chat.completions.create
        )

    def _smallest(self) -> dict[str, Any]:
        if self._api == "responses":
            return {"model": "m", "input": "x"}
        return {"model": "m", "messages": [{"role": "user", "content": "x"}]}

    def stream(self, body: bytes) -> Callable[[], None]:
        create = self._create(body, "text/event-stream")

        def run() -> None:
            for _ in create(**self._smallest(), stream=True):
                pass

        return run

    def send(self, request: dict[str, Any]) -> Callable[[], object]:
        create = self._create(b"{}", "application/json")
        return lambda: create(**request)

    def receive(self, body: bytes) -> Callable[[], object]:
        create = self._create(body, "application/json")
        return lambda: create(**self._smallest())


class AnthropicPeer:
    """`anthropic.Anthropic`; its raw event stream, which is cheaper than its helper."""

    def _create(self, body: bytes, kind: str) -> Callable[..., Any]:
        http = httpx2.Client(transport=_transport(body, kind))
        return anthropic.Anthropic(api_key="none", http_client=http, max_retries=0).messages.create

    def stream(self, body: bytes) -> Callable[[], None]:
        create = self._create(body, "text/event-stream")

        def run() -> None:
            for _ in create(model="m", max_tokens=9, messages=[], stream=True):
                pass

        return run

    def send(self, request: dict[str, Any]) -> Callable[[], object]:
        create = self._create(b"{}", "application/json")
        return lambda: create(**request)

    def receive(self, body: bytes) -> Callable[[], object]:
        create = self._create(body, "application/json")
        return lambda: create(model="m", max_tokens=9, messages=[])


class GeminiPeer:
    """`google.genai.Client`."""

    def _models(self, body: bytes, kind: str) -> Any:
        options = types.HttpOptions(httpx_client=httpx2.Client(transport=_transport(body, kind)))
        return genai.Client(api_key="none", http_options=options).models

    def stream(self, body: bytes) -> Callable[[], None]:
        models = self._models(body, "text/event-stream")

        def run() -> None:
            for _ in models.generate_content_stream(model="m", contents="x"):
                pass

        return run

    def send(self, request: dict[str, Any]) -> Callable[[], object]:
        models = self._models(b"{}", "application/json")
        contents = [types.Content.model_validate(content) for content in request["contents"]]
        return lambda: models.generate_content(model="m", contents=contents)

    def receive(self, body: bytes) -> Callable[[], object]:
        models = self._models(body, "application/json")
        return lambda: models.generate_content(model="m", contents="x")


PEERS: dict[str, Any] = {
    "openai_responses": OpenAIPeer("responses"),
    "openai_chat": OpenAIPeer("chat"),
    "anthropic_messages": AnthropicPeer(),
    "gemini_generate": GeminiPeer(),
}
