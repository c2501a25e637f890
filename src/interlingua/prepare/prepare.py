"""Prepare a request: narrow its settings to the profile, and repair its history for the target."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from interlingua.prepare.history.edit import is_plain_conversation
from interlingua.prepare.history.rules import apply_rules, rules_for
from interlingua.prepare.options import options_for
from interlingua.prepare.settings import adjust_settings
from interlingua.spec.contracts import Prepared, Profile
from interlingua.spec.facts import Facts
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList, target_name


def prepare(request: Request, profile: Profile, facts: Facts) -> Prepared:
    """
    The request as the model, its server and its dialect accept it.

    A request that they accept already comes back as the same object.
    """
    warnings = WarningList(target_name(request, facts.name))
    history = request.messages
    request = adjust_settings(request, profile, warnings)
    options = options_for(request, facts.name)
    if request.messages is not history or not is_plain_conversation(history):
        rules = rules_for(facts, request, profile, options)
        messages = apply_rules(request.messages, rules, warnings=warnings, history=history)
        if messages is not request.messages:
            request = replace(request, messages=messages)
    return Prepared(
        request=request, options=options, warnings=tuple(warnings.warnings), origin=warnings.origin
    )


def start_encoding(
    request: Request | Prepared, profile: Profile, facts: Facts
) -> tuple[Request, dict[str, Any], WarningList]:
    """
    What every encoder begins with: a prepared request, its options, and a list for warnings.

    The options are the caller's to change. The list holds the warnings so far, and later ones are
    given the paths of the request as it came.
    """
    ready = request if isinstance(request, Prepared) else prepare(request, profile, facts)
    warnings = WarningList(target_name(ready.request, facts.name))
    warnings.warnings.extend(ready.warnings)
    warnings.origin = ready.origin
    return ready.request, dict(ready.options), warnings
