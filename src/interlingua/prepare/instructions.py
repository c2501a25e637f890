"""Instructions in the system prompt, in place of settings that a target does not have."""

from __future__ import annotations

from msgspec.structs import replace

from interlingua.prepare.history.edit import Edits, with_parts
from interlingua.prepare.history.messages import end_of_prompts, is_blank
from interlingua.prepare.schema.narrow import narrow, remembered
from interlingua.prepare.settings import structured_output_mode
from interlingua.spec.content import Text
from interlingua.spec.contracts import Profile
from interlingua.spec.facts import Facts
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat
from interlingua.spec.warnings import WarningList
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


def instruct_verbosity(
    request: Request, verbosity: str, profile: Profile, warnings: WarningList
) -> Request:
    """The request with an instruction in place of its `verbosity`; `medium` needs none."""
    instruction = VERBOSITY_INSTRUCTIONS.get(verbosity)
    if instruction is not None:
        request = _instruct(request, instruction, profile, warnings)
    warnings.add("verbosity_as_instruction", "verbosity")
    return replace(request, verbosity=None)


def instruct_format(
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
