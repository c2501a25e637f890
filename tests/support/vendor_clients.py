"""
The vendors' own clients, each with one way to ask, to stream and to return results.

Each has the blocking way and, with a vendor's async client, the async one. `open` begins a stream
that the test reads itself.
"""

import json
from typing import NamedTuple

import anthropic
import openai
from google import genai
from google.genai import types as genai_types

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = "Weather in Oslo and Rome?"
KEY = "sk-planted-key-of-a-test"
USAGE = {"include_usage": True}
# Each vendor shows thoughts only if asked.
SUMMARY = {"summary": "auto"}
SHOWN = {"type": "adaptive", "display": "summarized"}


class Said(NamedTuple):
    text: str
    calls: list
    thought: str
    tokens: tuple
    finish: str


class Chat:
    """OpenAI's client, Chat Completions."""

    def __init__(self, client):
        self.client = client
        self.messages = [{"role": "user", "content": QUESTION}]
        function = {"name": "get_weather", "parameters": SCHEMA}
        self.tools = [{"type": "function", "function": function}]

    @property
    def question(self):
        return {"model": "m", "messages": self.messages, "tools": self.tools}

    def complete(self):
        return self.said(self.client.chat.completions.create(**self.question))

    async def complete_async(self):
        return self.said(await self.client.chat.completions.create(**self.question))

    def stream(self):
        with self.client.chat.completions.stream(**self.question, stream_options=USAGE) as stream:
            for _ in stream:
                pass
            return self.said(stream.get_final_completion())

    async def stream_async(self):
        asked = self.client.chat.completions.stream(**self.question, stream_options=USAGE)
        async with asked as stream:
            async for _ in stream:
                pass
            return self.said(await stream.get_final_completion())

    def open(self):
        return self.client.chat.completions.create(**self.question, stream=True)

    def said(self, answer):
        self.last = message = answer.choices[0].message
        self.calls = message.tool_calls or []
        calls = [(c.function.name, json.loads(c.function.arguments)) for c in self.calls]
        thought = (message.model_extra or {}).get("reasoning_content") or ""
        tokens = (answer.usage.prompt_tokens, answer.usage.completion_tokens)
        words = message.content or message.refusal or ""
        return Said(words, calls, thought, tokens, answer.choices[0].finish_reason)

    def give(self, results):
        self.messages.append(self.last.model_dump(exclude_none=True))
        for call, result in zip(self.calls, results, strict=True):
            told = {"role": "tool", "tool_call_id": call.id, "content": result}
            self.messages.append(told)


class Responses:
    """OpenAI's client, Responses."""

    def __init__(self, client):
        self.client = client
        self.input = [{"role": "user", "content": QUESTION}]
        self.tools = [{"type": "function", "name": "get_weather", "parameters": SCHEMA}]

    @property
    def question(self):
        return {"model": "m", "input": self.input, "tools": self.tools, "reasoning": SUMMARY}

    def complete(self):
        return self.said(self.client.responses.create(**self.question))

    async def complete_async(self):
        return self.said(await self.client.responses.create(**self.question))

    def stream(self):
        with self.client.responses.stream(**self.question) as stream:
            for _ in stream:
                pass
            return self.said(stream.get_final_response())

    async def stream_async(self):
        async with self.client.responses.stream(**self.question) as stream:
            async for _ in stream:
                pass
            return self.said(await stream.get_final_response())

    def open(self):
        return self.client.responses.create(**self.question, stream=True)

    def said(self, answer):
        self.last = answer.output
        self.calls = [item for item in answer.output if item.type == "function_call"]
        calls = [(c.name, json.loads(c.arguments)) for c in self.calls]
        thoughts = [item for item in answer.output if item.type == "reasoning"]
        thought = "".join(part.text for item in thoughts for part in item.summary)
        messages = [item for item in answer.output if item.type == "message"]
        refusals = [p.refusal for m in messages for p in m.content if p.type == "refusal"]
        tokens = (answer.usage.input_tokens, answer.usage.output_tokens)
        return Said(answer.output_text or "".join(refusals), calls, thought, tokens, answer.status)

    def give(self, results):
        for item in self.last:
            # the stream helper adds a field of its own
            self.input.append(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}))
        for call, result in zip(self.calls, results, strict=True):
            told = {"type": "function_call_output", "call_id": call.call_id, "output": result}
            self.input.append(told)


class Claude:
    """Anthropic's client."""

    def __init__(self, client):
        self.client = client
        self.messages = [{"role": "user", "content": QUESTION}]
        self.tools = [{"name": "get_weather", "input_schema": SCHEMA}]

    @property
    def question(self):
        asked = {"messages": self.messages, "tools": self.tools, "thinking": SHOWN}
        return {"model": "m", "max_tokens": 100, **asked}

    def complete(self):
        return self.said(self.client.messages.create(**self.question))

    async def complete_async(self):
        return self.said(await self.client.messages.create(**self.question))

    def stream(self):
        with self.client.messages.stream(**self.question) as stream:
            for _ in stream:
                pass
            return self.said(stream.get_final_message())

    async def stream_async(self):
        async with self.client.messages.stream(**self.question) as stream:
            async for _ in stream:
                pass
            return self.said(await stream.get_final_message())

    def open(self):
        return self.client.messages.create(**self.question, stream=True)

    def said(self, answer):
        self.last = answer.content
        self.calls = [block for block in answer.content if block.type == "tool_use"]
        calls = [(block.name, block.input) for block in self.calls]
        words = "".join(block.text for block in answer.content if block.type == "text")
        thought = "".join(b.thinking for b in answer.content if b.type == "thinking")
        read = answer.usage.cache_read_input_tokens or 0
        tokens = (answer.usage.input_tokens + read, answer.usage.output_tokens)
        return Said(words, calls, thought, tokens, answer.stop_reason)

    def give(self, results):
        self.messages.append(
            {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in self.last]}
        )
        told = [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}
            for call, result in zip(self.calls, results, strict=True)
        ]
        self.messages.append({"role": "user", "content": told})


class Gemini:
    """Google's client."""

    def __init__(self, client):
        self.client = client
        self.contents = [genai_types.UserContent(parts=[genai_types.Part(text=QUESTION)])]
        function = {"name": "get_weather", "parameters_json_schema": SCHEMA}
        self.config = genai_types.GenerateContentConfig(
            tools=[{"function_declarations": [function]}],
            automatic_function_calling={"disable": True},
            thinking_config={"include_thoughts": True},
        )

    @property
    def question(self):
        return {"model": "m", "contents": self.contents, "config": self.config}

    def complete(self):
        answer = self.client.models.generate_content(**self.question)
        return self.said(answer.candidates[0].content.parts, answer)

    async def complete_async(self):
        answer = await self.client.models.generate_content(**self.question)
        return self.said(answer.candidates[0].content.parts, answer)

    def stream(self):
        parts = []
        for answer in self.open():
            parts += answer.candidates[0].content.parts
        return self.said(parts, answer)

    async def stream_async(self):
        parts = []
        async for answer in await self.open():
            parts += answer.candidates[0].content.parts
        return self.said(parts, answer)

    def open(self):
        return self.client.models.generate_content_stream(**self.question)

    def said(self, parts, answer):
        self.last = parts
        self.calls = [part.function_call for part in parts if part.function_call]
        calls = [(call.name, call.args) for call in self.calls]
        words = "".join(part.text or "" for part in parts if not part.thought)
        thought = "".join(part.text or "" for part in parts if part.thought)
        told = answer.usage_metadata
        tokens = (
            told.prompt_token_count,
            (told.candidates_token_count or 0) + (told.thoughts_token_count or 0),
        )
        return Said(words, calls, thought, tokens, answer.candidates[0].finish_reason.value)

    def give(self, results):
        self.contents.append(genai_types.ModelContent(parts=self.last))
        parts = [
            genai_types.Part(
                function_response=genai_types.FunctionResponse(
                    id=call.id, name=call.name, response={"output": result}
                )
            )
            for call, result in zip(self.calls, results, strict=True)
        ]
        self.contents.append(genai_types.UserContent(parts=parts))


VENDORS = {
    "openai_chat": Chat,
    "openai_responses": Responses,
    "anthropic_messages": Claude,
    "gemini_generate": Gemini,
}


def connect(dialect, url, key):
    if dialect.startswith("openai"):
        return openai.OpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0)
    if dialect.startswith("anthropic"):
        return anthropic.Anthropic(api_key=key, base_url=url, max_retries=0)
    return genai.Client(api_key=key, http_options={"base_url": url})


def in_process(dialect, http):
    """A vendor's blocking client, over an HTTP client of its library."""
    if dialect.startswith("openai"):
        return openai.OpenAI(api_key="any", http_client=http, max_retries=0)
    if dialect.startswith("anthropic"):
        return anthropic.Anthropic(api_key="any", http_client=http, max_retries=0)
    return genai.Client(api_key="any", http_options=genai_types.HttpOptions(httpx_client=http))


def in_process_async(dialect, http):
    """The same, async."""
    if dialect.startswith("openai"):
        return openai.AsyncOpenAI(api_key="any", http_client=http, max_retries=0)
    if dialect.startswith("anthropic"):
        return anthropic.AsyncAnthropic(api_key="any", http_client=http, max_retries=0)
    options = genai_types.HttpOptions(httpx_async_client=http)
    return genai.Client(api_key="any", http_options=options).aio
