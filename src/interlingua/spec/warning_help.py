"""
What causes each warning, and what to do about it.

Only the documentation and the command line read this: it is not loaded with the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from interlingua.spec.warnings import SETTING_DROPPED, SETTING_IMPLIED


class WarningHelp(NamedTuple):
    """The cause of a warning, and its cure."""

    cause: str
    cure: str


_NO_CURE = "Nothing to do: the meaning is kept."
_OTHER_MODEL = "Use a model that has it, or leave it out."
_IN_ORDER = "Nothing to do. A history that was kept as the answers came is not changed."
_SAME_MODEL = "Nothing to do. Thinking is kept while the conversation stays at its model."
_STABLE = "Keep what comes first the same from call to call, and append to it."

_MEDIA = ("The model does not accept this kind of media.", "Use a model that does, or send text.")
_DROPPED = (
    "The model or its API has no such setting, or not together with the others of the request.",
    'Leave the setting out, or use another model. `on_loss="strict"` makes it an error.',
)
_IMPLIED = ("The API has no such setting, but does what was asked for anyway.", _NO_CURE)
_THINKING = (
    "Thinking is signed or encrypted by the model that made it, and another cannot read it.",
    _SAME_MODEL,
)

_HELP: dict[str, tuple[str, str]] = {
    # content
    "audio_dropped": _MEDIA,
    "document_dropped": _MEDIA,
    "image_dropped": _MEDIA,
    "builtin_tool_dropped": (
        "A tool that a provider runs is known only to that provider.",
        "Use a model of that provider, or a tool of `BuiltinTool` that several providers have.",
    ),
    "prefill_replaced": (
        "The conversation ends with a message of the assistant, which this API does not continue.",
        "End with a user message, or use a model that continues.",
    ),
    "response_format_dropped": (
        "The API has neither schemas nor a JSON mode for this model.",
        "Use `generate_object`, which can go through a tool, or another model.",
    ),
    "tool_choice_dropped": (
        "A tool choice was given, but no tools.",
        "Pass `tools=`, or leave `tool_choice` out.",
    ),
    "tool_choice_relaxed": (
        "The model cannot be forced to call a tool, for instance while it thinks.",
        'Switch thinking off, or accept it with `on_loss="warn"`.',
    ),
    "tools_dropped": ("The model cannot call tools.", "Use a model that can."),
    # settings
    "budget_as_effort": (
        "The model takes an effort, not a number of tokens.",
        "Set `reasoning_effort` instead of `thinking_budget`.",
    ),
    "detail_dropped": ("The API has no `detail` of images.", _OTHER_MODEL),
    "effort_lowered": ("The model has fewer levels.", "Set a level that the model has."),
    "effort_raised": ("The model has fewer levels.", "Set a level that the model has."),
    "file_name_dropped": ("The API has no names of files.", "Name the file in the text."),
    "hosted_option_dropped": (
        "The tool has this option only at other providers.",
        "Leave the option out, or pass it in the form of the provider by `provider_options`.",
    ),
    "image_size_changed": (
        "The model makes images only in some sizes.",
        "Ask for a size or an aspect ratio that the model has.",
    ),
    "json_mode_as_instruction": (
        "The API has no JSON mode.",
        "Nothing to do; `generate_object` also validates the answer.",
    ),
    "max_tokens_lowered": ("The model returns less at once.", "Set a lower `max_tokens`."),
    "max_tokens_raised": (
        "Thinking counts within `max_tokens`, and would have left no room for the answer.",
        "Set a higher `max_tokens` or a lower thinking budget.",
    ),
    "name_dropped": ("The API has no names of speakers.", "Write the name into the text."),
    "options_dropped": (
        "`provider_options` has options of another provider than the one that is called.",
        "Nothing to do, if that is meant; options may be there for several providers.",
    ),
    "options_not_restored": (
        "A session was loaded whose tools, functions, keys or headers were not given again.",
        "Pass them to `load` or `resume`, or None where they are no longer wanted.",
    ),
    "options_unknown": (
        "A key of `provider_options` is the name of no provider and no dialect.",
        "Correct the key; `interlingua providers` lists the names.",
    ),
    "schema_narrowed": (
        "Strict schemas of the provider lack some keywords of JSON Schema.",
        "Nothing to do: the library validates the answer itself. Or simplify the schema.",
    ),
    "schema_not_strict": (
        "To be strict, the schema would have to mean something else.",
        "Simplify the schema, or set `strict=False`.",
    ),
    "setting_dropped": _DROPPED,
    "stop_sequences_cut": ("The API takes only a few.", "Pass fewer stop sequences."),
    "strict_dropped": (
        "The API takes only some strict tools in a request.",
        "Set `strict` only for the tools that need it most.",
    ),
    "structured_output_fallback": (
        "The model cannot be held to a schema.",
        "Nothing to do: the answer is validated. A model that enforces schemas fails less often.",
    ),
    "temperature_lowered": (
        "The API has a lower maximum of the temperature.",
        "Set a lower temperature.",
    ),
    "thinking_budget_lowered": ("The budget is above the model's.", "Set a lower budget."),
    "thinking_budget_raised": ("The budget is below the model's least.", "Set a higher budget."),
    "thinking_off_for_tools": (
        "The model cannot think and call tools in one request.",
        "Nothing to do, or use a model that can do both.",
    ),
    "tool_left_out": (
        "The schema of a tool of an MCP server cannot be used.",
        "Correct the server, or leave the tool out with `only=`.",
    ),
    # history
    "aborted_call_dropped": (
        "An answer was interrupted before its tool ran.",
        "Nothing to do. `resume=` runs the call instead.",
    ),
    "aborted_result_dropped": ("An answer was interrupted in the call.", "Nothing to do."),
    "call_as_text": (
        "The history has tool calls, and the model cannot call tools.",
        "Nothing to do, or use a model that has tools.",
    ),
    "calls_put_last": ("The API has tool calls only at the end of a message.", _IN_ORDER),
    "emptied_message_dropped": (
        "Nothing in the message can be expressed by the target.",
        "Use a model that accepts its content.",
    ),
    "foreign_block_dropped": (
        "A block of one provider, such as the record of a search, was sent to another.",
        "Nothing to do: the provider that made it gets it back.",
    ),
    "history_summarized": (
        "`on_overflow` is a function, and the history was too long.",
        "Nothing to do. The result still has all messages.",
    ),
    "history_truncated": (
        'With `on_overflow="truncate"`, the history was too long.',
        "Pass a function as `on_overflow` to summarize, or use a model with more context.",
    ),
    "misplaced_call_dropped": (
        "A tool call stands in a message that is not of the assistant.",
        "Put calls into messages of the assistant.",
    ),
    "misplaced_part_dropped": (
        "The API does not accept this part in a message of this role.",
        "Put the part into a user message.",
    ),
    "seal_dropped": (
        "State that was sealed for a client came back damaged, or for another target.",
        "Use one key for sealing in all processes, and the same model.",
    ),
    "orphan_result_dropped": (
        "A result has no call before it, often because the history was cut in between.",
        "Cut histories before a user message, or let `on_overflow` do it.",
    ),
    "result_media_as_text": (
        "The API accepts no media in results of tools.",
        "Return text from the tool, or use a model that accepts media there.",
    ),
    "surrogates_replaced": (
        "A text has half of a character, often because it was cut in the middle.",
        "Cut texts between characters.",
    ),
    "system_folded": (
        "The API has system messages only at the beginning.",
        "Pass instructions as `system=`.",
    ),
    "tool_name_mapped": (
        "The name has characters that the API does not accept, or is too long.",
        "Nothing to do: calls come back with your name. Or rename the tool.",
    ),
    "tool_text_as_user": ("A tool message has more than results.", "Put the rest elsewhere."),
    "unanswered_call_dropped": (
        "A call has no result, and the API requires one.",
        "Append a `Message.tool_result` for every call, or continue with `resume=`.",
    ),
    "unsigned_call_as_text": (
        "The model requires its own signature on calls, and these are of another model.",
        "Nothing to do.",
    ),
    # notes: the answer
    "answer_not_accepted": (
        "`Fallback` or a middleware judged the answer, and no other model was left.",
        "Look at the reason, and add other models.",
    ),
    "answer_rejected": ("`accept` of `Fallback` was false.", "Nothing to do: another answered."),
    "answer_replaced": (
        "A middleware returned another response after parts had been delivered.",
        "Set `hold = True` on the middleware, so that nothing is delivered before it has decided.",
    ),
    "image_price_apart": (
        "A chat model let an image model draw, which is billed apart.",
        "Add its price yourself.",
    ),
    "input_truncated": (
        "The provider read only the beginning of a long input.",
        "Split the input into shorter texts.",
    ),
    "model_deprecated": (
        "The provider has announced the end of the model.",
        "Change to the model that the warning names.",
    ),
    "model_failed": (
        "A model of `Fallback` failed, and another answered.",
        "Nothing to do; if it is frequent, look at the reason.",
    ),
    "model_skipped": (
        "A model of `Fallback` cannot express the request.",
        "Nothing to do, or choose models with the same abilities.",
    ),
    "tool_rounds_exhausted": (
        "The model still wanted to call tools when `max_tool_rounds` was reached.",
        "Raise `max_tool_rounds`, or continue with `resume=`.",
    ),
    "usage_limited": (
        "A host reports more cached tokens than tokens.",
        "Nothing to do; `usage.raw` has its figures.",
    ),
    "usage_negative": ("A host reports a negative count.", "Nothing to do; see `usage.raw`."),
    "price_unknown": (
        "Neither the catalog nor the provider has a price for the model.",
        "Pass `prices=`, or merge a file with `catalog.update`.",
    ),
    "usage_estimated": (
        "The server reports no usage.",
        "Nothing to do; the estimate is marked with `usage.estimated`.",
    ),
    "video_length_unknown": (
        "Only the id of the job was given, and the provider does not repeat the length.",
        "Keep the `VideoJob`, or its JSON.",
    ),
    # notes: behaviours
    "first_turn_not_forced": (
        "A `Behaviour` forces a tool call, which the model does not support here.",
        "Nothing to do, or set `force_first_turn=False`.",
    ),
    "tools_over_limit": (
        "The `Behaviour` of the provider limits the number of tools.",
        "Raise `max_tools`, name `core_tools`, or set `active_skills`.",
    ),
    # notes: another form
    "api_version_chosen": ("The setting exists only in a newer version of the API.", _NO_CURE),
    "allowed_tools_narrowed": ("The API has no list of allowed tools.", _NO_CURE),
    "arguments_wrapped": ("The arguments of a call are no JSON object.", _NO_CURE),
    "call_id_made": ("A call without an id, or with one that is used twice.", _NO_CURE),
    "call_id_mapped": ("Ids of calls have another form at this provider.", _NO_CURE),
    "custom_tool_as_function": ("The API has no tools that take free text.", _NO_CURE),
    "deferred_tools_sent": ("The API cannot search for tools.", _NO_CURE),
    "deferred_tools_withheld": (
        "The tools are loaded by a search of the caller, which has not named them yet.",
        "Nothing to do.",
    ),
    "developer_as_system": ("The API has no developer role.", _NO_CURE),
    "document_as_plain_text": ("The API knows only plain text documents.", _NO_CURE),
    "document_as_text": ("The API has no text documents.", _NO_CURE),
    "effort_as_budget": (
        "The model takes a number of tokens, not an effort.",
        "Nothing to do, or set `thinking_budget`.",
    ),
    "foreign_thinking_as_text": _THINKING,
    "namespace_as_name": ("The API has no namespaces of tools.", _NO_CURE),
    "option_unknown": (
        "The option of `provider_options` is not in the list of known ones; it may be new.",
        "Check the spelling. If it is right, ignore the note.",
    ),
    "media_type_guessed": ("A URL was given without its media type.", "Pass `media_type=`."),
    "refusal_as_text": ("The API has no refusals in this place.", _NO_CURE),
    "stale_thinking_as_text": _THINKING,
    "tool_error_as_text": ("The API has no flag for results that failed.", _NO_CURE),
    "tool_reference_as_text": ("The API has no references to tools.", _NO_CURE),
    "tool_search_as_function": ("The API has no searches for tools.", _NO_CURE),
    "tools_withheld": ("The API has no tool choice `none`.", _NO_CURE),
    "unsigned_call_marked": ("The model requires signatures, and the call has none.", _NO_CURE),
    "unsigned_thinking_as_text": _THINKING,
    "verbosity_as_instruction": ("The API has no `verbosity`.", _NO_CURE),
    "zero_budget_as_effort": ("The model takes an effort, not a number of tokens.", _NO_CURE),
    # notes: another place
    "media_moved": ("The API accepts media only in user messages.", _NO_CURE),
    "messages_merged": ("Roles must alternate at this API.", _NO_CURE),
    "result_media_moved": ("The API accepts no media in results of tools.", _NO_CURE),
    "result_moved": ("A result must follow its call.", _IN_ORDER),
    "results_gathered": ("The results of a turn must be in one message.", _IN_ORDER),
    "results_put_first": ("Results must come before other content.", _IN_ORDER),
    "results_reordered": ("Results must be in the order of their calls.", _IN_ORDER),
    "tool_media_moved": ("Tool messages hold only text at this API.", _NO_CURE),
    # notes: added
    "missing_result_added": (
        "A call has no result, and the API requires one.",
        "Append a `Message.tool_result` for every call, or continue with `resume=`.",
    ),
    "placeholder_added": ("The API does not accept an empty place.", _NO_CURE),
    # notes: left out
    "blank_text_dropped": ("A part has only blanks.", _NO_CURE),
    "empty_message_dropped": ("A message has no content.", _NO_CURE),
    "foreign_thinking_dropped": _THINKING,
    "stale_signatures_dropped": _THINKING,
    "stale_thinking_dropped": _THINKING,
    "thinking_only_dropped": ("An answer was interrupted while it was thinking.", _NO_CURE),
    "trailing_thinking_dropped": ("An answer was interrupted while it was thinking.", _NO_CURE),
    "unpaired_thinking_dropped": (
        "The part that followed the thinking is no longer there.",
        "Keep whole messages when a history is cut.",
    ),
    "unsigned_thinking_dropped": _THINKING,
    # differences between two requests
    "cached_content_changed": ("Another cached content is named.", _STABLE),
    "messages_changed": ("An earlier message differs.", _STABLE),
    "model_changed": ("Each model has a cache of its own.", "Stay at one model."),
    "prompt_cache_key_changed": ("The key chooses the cache.", "Use one key per conversation."),
    "reasoning_effort_changed": ("Some caches depend on the effort.", "Keep one effort."),
    "service_tier_changed": ("Tiers have caches of their own.", "Stay at one tier."),
    "system_changed": (
        "The system prompt differs, often by a date or a name in it.",
        "Move what changes into the last user message.",
    ),
    "text_format_changed": ("The response format is part of the prompt.", "Keep one format."),
    "thinking_changed": ("Thinking was switched or its budget changed.", "Keep one setting."),
    "tool_choice_changed": ("Some caches depend on the tool choice.", "Keep one tool choice."),
    "tools_changed": (
        "The tools differ, or their order.",
        "Pass all tools in one order, and limit them by `ToolChoice(allowed=…)`.",
    ),
    "verbosity_changed": ("Some caches depend on the verbosity.", "Keep one verbosity."),
}

HELP: Mapping[str, WarningHelp] = {
    **{code: WarningHelp(*_DROPPED) for code in SETTING_DROPPED.values()},
    **{code: WarningHelp(*_IMPLIED) for code in SETTING_IMPLIED.values()},
    **{code: WarningHelp(*help_) for code, help_ in _HELP.items()},
}
"""By the code of the warning; a test checks that every code is here."""
