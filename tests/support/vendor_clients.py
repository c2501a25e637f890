"""The vendors' own clients, each with one way to ask, to stream and to return results."""

import json
from typing import NamedTuple

import anthropic
import openai
from google import genai
from google.genai import types as genai_types

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = "Weather in Oslo and Rome?"
KEY = "sk-planted-key-of-a-test"
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

    def complete(self):
        answer = self.client.chat.completions.create(
            model="m", messages=self.messages, tools=self.tools
        )
        return self.said(answer)

    def stream(self):
        with self.client.chat.completions.stream(
            model="m",
            messages=self.messages,
            tools=self.tools,
            stream_options={"include_usage": True},
        ) as stream:
            for _ in stream:
                pass
            return self.said(stream.get_final_completion())

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

    def complete(self):
        return self.said(
            self.client.responses.create(
                model="m", input=self.input, tools=self.tools, reasoning=SUMMARY
            )
        )

    def stream(self):
        with self.client.responses.stream(
            model="m", input=self.input, tools=self.tools, reasoning=SUMMARY
        ) as stream:
            for _ in stream:
                pass
            return self.said(stream.get_final_response())

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

    def complete(self):
        answer = self.client.messages.create(
            model="m", max_tokens=100, messages=self.messages, tools=self.tools, thinking=SHOWN
        )
        return self.said(answer)

    def stream(self):
        with self.client.messages.stream(
            model="m", max_tokens=100, messages=self.messages, tools=self.tools, thinking=SHOWN
        ) as stream:
            for _ in stream:
                pass
            return self.said(stream.get_final_message())

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

    def complete(self):
        answer = self.client.models.generate_content(
            model="m", contents=self.contents, config=self.config
        )
        return self.said(answer.candidates[0].content.parts, answer)

    def stream(self):
        parts = []
        for answer in self.client.models.generate_content_stream(
            model="m", contents=self.contents, config=self.config
        ):
            parts += answer.candidates[0].content.parts
        return self.said(parts, answer)

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
