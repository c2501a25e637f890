"""
Every warning: its code, its kind, its sentence, its cause and its cure.

The kind decides what the loss policy (`on_loss`) does about a warning:

- `content`: something the request asks for is lost: media, a tool, a forced tool choice, a
  response format. In the current turn this raises by default.
- `setting`: a setting was dropped or changed. It raises only under `"strict"`.
- `history`: something in the conversation was dropped or changed. It raises only under `"strict"`.
- `note`: the meaning is kept. It never raises. These are in `warning_notes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from interlingua.spec.warning_notes import IN_ORDER, NOTES, Texts

WarningKind: TypeAlias = Literal["content", "setting", "history", "note"]


class WarningRow(NamedTuple):
    """A row of the table of warnings."""

    kind: WarningKind
    sentence: str
    """A `str.format` template; `{target}` is the provider and model, or the dialect."""
    cause: str
    """Why the library adds the warning."""
    cure: str
    """What the caller can do about it."""


_OTHER_MODEL = "Use a model that has it, or leave it out."

_NO_MEDIA = (
    "{target} does not support {media}; the {part} was dropped.",
    "The model does not accept this kind of media.",
    "Use a model that does, or send text.",
)
_NO_SETTING = (
    "{target} does not support `{setting}`{when}; the setting was dropped.",
    "The model or its API has no such setting, or not together with the others of the request.",
    'Leave the setting out, or use another model. `on_loss="strict"` makes it an error.',
)

_CONTENT: dict[str, Texts] = {
    "audio_dropped": _NO_MEDIA,
    "builtin_tool_dropped": (
        (
            "{target} does not have the built-in tool {tool}, which is a tool of {owner}; it was "
            "dropped."
        ),
        "A tool that a provider runs is known only to that provider.",
        "Use a model of that provider, or a tool of `BuiltinTool` that several providers have.",
    ),
    "document_dropped": _NO_MEDIA,
    "image_dropped": _NO_MEDIA,
    "prefill_replaced": (
        "{target} does not continue a message of the assistant; a user message asks for it.",
        "The conversation ends with a message of the assistant, which this API does not continue.",
        "End with a user message, or use a model that continues.",
    ),
    "response_format_dropped": (
        "{target} has no way to enforce this schema; the response format was dropped.",
        "The API has neither schemas nor a JSON mode for this model.",
        "Use `generate_object`, which can go through a tool, or another model.",
    ),
    "tool_choice_dropped": (
        "Tool choice {mode!r} needs tools, and the request has none; the choice was dropped.",
        "A tool choice was given, but no tools.",
        "Pass `tools=`, or leave `tool_choice` out.",
    ),
    "tool_choice_relaxed": (
        "{target} does not support tool choice {mode!r}{when}; the model may choose.",
        "The model cannot be forced to call a tool, for instance while it thinks.",
        'Switch thinking off, or accept it with `on_loss="warn"`.',
    ),
    "tools_dropped": (
        "{target} does not support tools{when}; all tools were dropped.",
        "The model cannot call tools.",
        "Use a model that can.",
    ),
}

_SETTINGS: dict[str, Texts] = {
    "budget_as_effort": (
        "{target} does not support `thinking_budget`; reasoning effort {effort!r} was sent.",
        "The model takes an effort, not a number of tokens.",
        "Set `reasoning_effort` instead of `thinking_budget`.",
    ),
    "detail_dropped": (
        "{target} does not support an image `detail`; it was dropped.",
        "The API has no `detail` of images.",
        _OTHER_MODEL,
    ),
    "effort_lowered": (
        "{target} does not support reasoning effort {effort!r}; {sent} was sent.",
        "The model has fewer levels.",
        "Set a level that the model has.",
    ),
    "effort_raised": (
        "{target} does not support reasoning effort {effort!r}; {sent} was sent.",
        "The model has fewer levels.",
        "Set a level that the model has.",
    ),
    "file_name_dropped": (
        "{target} does not support file names; the name was dropped.",
        "The API has no names of files.",
        "Name the file in the text.",
    ),
    "frequency_penalty_dropped": _NO_SETTING,
    "hosted_option_dropped": (
        "{target} has no option {option!r} of the tool {tool!r}; the option was dropped.",
        "The tool has this option only at other providers.",
        "Leave the option out, or pass it in the form of the provider by `provider_options`.",
    ),
    "image_size_changed": (
        "{target} does not make images of {asked}; {sent} was asked for.",
        "The model makes images only in some sizes.",
        "Ask for a size or an aspect ratio that the model has.",
    ),
    "include_thinking_dropped": _NO_SETTING,
    "json_mode_as_instruction": (
        "{target} has no JSON mode; an instruction to answer with one JSON object was sent.",
        "The API has no JSON mode.",
        "Nothing to do; `generate_object` also validates the answer.",
    ),
    "logprobs_dropped": _NO_SETTING,
    "max_tokens_dropped": _NO_SETTING,
    "max_tokens_lowered": (
        "{target} returns at most {limit} tokens; `max_tokens` was lowered.",
        "The model returns less at once.",
        "Set a lower `max_tokens`.",
    ),
    "max_tokens_raised": (
        "{target} counts thinking within `max_tokens`; {sent} was sent to leave room for it.",
        "Thinking counts within `max_tokens`, and would have left no room for the answer.",
        "Set a higher `max_tokens` or a lower thinking budget.",
    ),
    "metadata_dropped": _NO_SETTING,
    "name_dropped": (
        "{target} does not support names of speakers; the name was dropped.",
        "The API has no names of speakers.",
        "Write the name into the text.",
    ),
    "options_dropped": (
        "Options of {owner} do not apply to {target} and were dropped: {names}.",
        "`provider_options` has options of another provider than the one that is called.",
        "Nothing to do, if that is meant; options may be there for several providers.",
    ),
    "options_not_restored": (
        (
            "The session was saved without {names}, which cannot be saved, and loaded without "
            "them; they were not used."
        ),
        "A session was loaded whose tools, functions, keys or headers were not given again.",
        "Pass them to `load` or `resume`, or None where they are no longer wanted.",
    ),
    "options_unknown": (
        (
            "{name!r} in `provider_options` is no known provider or dialect{hint}; its options "
            "were not sent."
        ),
        "A key of `provider_options` is the name of no provider and no dialect.",
        "Correct the key; `interlingua providers` lists the names.",
    ),
    "parallel_tool_calls_dropped": _NO_SETTING,
    "presence_penalty_dropped": _NO_SETTING,
    "reasoning_effort_dropped": _NO_SETTING,
    "schema_narrowed": (
        "{rules} does not enforce the whole schema: {losses}.",
        "Strict schemas of the provider lack some keywords of JSON Schema.",
        "Nothing to do: the library validates the answer itself. Or simplify the schema.",
    ),
    "schema_not_strict": (
        "{rules} would change the meaning of the schema ({reason}); it was sent without `strict`.",
        "To be strict, the schema would have to mean something else.",
        "Simplify the schema, or set `strict=False`.",
    ),
    "seed_dropped": _NO_SETTING,
    "setting_dropped": _NO_SETTING,
    "stop_sequences_cut": (
        "{target} supports at most {limit} stop sequences; the others were dropped.",
        "The API takes only a few.",
        "Pass fewer stop sequences.",
    ),
    "stop_sequences_dropped": _NO_SETTING,
    "strict_dropped": (
        "{target} supports at most {limit} strict tools; `strict` was dropped of {tools}.",
        "The API takes only some strict tools in a request.",
        "Set `strict` only for the tools that need it most.",
    ),
    "structured_output_fallback": (
        "{target} does not enforce this schema; an instruction to follow it was sent.",
        "The model cannot be held to a schema.",
        "Nothing to do: the answer is validated. A model that enforces schemas fails less often.",
    ),
    "temperature_dropped": _NO_SETTING,
    "temperature_lowered": (
        "{target} supports a temperature of at most {limit:g}; it was lowered.",
        "The API has a lower maximum of the temperature.",
        "Set a lower temperature.",
    ),
    "thinking_budget_dropped": _NO_SETTING,
    "thinking_budget_lowered": (
        "{target} does not support a thinking budget of {budget}; {sent} was sent.",
        "The budget is above the model's.",
        "Set a lower budget.",
    ),
    "thinking_budget_raised": (
        "{target} does not support a thinking budget of {budget}; {sent} was sent.",
        "The budget is below the model's least.",
        "Set a higher budget.",
    ),
    "thinking_off_for_tools": (
        "{target} cannot call tools while it thinks; reasoning effort 'none' was sent.",
        "The model cannot think and call tools in one request.",
        "Nothing to do, or use a model that can do both.",
    ),
    "tool_left_out": (
        "The tool {tool!r} of MCP server {server} is not available: {reason}.",
        "The schema of a tool of an MCP server cannot be used.",
        "Correct the server, or leave the tool out with `only=`.",
    ),
    "tools_limited": (
        "MCP server {server} has more than {count} tools; the others were left out.",
        "A server lists more tools than `max_tools` allows.",
        "Select tools with `only=`, or pass a higher `max_tools=`.",
    ),
    "top_k_dropped": _NO_SETTING,
    "top_p_dropped": _NO_SETTING,
    "user_dropped": _NO_SETTING,
    "verbosity_dropped": _NO_SETTING,
}

_HISTORY: dict[str, Texts] = {
    "aborted_call_dropped": (
        "The turn was cut short and {tool!r} did not run; the tool call was dropped.",
        "An answer was interrupted before its tool ran.",
        "Nothing to do. `resume=` runs the call instead.",
    ),
    "aborted_result_dropped": (
        "The tool call that this result answers was cut short; the result was dropped.",
        "An answer was interrupted in the call.",
        "Nothing to do.",
    ),
    "call_as_text": (
        "{target} has no tools in this request; the call and its result were sent as text.",
        "The history has tool calls; the model cannot call tools, or the request declares none.",
        "Nothing to do, or pass the tools again, or use a model that has tools.",
    ),
    "calls_put_last": (
        "{target} has tool calls only at the end of a message; they were moved.",
        "The API has tool calls only at the end of a message.",
        IN_ORDER,
    ),
    "emptied_message_dropped": (
        "{target} supports none of the message's content; the message was dropped.",
        "Nothing in the message can be expressed by the target.",
        "Use a model that accepts its content.",
    ),
    "foreign_block_dropped": (
        "{target} does not support a block of {owner}; it was dropped.",
        "A block of one provider, such as the record of a search, was sent to another.",
        "Nothing to do: the provider that made it gets it back.",
    ),
    "history_summarized": (
        (
            "The history was longer than the context window; a summary of its {count} oldest "
            "messages was sent in their place."
        ),
        "`on_overflow` is a function, and the history was too long.",
        "Nothing to do. The result still has all messages.",
    ),
    "history_truncated": (
        (
            "The history was longer than the context window; its {count} oldest messages were not "
            "sent."
        ),
        'With `on_overflow="truncate"`, the history was too long.',
        "Pass a function as `on_overflow` to summarize, or use a model with more context.",
    ),
    "misplaced_call_dropped": (
        "A {role} message cannot hold a tool call; the tool call was dropped.",
        "A tool call stands in a message that is not of the assistant.",
        "Put calls into messages of the assistant.",
    ),
    "misplaced_part_dropped": (
        "{target} does not support {part} {place}; it was dropped.",
        "The API does not accept this part in a message of this role.",
        "Put the part into a user message.",
    ),
    "seal_dropped": (
        "{reason}; the sealed state was not sent to {target}.",
        "State that was sealed for a client came back damaged, or for another target.",
        "Use one key for sealing in all processes, and the same model.",
    ),
    "state_not_carried": (
        "The state before the call {call} is too large for its id.",
        "A client that returns only the ids of calls loses the model's state.",
        "Use a client that returns `reasoning_details`, or keep responses in the gateway.",
    ),
    "orphan_result_dropped": (
        "No earlier tool call is waiting for this result; the result was dropped.",
        "A result has no call before it, often because the history was cut in between.",
        "Cut histories before a user message, or let `on_overflow` do it.",
    ),
    "result_media_as_text": (
        "{target} does not support {media} in a tool result; a text note was sent instead.",
        "The API accepts no media in results of tools.",
        "Return text from the tool, or use a model that accepts media there.",
    ),
    "surrogates_replaced": (
        "A lone surrogate is not valid text; it was replaced by U+FFFD.",
        "A text has half of a character, often because it was cut in the middle.",
        "Cut texts between characters.",
    ),
    "system_folded": (
        "{target} does not support a {role} message in this place; it was sent as user text.",
        "The API has system messages only at the beginning.",
        "Pass instructions as `system=`.",
    ),
    "tool_name_mapped": (
        "{target} rejects the tool name {name!r}; {sent!r} was sent.",
        "The name has characters that the API does not accept, or is too long.",
        "Nothing to do: calls come back with your name. Or rename the tool.",
    ),
    "tool_text_as_user": (
        "{target} supports only results in a tool message; the rest was sent as a user message.",
        "A tool message has more than results.",
        "Put the rest elsewhere.",
    ),
    "unanswered_call_dropped": (
        "The tool call has no result; the tool call was dropped.",
        "A call has no result, and the API requires one.",
        "Append a `Message.tool_result` for every call, or continue with `resume=`.",
    ),
    "unsigned_call_as_text": (
        "{target} requires a signature on tool calls; the unsigned call was sent as text.",
        "The model requires its own signature on calls, and these are of another model.",
        "Nothing to do.",
    ),
}


_KINDS: tuple[tuple[WarningKind, Mapping[str, Texts]], ...] = (
    ("content", _CONTENT),
    ("setting", _SETTINGS),
    ("history", _HISTORY),
    ("note", NOTES),
)
WARNINGS: Mapping[str, WarningRow] = {
    code: WarningRow(kind, *texts) for kind, rows in _KINDS for code, texts in rows.items()
}
"""Every code that this library emits."""


def _codes_like(code: str, suffix: str) -> dict[str, str]:
    """The codes whose rows are equal to that of a code, by what stands before their suffix."""
    row = WARNINGS[code]
    return {other.removesuffix(suffix): other for other, each in WARNINGS.items() if each == row}


MEDIA_DROPPED: Mapping[str, str] = _codes_like("image_dropped", "_dropped")
"""The code for each kind of media."""
SETTING_DROPPED: Mapping[str, str] = _codes_like("setting_dropped", "_dropped")
"""The code for each setting that may be dropped."""
SETTING_IMPLIED: Mapping[str, str] = _codes_like("strict_implied", "_implied")
"""The code for each setting that may be left out because the target does the same anyway."""
