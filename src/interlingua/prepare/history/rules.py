"""
Any history, as a target accepts it.

Each rule is a small function that returns the very history it was given if there is nothing
to do, and otherwise warns of each change by its own code and its place in the history as it
came. They run in this order:

| rule | codes |
|---|---|
| `drop_foreign_blocks` | `foreign_block_dropped` |
| `drop_unsayable_media` | `image_dropped`, `audio_dropped`, …, `result_media_as_text` |
| `drop_misplaced_calls` | `misplaced_call_dropped` |
| `drop_aborted_calls` | `aborted_call_dropped`, `aborted_result_dropped` |
| `drop_orphan_results` | `orphan_result_dropped` |
| `answer_calls` | `missing_result_added`, `unanswered_call_dropped` |
| `rename_duplicate_calls` | `call_id_made` |
| `rename_calls` | `call_id_mapped` |
| `rename_tools` | `tool_name_mapped` |
| `wrap_arguments` | `arguments_wrapped` |
| `drop_stale_thinking` | `stale_thinking_dropped`, `…_as_text`, `stale_signatures_dropped` |
| `drop_foreign_thinking` | `foreign_thinking_dropped`, `…_as_text` |
| `drop_unsigned_thinking` | `unsigned_thinking_dropped`, `…_as_text` |
| `clean_surrogates` | `surrogates_replaced` |
| `sign_calls` | `unsigned_call_marked`, `unsigned_call_as_text` |
| `drop_blank_texts` | `blank_text_dropped`, `placeholder_added` |
| `drop_empty_messages` | `empty_message_dropped`, `placeholder_added` |
| `place_results` | `result_moved` |
| `order_results` | `results_reordered` |
| `drop_trailing_thinking` | `trailing_thinking_dropped` |
| `drop_thinking_only` | `thinking_only_dropped` |
| `gather_results` | `results_gathered` |
| `move_media` | `result_media_moved` |
| `fold_system` | `system_folded` |
| `put_results_first` | `results_put_first` |
| `accompany_documents` | `placeholder_added` |
| `drop_blank_prompts` | `blank_text_dropped`, `empty_message_dropped` |
| `begin_conversation` | `placeholder_added` |
| `merge_roles` | `messages_merged` |
| `put_calls_last` | `calls_put_last` |

Any rule that leaves a part out may add `unpaired_thinking_dropped`. What has no match goes first;
what stays is named and cleaned; what is left of it is put in its place; then what depends on
neighbours can be seen: thoughts that nothing follows, results and roles that stand together.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import msgspec

from interlingua.prepare.history.calls import (
    answer_calls,
    drop_aborted_calls,
    drop_misplaced_calls,
    drop_orphan_results,
    put_calls_last,
    rename_calls,
    rename_duplicate_calls,
    rename_tools,
    wrap_arguments,
)
from interlingua.prepare.history.edit import (
    ADJACENT_ROLES,
    BLANK_TEXT,
    CALLS_NOT_LAST,
    DEFAULT_POLICY,
    EMPTY_MESSAGE,
    HAS_METADATA,
    INVALID_UNICODE,
    LATE_SYSTEM,
    NO_TURN,
    RAW_ARGUMENTS,
    REPEATED_ID,
    SPLIT_RESULTS,
    UNPAIRED_CALLS,
    Edits,
    HistoryScan,
    Messages,
    RepairPolicy,
    Rule,
    Trigger,
    is_plain_conversation,
    scan_of,
)
from interlingua.prepare.history.messages import (
    accompany_documents,
    begin_conversation,
    clean_surrogates,
    drop_blank_prompts,
    drop_blank_texts,
    drop_empty_messages,
    drop_foreign_blocks,
    fold_system,
    merge_roles,
)
from interlingua.prepare.history.results import (
    drop_unsayable_media,
    gather_results,
    move_media,
    order_results,
    place_results,
    put_results_first,
)
from interlingua.prepare.history.thinking import (
    drop_foreign_thinking,
    drop_stale_thinking,
    drop_thinking_only,
    drop_trailing_thinking,
    drop_unsigned_thinking,
    sign_calls,
)
from interlingua.spec.content import MEDIA_TYPES, Document, Opaque, Thinking, ToolCall
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.facts import Facts, HistoryRules
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.spec.warnings import WarningList

_MEDIA = frozenset(MEDIA_TYPES)

RULES: tuple[tuple[Rule, frozenset[Trigger]], ...] = (
    (drop_foreign_blocks, frozenset((Opaque,))),
    (drop_unsayable_media, _MEDIA),
    (drop_misplaced_calls, frozenset((UNPAIRED_CALLS,))),
    (drop_aborted_calls, frozenset((HAS_METADATA,))),
    (drop_orphan_results, frozenset((UNPAIRED_CALLS,))),
    (answer_calls, frozenset((UNPAIRED_CALLS,))),
    (rename_duplicate_calls, frozenset((REPEATED_ID,))),
    (rename_calls, frozenset((ToolCall,))),
    (rename_tools, frozenset((ToolCall,))),
    (wrap_arguments, frozenset((RAW_ARGUMENTS,))),
    (drop_stale_thinking, frozenset((HAS_METADATA,))),
    (drop_foreign_thinking, frozenset((Thinking,))),
    (drop_unsigned_thinking, frozenset((Thinking,))),
    (clean_surrogates, frozenset((INVALID_UNICODE,))),
    (sign_calls, frozenset((ToolCall,))),
    (drop_blank_texts, frozenset((BLANK_TEXT,))),
    (drop_empty_messages, frozenset((EMPTY_MESSAGE,))),
    (place_results, frozenset((UNPAIRED_CALLS,))),
    (order_results, frozenset((UNPAIRED_CALLS,))),
    (drop_trailing_thinking, frozenset((Thinking,))),
    (drop_thinking_only, frozenset((Thinking,))),
    (gather_results, frozenset((SPLIT_RESULTS,))),
    (move_media, _MEDIA),
    (fold_system, frozenset((LATE_SYSTEM,))),
    (put_results_first, frozenset((UNPAIRED_CALLS,))),
    (accompany_documents, frozenset((Document,))),
    (drop_blank_prompts, frozenset((BLANK_TEXT, EMPTY_MESSAGE))),
    (begin_conversation, frozenset((NO_TURN,))),
    (merge_roles, frozenset((ADJACENT_ROLES,))),
    (put_calls_last, frozenset((CALLS_NOT_LAST,))),
)
"""The rules in their order, each with its triggers: where none is present it need not run."""


class HistoryRepair(msgspec.Struct, frozen=True, kw_only=True):
    """A history as its target accepts it, and what was changed for that."""

    messages: Messages
    changes: tuple[Warning, ...] = ()


def apply_rules(
    messages: Messages,
    target: HistoryRules,
    policy: RepairPolicy = DEFAULT_POLICY,
    warnings: WarningList | None = None,
    history: Messages | None = None,
) -> Messages:
    """
    The history as the target accepts it: the very same one if it does already.

    Changes are added to `warnings`, which then tells later ones too by their place in the
    history as it came: in `history`, if parts of its messages have been left out before. To
    repair twice changes nothing more.
    """
    is_whole = history is None or history is messages
    if is_whole and is_plain_conversation(messages):
        return messages
    scan = HistoryScan(messages)
    if is_whole and not _applicable(frozenset(scan.triggers)):
        return messages
    name = target.model or target.dialect if warnings is None else warnings.target
    edits = Edits(messages, history, name, policy)
    edits.store(messages, scan)
    repaired, position = messages, 0
    while position < len(RULES):
        repaired, position = _change_once(repaired, target, edits, position)
    if warnings is not None:
        warnings.warnings += edits.warnings
        if repaired is not edits.history:
            warnings.origin = partial(edits.original_path, messages=repaired)
    return repaired


def _change_once(
    messages: Messages, target: HistoryRules, edits: Edits, position: int
) -> tuple[Messages, int]:
    """What the next rule with something to do makes of it, and the position of the one after."""
    for i in _applicable(frozenset(scan_of(messages, edits).triggers)):
        if i >= position:
            changed = RULES[i][0](messages, target, edits)
            if changed is not messages:  # an answer to a call may be the first result
                return changed, i + 1
    return messages, len(RULES)


@lru_cache(maxsize=256)
def _applicable(triggers: frozenset[Trigger]) -> tuple[int, ...]:
    """The positions of the rules that have one of these triggers."""
    return tuple(i for i, (_, about) in enumerate(RULES) if not about.isdisjoint(triggers))


_OPERATION = "path"


def rules_for(
    facts: Facts, request: Request, profile: Profile, options: Mapping[str, Any]
) -> HistoryRules:
    """The dialect's rules, as the profile, the server's quirks and the options change them."""
    changes = {} if profile is NEUTRAL_PROFILE else _profile_changes(request, profile)
    if options and not options.keys().isdisjoint(facts.history.stored_options):
        changes["stored"] = True
    if _OPERATION in options:  # to count tokens or make a cache, there need be nothing to answer
        changes["least"] = "nothing"
    changes |= _quirk_changes(facts, profile)
    return msgspec.structs.replace(facts.history, **changes) if changes else facts.history


def kinds_without_urls(facts: Facts, profile: Profile) -> tuple[str, ...]:
    """The kinds of media that the server takes as bytes but not as a URL."""
    forms = _quirk_changes(facts, profile).get("media", facts.history.media)
    return tuple(kind for kind, taken in forms.items() if "data" in taken and "url" not in taken)


def _quirk_changes(facts: Facts, profile: Profile) -> Mapping[str, Any]:
    if facts.history_quirks is None or profile.quirks is None:
        return {}
    return facts.history_quirks(profile.quirks)


def _profile_changes(request: Request, profile: Profile) -> dict[str, Any]:
    """What a profile changes; a field that is neutral leaves the dialect's own rule."""
    changes: dict[str, Any] = {}
    if profile.tool_call_id_pattern is not None:
        changes["call_id"] = profile.tool_call_id_pattern
    if profile.tool_result_types == ():
        changes["result_media"] = False
    if profile.signed_calls:
        changes["signed_calls"] = True
    if not profile.system_mid_conversation:
        changes["inline_system"] = False
    if profile.thinking_bound_to_model:
        changes |= {"thinking_per_model": True, "model": request.model}
    return changes
