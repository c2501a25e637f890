"""LangChain's own tests of chat models: each class before each upstream; run by `run.py`."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import BaseTool, tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

STAND = json.loads(os.environ["INTERLINGUA_STAND"])
KEY = STAND["key"]
MEDIA = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\6\0\0\0\x1f\x15\xc4\x89",
    "pdf": b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF",
    "wav": b"RIFF$\0\0\0WAVEfmt \20\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\10\0data\0\0\0\0",
}


@pytest.fixture(autouse=True)
def _media(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the tests would download."""

    def get(url: str, **_: Any) -> httpx.Response:
        return httpx.Response(200, content=MEDIA[url.rpartition(".")[2]])

    monkeypatch.setattr(httpx, "get", get)


class Base(ChatModelIntegrationTests):
    """What the classes have in common; the upstream is in a subclass."""

    upstream: str

    @property
    def url(self) -> str:
        return str(STAND["gateways"][self.upstream])

    @property
    def has_tool_choice(self) -> bool:
        return True

    @property
    def supports_image_inputs(self) -> bool:
        return True

    @property
    def supports_image_tool_message(self) -> bool:
        return True

    @property
    def supports_pdf_inputs(self) -> bool:
        return True

    @property
    def supports_anthropic_inputs(self) -> bool:
        return True

    @property
    def supports_json_mode(self) -> bool:
        return True

    @pytest.fixture
    def my_adder_tool(self) -> BaseTool:
        @tool
        def my_adder_tool(a: int, b: int) -> int:
            """Add two integers."""
            return a + b

        return my_adder_tool


class Chat(Base):
    """ChatOpenAI with Chat Completions."""

    chat_model_class = ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        base = {"base_url": f"{self.url}/v1", "api_key": KEY, "max_retries": 0}
        return {"model": "gpt-4.1", "stream_usage": True, **base}

    @property
    def supports_audio_inputs(self) -> bool:
        return True

    @property
    def supports_image_urls(self) -> bool:
        return True


class Responses(Chat):
    """ChatOpenAI with Responses."""

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {**super().chat_model_params, "use_responses_api": True}

    @property
    def supports_audio_inputs(self) -> bool:
        return False  # Responses has none

    @property
    def supports_pdf_tool_message(self) -> bool:
        return True


class Messages(Base):
    """ChatAnthropic."""

    chat_model_class = ChatAnthropic

    @property
    def chat_model_params(self) -> dict[str, Any]:
        base = {"base_url": self.url, "api_key": KEY, "max_retries": 0}
        return {"model": "claude-haiku-4-5", "max_tokens": 1000, **base}

    @property
    def supports_json_mode(self) -> bool:
        return False  # ChatAnthropic has none

    @property
    def supports_image_urls(self) -> bool:
        return True

    @property
    def supports_pdf_tool_message(self) -> bool:
        return True


class Gemini(Base):
    """ChatGoogleGenerativeAI."""

    chat_model_class = ChatGoogleGenerativeAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        base = {"base_url": self.url, "google_api_key": KEY, "max_retries": 0}
        return {"model": "gemini-2.5-pro", **base}

    @property
    def supports_audio_inputs(self) -> bool:
        return True

    @property
    def supports_anthropic_inputs(self) -> bool:
        return False  # ChatGoogleGenerativeAI refuses the images of Anthropic


for upstream in STAND["gateways"]:
    for base in (Chat, Responses, Messages, Gemini):
        name = f"Test{base.__name__}_{upstream}"
        globals()[name] = type(name, (base,), {"upstream": upstream, "__module__": __name__})
