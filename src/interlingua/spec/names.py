"""Advice about unknown names: a misspelled option, or one of another library."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

_ELSEWHERE = {
    "response_model": "schema= of generate_object",
    "output_type": "schema= of generate_object",
    "response_schema": "response_format=, or schema= of generate_object",
    "json_schema": "response_format=, or schema= of generate_object",
    "schema": "response_format=, or schema= of generate_object",
    "max_output_tokens": "max_tokens=",
    "max_completion_tokens": "max_tokens=",
    "max_new_tokens": "max_tokens=",
    "stop": "stop_sequences=",
    "functions": "tools=",
    "function_call": "tool_choice=",
    "instructions": "system=",
    "system_prompt": "system=",
    "system_instruction": "system=",
    "input": "prompt or messages=",
    "contents": "messages=",
    "history": "messages=",
    "thinking": "thinking_budget= or reasoning_effort=",
    "thinking_config": "thinking_budget= or reasoning_effort=",
    "reasoning": "reasoning_effort=",
    "extra_body": "provider_options=",
    "model_kwargs": "provider_options=",
    "num_retries": "max_retries=",
    "request_timeout": "timeout=",
    "stream": "the function stream(...)",
    "callbacks": "execute(...), which has callbacks",
    "max_turns": "max_tool_rounds=",
    "max_steps": "max_tool_rounds=",
    "max_iterations": "max_tool_rounds=",
    "api_base": "base_url=",
    "candidate_count": "n=",
}
"""Names that other libraries use, and what to use here."""


def advice(name: str, known: Collection[str], own: Mapping[str, str] = MappingProxyType({})) -> str:
    """A sentence about what to use instead of an unknown name; `own` comes before other advice."""
    from difflib import get_close_matches  # imported only for an error message

    instead = own.get(name) or _ELSEWHERE.get(name)
    if instead is not None:
        return f"Use {instead}."
    near = get_close_matches(str(name), known, n=1)  # a key of a mapping may be anything
    return f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(sorted(known))}."
