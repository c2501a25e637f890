"""What a vendor's client should show of an answer, from its canonical form: the equivalents."""

from __future__ import annotations

import jiter

from interlingua.spec.content import Refusal, Text, Thinking, ToolCall
from interlingua.spec.response import Reason, Response, Usage
from support.oracles_responses import Answer, Call

FINISH: dict[str, dict[Reason, str]] = {
    "anthropic_messages": {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
        "other": "end_turn",
        "error": "end_turn",
        "cancelled": "end_turn",
    },
    "openai_chat": {
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool_calls",
        "content_filter": "content_filter",
        "other": "stop",
        "error": "stop",
        "cancelled": "stop",
    },
    "openai_responses": {
        "stop": "completed",
        "length": "max_output_tokens",
        "tool_calls": "completed",
        "content_filter": "content_filter",
        "other": "completed",
        "error": "failed",
        "cancelled": "cancelled",
    },
    "gemini_generate": {
        "stop": "STOP",
        "length": "MAX_TOKENS",
        "tool_calls": "STOP",
        "content_filter": "SAFETY",
        "other": "OTHER",
        "error": "OTHER",
        "cancelled": "OTHER",
    },
    "bedrock_converse": {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "content_filtered",
        "other": "end_turn",
        "error": "end_turn",
        "cancelled": "end_turn",
    },
}
"""Our reasons in each vendor's words."""
SHARED = {"bedrock_converse": ("stop_sequence", "model_context_window_exceeded")}
"""The finer words that Anthropic has too: they stay as they are."""


def shown(dialect: str, response: Response, *, streamed: bool = False) -> Answer:
    """What the client of a dialect should show of an answer that is not its own."""
    parts = response.message.content
    refusal = "".join(part.text for part in parts if isinstance(part, Refusal))
    text = response.text
    if not dialect.startswith("openai"):  # they have no other place for it
        text = "".join(part.text for part in parts if isinstance(part, (Text, Refusal)))
        refusal = ""
    finish = response.finish_reason
    is_shared = finish.raw in SHARED.get(dialect, ())
    return Answer(
        text=text,
        refusal=refusal,
        thinking="".join(p.text for p in parts if isinstance(p, Thinking) and not p.redacted),
        calls=[_call(dialect, call, streamed=streamed) for call in response.tool_calls],
        finish=finish.raw if is_shared else FINISH[dialect][finish.reason],
        usage=_usage(dialect, response.usage),
    )


def _call(dialect: str, call: ToolCall, *, streamed: bool) -> Call:
    """Only OpenAI has calls with text for an argument; elsewhere it stands in an object."""
    raw = call.raw_arguments
    if dialect == "anthropic_messages" and streamed and raw and raw.startswith("{"):
        # this client reads what there is of arguments that were cut off
        return Call(call.id, call.name, jiter.from_json(raw.encode(), partial_mode=True))
    if dialect == "bedrock_converse" and streamed and raw and raw.startswith("{"):
        # the text has been passed on before it breaks off, and stays text to a user
        return Call(call.id, call.name, call.arguments if call.is_valid else raw)
    if call.type == "function" and (call.is_valid or call.is_cut):  # cut before its first byte
        return Call(call.id, call.name, call.arguments)
    if dialect.startswith("openai"):
        return Call(call.id, call.name, raw)
    return Call(call.id, call.name, {"input": raw})


def _usage(dialect: str, usage: Usage) -> dict[str, int | None] | None:
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    told = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": read,
        "cache_write": written,
        "reasoning": usage.reasoning_tokens,
    }
    if dialect == "anthropic_messages":  # counts the cached ones beside the input
        return {**told, "input": usage.input_tokens - (read or 0) - (written or 0)}
    if dialect == "bedrock_converse":  # so does it, and has no count of reasoning
        del told["reasoning"]
        return {**told, "input": usage.input_tokens - (read or 0) - (written or 0)}
    if dialect == "openai_responses":  # every count is required
        return {name: count or 0 for name, count in told.items()}
    if usage == Usage():
        return None
    if dialect == "gemini_generate":  # counts the thoughts beside the output, and no writes
        del told["cache_write"]
        return {**told, "output": usage.output_tokens - (usage.reasoning_tokens or 0)}
    return told


def read_back(dialect: str, response: Response) -> Answer:
    """The same in our own words, as far as the dialect can say it: what our decoder should find."""
    asked = shown(dialect, response)
    reason = response.finish_reason.reason
    if FINISH[dialect][reason] == FINISH[dialect]["stop"]:
        reason = "stop"
    elif FINISH[dialect][reason] == FINISH[dialect]["other"]:
        reason = "other"
    has_word = dialect in ("anthropic_messages", "bedrock_converse")  # the reason says it alone
    if not has_word and reason == "stop" and response.tool_calls:
        reason = "tool_calls"
    if dialect == "openai_responses" and reason == "stop" and asked.refusal:
        reason = "content_filter"
    return asked._replace(finish=reason)


def told(dialect: str, response: Response) -> Answer:
    """What our decoder found."""
    return shown(dialect, response)._replace(finish=response.finish_reason.reason)
