"""
Replies in the vendors' own shapes, written without our encoders.

Each row has the same two answers: a thought and a call, then a thought and a text. `frames` are
the events of the stream, `body` is the whole reply.
"""

import json
from typing import NamedTuple

THOUGHT, TEXT = "Need the tool.", "4 °C and rain."
PIECES = ("4 °C", " and", " rain.")
NAME, ARGUMENTS = "get_weather", {"city": "Oslo"}
RAW = '{"city": "Oslo"}'


class Reply(NamedTuple):
    frames: tuple[str, ...]
    body: dict

    @property
    def stream(self):
        return "".join(self.frames).encode()

    @property
    def whole(self):
        return json.dumps(self.body).encode()


class Row(NamedTuple):
    call: Reply
    text: Reply
    usage: tuple[int, int, int | None, int | None]
    """Input, output, reasoning and cached tokens of the text, as they must be read."""
    error: dict
    """The body of a refusal of the key."""
    status: int = 401
    sent_back: str = ""
    """What the next request must contain, so that the thought survives."""


def data(value):
    return f"data: {json.dumps(value)}\n\n"


def named(value):
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n"


# OpenAI, Responses.


def responses(item, deltas):
    usage = {
        "input_tokens": 80,
        "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 0},
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 24},
        "total_tokens": 120,
    }
    summary = [{"type": "summary_text", "text": THOUGHT}]
    thought = {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "FINAL"}
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-5.2",
        "output": [thought, item],
        "usage": usage,
        "error": None,
        "incomplete_details": None,
    }
    at = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    opened = {
        **item,
        "status": "in_progress",
        **({"arguments": ""} if "name" in item else {"content": []}),
    }
    start = {**body, "status": "in_progress", "output": [], "usage": None}
    kind = "response.reasoning_summary"
    events = [
        {"type": "response.created", "response": start},
        {"type": "response.in_progress", "response": start},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**thought, "summary": [], "encrypted_content": "PARTIAL"},
        },
        {"type": f"{kind}_part.added", **at, "part": {"type": "summary_text", "text": ""}},
        {"type": f"{kind}_text.delta", **at, "delta": THOUGHT},
        {"type": f"{kind}_text.done", **at, "text": THOUGHT},
        {"type": f"{kind}_part.done", **at, "part": summary[0]},
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        {"type": "response.output_item.added", "output_index": 1, "item": opened},
        *deltas,
        {"type": "response.output_item.done", "output_index": 1, "item": item},
        {"type": "response.completed", "response": body},
    ]
    return Reply(tuple(named({**e, "sequence_number": n}) for n, e in enumerate(events)), body)


def openai():
    at = {"item_id": "fc_1", "output_index": 1}
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_A",
        "name": NAME,
        "arguments": RAW,
        "status": "completed",
    }
    kind = "response.function_call_arguments"
    called = responses(
        call,
        [
            {"type": f"{kind}.delta", **at, "delta": RAW[:8]},
            {"type": f"{kind}.delta", **at, "delta": RAW[8:]},
            {"type": f"{kind}.done", **at, "arguments": RAW},
        ],
    )
    at = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    part = {"type": "output_text", "text": TEXT, "annotations": [], "logprobs": []}
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    said = responses(
        message,
        [
            {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
            *(
                {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
                for piece in PIECES
            ),
            {"type": "response.output_text.done", **at, "text": TEXT, "logprobs": []},
            {"type": "response.content_part.done", **at, "part": part},
        ],
    )
    wrong = "Incorrect API key provided."
    error = {
        "message": wrong,
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    }
    return Row(called, said, (80, 40, 24, 20), {"error": error}, sent_back="FINAL")


# Anthropic.


def claude(block, opened, deltas, reason):
    usage = {
        "input_tokens": 12,
        "cache_creation_input_tokens": 900,
        "cache_read_input_tokens": 100,
        "output_tokens": 48,
        "output_tokens_details": {"thinking_tokens": 20},
    }
    thought = {"type": "thinking", "thinking": THOUGHT, "signature": "U0lHTg=="}
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [thought, block],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage,
    }
    early = {**usage, "output_tokens": 1}
    start = {**body, "content": [], "stop_reason": None, "usage": early}
    delta = "content_block_delta"
    events = [
        {"type": "message_start", "message": start},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "ping"},
        {"type": delta, "index": 0, "delta": {"type": "thinking_delta", "thinking": THOUGHT}},
        {"type": delta, "index": 0, "delta": {"type": "signature_delta", "signature": "U0lHTg=="}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": opened},
        *({"type": delta, "index": 1, "delta": each} for each in deltas),
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]
    return Reply(tuple(map(named, events)), body)


def anthropic():
    use = {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": ARGUMENTS}
    fragments = ("", RAW[:8], RAW[8:])
    called = claude(
        use,
        {**use, "input": {}},
        [{"type": "input_json_delta", "partial_json": fragment} for fragment in fragments],
        "tool_use",
    )
    said = claude(
        {"type": "text", "text": TEXT},
        {"type": "text", "text": ""},
        [{"type": "text_delta", "text": piece} for piece in PIECES],
        "end_turn",
    )
    error = {"type": "authentication_error", "message": "invalid x-api-key"}
    refused = {"type": "error", "error": error, "request_id": "req_1"}
    return Row(called, said, (1012, 48, 20, 100), refused, sent_back="U0lHTg==")


# Gemini.


def gemini():
    usage = {
        "promptTokenCount": 60,
        "cachedContentTokenCount": 10,
        "candidatesTokenCount": 12,
        "thoughtsTokenCount": 20,
        "totalTokenCount": 92,
    }
    thought = {"text": THOUGHT, "thought": True}
    use = {"functionCall": {"name": NAME, "args": ARGUMENTS}, "thoughtSignature": "U0lHTg=="}

    def reply(last, parts):
        def frame(parts, **more):
            candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **more}
            return {
                "candidates": [candidate],
                "usageMetadata": usage,
                "modelVersion": "gemini-2.5-flash",
                "responseId": "r1",
            }

        frames = [frame([thought]), *(frame([part]) for part in parts)]
        frames.append(frame([{"text": ""}], finishReason="STOP"))
        whole = frame([thought, last], finishReason="STOP")
        return Reply(tuple(map(data, frames)), whole)

    said = reply({"text": TEXT}, [{"text": piece} for piece in PIECES])
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }
    message = "API key not valid. Please pass a valid API key."
    error = {"code": 400, "message": message, "status": "INVALID_ARGUMENT", "details": [info]}
    return Row(
        reply(use, [use]),
        said,
        (60, 32, 20, 10),
        {"error": error},
        status=400,
        sent_back="U0lHTg==",
    )


# Chat Completions, as three hosts speak it.


def chat(envelope, thought, usage, *, last=None, more=None):
    """The replies of a host: `thought` are its fields for a thought, `more` those of a choice."""
    more = more or {}
    tool = {"id": "call_A", "type": "function", "function": {"name": NAME, "arguments": RAW}}

    def chunk(delta, reason=None, **fields):
        choice = {"index": 0, "delta": delta, "finish_reason": reason, **more}
        return {**envelope, "object": "chat.completion.chunk", "choices": [choice], **fields}

    def reply(message, deltas, reason):
        end = [chunk({}, reason)]
        if last == "in finish":
            end = [chunk({}, reason, usage=usage)]
        elif last == "beside content":
            end.append(chunk({"role": "assistant", "content": ""}, None, usage=usage))
        else:
            end.append(
                {**envelope, "object": "chat.completion.chunk", "choices": [], "usage": usage}
            )
        chunks = [
            chunk({"role": "assistant", "content": None, **thought}),
            *map(chunk, deltas),
            *end,
        ]
        whole = {
            "index": 0,
            "message": {"role": "assistant", **thought, **message},
            "finish_reason": reason,
            **more,
        }
        body = {**envelope, "object": "chat.completion", "choices": [whole], "usage": usage}
        return Reply((*map(data, chunks), "data: [DONE]\n\n"), body)

    opened = {**tool, "index": 0, "function": {"name": NAME, "arguments": ""}}
    fragments = [{"index": 0, "function": {"arguments": part}} for part in (RAW[:8], RAW[8:])]
    called = reply(
        {"content": None, "tool_calls": [tool]},
        [{"tool_calls": [each]} for each in (opened, *fragments)],
        "tool_calls",
    )
    said = reply({"content": TEXT}, [{"content": piece} for piece in PIECES], "stop")
    return called, said


def openrouter():
    detail = {
        "type": "reasoning.text",
        "text": THOUGHT,
        "signature": "U0lHTg==",
        "format": "anthropic-claude-v1",
        "index": 0,
    }
    usage = {
        "prompt_tokens": 80,
        "completion_tokens": 40,
        "total_tokens": 120,
        "cost": 0.0012,
        "is_byok": False,
        "prompt_tokens_details": {"cached_tokens": 16},
        "completion_tokens_details": {"reasoning_tokens": 24},
    }
    envelope = {
        "id": "gen-1",
        "provider": "Anthropic",
        "model": "anthropic/claude-haiku-4-5",
        "created": 1,
    }
    thought = {"reasoning": THOUGHT, "reasoning_details": [detail]}
    more = {"native_finish_reason": None, "logprobs": None}
    called, said = (
        reply._replace(frames=(": OPENROUTER PROCESSING\n\n", *reply.frames))
        for reply in chat(envelope, thought, usage, last="beside content", more=more)
    )
    error = {"error": {"message": "No auth credentials found", "code": 401}}
    return Row(called, said, (80, 40, 24, 16), error, sent_back="U0lHTg==")


def xai():
    usage = {  # the completion does not include the reasoning
        "prompt_tokens": 165,
        "completion_tokens": 2,
        "total_tokens": 292,
        "prompt_tokens_details": {
            "text_tokens": 165,
            "audio_tokens": 0,
            "image_tokens": 0,
            "cached_tokens": 156,
        },
        "completion_tokens_details": {"reasoning_tokens": 125, "audio_tokens": 0},
        "num_sources_used": 0,
        "cost_in_usd_ticks": 731000,
    }
    envelope = {
        "id": "47a24a3a",
        "model": "grok-4-fast-reasoning",
        "created": 1,
        "system_fingerprint": "fp_3d7",
    }
    called, said = chat(envelope, {"reasoning_content": THOUGHT}, usage)
    error = {"code": "The caller does not have permission", "error": "Incorrect API key provided."}
    return Row(called, said, (165, 127, 125, 156), error, status=400)


def fireworks():
    usage = {"prompt_tokens": 80, "completion_tokens": 40, "total_tokens": 120}
    envelope = {"id": "fw-1", "model": "accounts/fireworks/models/glm-5p3", "created": 1}
    called, said = chat(envelope, {"reasoning_content": THOUGHT}, usage, last="in finish")
    error = {
        "error": {
            "object": "error",
            "type": "invalid_request_error",
            "code": "UNAUTHORIZED",
            "message": "The API key you provided is invalid.",
        }
    }
    return Row(called, said, (80, 40, None, None), error)


ROWS = {
    "openai": openai(),
    "anthropic": anthropic(),
    "gemini": gemini(),
    "openrouter": openrouter(),
    "xai": xai(),
    "fireworks": fireworks(),
}
MODELS = {
    "openai": "gpt-5.2",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-flash",
    "openrouter": "anthropic/claude-haiku-4-5",
    "xai": "grok-4-fast-reasoning",
    "fireworks": "accounts/fireworks/models/kimi-k3",
}
