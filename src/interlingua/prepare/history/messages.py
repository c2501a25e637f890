"""Repairs of messages and their texts: nothing blank, broken, foreign or out of its role."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from interlingua.prepare.history.edit import (
    Edits,
    Messages,
    Spot,
    cut,
    edit,
    edit_parts,
    is_unchanged,
    with_fields,
    with_parts,
)
from interlingua.prepare.history.results import join
from interlingua.spec.content import Document, Opaque, Part, Refusal, Text, ToolCall, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message, Role
from interlingua.wire.fields import extra_of
from interlingua.wire.json_text import dump_text

PLACEHOLDER = "(no content)"
PROMPTS = ("system", "developer")
"""The roles of instructions."""
_USERS = ("user", "tool")
_pairs = re.compile("[\ud800-\udbff][\udc00-\udfff]").sub
_halves = re.compile("[\ud800-\udfff]").sub


# Lone surrogates.


def clean_surrogates(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Half a surrogate pair is no character: U+FFFD takes its place. Two halves are one again."""
    if target.lone_surrogates or all(
        map(_is_clean, (part for message in messages for part in message.content))
    ):
        return messages

    def clean(part: Part, _: Message) -> Part:
        fields = _broken_fields(part)
        if not fields:
            return part
        edits.change("surrogates_replaced", part)
        return with_fields(part, edits, **fields)

    return edit_parts(messages, clean, edits)


def _is_clean(part: Part) -> bool:
    if type(part) is Text:  # most are, and most of those are ASCII
        return part.text.isascii() or _is_whole(part.text)
    return not _broken_fields(part)


def _broken_fields(part: Part) -> dict[str, Any]:
    """The fields that hold lone surrogates, as they should be."""
    if isinstance(part, (Text, Refusal)):
        return {} if _is_whole(part.text) else {"text": _whole(part.text)}
    if isinstance(part, Document):
        return {} if part.text is None or _is_whole(part.text) else {"text": _whole(part.text)}
    if isinstance(part, ToolResult):
        return _broken_content(part)
    return _broken_arguments(part) if isinstance(part, ToolCall) else {}


def _broken_content(result: ToolResult) -> dict[str, Any]:
    content = result.content
    if result.parts is None:
        return {} if _is_whole(content) else {"content": _whole(content)}
    broken = [_broken_fields(part) for part in result.parts]
    if not any(broken):
        return {}
    return {
        "content": tuple(
            msgspec.structs.replace(part, **fields) if fields else part
            for part, fields in zip(result.parts, broken, strict=True)
        )
    }


def _broken_arguments(call: ToolCall) -> dict[str, Any]:
    raw = call.raw_arguments
    fields: dict[str, Any] = {}
    if not _is_whole(call.arguments):
        fields["arguments"] = _whole(call.arguments)
        # the text may hold them as escapes, which no cleaning of the text would find
        fields["raw_arguments"] = None if raw is None else dump_text(fields["arguments"])
    elif raw is not None and not _is_whole(raw):
        fields["raw_arguments"] = _whole(raw)
    return fields


def _is_whole(value: Any) -> bool:
    if isinstance(value, str) and value.isascii():
        return True
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return True  # no JSON for another reason, which the encoder will tell
    return True


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        joined = _pairs(
            lambda found: found[0].encode("utf-16", "surrogatepass").decode("utf-16"), value
        )
        return _halves("\N{REPLACEMENT CHARACTER}", joined)
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, (list, tuple)) else value


# Blank texts.


def drop_blank_texts(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Blank texts are left out, though their message be empty then."""
    if target.empty_text or not any(map(_has_blanks, messages)):
        return messages
    first = end_of_prompts(messages)  # which have a rule of their own
    edited = [_clean(message, edits) for message in messages[first:]]
    return messages if is_unchanged(edited, messages[first:]) else (*messages[:first], *edited)


def end_of_prompts(messages: Messages) -> int:
    """The first message that is no system prompt."""
    first = 0
    while first < len(messages) and messages[first].role in PROMPTS:
        first += 1
    return first


def _clean(message: Message, edits: Edits) -> Message:
    kept: list[Part] = []
    for part in message.content:
        if is_blank(part):
            edits.change("blank_text_dropped", part)
        else:
            kept.append(_with_content(part, edits))
    is_same = is_unchanged(kept, message.content)
    return message if is_same else with_parts(message, kept, edits)


def _has_blanks(message: Message) -> bool:
    for part in message.content:
        kind = type(part)
        if kind is Text or kind is Refusal:
            if is_blank(part):
                return True
        elif isinstance(part, ToolResult) and _lacks_content(part):
            return True
    return False


def _lacks_content(result: ToolResult) -> bool:
    """Whether it has blank texts, or tells a failure without a word."""
    parts = result.parts
    return bool(parts and any(map(is_blank, parts))) or (
        result.is_error and result.content in ("", ())
    )


def is_blank(part: Part) -> bool:
    """Whether it is text without a visible character."""
    return isinstance(part, (Text, Refusal)) and (not part.text or part.text.isspace())


def _with_content(part: Part, edits: Edits) -> Part:
    """A result without blank texts, and with some content if it tells a failure."""
    if not isinstance(part, ToolResult) or not _lacks_content(part):
        return part
    content = part.content
    if part.parts and any(map(is_blank, part.parts)):
        content = tuple(inner for inner in part.parts if not is_blank(inner))
        edits.change("blank_text_dropped", part)
    if part.is_error and content in ("", ()):
        content = PLACEHOLDER
        _warn_of_placeholder(part, "content in a failed result", edits)
    return with_fields(part, edits, content=content)


def drop_empty_messages(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Messages without content are left out, unless the target's own marks say more.

    The last word stays the user's: if it is empty, it gets a placeholder.
    """
    if target.empty_messages or all(message.content for message in messages):
        return messages
    first = end_of_prompts(messages) if target.empty_prompt else 0
    empty = {
        i
        for i, message in enumerate(messages)
        if i >= first and not (message.content or extra_of(message, target.dialect))
    }
    last = _last_word(messages, empty)
    edited: list[Message] = []
    for i, message in enumerate(messages):
        if i not in empty:
            edited.append(message)
        elif i != last:
            edits.change("empty_message_dropped", message)
        else:
            _warn_of_placeholder(message, "content in the last message", edits)
            text = Text(text=PLACEHOLDER)
            edited.append(with_fields(message, edits, role="user", content=(text,)))
    return messages if is_unchanged(edited, messages) else tuple(edited)


def _last_word(messages: Messages, empty: set[int]) -> int | None:
    """The empty message without which the history would not end with the user."""
    found: int | None = None
    for i in range(len(messages) - 1, -1, -1):
        is_user = messages[i].role in _USERS
        if i not in empty and messages[i].role not in PROMPTS:
            return None if is_user else found
        if is_user and found is None:
            found = i
    return found


def _warn_of_placeholder(at: Message | Part, requirement: str, edits: Edits) -> None:
    edits.change("placeholder_added", at, requirement=requirement, text=PLACEHOLDER)


def drop_blank_prompts(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Of several system prompts, the blank ones are left out.

    One alone is sent as an empty string, which is accepted.
    """
    first = end_of_prompts(messages)
    if target.empty_text or first == 0 or (first == 1 and len(messages[0].content) <= 1):
        return messages
    prompts = messages[:first]
    cleaned = [_clean(message, edits) for message in prompts]
    if is_unchanged(cleaned, prompts) and all(message.content for message in prompts):
        return messages
    for message in prompts:
        if not message.content:
            edits.change("empty_message_dropped", message)
    return (*(message for message in cleaned if message.content), *messages[first:])


def begin_conversation(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """There is something left to answer, if there was something at all."""
    is_turn = end_of_prompts(messages) < len(messages)
    is_enough = is_turn or target.least == "nothing" or (messages and target.least == "message")
    if is_enough or target.stored or not edits.history:
        return messages
    edits.add("placeholder_added", requirement="a message to answer", text=PLACEHOLDER)
    return (*messages, Message.user(PLACEHOLDER))


def accompany_documents(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """A document stands beside some text."""
    if target.lone_documents:
        return messages

    def accompany(message: Message) -> Message:
        has_document = any(isinstance(part, Document) for part in message.content)
        if not has_document or any(isinstance(part, Text) for part in message.content):
            return message
        _warn_of_placeholder(message, "text beside a document", edits)
        return with_parts(message, [*message.content, Text(text=PLACEHOLDER)], edits)

    return edit(messages, accompany)


def drop_foreign_blocks(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Opaque blocks mean something only to the dialect they came from."""
    if target.foreign_blocks:
        return messages
    foreign: list[Spot] = []
    for i, message in enumerate(messages):
        for k, part in enumerate(message.content):
            if isinstance(part, Opaque) and part.dialect != target.dialect:
                foreign.append((i, k))
                edits.change("foreign_block_dropped", part, owner=part.dialect)
    return cut(messages, foreign, target, edits)


# Roles.


def fold_system(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    A system message within the conversation is said by the user, in its place.

    It joins the user's message that follows or comes before, if there is one.
    """
    if target.inline_system:
        return messages
    first = end_of_prompts(messages)
    if not any(message.role in PROMPTS for message in messages[first:]):
        return messages
    edited = list(messages[:first])
    folded: list[Part] = []
    for message in messages[first:]:
        if message.role in PROMPTS:
            edits.change("system_folded", message, role=message.role)
            folded += message.content
            continue
        is_results = any(isinstance(part, ToolResult) for part in message.content)
        if folded and message.role == "user" and not is_results:
            message = with_parts(message, [*folded, *message.content], edits)  # noqa: PLW2901
        elif folded:
            _append(folded, edited, first, edits)
        folded = []
        edited.append(message)
    _append(folded, edited, first, edits)
    return tuple(edited)


def _append(folded: list[Part], edited: list[Message], first: int, edits: Edits) -> None:
    if folded and len(edited) > first and edited[-1].role == "user":
        edited[-1] = with_parts(edited[-1], [*edited[-1].content, *folded], edits)
    elif folded:
        edited.append(Message(role="user", content=tuple(folded)))


def merge_roles(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Consecutive messages of one role are one message."""
    if not target.merge_roles:
        return messages
    runs: list[list[Message]] = []
    for message in messages:
        if runs and _wire_role(runs[-1][0], target) == _wire_role(message, target):
            runs[-1].append(message)
        else:
            runs.append([message])
    if len(runs) == len(messages):
        return messages
    for run in runs:
        for message in run[1:]:
            edits.change("messages_merged", message)
    return tuple(run[0] if len(run) == 1 else join(run, edits) for run in runs)


def _wire_role(message: Message, target: HistoryRules) -> Role:
    if message.role == "tool" and target.results_as_user:
        return "user"
    return "system" if message.role == "developer" else message.role


def drop_oldest_turns(messages: tuple[Message, ...], keep: float = 0.5) -> tuple[Message, ...]:
    """
    The instructions, and the later turns: about that share of them, one at least.

    A turn begins with words of the user, so that calls and their results go or stay together.
    The same history if it is one turn: what is asked cannot be left out.
    """
    begin = end_of_prompts(messages)
    turns = [at for at in range(begin, len(messages)) if _begins_turn(messages[at])]
    if len(turns) < 2:
        return messages
    kept = max(1, int(len(turns) * keep))
    return messages[:begin] + messages[turns[-kept] :]


def _begins_turn(message: Message) -> bool:
    return message.role == "user" and not any(
        isinstance(part, ToolResult) for part in message.content
    )
