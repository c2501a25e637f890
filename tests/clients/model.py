"""
The model behind the gateways: it answers as a model would that reads what it is asked.

- It calls the tools that the last prompt names, with arguments from the prompt, and once more for
  each place if the prompt has several ("the weather in Oslo and Rome").
- With each tool call it thinks, and signs that. When the results come, it says how many
  prompts there were, and if it got its own state back, of every turn and byte by byte.
- It keeps to the schema of a response format; to a prompt that asks for JSON it answers in JSON.
- `[fail NAME]` in the prompt makes it fail; see `FAILURES`.
- `Say: …` is answered with these words.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from interlingua.errors import ContextLengthError, QuotaExceededError
from interlingua.simulator import Turn, error, fail, signed, text, thinking, tool_call
from interlingua.simulator.script import example
from interlingua.spec.content import Image, Part, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from interlingua.wire.seal import in_usual_letters

FAILURES = {
    "400": error(400, "The upstream refuses this request."),
    "403": error(403, "The upstream does not allow this."),
    "429": error(429, "Too many requests to the upstream.", retry_after=1),
    "500": error(500, "The upstream failed."),
    "overflow": fail(ContextLengthError("The prompt has too many tokens.")),
    "quota": fail(QuotaExceededError("The quota of the upstream is spent.")),
}
THOUGHT = "I must look that up."
_PLACES = re.compile(r"\b(?:in|of|for) ([A-Z]\w+(?: [A-Z]\w+)*(?:, [A-Z]{2})?(?: and [A-Z]\w+)*)")
_QUOTED = re.compile(r"['\"`]([^'\"`]+)['\"`]")
_NUMBER = re.compile(r"-?\d+")


def answer(upstream: str, request: Request) -> Turn:
    """The turn of a model of this API for a request; see above."""
    prompt = _last_prompt(request)
    if match := re.search(r"\[fail (\w+)\]", prompt):
        return FAILURES[match[1]]
    if calls := _calls(request, prompt):
        return _thoughtful(calls, upstream)
    if (form := request.response_format) is not None and isinstance(form.json_schema, dict):
        return text(json.dumps(example(form.json_schema)))
    if listed := _listed(request):
        count, state = len(_prompts(request)), _state(request)
        return text(f"The tools returned: {listed}. Prompts: {count}. State: {state}.")
    if _asks_for_json(request):
        return text(json.dumps(dict.fromkeys(_QUOTED.findall(prompt) or ["answer"], "simulated")))
    return text(prompt.partition("Say: ")[2] or f"You said: {prompt}" if prompt else "Hello.")


# Prompts.


def _prompts(request: Request) -> list[str]:
    """What the user said, without messages after results, which belong to them: images, files."""
    prompts: list[str] = []
    is_after_results = False
    for message in request.messages:
        is_after_results |= _has_results(message)
        is_after_results &= message.role != "assistant"
        if message.role == "user" and message.text and not is_after_results:
            prompts.append(message.text)
    return prompts


def _has_results(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.content)


def _last_prompt(request: Request) -> str:
    return next(reversed(_prompts(request)), "")


def _asks_for_json(request: Request) -> bool:
    """A response format without a schema, or words: some upstreams have only these."""
    if request.response_format is not None:
        return True
    texts = (each.text for each in request.messages if each.role in {"system", "user"})
    return any("JSON" in each for each in texts)


# Calls.


def _calls(request: Request, prompt: str) -> list[Turn]:
    choice = request.tool_choice
    tools = [tool for tool in request.tools if isinstance(tool, ToolDefinition)]
    if choice is not None and choice.tool_name is not None:
        tools = [tool for tool in tools if tool.name == choice.tool_name]
    if not tools or (choice is not None and choice.mode == "none"):
        return []
    done = _called(request)
    tools = [tool for tool in tools if tool.name not in done]
    wanted = [tool for tool in tools if _is_named(tool, prompt)]
    if not wanted and choice is not None and choice.mode != "auto":
        wanted = tools[:1]
    return [
        tool_call(tool.name, arguments) for tool in wanted for arguments in _arguments(tool, prompt)
    ]


def _called(request: Request) -> set[str]:
    """The tools that were called since the last prompt."""
    names: set[str] = set()
    prompt = _last_prompt(request)
    for message in reversed(request.messages):
        if message.role == "user" and message.text == prompt:
            break
        names |= {call.name for call in message.tool_calls}
    return names


def _is_named(tool: ToolDefinition, prompt: str) -> bool:
    words = {word.lower() for word in re.split(r"[_\W]+", tool.name) if len(word) > 3}
    return bool(words & {*re.split(r"[_\W]+", prompt.lower())})


def _arguments(tool: ToolDefinition, prompt: str) -> Iterator[dict[str, Any]]:
    """The arguments of each call: what the prompt has of each kind, else an example."""
    arguments = example(tool.parameters)
    properties = (tool.parameters or {}).get("properties") or {}
    kinds = {name: str(each.get("type", "")).lower() for name, each in properties.items()}
    if number := _NUMBER.search(prompt):
        arguments |= {name: int(number[0]) for name, kind in kinds.items() if kind == "integer"}
    names = [name for name, kind in kinds.items() if kind == "string" and name in arguments]
    texts = _QUOTED.findall(prompt)[-1:]
    if not texts and (match := _PLACES.search(prompt)):
        texts = match[1].split(" and ")
    for each in texts or [None]:
        yield arguments if each is None else {**arguments, **dict.fromkeys(names[:1], each)}


# State.


def _thoughtful(calls: Sequence[Turn], upstream: str) -> Turn:
    """The calls after a thought; thought and first call are signed, as the API has it."""
    signature = _signature([part for turn in calls for part in turn.parts])
    thought = thinking(THOUGHT, signature=signature)
    if upstream == "Chat":
        thought = Turn(parts=(_detailed(signature),))
    turn = thought + signed(calls[0], signature)
    for call in calls[1:]:
        turn += call
    return turn


def _detailed(signature: str) -> Thinking:
    """A signed thought in Chat, as OpenRouter has it."""
    detail = {"type": "reasoning.text", "text": THOUGHT, "signature": signature, "index": 0}
    fields = {"~fields": ["reasoning"], "reasoning_details": [detail]}
    return Thinking(text=THOUGHT, extra={"openai_chat": fields})


def _signature(parts: Sequence[Part]) -> str:
    """The signature of a thought before these calls: another one for each."""
    calls = [(part.name, part.arguments) for part in parts if isinstance(part, ToolCall)]
    digest = hashlib.sha256(json.dumps(calls, sort_keys=True).encode()).digest()
    return base64.b64encode(b"state of the model " + digest).decode()


def _state(request: Request) -> str:
    """`kept` if every turn with calls has its own signature, byte by byte; else what is missing."""
    turns = _turns(request)
    kept = [_signature([p for m in turn for p in m.content]) in _strings(turn) for turn in turns]
    return "kept" if all(kept) else f"{sum(kept)} of {len(kept)}"


def _turns(request: Request) -> list[list[Message]]:
    """The messages of each turn of the model that has calls."""
    turns: list[list[Message]] = [[]]
    for message in request.messages:
        if message.role == "assistant":
            turns[-1].append(message)
        elif turns[-1]:
            turns.append([])
    return [turn for turn in turns if any(message.tool_calls for message in turn)]


def _strings(turn: Sequence[Message]) -> set[str]:
    """All strings in the messages."""
    found: set[str] = set()
    values: list[Any] = [msgspec.to_builtins(list(turn))]
    while values:
        value = values.pop()
        if isinstance(value, str):
            # Google's SDK for Python writes bytes in the other alphabet of base64, which its API
            # reads too.
            found.add(in_usual_letters(value))
        elif isinstance(value, dict):
            values += value.values()
        elif isinstance(value, (list, tuple)):
            values += value
    return found


# Results.


def _listed(request: Request) -> str:
    """The results at the end of the request, and the media beside them; empty if there are none."""
    tail: list[Part] = []
    for message in reversed(request.messages):
        if message.role == "assistant":
            break
        tail = [*message.content, *tail]
    if not any(isinstance(part, ToolResult) for part in tail):
        return ""
    return "; ".join(_shown(part) for part in tail if not isinstance(part, Text))


def _shown(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Image) and part.data is not None:
        return f"[image {part.media_type} {len(part.data)} bytes]"
    if not isinstance(part, ToolResult):
        return f"[{part.kind}]"
    if isinstance(part.content, str):
        return part.content
    if part.parts is None:
        return json.dumps(part.content)
    return ", ".join(map(_shown, part.parts))
