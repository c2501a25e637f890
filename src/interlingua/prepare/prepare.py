"""Prepare a request: narrow its settings to the profile, and repair its history for the target."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from interlingua.prepare.history.edit import Edits, with_parts
from interlingua.prepare.history.messages import end_of_prompts, is_blank
from interlingua.prepare.history.rules import apply_rules, rules_for
from interlingua.prepare.history.scan import HistoryScan, is_plain_conversation, scan_history
from interlingua.prepare.media import drop_media
from interlingua.prepare.options import check_options, options_for
from interlingua.prepare.schema.narrow import narrow, remembered
from interlingua.prepare.settings import adjust_settings, structured_output_mode
from interlingua.prepare.tool_forms import adapt_tools, has_special_tools
from interlingua.spec.content import Text
from interlingua.spec.contracts import Prepared, Profile
from interlingua.spec.facts import Facts
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat
from interlingua.spec.warnings import WarningList, target_name
from interlingua.wire.json_text import dump_text

JSON_INSTRUCTION = "Answer with one JSON object and nothing else: no other text, no code fence."
SCHEMA_INSTRUCTION = (
    "Answer only with JSON: no text before or after it, no code fence. It must match this JSON "
    "Schema:\n\n{schema}"
)

VERBOSITY_INSTRUCTIONS = {
    "low": "Answer briefly: only what was asked, in as few words as possible.",
    "high": "Answer in detail, with explanations.",
}


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
        request = drop_media(request, profile, warnings)
    options = options_for(request, facts.name)
    if options and profile.dialect:  # a codec without a provider sends back what was decoded
        check_options(options, facts, warnings)
    is_plain = request.messages is history and is_plain_conversation(
        history, profile.system_prompt, profile.prefill
    )
    is_special = bool(request.tools) and has_special_tools(request.tools)
    if is_special or not is_plain:
        rules = rules_for(facts, request, profile, options)
        messages = apply_rules(
            request.messages, rules, warnings=warnings, history=history, scan=scan
        )
        if messages is not request.messages:
            request = replace(request, messages=messages)
        if is_special:
            request = adapt_tools(request, history, facts, rules, warnings)
    form = request.response_format
    if form is not None and form.type != "text":
        request = _instruct_format(request, form, profile, facts, warnings)
    if request.verbosity is not None and profile.verbosity == "instruction":
        request = _instruct_verbosity(request, request.verbosity, profile, warnings)
    return Prepared(
        request=request, options=options, warnings=tuple(warnings.warnings), origin=warnings.origin
    )


def _instruct_verbosity(
    request: Request, verbosity: str, profile: Profile, warnings: WarningList
) -> Request:
    """The request with an instruction in place of its `verbosity`; `medium` needs none."""
    instruction = VERBOSITY_INSTRUCTIONS.get(verbosity)
    if instruction is not None:
        request = _instruct(request, instruction, profile, warnings)
    warnings.add("verbosity_as_instruction", "verbosity")
    return replace(request, verbosity=None)


def _instruct_format(
    request: Request, form: ResponseFormat, profile: Profile, facts: Facts, warnings: WarningList
) -> Request:
    """The request with an instruction in place of a format that the target does not have."""
    # Anthropic's `JSONOutputFormatParam` requires a schema: there is no mode for any JSON object.
    if form.type == "json":
        if facts.json_mode:
            return request
        warnings.add("json_mode_as_instruction", "response_format")
        request = _instruct(request, JSON_INSTRUCTION, profile, warnings)
        return replace(request, response_format=None)
    is_native = structured_output_mode(request, profile) == "native"
    if is_native and (not facts.only_strict_formats or _can_be_strict(form, facts)):
        return request
    warnings.add("structured_output_fallback", "response_format")
    text = SCHEMA_INSTRUCTION.format(schema=dump_text(form.json_schema))
    request = _instruct(request, text, profile, warnings)
    return replace(request, response_format=None)


def _can_be_strict(form: ResponseFormat, facts: Facts) -> bool:
    rules = facts.schema
    return rules is None or remembered(form.json_schema, rules, narrow).strict_possible


def _instruct(
    request: Request, instruction: str, profile: Profile, warnings: WarningList
) -> Request:
    """The request with one more instruction, after the system prompt."""
    text = Text(text=instruction)
    before = request.messages
    edits = Edits(before)
    last = end_of_prompts(before) - 1
    # A model without a system role gets the instruction in the first user message.
    if last < 0 and profile.system_prompt is False and before and before[0].role == "user":
        last = 0
    if last >= 0:
        parts = [part for part in before[last].content if not is_blank(part)]
        prompt = with_parts(before[last], (*parts, text), edits)
        after = (*before[:last], prompt, *before[last + 1 :])
    else:
        after = (Message(role="system", content=(text,)), *before)
    origin = warnings.origin

    def original_path(path: str) -> str | None:
        # The encoder warns by the places in `after`, which the new message has shifted.
        place = edits.original_path(path, after)
        return place if place is None or origin is None else origin(place)

    warnings.origin = original_path
    return replace(request, messages=after)


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
