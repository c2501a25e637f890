"""Prepare a request: narrow its settings to the profile, and repair its history for the target."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from interlingua.prepare.history.edit import Edits, is_plain_conversation, with_parts
from interlingua.prepare.history.messages import end_of_prompts, is_blank
from interlingua.prepare.history.rules import apply_rules, rules_for
from interlingua.prepare.options import check_options, options_for
from interlingua.prepare.settings import adjust_settings
from interlingua.spec.content import Text
from interlingua.spec.contracts import Prepared, Profile
from interlingua.spec.facts import Facts
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList, target_name

JSON_INSTRUCTION = "Answer with one JSON object and nothing else: no other text, no code fence."


def prepare(request: Request, profile: Profile, facts: Facts) -> Prepared:
    """
    The request as the model, its server and its dialect accept it.

    A request that they accept already comes back as the same object.
    """
    warnings = WarningList(target_name(request, facts.name))
    history = request.messages
    request = adjust_settings(request, profile, warnings)
    options = options_for(request, facts.name)
    if options and profile.dialect:  # the codec alone says again what it was told
        check_options(options, facts, warnings)
    if request.messages is not history or not is_plain_conversation(history):
        rules = rules_for(facts, request, profile, options)
        messages = apply_rules(request.messages, rules, warnings=warnings, history=history)
        if messages is not request.messages:
            request = replace(request, messages=messages)
    form = request.response_format
    if form is not None and form.type == "json" and not facts.json_mode:
        request = _instruct_json(request, warnings)
    return Prepared(
        request=request, options=options, warnings=tuple(warnings.warnings), origin=warnings.origin
    )


def _instruct_json(request: Request, warnings: WarningList) -> Request:
    """The request with an instruction, for a target without JSON mode."""
    warnings.add("json_mode_as_instruction", "response_format")
    text = Text(text=JSON_INSTRUCTION)
    before = request.messages
    edits = Edits(before)
    end = end_of_prompts(before)
    if end:
        prompt = before[end - 1]
        parts = [part for part in prompt.content if not is_blank(part)]
        prompt = with_parts(prompt, (*parts, text), edits)
        after = (*before[: end - 1], prompt, *before[end:])
    else:
        after = (Message(role="system", content=(text,)), *before)
    origin = warnings.origin

    def original_path(path: str) -> str | None:
        # The encoder warns by the places in `after`, which the new message has shifted.
        place = edits.original_path(path, after)
        return place if place is None or origin is None else origin(place)

    warnings.origin = original_path
    return replace(request, messages=after, response_format=None)


def start_encoding(
    request: Request | Prepared, profile: Profile, facts: Facts
) -> tuple[Request, dict[str, Any], WarningList]:
    """
    The first step of every encoder: the prepared request, its options, and a list of warnings.

    The encoder may change the options. The list holds the warnings so far, and maps the paths of
    later ones to the caller's request.
    """
    ready = request if isinstance(request, Prepared) else prepare(request, profile, facts)
    warnings = WarningList(target_name(ready.request, facts.name))
    warnings.warnings.extend(ready.warnings)
    warnings.origin = ready.origin
    return ready.request, dict(ready.options), warnings
