"""The clients of the vendors, each as an oracle."""

from __future__ import annotations

import functools
import json
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types as gemini
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from support.oracles_converse import Converse
from support.oracles_responses import Answer, Call, Oracle

_KEY = "none"
_TERMINAL = ("response.completed", "response.incomplete", "response.failed")


class Anthropic(Oracle):
    """`anthropic.Anthropic`; streams through its `messages.stream` helper."""

    whole = anthropic.types.Message
    piece = anthropic.types.RawMessageStreamEvent

    def __init__(self) -> None:
        super().__init__()
        client = anthropic.Anthropic(api_key=_KEY, http_client=self.wire.client, max_retries=0)
        self._messages = client.messages

    def receive(self) -> Answer:
        return self._show(self._messages.create(model="m", max_tokens=9, messages=[]))

    def receive_stream(self) -> Answer:
        with self._messages.stream(model="m", max_tokens=9, messages=[]) as stream:
            return self._show(stream.get_final_message())

    def _show(self, message: Any) -> Answer:
        blocks = message.content
        usage = message.usage
        details = usage.output_tokens_details
        return Answer(
            text="".join(block.text for block in blocks if block.type == "text"),
            refusal="",
            thinking="".join(block.thinking for block in blocks if block.type == "thinking"),
            calls=[
                Call(block.id, block.name, block.input)
                for block in blocks
                if block.type == "tool_use"
            ],
            finish=message.stop_reason,
            usage={
                "input": usage.input_tokens,
                "output": usage.output_tokens,
                "cache_read": usage.cache_read_input_tokens,
                "cache_write": usage.cache_creation_input_tokens,
                "reasoning": None if details is None else details.thinking_tokens,
            },
        )


class Chat(Oracle):
    """`openai.OpenAI().chat.completions`; streams through its `stream` helper."""

    whole = ChatCompletion
    piece = ChatCompletionChunk

    def __init__(self) -> None:
        super().__init__()
        client = openai.OpenAI(api_key=_KEY, http_client=self.wire.client, max_retries=0)
        self._completions = client.chat.completions

    def receive(self) -> Answer:
        return self._show(self._completions.create(model="m", messages=[]))

    def receive_stream(self) -> Answer:
        with self._completions.stream(model="m", messages=[]) as stream:
            stream.until_done()
            # its `get_final_completion` raises on a length stop
            return self._show(stream.current_completion_snapshot)

    def _show(self, completion: Any) -> Answer:
        choice = completion.choices[0]
        message = choice.message
        usage = completion.usage
        return Answer(
            text=message.content or "",
            refusal=message.refusal or "",
            thinking=getattr(message, "reasoning_content", None) or "",
            calls=[self._call(call) for call in message.tool_calls or ()],
            finish=choice.finish_reason,
            usage=None if usage is None else self._usage(usage),
        )

    def _call(self, call: Any) -> Call:
        if call.type == "custom":
            custom = call.custom  # a plain dict in streams, whose types do not know it
            custom = custom if isinstance(custom, dict) else custom.model_dump()
            return Call(call.id, custom["name"], custom["input"])
        return Call(call.id, call.function.name, _object(call.function.arguments))

    def _usage(self, usage: Any) -> dict[str, int | None]:
        going_in, going_out = usage.prompt_tokens_details, usage.completion_tokens_details
        return {
            "input": usage.prompt_tokens,
            "output": usage.completion_tokens,
            "cache_read": None if going_in is None else going_in.cached_tokens,
            "cache_write": None if going_in is None else going_in.cache_write_tokens,
            "reasoning": None if going_out is None else going_out.reasoning_tokens,
        }


class Responses(Oracle):
    """`openai.OpenAI().responses`; streams through its `stream` helper."""

    whole = Response
    piece = ResponseStreamEvent

    def __init__(self) -> None:
        super().__init__()
        client = openai.OpenAI(api_key=_KEY, http_client=self.wire.client, max_retries=0)
        self._responses = client.responses

    def receive(self) -> Answer:
        return self._show(self._responses.create(model="m", input="x"))

    def receive_stream(self) -> Answer:
        text: list[str] = []
        with self._responses.stream(model="m", input="x") as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    text.append(event.delta)
        # its `get_final_response` knows only of completed ones
        assert event.type in _TERMINAL, event.type
        answer = self._show(event.response)
        assert "".join(text) == answer.text
        return answer

    def _show(self, response: Any) -> Answer:
        items = response.output
        parts = [part for item in items if item.type == "message" for part in item.content]
        thoughts = [part for item in items if item.type == "reasoning" for part in item.summary]
        details = response.incomplete_details
        return Answer(
            text=response.output_text,
            refusal="".join(part.refusal for part in parts if part.type == "refusal"),
            thinking="".join(part.text for part in thoughts),
            calls=[self._call(item) for item in items if hasattr(item, "call_id")],
            finish=response.status if details is None else details.reason,
            usage={
                "input": response.usage.input_tokens,
                "output": response.usage.output_tokens,
                "cache_read": response.usage.input_tokens_details.cached_tokens,
                "cache_write": response.usage.input_tokens_details.cache_write_tokens,
                "reasoning": response.usage.output_tokens_details.reasoning_tokens,
            },
        )

    def _call(self, item: Any) -> Call:
        if item.type == "custom_tool_call":
            return Call(item.call_id, item.name, item.input)
        return Call(item.call_id, item.name, _object(item.arguments))


class Gemini(Oracle):
    """`google.genai.Client().models`."""

    whole = gemini.GenerateContentResponse
    piece = gemini.GenerateContentResponse

    def __init__(self) -> None:
        super().__init__()
        options = gemini.HttpOptions(httpx_client=self.wire.client)
        self._models = genai.Client(api_key=_KEY, http_options=options).models

    def receive(self) -> Answer:
        return self._show([self._models.generate_content(model="m", contents="x")])

    def receive_stream(self) -> Answer:
        return self._show(list(self._models.generate_content_stream(model="m", contents="x")))

    def _show(self, chunks: list[Any]) -> Answer:
        candidates = [chunk.candidates[0] for chunk in chunks if chunk.candidates]
        contents = [candidate.content for candidate in candidates if candidate.content]
        parts = [part for content in contents for part in content.parts or ()]
        said = [part for part in parts if part.text is not None]
        finish = [found.finish_reason for found in candidates if found.finish_reason is not None]
        usage = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata is not None]
        calls = [part.function_call for part in parts if part.function_call]
        return Answer(
            text="".join(part.text for part in said if not part.thought),
            refusal="",
            thinking="".join(part.text for part in said if part.thought),
            calls=[Call(call.id, call.name, call.args or {}) for call in calls],
            finish=finish[-1].value if finish else None,
            usage=self._usage(usage[-1]) if usage else None,
        )

    def _usage(self, usage: Any) -> dict[str, int | None]:
        return {
            "input": usage.prompt_token_count,
            "output": usage.candidates_token_count,
            "cache_read": usage.cached_content_token_count,
            "reasoning": usage.thoughts_token_count,
        }


def _object(text: str) -> Any:
    """Argument text as a user would read it; what is no JSON stays as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


ORACLES: dict[str, type[Oracle]] = {
    "openai_responses": Responses,
    "openai_chat": Chat,
    "anthropic_messages": Anthropic,
    "gemini_generate": Gemini,
    "bedrock_converse": Converse,
}


@functools.cache
def oracle(dialect: str) -> Oracle:
    """The client of a dialect, made once."""
    return ORACLES[dialect]()
