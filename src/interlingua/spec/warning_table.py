"""
Every warning: its code, its kind, its sentence, its cause and its cure.

The kind decides what the loss policy (`on_loss`) does about a warning:

- `content`: something the request asks for is lost: media, a tool, a forced tool choice, a
  response format. In the current turn this raises by default.
- `setting`: a setting was dropped or changed. It raises only under `"strict"`.
- `history`: something in the conversation was dropped or changed. It raises only under `"strict"`.
- `note`: the meaning is kept. It never raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

WarningKind: TypeAlias = Literal["content", "setting", "history", "note"]
_Texts: TypeAlias = tuple[str, str, str]
"""The sentence, the cause and the cure of a warning."""


class WarningRow(NamedTuple):
    """A row of the table of warnings."""

    kind: WarningKind
    sentence: str
    """A `str.format` template; `{target}` is the provider and model, or the dialect."""
    cause: str
    """Why the library adds the warning."""
    cure: str
    """What the caller can do about it."""


_NO_CURE = "Nothing to do: the meaning is kept."
_OTHER_MODEL = "Use a model that has it, or leave it out."
_IN_ORDER = "Nothing to do. A history that was kept as the answers came is not changed."
_STABLE = "Keep what comes first the same from call to call, and append to it."
_CACHE = "{path} {change}; {effect}."

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
_IMPLIED = (
    "{target} does not support `{setting}`; it does what was asked by default.",
    "The API has no such setting, but does what was asked for anyway.",
    _NO_CURE,
)
_THINKING = (
    "Thinking is signed or encrypted by the model that made it, and another cannot read it.",
    "Nothing to do. Thinking is kept while the conversation stays at its model.",
)

_CONTENT: dict[str, _Texts] = {
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

_SETTINGS: dict[str, _Texts] = {
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
        "{target} supports at most {limit} strict tools; `strict` was dropped.",
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
    "top_k_dropped": _NO_SETTING,
    "top_p_dropped": _NO_SETTING,
    "user_dropped": _NO_SETTING,
    "verbosity_dropped": _NO_SETTING,
}

_HISTORY: dict[str, _Texts] = {
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
        "{target} does not support tools; the call and its result were sent as text.",
        "The history has tool calls, and the model cannot call tools.",
        "Nothing to do, or use a model that has tools.",
    ),
    "calls_put_last": (
        "{target} has tool calls only at the end of a message; they were moved.",
        "The API has tool calls only at the end of a message.",
        _IN_ORDER,
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

_CACHE_CHANGES = {
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
_NOTES: dict[str, _Texts] = {
    # about the answer
    "answer_not_accepted": (
        "The answer was not accepted ({reason}), but no other model was left that answered.",
        "`Fallback` or a middleware judged the answer, and no other model was left.",
        "Look at the reason, and add other models.",
    ),
    "answer_rejected": (
        "The answer of {target} was not accepted ({reason}).",
        "`accept` of `Fallback` was false.",
        "Nothing to do: another answered.",
    ),
    "answer_replaced": (
        "A middleware replaced the answer after parts of another answer had been shown.",
        "A middleware returned another response after parts had been delivered.",
        "Set `hold = True` on the middleware, so that nothing is delivered before it has decided.",
    ),
    "image_price_apart": (
        "The image model that {target} called is billed apart; its price is not in the cost.",
        "A chat model let an image model draw, which is billed apart.",
        "Add its price yourself.",
    ),
    "input_truncated": (
        "The input was too long; only its beginning was read.",
        "The provider read only the beginning of a long input.",
        "Split the input into shorter texts.",
    ),
    "model_deprecated": (
        "{target} {state}; {advice}.",
        "The provider has announced the end of the model.",
        "Change to the model that the warning names.",
    ),
    "model_failed": (
        "{target} did not answer ({reason}).",
        "A model of `Fallback` failed, and another answered.",
        "Nothing to do; if it is frequent, look at the reason.",
    ),
    "model_skipped": (
        "{target} cannot take the request ({reason}); it was skipped.",
        "A model of `Fallback` cannot express the request.",
        "Nothing to do, or choose models with the same abilities.",
    ),
    "tool_rounds_exhausted": (
        (
            "The run ended after {rounds} tool rounds, and calls of {names} were not run. Raise "
            "`max_tool_rounds`, or continue with `resume=`."
        ),
        "The model still wanted to call tools when `max_tool_rounds` was reached.",
        "Raise `max_tool_rounds`, or continue with `resume=`.",
    ),
    "usage_limited": (
        (
            "The provider reported {part} {name} tokens but only {whole} {side} tokens; {whole} "
            "were counted. Its own figures are in `usage.raw`."
        ),
        "A host reports more cached tokens than tokens.",
        "Nothing to do; `usage.raw` has its figures.",
    ),
    "usage_negative": (
        (
            "The provider reported {value} for {name}; 0 was counted. Its own figures are in "
            "`usage.raw`."
        ),
        "A host reports a negative count.",
        "Nothing to do; see `usage.raw`.",
    ),
    "price_unknown": (
        "The cost is unknown: there is no price for {target}{tier}. Pass `prices=` with its rates.",
        "Neither the catalog nor the provider has a price for the model.",
        "Pass `prices=`, or merge a file with `catalog.update`.",
    ),
    "usage_estimated": (
        "{target} reported no usage; the token counts are estimates.",
        "The server reports no usage.",
        "Nothing to do; the estimate is marked with `usage.estimated`.",
    ),
    "video_length_unknown": (
        (
            "{target} does not say how long the video is, so its usage and cost are unknown. Pass "
            "the `VideoJob` that `create` returned, or its JSON, not only the id."
        ),
        "Only the id of the job was given, and the provider does not repeat the length.",
        "Keep the `VideoJob`, or its JSON.",
    ),
    # changed by a behaviour, which the caller has set
    "first_turn_not_forced": (
        "{target} does not support tool choice 'required' here; the first turn was not forced.",
        "A `Behaviour` forces a tool call, which the model does not support here.",
        "Nothing to do, or set `force_first_turn=False`.",
    ),
    "tools_over_limit": (
        (
            "{count} of {total} tools were not sent, because `max_tools` of {target} is {limit}: "
            "{names}."
        ),
        "The `Behaviour` of the provider limits the number of tools.",
        "Raise `max_tools`, name `core_tools`, or set `active_skills`.",
    ),
    # sent in another form, with nothing left out
    "api_version_chosen": (
        "{target} supports `{setting}` only in some versions of its API; {version} was used.",
        "The setting exists only in a newer version of the API.",
        _NO_CURE,
    ),
    "allowed_tools_narrowed": (
        "{target} has no list of allowed tools; only the allowed tools were sent.",
        "The API has no list of allowed tools.",
        _NO_CURE,
    ),
    "arguments_wrapped": (
        "The arguments are not a JSON object; they were sent in one, under 'input'.",
        "The arguments of a call are no JSON object.",
        _NO_CURE,
    ),
    "call_id_made": (
        "{problem}; {sent!r} was sent.",
        "A call without an id, or with one that is used twice.",
        _NO_CURE,
    ),
    "call_id_mapped": (
        "{target} rejects the tool call id {id!r}; {sent!r} was sent.",
        "Ids of calls have another form at this provider.",
        _NO_CURE,
    ),
    "custom_tool_as_function": (
        "{target} does not support free-text tools; a function with one text was sent.",
        "The API has no tools that take free text.",
        _NO_CURE,
    ),
    "deferred_tools_sent": (
        "{target} cannot search for tools; {count} deferred tools were sent: {names}.",
        "The API cannot search for tools.",
        _NO_CURE,
    ),
    "deferred_tools_withheld": (
        "{count} deferred tools were not sent, because no result has named them yet: {names}.",
        "The tools are loaded by a search of the caller, which has not named them yet.",
        "Nothing to do.",
    ),
    "developer_as_system": (
        "{target} has no developer role; a system message was sent.",
        "The API has no developer role.",
        _NO_CURE,
    ),
    "document_as_plain_text": (
        "{target} knows only plain text documents; the {media_type} document was sent as one.",
        "The API knows only plain text documents.",
        _NO_CURE,
    ),
    "document_as_text": (
        "{target} does not support text documents; the text was sent.",
        "The API has no text documents.",
        _NO_CURE,
    ),
    "effort_as_budget": (
        "{target} does not support `reasoning_effort`; a thinking budget of {budget} was sent.",
        "The model takes a number of tokens, not an effort.",
        "Nothing to do, or set `thinking_budget`.",
    ),
    "foreign_thinking_as_text": ("{reason}; the thinking was sent as text.", *_THINKING),
    "namespace_as_name": (
        "{target} has no namespaces; the tool {tool!r} was sent as {sent!r}.",
        "The API has no namespaces of tools.",
        _NO_CURE,
    ),
    "option_unknown": (
        "{name!r} is no known option of {owner}{hint}; it was sent unchanged.",
        "The option of `provider_options` is not in the list of known ones; it may be new.",
        "Check the spelling. If it is right, ignore the note.",
    ),
    "media_type_guessed": (
        "{target} requires a media type for a URL; {media_type} was sent.",
        "A URL was given without its media type.",
        "Pass `media_type=`.",
    ),
    "refusal_as_text": (
        "{target} does not support a refusal in this place; text was sent.",
        "The API has no refusals in this place.",
        _NO_CURE,
    ),
    "stale_thinking_as_text": ("{reason}; the thinking was sent as text.", *_THINKING),
    "tool_error_as_text": (
        "{target} has no error flag; the text of the result says it failed.",
        "The API has no flag for results that failed.",
        _NO_CURE,
    ),
    "tool_reference_as_text": (
        "{target} has no references to tools; a text names them: {names}.",
        "The API has no references to tools.",
        _NO_CURE,
    ),
    "tool_search_as_function": (
        "{target} has no searches for tools; a function was sent.",
        "The API has no searches for tools.",
        _NO_CURE,
    ),
    "tools_withheld": (
        "{target} does not support tool choice 'none'{when}; the tools were not sent.",
        "The API has no tool choice `none`.",
        _NO_CURE,
    ),
    "unsigned_call_marked": (
        "{target} requires a signature on tool calls; the documented placeholder was added.",
        "The model requires signatures, and the call has none.",
        _NO_CURE,
    ),
    "unsigned_thinking_as_text": ("{reason}; the thinking was sent as text.", *_THINKING),
    "verbosity_as_instruction": (
        "{target} has no `verbosity`; an instruction was sent.",
        "The API has no `verbosity`.",
        _NO_CURE,
    ),
    "zero_budget_as_effort": (
        "A thinking budget of 0 was sent as reasoning effort 'none'.",
        "The model takes an effort, not a number of tokens.",
        _NO_CURE,
    ),
    # sent in another place
    "media_moved": (
        "{target} does not support {media}; it was moved to the next user message.",
        "The API accepts media only in user messages.",
        _NO_CURE,
    ),
    "messages_merged": (
        "{target} does not support consecutive messages of one role; they were merged.",
        "Roles must alternate at this API.",
        _NO_CURE,
    ),
    "result_media_moved": (
        "{target} does not support media in a tool result; a user message follows with: {kinds}.",
        "The API accepts no media in results of tools.",
        _NO_CURE,
    ),
    "result_moved": (
        "The result was moved to directly after its tool call.",
        "A result must follow its call.",
        _IN_ORDER,
    ),
    "results_gathered": (
        "{target} requires the results of a turn in one message.",
        "The results of a turn must be in one message.",
        _IN_ORDER,
    ),
    "results_put_first": (
        "{target} requires results before other content of their message.",
        "Results must come before other content.",
        _IN_ORDER,
    ),
    "results_reordered": (
        "The results were put in the order of their tool calls.",
        "Results must be in the order of their calls.",
        _IN_ORDER,
    ),
    "tool_media_moved": (
        "{target} supports only text in tool messages; the {part} follows in a user message.",
        "Tool messages hold only text at this API.",
        _NO_CURE,
    ),
    # added, where something was missing
    "missing_result_added": (
        "The call of {tool!r} has no result; an error result was added.",
        "A call has no result, and the API requires one.",
        "Append a `Message.tool_result` for every call, or continue with `resume=`.",
    ),
    "placeholder_added": (
        "{target} requires {requirement}; {text!r} was added.",
        "The API does not accept an empty place.",
        _NO_CURE,
    ),
    # left out, because it was empty
    "blank_text_dropped": (
        "{target} does not support blank text; it was dropped.",
        "A part has only blanks.",
        _NO_CURE,
    ),
    "empty_message_dropped": (
        "The message is empty; it was dropped.",
        "A message has no content.",
        _NO_CURE,
    ),
    # left out, because the target does the same anyway
    "frequency_penalty_implied": _IMPLIED,
    "include_thinking_implied": _IMPLIED,
    "parallel_tool_calls_implied": _IMPLIED,
    "presence_penalty_implied": _IMPLIED,
    "reasoning_effort_implied": _IMPLIED,
    "strict_implied": _IMPLIED,
    "temperature_implied": _IMPLIED,
    "thinking_budget_implied": _IMPLIED,
    "tool_choice_implied": _IMPLIED,
    "top_p_implied": _IMPLIED,
    # left out, because only the model that made it could have used it
    "foreign_thinking_dropped": ("{reason}; the thinking was dropped.", *_THINKING),
    "stale_signatures_dropped": (
        "{reason}; the signatures in the message were dropped.",
        *_THINKING,
    ),
    "stale_thinking_dropped": ("{reason}; the thinking was dropped.", *_THINKING),
    "thinking_only_dropped": (
        "{target} does not support a message of thinking alone; the message was dropped.",
        "An answer was interrupted while it was thinking.",
        _NO_CURE,
    ),
    "trailing_thinking_dropped": (
        "{target} does not support thinking that nothing follows; it was dropped.",
        "An answer was interrupted while it was thinking.",
        _NO_CURE,
    ),
    "unpaired_thinking_dropped": (
        "{target} accepts thinking only with the part it came before; the thinking was dropped.",
        "The part that followed the thinking is no longer there.",
        "Keep whole messages when a history is cut.",
    ),
    "unsigned_thinking_dropped": ("{reason}; the thinking was dropped.", *_THINKING),
    # differences between two requests, found by `cache_prefix_diff`
    **{code: (_CACHE, *texts) for code, texts in _CACHE_CHANGES.items()},
}

_KINDS: tuple[tuple[WarningKind, Mapping[str, _Texts]], ...] = (
    ("content", _CONTENT),
    ("setting", _SETTINGS),
    ("history", _HISTORY),
    ("note", _NOTES),
)
WARNINGS: Mapping[str, WarningRow] = {
    code: WarningRow(kind, *texts) for kind, rows in _KINDS for code, texts in rows.items()
}
"""Every code that this library emits."""
