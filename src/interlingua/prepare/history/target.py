"""Which histories a target accepts: its dialect's rules, as its server and model change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.prepare.options import declares_tools
from interlingua.spec.content import MEDIA_TYPES
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.facts import Facts, HistoryRules
from interlingua.spec.request import Request, tool_key
from interlingua.wire.tool_names import sent_names

_SOURCES = ("url", "data", "file_id", "text")


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
    # The codec alone sends again what a server accepted, as with blank prompts below.
    if profile.dialect and not (facts.history.undeclared_calls or _sends_tools(request)):
        changes |= {} if declares_tools(options) else {"tools": False}
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


def _sends_tools(request: Request) -> bool:
    """Whether tools are sent to a target that has no form for the tool choice `none`."""
    choice = request.tool_choice
    return bool(request.tools) and (choice is None or choice.mode != "none")


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
    if profile.thinking_dialects:
        changes["thinking_dialects"] = profile.thinking_dialects
    if profile.thinking_bound_to_model:
        changes |= {**reader, "thinking_per_model": True}
    return changes
