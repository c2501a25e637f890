"""
Prepare a request: narrow its settings to the profile, and repair its history for the target.

Most requests need little of this, so each step loads what it needs.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from interlingua.prepare.history.scan import UNCHANGED, HistoryScan, scan_history, triggers_of
from interlingua.prepare.options import check_options, options_for
from interlingua.prepare.settings import adjust_settings
from interlingua.spec.contracts import Prepared, Profile
from interlingua.spec.facts import Facts
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList, target_name


def prepare(
    request: Request, profile: Profile, facts: Facts, scan: HistoryScan | None = None
) -> Prepared:
    """
    The request as the model, its server and its dialect accept it.

    A request that they accept already comes back as the same object. `scan` is that of its
    messages, if it was made before.
    """
    warnings = WarningList(target_name(request, facts.name))
    history = request.messages
    scan = scan_history(history, scan)
    request = adjust_settings(request, profile, warnings)
    # Media before the rules: a rule that moves media must not move what the model cannot read.
    if scan.holds_media:
        from interlingua.prepare.media import drop_media

        request = drop_media(request, profile, warnings)
    options = options_for(request, facts.name)
    if options and profile.dialect:  # a codec without a provider sends back what was decoded
        check_options(options, facts, warnings)
    is_whole = request.messages is history
    is_plain = is_whole and scan.is_plain(
        profile.system_prompt, profile.prefill, user_first=facts.history.user_first
    )
    is_special = False
    if request.tools:
        from interlingua.prepare.tool_forms import has_special_tools

        is_special = has_special_tools(request.tools)
    if is_special or not is_plain:
        from interlingua.prepare.history.target import rules_for

        rules = rules_for(facts, request, profile, options)
        has_more = scan.calls or scan.results or scan.others or not is_whole
        if has_more or not triggers_of(history, rules, scan) <= UNCHANGED:
            from interlingua.prepare.history.rules import apply_rules

            messages = apply_rules(
                request.messages, rules, warnings=warnings, history=history, scan=scan
            )
            if messages is not request.messages:
                request = replace(request, messages=messages)
        if is_special:
            from interlingua.prepare.tool_forms import adapt_tools

            request = adapt_tools(request, history, facts, rules, warnings)
    form = request.response_format
    if form is not None and form.type != "text":
        from interlingua.prepare.instructions import instruct_format

        request = instruct_format(request, form, profile, facts, warnings)
    if request.verbosity is not None and profile.verbosity == "instruction":
        from interlingua.prepare.instructions import instruct_verbosity

        request = instruct_verbosity(request, request.verbosity, profile, warnings)
    return Prepared(
        request=request, options=options, warnings=tuple(warnings.warnings), origin=warnings.origin
    )


def start_encoding(
    request: Request | Prepared, profile: Profile, facts: Facts
) -> tuple[Request, dict[str, Any], WarningList]:
    """
    Return the prepared request, its options and a list of warnings: the first step of encoding.

    The encoder may change the options. The list holds the warnings so far, and maps the paths of
    later warnings to the caller's request.
    """
    ready = request if isinstance(request, Prepared) else prepare(request, profile, facts)
    warnings = WarningList(target_name(ready.request, facts.name))
    warnings.warnings.extend(ready.warnings)
    warnings.origin = ready.origin
    return ready.request, dict(ready.options), warnings
