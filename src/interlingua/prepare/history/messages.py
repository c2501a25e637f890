"""Repairs of messages and texts: invalid Unicode, blanks, foreign blocks, roles, old turns."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import assert_never

import msgspec

from interlingua.prepare.history.edit import (
    Edits,
    Spot,
    cut,
    edit,
    edit_parts,
    is_unchanged,
    with_fields,
    with_parts,
)
from interlingua.prepare.history.results import join
from interlingua.prepare.history.scan import PROMPTS, Messages, begins_with_model
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UncheckedJson,
)
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message, Role
from interlingua.spec.response import RAW_FINISH_REASON
from interlingua.wire.fields import extra_of
from interlingua.wire.json_text import dump_text

PLACEHOLDER = "(no content)"
CONTINUE = "Continue your last message exactly where it ends."
_USERS = ("user", "tool")
_DOCUMENTS = frozenset((Document,))
_pairs = re.compile("[\ud800-\udbff][\udc00-\udfff]").sub
_halves = re.compile("[\ud800-\udfff]").sub


# Lone surrogates.


def clean_surrogates(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """A lone surrogate becomes U+FFFD, and two halves of a pair become one character."""
    # JSON is exchanged in UTF-8, in which a lone surrogate cannot be written
    # (https://www.rfc-editor.org/rfc/rfc8259#section-8.1). As an escape Anthropic refuses it too:
    # «The request body is not valid JSON: no low surrogate in string». Texts that were cut in the
    # middle of an emoji have them.
    if target.lone_surrogates:
        return messages

    def clean(part: Part, _: Message) -> Part:
        fields = _clean_fields(part)
        if not fields:
            return part
        edits.change("surrogates_replaced", part)
        return with_fields(part, edits, **fields)

    return edit_parts(messages, clean, edits)


def _clean_fields(part: Part) -> dict[str, object]:
    """The fields of a part that hold lone surrogates, cleaned."""
    if isinstance(part, (Text, Refusal, Document)):
        return {} if _is_valid(part.text) else {"text": _cleaned(part.text)}
    if isinstance(part, ToolResult):
        return _clean_content(part)
    if isinstance(part, ToolCall):
        return _clean_arguments(part)
    if isinstance(part, (Image, Audio, Thinking, Opaque)):
        return {}
    assert_never(part)


def _clean_content(result: ToolResult) -> dict[str, object]:
    content = result.content
    if result.parts is None:
        return {} if _is_valid(content) else {"content": _cleaned(content)}
    changes = [_clean_fields(part) for part in result.parts]
    if not any(changes):
        return {}
    return {
        "content": tuple(
            msgspec.structs.replace(part, **fields) if fields else part
            for part, fields in zip(result.parts, changes, strict=True)
        )
    }


def _clean_arguments(call: ToolCall) -> dict[str, object]:
    raw = call.raw_arguments
    fields: dict[str, object] = {}
    if not _is_valid(call.arguments):
        fields["arguments"] = _cleaned(call.arguments)
        # The raw text may hold surrogates as escapes, so it is written anew.
        fields["raw_arguments"] = None if raw is None else dump_text(fields["arguments"])
    elif raw is not None and not _is_valid(raw):
        fields["raw_arguments"] = _cleaned(raw)
    return fields


def _is_valid(value: object) -> bool:
    """Whether all its text is valid Unicode."""
    if isinstance(value, str) and value.isascii():
        return True
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return True  # not JSON for another reason, which the encoder will report
    return True


def _cleaned(value: UncheckedJson) -> UncheckedJson:
    if isinstance(value, str):
        joined = _pairs(
            lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), value
        )
        return _halves("\N{REPLACEMENT CHARACTER}", joined)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, (list, tuple)) else value


# Blank texts.


def drop_blank_texts(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Blank texts are dropped, except the blank texts that the target itself wrote.

    A message left empty stays: another rule handles it.
    """
    # Anthropic: «text content blocks must be non-empty», «text content blocks must contain
    # non-whitespace text».
    if target.empty_text:
        return messages
    first = end_of_prompts(messages)  # prompts have a rule of their own
    edited = [_without_blanks(message, target, edits) for message in messages[first:]]
    return messages if is_unchanged(edited, messages[first:]) else (*messages[:first], *edited)


def end_of_prompts(messages: Messages) -> int:
    """The index of the first message that is not a system prompt."""
    first = 0
    while first < len(messages) and messages[first].role in PROMPTS:
        first += 1
    return first


def _without_blanks(message: Message, target: HistoryRules, edits: Edits) -> Message:
    parts: list[Part] = []
    is_model = message.role == "assistant"
    for part in message.content:
        # Seen in recordings: Gemini puts the signature of a thought on an empty text, which must go
        # back.
        if is_blank(part) and not (is_model and target.dialect in part.extra):
            edits.change("blank_text_dropped", part)
        else:
            parts.append(_with_content(part, edits) if isinstance(part, ToolResult) else part)
    return message if is_unchanged(parts, message.content) else with_parts(message, parts, edits)


def is_blank(part: Part) -> bool:
    """Whether it is text without a visible character."""
    return isinstance(part, (Text, Refusal)) and (not part.text or part.text.isspace())


def _with_content(result: ToolResult, edits: Edits) -> ToolResult:
    """A result without blank texts, and with a placeholder if it failed without any content."""
    # Anthropic: «tool_result: content cannot be empty if `is_error` is true»
    # (https://github.com/jlevy/markform/issues/153).
    content = result.content
    if result.parts and any(map(is_blank, result.parts)):
        content = tuple(inner for inner in result.parts if not is_blank(inner))
        edits.change("blank_text_dropped", result)
    if result.is_error and content in ("", ()):
        content = PLACEHOLDER
        _warn_of_placeholder(result, "content in a failed result", edits)
    return result if content is result.content else with_fields(result, edits, content=content)


def drop_empty_messages(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Messages without content are dropped, unless they carry fields of the target's own.

    The history still ends with the user: an empty last message gets a placeholder.
    """
    # Seen in recordings of Anthropic: «messages.0: all messages must have non-empty content except
    # for the optional final assistant message». Gemini: «contents.parts must not be empty».
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
    """The empty message that the history needs in order to end with the user."""
    # Seen in recordings of Anthropic: «The conversation must end with a user message.»
    last: int | None = None
    for i in range(len(messages) - 1, -1, -1):
        is_user = messages[i].role in _USERS
        if i not in empty and messages[i].role not in PROMPTS:
            return None if is_user else last
        if is_user and last is None:
            last = i
    return last


def _warn_of_placeholder(at: Message | Part, requirement: str, edits: Edits) -> None:
    edits.change("placeholder_added", at, requirement=requirement, text=PLACEHOLDER)


def drop_blank_prompts(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Blank system prompts are left out, unless they carry fields of the target's own.

    Where the target accepts blank prompts, a single blank prompt stays.
    """
    # Anthropic takes `system` as text blocks, and «text content blocks must be non-empty».
    first = end_of_prompts(messages)
    is_single = first == 1 and len(messages[0].content) <= 1
    if target.blank_prompts and (target.empty_text or is_single):
        return messages
    rest: list[Message] = []
    for message in messages[:first]:
        if all(map(is_blank, message.content)) and not extra_of(message, target.dialect):
            edits.change("empty_message_dropped", message)
        else:
            rest.append(message if target.empty_text else _without_blanks(message, target, edits))
    return messages if is_unchanged(rest, messages[:first]) else (*rest, *messages[first:])


def join_prompts(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Several leading system prompts become one, with a blank line between them."""
    # Chat templates of Qwen and Gemma on vLLM and llama.cpp take one system message: «System
    # message must be at the beginning.» (https://github.com/vllm-project/vllm/issues/41114)
    first = end_of_prompts(messages)
    if not target.single_system or first < 2:
        return messages
    parts = [part for message in messages[:first] for part in message.content]
    for message in messages[1:first]:
        edits.change("messages_merged", message)
    if all(isinstance(part, Text) for part in parts):
        text = "\n\n".join(part.text for part in parts if isinstance(part, Text))
        parts = [edits.place_like(Text(text=text), parts[0])]
    return (with_parts(messages[0], parts, edits), *messages[first:])


def begin_conversation(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """A history that was not empty still has a message to answer."""
    # Anthropic: «messages: at least one message is required», without `system`; Gemini: «contents
    # is not specified». A request that had no messages at all is the caller's, and stays.
    is_turn = end_of_prompts(messages) < len(messages)
    is_enough = is_turn or target.least == "nothing" or (messages and target.least == "message")
    if is_enough or target.stored or not edits.history:
        return messages
    edits.add("placeholder_added", requirement="a message to answer", text=PLACEHOLDER)
    return (*messages, Message.user(PLACEHOLDER))


def begin_with_user(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """A conversation that the model opens gets a user message before it."""
    # Bedrock's Converse: «A conversation must start with a user message. Try again with a
    # conversation that starts with a user message.»
    if not target.user_first or not begins_with_model(messages):
        return messages
    first = end_of_prompts(messages)
    edits.change("user_turn_added", messages[first], text=PLACEHOLDER)
    return (*messages[:first], Message.user(PLACEHOLDER), *messages[first:])


def accompany_documents(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """A message with a document needs some text."""
    # Bedrock's Converse: «If you include a ContentBlock with a document field in the array, you
    # must also include a ContentBlock with a text field»
    # (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html).
    if target.lone_documents:
        return messages

    def accompany(message: Message) -> Message:
        has_document = any(isinstance(part, Document) for part in message.content)
        if not has_document or any(isinstance(part, Text) for part in message.content):
            return message
        _warn_of_placeholder(message, "text beside a document", edits)
        return with_parts(message, [*message.content, Text(text=PLACEHOLDER)], edits)

    return edit(messages, accompany, _DOCUMENTS)


def drop_foreign_blocks(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Opaque blocks of other dialects are dropped: only the dialect of a block understands it."""
    # `ContentBlockParam` of Anthropic is a closed union, OpenAI refuses items of unknown types, and
    # a part of Gemini must have «one initialized field»: one such block fails the whole request.
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
    A system message within the conversation becomes user text in the same place.

    Where the target accepts no system messages at all, so does a leading one.
    It joins the user message that follows or precedes it, if there is one.
    """
    # Seen in recordings of Gemini: «Please use a valid role: user, model.» Among the leading
    # prompts it would apply to turns that came before it, so it keeps its place.
    if target.system and target.inline_system:
        return messages
    first = end_of_prompts(messages) if target.system else 0
    if not any(message.role in PROMPTS for message in messages[first:]):
        return messages
    edited = list(messages[:first])
    folded: list[Part] = []
    for message in messages[first:]:
        if message.role in PROMPTS:
            edits.change("system_folded", message, role=message.role)
            folded += [part for part in message.content if not is_blank(part)]
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


def ask_to_continue(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Where the target cannot continue text of the model at the end, a user message asks it to.

    A turn that the provider paused is sent as it is: it ends with blocks of the provider, or its
    metadata says so.
    """
    # Seen in recordings of Anthropic: «This model does not support assistant message prefill.» See
    # https://platform.claude.com/docs/en/api/errors#prefill-not-supported
    if target.prefill or not messages or messages[-1].role != "assistant":
        return messages
    parts = messages[-1].content
    if not parts or type(parts[-1]) is not Text or any(type(part) is Opaque for part in parts):
        return messages
    if messages[-1].metadata.get(RAW_FINISH_REASON) in target.paused:
        return messages
    edits.add("prefill_replaced", path="messages")  # of this turn, so that the loss is refused
    return (*messages, Message.user(CONTINUE))


def merge_roles(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """
    Consecutive messages of one role become one message; leading prompts stay as they are.

    Results, and what the user says after them, have one role for some targets: one message with
    both is their usual form, of which no warning tells.
    """
    # Some chat templates raise an error otherwise: «Conversation roles must alternate
    # user/assistant/user/assistant/...»
    # (https://github.com/suitenumerique/conversations/issues/197). Bedrock's Converse: «A
    # conversation must alternate between user and assistant roles.»
    if not target.merge_roles:
        return messages
    first = end_of_prompts(messages)  # `join_prompts` is about those before
    runs: list[list[Message]] = []
    for message in messages[first:]:
        if runs and _wire_role(runs[-1][0], target) == _wire_role(message, target):
            runs[-1].append(message)
        else:
            runs.append([message])
    if len(runs) == len(messages) - first:
        return messages
    for run in runs:
        _warn_of_merging(run, edits)
    merged = (run[0] if len(run) == 1 else join(run, edits) for run in runs)
    return (*messages[:first], *merged)


def _warn_of_merging(run: list[Message], edits: Edits) -> None:
    for before, message in pairwise(run):
        if (before.role, message.role) != ("tool", "user"):
            edits.change("messages_merged", message)
    if len({message.name for message in run}) > 1:  # `join` keeps a name that all have
        for message in run:
            place = edits.place(message)
            if message.name is not None and place is not None:
                edits.add("name_dropped", f"{place}.name")


def _wire_role(message: Message, target: HistoryRules) -> Role:
    # A target that has no role for results takes them as the user's, beside other user text.
    if message.role == "tool" and target.results_as_user:
        return "user"
    return "system" if message.role == "developer" else message.role


def droppable_units(messages: tuple[Message, ...]) -> list[range]:
    """
    What may be left out of a history that is too long, oldest first, as ranges of its messages.

    First come whole turns: a turn begins with a user message that is not a result. Then come the
    complete tool rounds of the last turn, but not its last round. So the instructions, what is
    asked and the latest round stay, and no call is separated from its result.
    """
    # Every vendor refuses a tool call without its result, and the reverse: `answer_calls` and
    # `drop_orphan_results` quote the errors.
    begin = end_of_prompts(messages)
    turns = [at for at in range(begin, len(messages)) if _begins_turn(messages[at])]
    bounds = [begin, *turns[1:]]  # what comes before the first turn goes with it
    units = [range(*pair) for pair in pairwise(bounds)]
    last = turns[-1] if turns else begin
    answers = [at for at in range(last, len(messages)) if messages[at].role == "assistant"]
    rounds = [range(*pair) for pair in pairwise(answers)]
    return units + [span for span in rounds if _is_round(messages[span.start : span.stop])]


def _is_round(messages: tuple[Message, ...]) -> bool:
    """Whether the messages are tool calls and a result for each tool call."""
    parts = [part for message in messages[1:] for part in message.content]
    answered = [part.tool_call_id for part in parts if isinstance(part, ToolResult)]
    calls = [call.id for call in messages[0].tool_calls]
    return bool(calls) and sorted(calls) == sorted(answered)


def _begins_turn(message: Message) -> bool:
    return message.role == "user" and not any(
        isinstance(part, ToolResult) for part in message.content
    )
