"""Which history rules apply to a request, and what the caller wants done with the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.facts import Facts, HistoryRules
from interlingua.spec.request import Request


class RepairPolicy(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """What to do where a repair can be made in more than one way."""

    unanswered: Literal["error", "drop"] = "error"
    """A call without a result gets one that says so, or is left out."""
    foreign_thinking: Literal["drop", "text"] = "drop"
    """A thought the target cannot take back is left out, or said as text."""
    unsigned_calls: Literal["sentinel", "text"] = "sentinel"
    """A call that should be signed gets a signature that is not checked, or is told as text."""


DEFAULT_POLICY = RepairPolicy()

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
