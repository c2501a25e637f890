"""
The warnings of the kind `note`: the meaning is kept, and they never raise.

`warning_table` has the other kinds, and puts all together.
"""

from __future__ import annotations

from typing import TypeAlias

Texts: TypeAlias = tuple[str, str, str]
"""The sentence, the cause and the cure of a warning."""

_NO_CURE = "Nothing to do: the meaning is kept."
IN_ORDER = "Nothing to do. A history that was kept as the answers came is not changed."
_STABLE = "Keep what comes first the same from call to call, and append to it."
_CACHE = "{path} {change}; {effect}."
_IMPLIED = (
    "{target} does not support `{setting}`; it does what was asked by default.",
    "The API has no such setting, but does what was asked for anyway.",
    _NO_CURE,
)
_THINKING = (
    "Thinking is signed or encrypted by the model that made it, and another cannot read it.",
    "Nothing to do. Thinking is kept while the conversation stays at its model.",
)

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
NOTES: dict[str, Texts] = {
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
    "batch_result_repeated": (
        "The batch has several results for the request {request!r}; this is not the first.",
        "The provider has answered a request of a batch more than once, or repeats its result.",
        "Use the first result of each id.",
    ),
    "json_repaired": (
        "The answer of {target} is not JSON ({mistakes}); it was read as what it means.",
        "The model made a mistake that leaves only one reading, such as a trailing comma.",
        "Nothing to do. A model that keeps to a schema by itself makes no such mistake.",
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
    "key_missing": (
        "No API key for {target}: {advice}.",
        "`explain` needs no key, but the call itself would fail without one.",
        "Set the variable that the warning names, or pass `api_key=`.",
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
    "model_resolved": (
        "{name!r} is a short name; {target} was used.",
        "A short name stands for the newest model of that name in the catalog.",
        "Nothing to do, or name the model in full, which no later catalog changes.",
    ),
    "model_skipped": (
        "{target} cannot take the request ({reason}); it was skipped.",
        "A model of `Fallback` cannot express the request.",
        "Nothing to do, or choose models with the same abilities.",
    ),
    "system_beside_system": (
        "The prompt of `system=` was sent before the system message in `messages`: both are read.",
        "`system=` is given, and the messages begin with another system message.",
        "Pass one of the two, or join their texts.",
    ),
    "tool_rounds_exhausted": (
        (
            "The run ended after {rounds}, and calls of {names} were not run. Pass a larger "
            "`max_tool_rounds` (`generate` has 1 by default), or continue with `resume=`."
        ),
        "The model still wanted to call tools when `max_tool_rounds` was reached.",
        "Pass a larger `max_tool_rounds`, or continue with `resume=`.",
    ),
    "usage_limited": (
        (
            "The provider reported {part} {name} tokens but only {whole} {side} tokens; {whole} "
            "were counted. Its own figures are in `usage.raw`."
        ),
        "A host reports more cached tokens than tokens.",
        "Nothing to do; `usage.raw` has its figures.",
    ),
    "stream_end_missing": (
        "The stream ended after its finish reason, without usage or an end mark.",
        "A server leaves out `[DONE]`, or the connection was closed before it.",
        "Nothing to do, unless the answer ends too early: then look at the server's own log.",
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
    "document_renamed": (
        "{target} does not accept the document name {name!r}; {sent!r} was sent.",
        "The name has characters that the API refuses, or the suffix that it takes as a format.",
        "Nothing to do, or name the document with letters, digits, spaces and hyphens.",
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
        IN_ORDER,
    ),
    "results_gathered": (
        "{target} requires the results of a turn in one message.",
        "The results of a turn must be in one message.",
        IN_ORDER,
    ),
    "results_put_first": (
        "{target} requires results before other content of their message.",
        "Results must come before other content.",
        IN_ORDER,
    ),
    "results_reordered": (
        "The results were put in the order of their tool calls.",
        "Results must be in the order of their calls.",
        IN_ORDER,
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
    "user_turn_added": (
        "{target} requires a user message at the beginning; {text!r} was added before this one.",
        "The conversation begins with a message of the assistant, which the API does not accept.",
        _NO_CURE,
    ),
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
