"""
Any history, as a target accepts it.

Each rule is a small function that returns the same object if there is nothing to
do, and otherwise adds a warning for each change, with its place in the history as the caller gave
it. The order matters: parts without a match go first; then ids, names and texts are repaired; then
parts are put in their places; last come the rules that look at neighbours. Every rule that drops
a part may also drop the thinking that is paired with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

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
    PROMPTS,
    HistoryScan,
    Messages,
    Trigger,
    is_plain_conversation,
    scan_history,
)
from interlingua.spec.content import MEDIA_TYPES, Document, Opaque, Thinking, ToolCall, ToolResult
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.facts import Facts, HistoryRules
from interlingua.spec.request import Request, tool_key
from interlingua.spec.response import Warning
from interlingua.spec.warnings import WarningList
from interlingua.wire.tool_names import sent_names

_MEDIA = frozenset(MEDIA_TYPES)
_SOURCES = ("url", "data", "file_id", "text")

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
    if is_whole and is_plain_conversation(messages, target.system, target.prefill):
        return messages
    scan = scan_history(messages, scan)
    if is_whole and not _applicable(triggers_of(messages, target, scan)):
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
    """The history after the next rule that changes it, and the position of the rule after that."""
    for i in _applicable(triggers_of(messages, target, scan_of(messages, edits))):
        if i >= position:
            changed = RULES[i][0](messages, target, edits)
            if changed is not messages:  # the triggers may have changed too
                return changed, i + 1
    return messages, len(RULES)


def triggers_of(messages: Messages, target: HistoryRules, scan: HistoryScan) -> frozenset[Trigger]:
    """The triggers of a history, with the triggers that depend on the target."""
    if target.system and target.prefill:
        return scan.triggers
    triggers = set(scan.triggers)
    if not target.system and messages and messages[0].role in PROMPTS:
        triggers.add("late_system")
    if not target.prefill and messages and messages[-1].role == "assistant":
        triggers.add("model_last")
    return frozenset(triggers)


@lru_cache(maxsize=256)
def _applicable(triggers: frozenset[Trigger]) -> tuple[int, ...]:
    """The positions of the rules that have one of these triggers."""
    return tuple(i for i, (_, about) in enumerate(RULES) if not about.isdisjoint(triggers))


def rules_for(
    facts: Facts, request: Request, profile: Profile, options: Mapping[str, object]
) -> HistoryRules:
    """The dialect's rules, as the profile, the server's quirks and the options change them."""
    changes = {} if profile is NEUTRAL_PROFILE else _profile_changes(request, profile)
    if options and not options.keys().isdisjoint(facts.history.stored_options):
        changes["stored"] = True
    # Where the server is asked to store nothing, the mere id of thinking refers to nothing:
    # https://developers.openai.com/api/docs/guides/conversation-state
    if profile.stateless and not options.get("store"):
        changes["bare_thinking"] = False
    if "path" in options:  # another operation, such as counting tokens, may have no messages
        changes["least"] = "nothing"
    changes |= _quirk_changes(facts, profile)
    # A compatible server may have the dialect without its free-text tools.
    if profile.custom_tools is False:
        types = tuple(kind for kind in facts.history.tool_types if kind != "custom")
        changes["tool_types"] = types
    if not facts.history.namespaces and any(tool_key(tool)[0] for tool in request.tools):
        changes["tool_names"] = sent_names(request.tools)
    # Bedrock and Vertex AI take the media of Anthropic's models as bytes only.
    if profile.media_urls is False:
        changes["media"] = _without_urls(changes.get("media", facts.history.media))
    return msgspec.structs.replace(facts.history, **changes) if changes else facts.history


def kinds_without_urls(facts: Facts, profile: Profile) -> tuple[str, ...]:
    """The kinds of media that the server takes as bytes but not as a URL."""
    forms = _quirk_changes(facts, profile).get("media", facts.history.media)
    if profile.media_urls is False:
        forms = _without_urls(forms)
    return tuple(kind for kind, taken in forms.items() if "data" in taken and "url" not in taken)


def _without_urls(forms: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The accepted sources of media at a server that fetches nothing."""
    return {
        part.kind: tuple(name for name in forms.get(part.kind, _SOURCES) if name != "url")
        for part in MEDIA_TYPES
    }


def _quirk_changes(facts: Facts, profile: Profile) -> Mapping[str, Any]:
    if facts.history_quirks is None or profile.quirks is None:
        return {}
    return facts.history_quirks(profile.quirks)


_WITH: Mapping[str, tuple[str, object]] = {
    "signed_thinking": ("signed_thinking", True),
    "signed_calls": ("signed_calls", True),
    # The chat templates of some models refuse a second one: «System message must be at the
    # beginning.» (https://github.com/vllm-project/vllm/issues/41114)
    "single_system_prompt": ("single_system", True),
    "moves_media": ("misplaced_media", "move"),
    # The codec alone sends again what a server accepted; for a provider, blanks are left out.
    "dialect": ("blank_prompts", False),
}
"""The rule, and its value, for a field of a profile that is set."""
_WITHOUT: Mapping[str, tuple[str, object]] = {
    "system_mid_conversation": ("inline_system", False),
    # Templates of models such as Mistral 7B Instruct 0.1 have no system role:
    # https://github.com/vllm-project/vllm/issues/2080
    "system_prompt": ("system", False),
    "prefill": ("prefill", False),
    "tools": ("tools", False),
    "thinking": ("thinking", "none"),
    "moves_media": ("misplaced_media", "drop"),
}
"""The rule, and its value, for a field of a profile that is False."""


def _profile_changes(request: Request, profile: Profile) -> dict[str, Any]:
    """The rules that a profile changes. A neutral field keeps the dialect's own rule."""
    changes: dict[str, Any] = {}
    reader = {"model": request.model, "provider": request.provider or ""}
    if profile.tool_call_id_pattern is not None:
        changes |= {**reader, "call_id": profile.tool_call_id_pattern}
    if profile.thinking is False:
        changes |= reader
    # An empty tuple is a statement; None means that nothing is known of the model.
    if profile.tool_result_types == ():
        changes["result_media"] = False
    changes |= (rule for name, rule in _WITH.items() if getattr(profile, name))
    changes |= (rule for name, rule in _WITHOUT.items() if getattr(profile, name) is False)
    if profile.thinking_bound_to_model:
        changes |= {**reader, "thinking_per_model": True}
    return changes
