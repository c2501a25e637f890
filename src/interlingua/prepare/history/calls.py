"""Repairs of tool calls: one result each; an id, a name and arguments that the target accepts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from string import ascii_lowercase, ascii_uppercase, digits
from typing import get_args

from interlingua.prepare.history.edit import (
    Edits,
    Spot,
    cut,
    edit,
    edit_parts,
    is_unchanged,
    scan_of,
    swap,
    with_fields,
    with_parts,
)
from interlingua.prepare.history.results import end_of_results, pairs_of
from interlingua.prepare.history.scan import Messages, is_own
from interlingua.spec.content import Part, ToolCall, ToolResult, ToolType
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message
from interlingua.wire.fields import extra_of
from interlingua.wire.json_text import loads_object
from interlingua.wire.tool_calls import input_object
from interlingua.wire.tool_names import flat_name

NO_RESULT = "No result was recorded for this call."
_OURS = "interlingua"  # a key of `extra` that no dialect reads
# for a name of which no character is left
_NAMELESS = "unnamed_tool"
_CALLS = frozenset((ToolCall,))
_unusual = re.compile(r"[^A-Za-z0-9_-]+").sub


def drop_misplaced_calls(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Tool calls in messages that are not the model's are dropped."""
    # Tool calls are the model's: in OpenAI's SDK only `ChatCompletionAssistantMessageParam` has
    # `tool_calls`.
    if not target.paired_calls:
        return messages
    misplaced = pairs_of(messages, target, edits).misplaced
    for i, k in misplaced:
        edits.change("misplaced_call_dropped", messages[i].content[k], role=messages[i].role)
    return cut(messages, misplaced, target, edits)


def drop_aborted_calls(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Tool calls of a turn that was cut short are dropped, unless they are whole and were run."""
    # The arguments of a tool call end where the stream broke off, so it was not run: an invented
    # result would tell the model that it was. A tool call that arrived whole and was run stays with
    # its result.
    aborted = [i for i, message in enumerate(messages) if message.metadata and is_aborted(message)]
    if not (target.paired_calls and aborted):
        return messages
    result_of = pairs_of(messages, target, edits).result_of
    dropped: set[Spot] = set()
    for i in aborted:
        for k, call in enumerate(messages[i].content):
            spot = result_of.get((i, k))
            result = None if spot is None else messages[spot[0]].content[spot[1]]
            if not isinstance(call, ToolCall) or (call.is_valid and is_genuine(result)):
                continue
            dropped.add((i, k))
            edits.change("aborted_call_dropped", call, tool=call.name)
            if spot is not None and result is not None:
                dropped.add(spot)
                edits.change("aborted_result_dropped", result)
    return cut(messages, dropped, target, edits)


def is_aborted(message: Message) -> bool:
    """Whether the model was cut short in this message, by the finish reason in its metadata."""
    if message.role != "assistant" or not message.metadata:
        return False
    return message.metadata.get("finish_reason") in ("error", "cancelled")


def is_genuine(result: Part | None) -> bool:
    """Whether there is a result, and it was not added by `answer_calls`."""
    return result is not None and not extra_of(result, _OURS).get("synthetic")


def drop_orphan_results(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Results without a tool call before them, and second results of a tool call, are dropped."""
    # Anthropic: «unexpected `tool_use_id` found in `tool_result` blocks»
    # (https://github.com/anthropics/claude-code/issues/13460). OpenAI: «No tool call found for
    # function call output with call_id …» (https://github.com/continuedev/continue/issues/10092).
    # They remain when the beginning of a long history is cut off.
    if not target.paired_calls or target.stored:
        return messages
    orphans = pairs_of(messages, target, edits).orphans
    for i, k in orphans:
        edits.change("orphan_result_dropped", messages[i].content[k])
    return cut(messages, orphans, target, edits)


def answer_calls(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Tool calls without a result get an error result, or are dropped."""
    # Seen in recordings of DeepSeek: «No tool output found for tool call call-a.» Anthropic:
    # «`tool_use` ids were found without `tool_result` blocks immediately after». By default the
    # model is told that there is no result: without the tool call it would not know that it asked.
    if not target.paired_calls:
        return messages
    pairs = pairs_of(messages, target, edits)
    unanswered = [spot for spot in pairs.calls if spot not in pairs.result_of]
    if not unanswered:
        return messages
    if edits.policy.unanswered == "drop":
        for i, k in unanswered:
            edits.change("unanswered_call_dropped", messages[i].content[k])
        return cut(messages, unanswered, target, edits)
    added: dict[int, list[ToolResult]] = {}  # by the last message of the turn
    for spot in unanswered:
        call = pairs.calls[spot]
        edits.change("missing_result_added", call, tool=call.name)
        added.setdefault(pairs.ends[spot[0]], []).append(_no_result(call))
    turns = pairs.results_by_turn()
    places = {end_of_results(messages, end, turns[end]): added[end] for end in added}
    edited: list[Message] = []
    for i in range(len(messages) + 1):
        if i in places:
            edited.append(Message(role="tool", content=tuple(places[i])))
        edited += messages[i : i + 1]
    return tuple(edited)


def _no_result(call: ToolCall) -> ToolResult:
    # The mark lets `drop_aborted_calls` tell this result from one that a tool returned.
    return ToolResult(
        tool_call_id=call.id,
        content=NO_RESULT,
        is_error=True,
        name=call.name,
        extra={_OURS: {"synthetic": True}},
    )


def rename_duplicate_calls(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Empty ids, and ids that occur twice in a turn or in the history, are replaced."""
    # Seen in recordings: 222 of 235 tool calls in whole answers of Gemini have no id, so that a
    # history which another program stored may lack it. Anthropic: «`tool_use` ids must be unique».
    if target.unique_call_ids == "no":
        return messages
    pairs = pairs_of(messages, target, edits)
    used = {call.id for call in pairs.calls.values()}
    seen: set[str] = set()
    turn = -1
    renamed: dict[Spot, str] = {}
    for number, (spot, call) in enumerate(pairs.calls.items(), 1):
        end = pairs.ends[spot[0]]
        if target.unique_call_ids == "turn" and end != turn:
            seen.clear()
        turn = end
        if call.id and call.id not in seen:
            seen.add(call.id)
            continue
        name = f"{call.id}_{number}" if call.id else f"call_{number}"
        while name in used:
            name = f"{name}_"
        renamed[spot] = name
        used.add(name)
        seen.add(name)
        problem = f"The id {call.id!r} was used before" if call.id else "The call had no id"
        edits.change("call_id_made", call, problem=problem, sent=name)
    return _rename(messages, renamed, pairs.result_of, edits)


def rename_calls(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Ids that the target rejects are mapped, in the tool call and in its result."""
    # Patterns in use: «Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9» of Mistral
    # (https://github.com/nearai/ironclaw/issues/1241), `^[a-zA-Z0-9_-]+$` of Anthropic, at most 64
    # characters of OpenAI.
    if target.call_id is None:
        return messages
    matches = re.compile(target.call_id).fullmatch
    if all(map(matches, [call.id for call in scan_of(messages, edits).calls])):
        return messages
    pairs = pairs_of(messages, target, edits)
    mapped = map_call_ids((call.id for call in pairs.calls.values()), target.call_id)
    renamed: dict[Spot, str] = {}
    for spot, call in pairs.calls.items():
        if mapped[call.id] != call.id and not is_own(messages[spot[0]], target):
            renamed[spot] = mapped[call.id]
            edits.change("call_id_mapped", call, id=call.id[:80], sent=mapped[call.id])
    return _rename(messages, renamed, pairs.result_of, edits)


def _rename(
    messages: Messages, renamed: dict[Spot, str], result_of: dict[Spot, Spot], edits: Edits
) -> Messages:
    """The history with other ids of these tool calls and their results."""
    parts: dict[Spot, Part] = {}
    for call, name in renamed.items():
        spot = result_of.get(call)
        parts[call] = with_fields(messages[call[0]].content[call[1]], edits, id=name)
        if spot is not None and isinstance(
            result := messages[spot[0]].content[spot[1]], ToolResult
        ):
            parts[spot] = with_fields(result, edits, tool_call_id=name)
    return swap(messages, parts, edits) if parts else messages


def call_functions(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Tool calls of custom tools, searches and namespaces become calls of functions."""
    # Free-text tools, namespaces and searches that the client runs are types of OpenAI's tools
    # only. `tool_forms` declares such tools as functions; both take the names from `tool_names`.
    if target.namespaces and len(target.tool_types) == len(get_args(ToolType)):
        return messages

    def change(part: Part, _: Message) -> Part:
        if not isinstance(part, ToolCall):
            return part
        changes: dict[str, object] = {}
        if part.namespace is not None and not target.namespaces:
            key = (part.namespace, part.name)
            name = target.tool_names.get(key) or flat_name(*key)
            changes |= {"name": name, "namespace": None}
            if name != part.name:
                edits.change("namespace_as_name", part, tool=part.name, sent=name)
        if part.type not in target.tool_types:
            changes["type"] = "function"
            if part.type == "custom":
                changes |= {"arguments": input_object(part), "raw_arguments": None}
        return with_fields(part, edits, **changes) if changes else part

    return edit_parts(messages, change, edits, _CALLS)


def rename_tools(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Tool names that the target rejects are replaced. A model may have made one up."""
    # Seen in recordings of Gemini: «Model tried to call an undeclared function: list_files». A name
    # that does not match fails the whole request, in an old turn too. Anthropic: «String should
    # match pattern '^[a-zA-Z0-9_-]{1,128}$'».
    if target.call_name is None:
        return messages
    matches = re.compile(target.call_name).fullmatch
    if all(map(matches, {call.name for call in scan_of(messages, edits).calls})):
        return messages

    def rename(part: Part, _: Message) -> Part:
        if not isinstance(part, ToolCall) or matches(part.name):
            return part
        clean = _unusual("_", part.name).strip("_") or _NAMELESS
        name = next((name for name in (clean, clean[:64], _NAMELESS) if matches(name)), part.name)
        if name == part.name:
            return part
        edits.change("tool_name_mapped", part, name=part.name[:80], sent=name)
        return with_fields(part, edits, name=name)

    return edit_parts(messages, rename, edits, _CALLS)


def wrap_arguments(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Argument text that is not a JSON object is put into one, under `input`."""
    # OpenAI keeps the text: «the model does not always generate valid JSON» (the SDK's docstring of
    # `arguments`). `ToolUseBlockParam.input` of Anthropic and `FunctionCall.args` of Gemini are
    # objects.
    if not target.valid_arguments:
        return messages
    if all(map(_is_object, scan_of(messages, edits).calls)):
        return messages

    def wrap(part: Part, _: Message) -> Part:
        if not isinstance(part, ToolCall) or _is_object(part):
            return part
        edits.change("arguments_wrapped", part)
        arguments = part.arguments or {"input": part.raw_arguments}
        return with_fields(part, edits, arguments=arguments, raw_arguments=None)

    return edit_parts(messages, wrap, edits, _CALLS)


def _is_object(call: ToolCall) -> bool:
    """Whether the arguments are an object: `is_valid`, by a faster reader."""
    raw = call.raw_arguments
    return raw is None or call.type == "custom" or loads_object(raw) is not None


def put_calls_last(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Tool calls follow the other parts of their message."""
    # In Chat Completions `tool_calls` is a field beside the content, which has no place among its
    # parts; a text after a tool call would come back before it.
    if not target.calls_last:
        return messages

    def put_last(message: Message) -> Message:
        parts = _with_calls_last(message.content)
        if is_unchanged(parts, message.content):
            return message
        edits.change("calls_put_last", message)
        return with_parts(message, parts, edits)

    return edit(messages, put_last, _CALLS)


def _with_calls_last(parts: tuple[Part, ...]) -> list[Part]:
    """The other parts, the tool calls, then the results of these calls, which must follow them."""
    others: list[Part] = []
    calls: list[Part] = []
    results: list[Part] = []
    ids: set[str] = set()
    for part in parts:
        if isinstance(part, ToolCall):
            ids.add(part.id)
            calls.append(part)
        elif isinstance(part, ToolResult) and part.tool_call_id in ids:
            results.append(part)
        else:
            others.append(part)
    return [*others, *calls, *results]


# The mapping of call ids.

_ALPHABETS = (  # the largest first; the last is for hexadecimal ids
    *(digits + ascii_uppercase + ascii_lowercase, digits + ascii_lowercase),
    *(digits + ascii_uppercase, ascii_lowercase, ascii_uppercase, digits, "0123456789abcdef"),
)
_DIGEST_LETTERS = 40  # a digest has 43 letters of the largest alphabet, and more of the others
_MOST_TRIES = 100
_not_in_ids = re.compile(r"[^A-Za-z0-9_-]").sub


def map_call_id(call_id: str, pattern: str) -> str:
    """
    The id itself if all of it matches the pattern, else one made from it that does.

    Equal ids give equal ids; different ids give different ones, unless their digests clash.
    """
    return call_id if re.fullmatch(pattern, call_id) else _make(call_id, pattern)


def map_call_ids(call_ids: Iterable[str], pattern: str) -> dict[str, str]:
    """Each id with the one that matches the pattern; no two get the same."""
    mapped: dict[str, str] = {}
    used: set[str] = set()
    for call_id in dict.fromkeys(call_ids):
        wire_id = map_call_id(call_id, pattern)
        tries = 0
        while wire_id in used:
            tries += 1
            if tries > _MOST_TRIES:
                raise ConfigurationError(f"Too few call ids match {pattern!r}.")
            wire_id = _make(f"{call_id}\0{tries}", pattern)
        mapped[call_id] = wire_id
        used.add(wire_id)
    return mapped


def _make(call_id: str, pattern: str) -> str:
    for candidate in _candidates(call_id):
        if re.fullmatch(pattern, candidate):
            return candidate
    raise ConfigurationError(f"No call id of letters and digits matches {pattern!r}.")


def _candidates(call_id: str) -> Iterator[str]:
    """Ids that a pattern may match, readable ones first; each ends in a digest of the id."""
    digest = _digest(call_id, _ALPHABETS[0])
    readable = _not_in_ids("_", call_id)[:40].strip("_") or "call"
    yield f"{readable}_{digest[:12]}"
    yield f"call_{digest[:24]}"
    digests = [_digest(call_id, alphabet) for alphabet in _ALPHABETS]
    for length in range(_DIGEST_LETTERS, 0, -1):  # longest first: short ids clash
        for digest in digests:
            yield digest[:length]
            yield f"call_{digest[:length]}"


def _digest(text: str, alphabet: str) -> str:
    rest = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")
    letters: list[str] = []
    for _ in range(_DIGEST_LETTERS):
        rest, letter = divmod(rest, len(alphabet))
        letters.append(alphabet[letter])
    return "".join(letters)
