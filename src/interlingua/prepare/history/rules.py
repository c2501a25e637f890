"""
Any history, as a target accepts it.

Each rule is a small function that returns the same object if there is nothing to
do, and otherwise adds a warning for each change, with its place in the history as the caller gave
it. The order matters: parts without a match go first; then ids, names and texts are repaired; then
parts are put in their places; last come the rules that look at neighbours. Every rule that drops
a part may also drop the thinking that is paired with it.
"""

from __future__ import annotations

from functools import lru_cache, partial

import msgspec

from interlingua.prepare.history import calls, results, thinking
from interlingua.prepare.history import messages as texts
from interlingua.prepare.history.edit import (
    DEFAULT_POLICY,
    Edits,
    RepairPolicy,
    Rule,
    scan_of,
)
from interlingua.prepare.history.scan import (
    HistoryScan,
    Messages,
    Trigger,
    scan_history,
    triggers_of,
)
from interlingua.spec.content import MEDIA_TYPES, Document, Opaque, Thinking, ToolCall, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.response import Warning
from interlingua.spec.warnings import WarningList

_MEDIA = frozenset(MEDIA_TYPES)

RULES: tuple[tuple[Rule, frozenset[Trigger]], ...] = (
    # What only its own server can read. It goes first, because the rules below would take a seal
    # for the signature whose field it stands in.
    (thinking.drop_seals, frozenset({"sealed"})),
    (results.name_loaded_tools, frozenset({Opaque})),
    (texts.drop_foreign_blocks, frozenset({Opaque})),
    # Media go before the messages that they leave empty, which `drop_empty_messages` handles.
    (results.drop_unsayable_media, _MEDIA),
    (results.place_media, _MEDIA),
    # Tool calls and results without each other. What was cut short goes before `answer_calls`,
    # which would give a result to a tool call that nobody ran.
    (calls.drop_misplaced_calls, frozenset({"unpaired_calls"})),
    (calls.drop_aborted_calls, frozenset({"has_metadata"})),
    (calls.drop_orphan_results, frozenset({"unpaired_calls"})),
    (calls.answer_calls, frozenset({"unpaired_calls"})),
    # Ids are made unique before they are mapped: the mapping gives equal ids equal ones. Names come
    # from namespaces before they are made to match the pattern.
    (calls.rename_duplicate_calls, frozenset({"repeated_id"})),
    (calls.rename_calls, frozenset({ToolCall})),
    (calls.call_functions, frozenset({"special_call"})),
    (calls.rename_tools, frozenset({ToolCall})),
    (calls.wrap_arguments, frozenset({"raw_arguments"})),
    # Thinking that the target refuses. `sign_calls` comes after it: a tool call that loses the
    # signature of another model needs a placeholder too.
    (thinking.adopt_thinking, frozenset({Thinking})),
    (thinking.drop_stale_thinking, frozenset({"has_metadata"})),
    (thinking.drop_foreign_thinking, frozenset({Thinking})),
    (thinking.drop_unsigned_thinking, frozenset({Thinking})),
    (thinking.drop_bare_thinking, frozenset({Thinking})),
    (texts.clean_surrogates, frozenset({"invalid_unicode"})),
    (thinking.sign_calls, frozenset({ToolCall})),
    # Blank texts before empty messages: a message of blanks is empty then.
    (texts.drop_blank_texts, frozenset({"blank_text"})),
    (texts.drop_empty_messages, frozenset({"empty_message"})),
    # Places. Thinking can be the last part of a turn, or the only one, once other parts are gone.
    (results.drop_silent_turns, frozenset({"unpaired_calls"})),
    (results.place_results, frozenset({"unpaired_calls"})),
    (results.order_results, frozenset({"unpaired_calls"})),
    (thinking.drop_trailing_thinking, frozenset({Thinking})),
    (thinking.drop_thinking_only, frozenset({Thinking})),
    # Media follow all results of a turn, so the results are gathered before the media move.
    (results.gather_results, frozenset({"split_results"})),
    (results.move_media, _MEDIA),
    (thinking.send_calls_as_text, frozenset({ToolCall, ToolResult})),
    # Roles. The rules above add user messages and folded prompts; `merge_roles` joins them to their
    # neighbours, so it is one of the last.
    (texts.fold_system, frozenset({"late_system"})),
    (texts.ask_to_continue, frozenset({"model_last"})),
    (results.put_results_first, frozenset({"unpaired_calls"})),
    (texts.accompany_documents, frozenset({Document})),
    (texts.drop_blank_prompts, frozenset({"blank_text", "empty_message"})),
    (texts.join_prompts, frozenset({"adjacent_roles"})),
    (texts.begin_conversation, frozenset({"no_turn"})),
    (texts.begin_with_user, frozenset({"model_first"})),
    (texts.merge_roles, frozenset({"adjacent_roles"})),
    (calls.put_calls_last, frozenset({"calls_not_last"})),
)
"""The rules in their order, each with its triggers. A rule runs only if one of them is present."""


class HistoryRepair(msgspec.Struct, frozen=True, kw_only=True):
    """A history as its target accepts it, and the changes that were made."""

    messages: Messages
    """The history as it would be sent."""
    changes: tuple[Warning, ...] = ()
    """What was changed, one warning each."""


def apply_rules(
    messages: Messages,
    target: HistoryRules,
    policy: RepairPolicy = DEFAULT_POLICY,
    warnings: WarningList | None = None,
    history: Messages | None = None,
    scan: HistoryScan | None = None,
) -> Messages:
    """
    The history as the target accepts it; the same object if it does already.

    Changes are added to `warnings`, whose `origin` then maps the paths of later warnings to the
    caller's history. That is `history`, if parts of its messages have been dropped before. `scan`
    is that of the history, if it was made before. Repairing twice changes nothing more.
    """
    is_whole = history is None or history is messages
    scan = scan_history(messages, scan)
    if is_whole and scan.is_plain(target.system, target.prefill, user_first=target.user_first):
        return messages
    if is_whole and not _applicable(triggers_of(messages, target, scan)):
        return messages
    name = target.model or target.dialect if warnings is None else warnings.target
    edits = Edits(messages, history, name, policy)
    if edits.messages is messages:
        edits.store(messages, scan)
    repaired, position = edits.messages, 0
    while position < len(RULES):
        repaired, position = _change_once(repaired, target, edits, position)
    repaired = messages if repaired is edits.messages else repaired
    if warnings is not None:
        warnings.warnings += edits.warnings
        if repaired is not edits.history:
            warnings.origin = partial(edits.original_path, messages=repaired)
    return repaired


def _change_once(
    messages: Messages, target: HistoryRules, edits: Edits, position: int
) -> tuple[Messages, int]:
    """The history after the next rule that changes it, and the position of the rule after that."""
    for i in _applicable(triggers_of(messages, target, scan_of(messages, edits))):
        if i >= position:
            changed = RULES[i][0](messages, target, edits)
            if changed is not messages:  # the triggers may have changed too
                return changed, i + 1
    return messages, len(RULES)


@lru_cache(maxsize=256)
def _applicable(triggers: frozenset[Trigger]) -> tuple[int, ...]:
    """The positions of the rules that have one of these triggers."""
    return tuple(i for i, (_, about) in enumerate(RULES) if not about.isdisjoint(triggers))
