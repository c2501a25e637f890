"""Repairs of thinking: only its maker gets it back, whole, signed and followed by a part."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from interlingua.prepare.history.edit import (
    Edits,
    Spot,
    edit,
    edit_parts,
    is_unchanged,
    swap,
    unbind,
    with_fields,
    with_parts,
)
from interlingua.prepare.history.results import pairs_of
from interlingua.prepare.history.scan import Messages
from interlingua.spec.content import (
    MEDIA_TYPES,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message
from interlingua.wire.fields import extra_of
from interlingua.wire.json_text import dump_text
from interlingua.wire.seal import has_seal, without_seal

_THINKING = frozenset((Thinking,))
_dated = re.compile(r"[-@](\d{4}-?\d{2}-?\d{2}|latest)$").sub


class _Codes(NamedTuple):
    """The codes for thinking that is dropped, and for thinking that is sent as text."""

    dropped: str
    as_text: str


_STALE = _Codes("stale_thinking_dropped", "stale_thinking_as_text")
_FOREIGN = _Codes("foreign_thinking_dropped", "foreign_thinking_as_text")
_UNSIGNED = _Codes("unsigned_thinking_dropped", "unsigned_thinking_as_text")


class _Loss(NamedTuple):
    """Which thinking is lost, and why."""

    codes: _Codes
    reason: str
    is_lost: Callable[[Thinking], bool]
    with_signatures: bool = False
    """Whether signatures on other parts are lost too."""


def drop_stale_thinking(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Thinking and signatures of another model, where only that model accepts them."""
    if not (target.thinking_per_model and target.model):
        return messages

    def is_own(part: Thinking) -> bool:
        return is_native(part, target)  # thinking of other dialects has a rule of its own

    def settle(message: Message) -> Message | None:
        if message.role != "assistant" or not message.metadata:
            return message
        model = message.metadata.get("model")
        if not isinstance(model, str) or _is_same_model(model, target.model):
            return message
        why = f"{target.model} accepts only its own thinking, and this is of {model}"
        loss = _Loss(_STALE, why, is_own, with_signatures=True)
        return _settle(message, loss, target, edits)

    return edit(messages, settle)


def _is_same_model(left: str, right: str) -> bool:
    """Whether two names are equal apart from a date and the host's name."""
    names = [_dated("", name.lower()).rpartition("/")[2] for name in (left, right)]
    return names[0] == names[1]


def drop_seals(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:  # noqa: ARG001
    """Sealed state that was not unsealed: no provider can read it."""

    def drop(part: Part, _: Message) -> Part | None:
        if not has_seal(part):
            return part
        edits.change("seal_dropped", part, reason="It was not unsealed")
        rest = without_seal(part)
        return rest if rest is None else edits.place_like(rest, part)

    return edit_parts(messages, drop, edits)


def drop_foreign_thinking(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Thinking that the target did not make, or all of it where the target accepts none."""
    if target.thinking == "any":
        return messages
    takes_none = target.thinking == "none"
    why = f"{edits.target} accepts {'no' if takes_none else 'only its own'} thinking"
    loss = _Loss(_FOREIGN, why, lambda part: takes_none or not is_native(part, target))
    of_others = _Loss(_FOREIGN, "Only an assistant message may hold thinking", lambda _: True)

    def settle(message: Message) -> Message | None:
        reason = loss if message.role == "assistant" else of_others
        return _settle(message, reason, target, edits)

    return edit(messages, settle, _THINKING)


def is_native(part: Thinking, target: HistoryRules) -> bool:
    """Whether the target's dialect made the thinking; without a mark, its form decides."""
    if part.extra:
        return target.dialect in part.extra
    return _form(part) in target.unmarked_thinking


def _form(part: Thinking) -> str:
    if part.redacted:
        return "redacted"
    if part.signature:
        return "signed"
    return "encrypted" if part.data else "plain"


def drop_unsigned_thinking(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Thoughts without the signature that was to come, as a broken stream leaves them."""
    if not target.signed_thinking:
        return messages

    loss = _Loss(
        _UNSIGNED,
        f"{edits.target} requires signed thinking, and this has no signature",
        lambda part: not (part.redacted or part.signature),
    )
    return edit(messages, lambda message: _settle(message, loss, target, edits), _THINKING)


def drop_bare_thinking(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """References to thinking that the server was asked not to store."""
    if target.bare_thinking:
        return messages

    def is_bare(part: Thinking) -> bool:
        plain = extra_of(part, target.dialect).get(target.thinking_content)
        return not (part.data or part.signature or plain)

    why = f"{edits.target} stores no answers, and this thinking is without its content"
    loss = _Loss(_UNSIGNED, why, is_bare)
    return edit(messages, lambda message: _settle(message, loss, target, edits), _THINKING)


def _settle(message: Message, loss: _Loss, target: HistoryRules, edits: Edits) -> Message | None:
    """The message with lost thinking dropped or sent as text, and the parts bound to it freed."""
    lost = [part for part in message.content if type(part) is Thinking and loss.is_lost(part)]
    if not lost and not loss.with_signatures:
        return message
    parts: list[Part] = []
    for part in message.content:
        if isinstance(part, Thinking) and loss.is_lost(part):
            parts += _as_text(part, loss, edits)
        else:
            parts.append(part)
    if loss.with_signatures or any(target.dialect in part.extra for part in lost):
        free = [_free(part, target, edits) for part in parts]
        if not (lost or is_unchanged(free, parts)):
            edits.change("stale_signatures_dropped", message, reason=loss.reason)
        parts = free
    if is_unchanged(parts, message.content):
        return message
    return with_parts(message, parts, edits) if parts else None


def _as_text(part: Thinking, loss: _Loss, edits: Edits) -> list[Part]:
    if edits.policy.foreign_thinking == "text" and part.text.strip() and not part.redacted:
        edits.change(loss.codes.as_text, part, reason=loss.reason)
        return [edits.place_like(Text(text=part.text), part)]
    edits.change(loss.codes.dropped, part, reason=loss.reason)
    return []


def _free(part: Part, target: HistoryRules, edits: Edits) -> Part:
    signature = extra_of(part, target.dialect).get(target.signature_field)
    is_stand_in = signature is not None and signature == target.unchecked_signature
    return part if is_stand_in else unbind(part, target, edits)


def drop_trailing_thinking(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Thinking at the end of a turn, which nothing follows."""
    if target.trailing_thinking:
        return messages
    edited: list[Message] = []
    is_followed = False  # by something of the same turn
    for message in reversed(messages):
        rest: Message | None = message
        if message.role == "assistant" and not is_followed:
            rest = _without_trailing(message, edits)
        if rest is not None:
            edited.append(rest)
            is_followed = rest.role == "assistant" and bool(rest.content)
    edited.reverse()
    return messages if is_unchanged(edited, messages) else tuple(edited)


def _without_trailing(message: Message, edits: Edits) -> Message | None:
    parts = message.content
    count = len(parts)
    while count and isinstance(parts[count - 1], Thinking):
        count -= 1
    if count == len(parts):
        return message
    for part in parts[count:]:
        edits.change("trailing_thinking_dropped", part)
    return with_parts(message, parts[:count], edits) if count else None


def drop_thinking_only(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Messages that hold only thinking."""
    if target.thinking_only:
        return messages

    def drop(message: Message) -> Message | None:
        parts = message.content
        is_thought = message.role == "assistant" and bool(parts)
        if not (is_thought and all(isinstance(part, Thinking) for part in parts)):
            return message
        edits.change("thinking_only_dropped", message)
        return None

    return edit(messages, drop, _THINKING)


def sign_calls(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Unsigned calls, made by another model: they get the placeholder, or become text."""
    field = target.signature_field
    if not target.signed_calls or not field:
        return messages
    unsigned: dict[Spot, Part] = {}
    for i, message in enumerate(messages):
        if message.role == "assistant":
            calls = (item for item in enumerate(message.content) if isinstance(item[1], ToolCall))
            k, call = next(calls, (0, None))  # only the first call of a message is signed
            if call is not None and not extra_of(call, target.dialect).get(field):
                unsigned[i, k] = call
    if not unsigned:
        return messages
    if edits.policy.unsigned_calls == "text":
        turns = {i for i, _ in unsigned}
        return _calls_as_text(messages, turns, target, edits, "unsigned_call_as_text")
    for spot, call in unsigned.items():
        fields = {**extra_of(call, target.dialect), field: target.unchecked_signature}
        edits.change("unsigned_call_marked", call)
        unsigned[spot] = with_fields(call, edits, extra={**call.extra, target.dialect: fields})
    return swap(messages, unsigned, edits)


def send_calls_as_text(messages: Messages, target: HistoryRules, edits: Edits) -> Messages:
    """Calls and results of earlier turns, for a model without tools."""
    if target.tools:
        return messages
    return _calls_as_text(messages, set(range(len(messages))), target, edits, "call_as_text")


def _calls_as_text(
    messages: Messages, turns: set[int], target: HistoryRules, edits: Edits, code: str
) -> Messages:
    """The history with the calls of some messages, and their results, as text."""
    pairs = pairs_of(messages, target, edits)
    texts: dict[Spot, list[Part]] = {}
    for spot, call in pairs.calls.items():
        if spot[0] not in turns:
            continue
        edits.change(code, call)
        raw = call.raw_arguments
        text = f"Called {call.name} with {dump_text(call.arguments) if raw is None else raw}"
        texts[spot] = [edits.place_like(Text(text=text), call)]
        answer = pairs.result_of.get(spot)
        result = None if answer is None else messages[answer[0]].content[answer[1]]
        if answer is not None and isinstance(result, ToolResult):
            texts[answer] = _result_as_text(result, call, edits)
    if not texts:
        return messages
    edited = list(messages)
    for i in {i for i, _ in texts}:
        content = enumerate(messages[i].content)
        parts = tuple(inner for k, part in content for inner in texts.get((i, k), [part]))
        is_tool = messages[i].role == "tool"
        is_user = is_tool and not all(isinstance(part, ToolResult) for part in parts)
        role = "user" if is_user else messages[i].role
        edited[i] = with_fields(messages[i], edits, content=parts, role=role)
    return tuple(edited)


def _result_as_text(result: ToolResult, call: ToolCall, edits: Edits) -> list[Part]:
    """The text of a result, followed by its media."""
    content = result.content
    parts = result.parts
    media: list[Part] = []
    if parts is not None:
        content = "\n".join(part.text for part in parts if isinstance(part, Text))
        media = [part for part in parts if isinstance(part, MEDIA_TYPES)]
    text = content if isinstance(content, str) else dump_text(content)
    verb = "failed" if result.is_error else "returned"
    return [edits.place_like(Text(text=f"{call.name} {verb}: {text}"), result), *media]
