"""
Recordings by the host that served them: its row, what an answer has, and the host's quirks.

What a recording has is read here with `json` alone, apart from the decoders.
"""

import functools
import json
from collections import Counter
from typing import NamedTuple

from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.rows import row_name
from support import corpus

ROWS = {
    ("anthropic_messages", "vertex"): "vertex_anthropic",
    ("gemini_generate", "local"): "gemini",  # a proxy on the recorder's machine
}
"""Where a host has several rows, or a row of another name."""


def row_of(dialect, host):
    """The name of the row of a host; None if there is none."""
    return ROWS.get((dialect, host)) or row_name(host)


@functools.cache
def hosts():
    """Each dialect with each of its hosts."""
    return tuple(
        (dialect, host)
        for dialect in corpus.FILES
        for host in sorted({record["host_provider"] for record in corpus.records(dialect)})
    )


@functools.cache
def records_of(dialect, host):
    return tuple(each for each in corpus.records(dialect) if each["host_provider"] == host)


def profile_of(dialect, record):
    """The profile of the model that a recorded request names, at the row of its host."""
    body = record["request_body"]
    model = body.get("model") if isinstance(body, dict) else None
    row = row_of(dialect, record["host_provider"])
    return profile_for(dialect, model if isinstance(model, str) else "", row)


# Chat Completions: what an answer has.


class Said(NamedTuple):
    text: str
    reasoning: str
    calls: list
    finish: str | None
    usage: dict | None


def events_of(text):
    """The JSON in each `data:` line of a stream."""
    lines = (line[5:].strip() for line in text.splitlines() if line.startswith("data:"))
    return [json.loads(line) for line in lines if line and line != "[DONE]"]


def said(record):
    """What the first choice of a recorded answer has; None if it has none."""
    if record["status"] >= 400:
        return None
    if record["response_format"] == "sse" if record["response_text"] else False:
        return _streamed(events_of(record["response_text"]))
    body = record["response_body"]
    choices = body.get("choices") if isinstance(body, dict) else None
    if not choices or "message" not in choices[0]:
        return None
    message = choices[0]["message"]
    text, parts_reasoning = _content(message.get("content"))
    calls = [_call(call) for call in message.get("tool_calls") or ()]
    if (message.get("function_call") or {}).get("name"):  # Snowflake sends one without a name
        calls.append(_call({"function": message["function_call"]}))
    reasoning = _reasoning(message) or parts_reasoning
    return Said(text, reasoning, calls, choices[0].get("finish_reason"), _usage(body))


def _streamed(events):
    text, reasoning, finish, usage = "", "", None, None
    calls = {}
    for event in events:
        usage = _usage(event) or usage
        for choice in event.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue
            delta = choice.get("delta") or choice.get("message") or {}
            piece, thought = _content(delta.get("content"))
            text += piece
            reasoning += _reasoning(delta) or thought
            finish = choice.get("finish_reason") or finish
            for position, call in enumerate(delta.get("tool_calls") or ()):
                _merge(calls, call, position)
            if delta.get("function_call"):
                _merge(calls, {"function": delta["function_call"]}, 0)
    found = [_call({"function": call}) for call in calls.values()]
    return Said(text, reasoning, found, finish, usage)


def _merge(calls, call, position):
    """Fragments of a call have its index, or, at some hosts, its id, or only their order."""
    function = call.get("function") or {}
    key = call.get("index")
    if key is None:
        key = call.get("id") or position
    known = calls.setdefault(key, {"name": "", "arguments": ""})
    known["name"] = known["name"] or function.get("name") or ""
    arguments = function.get("arguments")
    if isinstance(arguments, dict):
        known["arguments"] = arguments
    else:
        known["arguments"] += arguments or ""


def _call(call):
    function = call.get("function") or call.get("custom") or {}
    arguments = function.get("arguments", function.get("input"))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            arguments = None  # it is not valid JSON, which is another matter
    return function.get("name"), arguments


def _content(content):
    if isinstance(content, str):
        return content, ""
    if isinstance(content, dict):  # JSON that was asked for, not as text
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False), ""
    text = reasoning = ""
    for part in content or ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("text", "output_text"):
            text += part.get("text") or ""
        elif kind == "thinking":
            inner = part.get("thinking")
            pieces = inner if isinstance(inner, list) else [{"text": inner}]
            reasoning += "".join(piece.get("text") or "" for piece in pieces)
        elif kind == "reasoning":
            summary = part.get("summary") or ()
            reasoning += "".join(piece.get("text") or "" for piece in summary)
    return text, reasoning


def _reasoning(message):
    for name in ("reasoning_content", "reasoning", "reasoning_text"):
        if isinstance(message.get(name), str) and message[name]:
            return message[name]
    details = message.get("reasoning_details")
    texts = [each.get("text") or each.get("summary") or "" for each in details or ()]
    return "".join(texts)


def _usage(body):
    usage = body.get("usage")
    if not isinstance(usage, dict):
        usage = (body.get("x_groq") or {}).get("usage")
    return usage if isinstance(usage, dict) and usage.get("prompt_tokens") is not None else None


# The quirks that recordings show.


def quirks_of(record):
    """The names of the quirks that a recording of Chat Completions shows."""
    found = set(_request_quirks(record["request_body"]))
    if record["status"] >= 400:
        return found | {f"error as {_error_shape(record['response_body'])}"}
    text, body = record["response_text"], record["response_body"]
    if text and record["response_format"] == "sse":
        return found | set(_stream_quirks(text))
    if isinstance(body, dict):
        found |= set(_answer_quirks(body, "message"))
        if body.get("error"):
            found.add("error with status 200")
    return found


def _request_quirks(body):
    if not isinstance(body, dict):
        return
    if "max_tokens" in body:
        yield "`max_tokens` asked for"
    for name in ("random_seed", "reasoning", "thinking", "enable_thinking", "top_k"):
        if name in body:
            yield f"`{name}` asked for"
    if body.get("tool_choice") == "any":
        yield "`tool_choice: any` asked for"


def _stream_quirks(text):
    if "data: [DONE]" not in text and "data:[DONE]" not in text:
        yield "no `[DONE]`"
    if any(line.startswith(":") for line in text.splitlines()):
        yield "comments in streams"
    for event in events_of(text):
        yield from _answer_quirks(event, "delta")
        choices = event.get("choices")
        if event.get("error"):
            yield "error in a stream"
        if isinstance(event.get("usage"), dict):
            yield "usage in a chunk of its own" if not choices else "usage beside a choice"
        if (event.get("x_groq") or {}).get("usage"):
            yield "usage in `x_groq`"
        if choices == []:
            yield "chunks without choices"


def _answer_quirks(body, field):
    usage = body.get("usage")
    if isinstance(usage, dict):
        yield from _usage_quirks(usage)
    for choice in body.get("choices") or ():
        if choice.get("finish_reason") == "":
            yield '`finish_reason: ""`'
        if "finish_reason" not in choice and field == "message":
            yield "no `finish_reason`"
        message = choice.get(field) or {}
        yield from _message_quirks(message)
        for call in message.get("tool_calls") or ():
            yield from _call_quirks(call, field)


def _usage_quirks(usage):
    for name in ("prompt_cache_hit_tokens", "num_cached_tokens", "cost", "cost_in_usd_ticks"):
        if usage.get(name) is not None:
            yield f"`usage.{name}`"
    if _counts_beside(usage, "completion", "reasoning"):
        yield "reasoning tokens beside the output's"
    if _counts_beside(usage, "prompt", "audio"):
        yield "audio tokens beside the prompt's"


def _message_quirks(message):
    for name in ("reasoning_content", "reasoning", "reasoning_text", "reasoning_details"):
        if message.get(name):
            yield f"`{name}`"
    content = message.get("content")
    if isinstance(content, list):
        yield "content as a list"
    if isinstance(content, dict):
        yield "content as an object"
    if isinstance(content, str) and content.lstrip().startswith("<think>"):
        yield "`<think>` in the text"
    if message.get("function_call") and not message["function_call"].get("name"):
        yield "an empty `function_call`"


def _counts_beside(usage, side, kind):
    """Whether the total has tokens of this kind that the tokens of its side do not have."""
    tokens = (usage.get(f"{side}_tokens_details") or {}).get(f"{kind}_tokens") or 0
    sides = (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0)
    return bool(tokens) and usage.get("total_tokens") == sides + tokens


def _call_quirks(call, field):
    if field == "delta" and call.get("index") is None:
        yield "calls without `index`"
    if field == "message" and not call.get("id"):
        yield "calls without `id`"
    if field == "message" and not call.get("type"):
        yield "calls without `type`"
    if isinstance((call.get("function") or {}).get("arguments"), dict):
        yield "arguments as an object"


def _error_shape(body):
    if isinstance(body, list):
        return "a list"
    if not isinstance(body, dict):
        return "text"
    error = body.get("error")
    if isinstance(error, dict):
        is_number = isinstance(error.get("code"), int)
        return "`error` with a number as `code`" if is_number else "`error`"
    if isinstance(error, str):
        return "`error` as text"
    return next((f"`{name}`" for name in ("detail", "message") if name in body), "another object")


def quirk_table():
    """For each quirk, by row: how many recordings show it; and the number of recordings."""
    counts, totals = {}, Counter()
    for record in corpus.records("openai_chat"):
        row = row_of("openai_chat", record["host_provider"])
        totals[row] += 1
        for quirk in quirks_of(record):
            counts.setdefault(quirk, Counter())[row] += 1
    return counts, totals
