"""
Warnings: every code with its kind and its sentence, the list that collects them, the loss policy.

A warning says that a request was changed so that its target accepts it. Its kind decides what
the loss policy (`on_loss`) does about it:

- `content`: something the request asks for is lost: media, a tool, a forced tool choice, a
  response format. In the current turn this raises by default.
- `setting`: a setting was dropped or changed. It raises only under `"strict"`.
- `history`: something in the conversation was dropped or changed. It raises only under `"strict"`.
- `note`: the meaning is kept. It never raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from interlingua.spec.errors import UnsupportedError, UnsupportedToolChoiceError
from interlingua.spec.response import Warning

if TYPE_CHECKING:
    from interlingua.spec.request import OnLoss, Request

WarningKind: TypeAlias = Literal["content", "setting", "history", "note"]


class WarningRow(NamedTuple):
    """A row of the table of warnings."""

    kind: WarningKind
    sentence: str
    """A `str.format` template; `{target}` is the provider and model, or the dialect."""


_NO_MEDIA = "{target} does not support {media}; the {part} was dropped."
_CONTENT = {
    "audio_dropped": _NO_MEDIA,
    "builtin_tool_dropped": (
        "{target} does not have the built-in tool {tool}, which is a tool of {owner}; it was "
        "dropped."
    ),
    "document_dropped": _NO_MEDIA,
    "image_dropped": _NO_MEDIA,
    "prefill_replaced": (
        "{target} does not continue a message of the assistant; a user message asks for it."
    ),
    "response_format_dropped": (
        "{target} has no way to enforce this schema; the response format was dropped."
    ),
    "tool_choice_dropped": (
        "Tool choice {mode!r} needs tools, and the request has none; the choice was dropped."
    ),
    "tool_choice_relaxed": (
        "{target} does not support tool choice {mode!r}{when}; the model may choose."
    ),
    "tools_dropped": "{target} does not support tools{when}; all tools were dropped.",
}

_NO_SETTING = "{target} does not support `{setting}`{when}; the setting was dropped."
_SETTINGS = {
    "budget_as_effort": (
        "{target} does not support `thinking_budget`; reasoning effort {effort!r} was sent."
    ),
    "detail_dropped": "{target} does not support an image `detail`; it was dropped.",
    "effort_lowered": ("{target} does not support reasoning effort {effort!r}; {sent} was sent."),
    "effort_raised": "{target} does not support reasoning effort {effort!r}; {sent} was sent.",
    "file_name_dropped": "{target} does not support file names; the name was dropped.",
    "frequency_penalty_dropped": _NO_SETTING,
    "hosted_option_dropped": (
        "{target} has no option {option!r} of the tool {tool!r}; the option was dropped."
    ),
    "image_size_changed": "{target} does not make images of {asked}; {sent} was asked for.",
    "include_thinking_dropped": _NO_SETTING,
    "json_mode_as_instruction": (
        "{target} has no JSON mode; an instruction to answer with one JSON object was sent."
    ),
    "logprobs_dropped": _NO_SETTING,
    "max_tokens_dropped": _NO_SETTING,
    "max_tokens_lowered": "{target} returns at most {limit} tokens; `max_tokens` was lowered.",
    "max_tokens_raised": (
        "{target} counts thinking within `max_tokens`; {sent} was sent to leave room for it."
    ),
    "metadata_dropped": _NO_SETTING,
    "name_dropped": "{target} does not support names of speakers; the name was dropped.",
    "options_dropped": "Options of {owner} do not apply to {target} and were dropped: {names}.",
    "options_not_restored": (
        "The session was saved without {names}, which cannot be saved, and loaded without them; "
        "they were not used."
    ),
    "options_unknown": (
        "{name!r} in `provider_options` is no known provider or dialect{hint}; its options were "
        "not sent."
    ),
    "parallel_tool_calls_dropped": _NO_SETTING,
    "presence_penalty_dropped": _NO_SETTING,
    "reasoning_effort_dropped": _NO_SETTING,
    "schema_narrowed": "{rules} does not enforce the whole schema: {losses}.",
    "schema_not_strict": (
        "{rules} would change the meaning of the schema ({reason}); it was sent without `strict`."
    ),
    "seed_dropped": _NO_SETTING,
    "setting_dropped": _NO_SETTING,
    "stop_sequences_cut": (
        "{target} supports at most {limit} stop sequences; the others were dropped."
    ),
    "stop_sequences_dropped": _NO_SETTING,
    "strict_dropped": "{target} supports at most {limit} strict tools; `strict` was dropped.",
    "structured_output_fallback": (
        "{target} does not enforce this schema; an instruction to follow it was sent."
    ),
    "temperature_dropped": _NO_SETTING,
    "temperature_lowered": "{target} supports a temperature of at most {limit:g}; it was lowered.",
    "thinking_budget_dropped": _NO_SETTING,
    "thinking_budget_lowered": (
        "{target} does not support a thinking budget of {budget}; {sent} was sent."
    ),
    "thinking_budget_raised": (
        "{target} does not support a thinking budget of {budget}; {sent} was sent."
    ),
    "thinking_off_for_tools": (
        "{target} cannot call tools while it thinks; reasoning effort 'none' was sent."
    ),
    "tool_left_out": "The tool {tool!r} of MCP server {server} is not available: {reason}.",
    "top_k_dropped": _NO_SETTING,
    "top_p_dropped": _NO_SETTING,
    "user_dropped": _NO_SETTING,
    "verbosity_dropped": _NO_SETTING,
}

_HISTORY = {
    "aborted_call_dropped": (
        "The turn was cut short and {tool!r} did not run; the tool call was dropped."
    ),
    "aborted_result_dropped": (
        "The tool call that this result answers was cut short; the result was dropped."
    ),
    "call_as_text": "{target} does not support tools; the call and its result were sent as text.",
    "calls_put_last": "{target} has tool calls only at the end of a message; they were moved.",
    "emptied_message_dropped": (
        "{target} supports none of the message's content; the message was dropped."
    ),
    "foreign_block_dropped": "{target} does not support a block of {owner}; it was dropped.",
    "history_summarized": (
        "The history was longer than the context window; a summary of its {count} oldest messages "
        "was sent in their place."
    ),
    "history_truncated": (
        "The history was longer than the context window; its {count} oldest messages were not sent."
    ),
    "misplaced_call_dropped": (
        "A {role} message cannot hold a tool call; the tool call was dropped."
    ),
    "misplaced_part_dropped": "{target} does not support {part} {place}; it was dropped.",
    "seal_dropped": "{reason}; the sealed state was not sent to {target}.",
    "orphan_result_dropped": (
        "No earlier tool call is waiting for this result; the result was dropped."
    ),
    "result_media_as_text": (
        "{target} does not support {media} in a tool result; a text note was sent instead."
    ),
    "surrogates_replaced": "A lone surrogate is not valid text; it was replaced by U+FFFD.",
    "system_folded": (
        "{target} does not support a {role} message in this place; it was sent as user text."
    ),
    "tool_name_mapped": "{target} rejects the tool name {name!r}; {sent!r} was sent.",
    "tool_text_as_user": (
        "{target} supports only results in a tool message; the rest was sent as a user message."
    ),
    "unanswered_call_dropped": "The tool call has no result; the tool call was dropped.",
    "unsigned_call_as_text": (
        "{target} requires a signature on tool calls; the unsigned call was sent as text."
    ),
}

_IMPLIED = "{target} does not support `{setting}`; it does what was asked by default."
_CACHE = "{path} {change}; {effect}."
_NOTES = {
    # about the answer
    "answer_not_accepted": (
        "The answer was not accepted ({reason}), but no other model was left that answered."
    ),
    "answer_rejected": ("The answer of {target} was not accepted ({reason})."),
    "answer_replaced": (
        "A middleware replaced the answer after parts of another answer had been shown."
    ),
    "image_price_apart": (
        "The image model that {target} called is billed apart; its price is not in the cost."
    ),
    "input_truncated": "The input was too long; only its beginning was read.",
    "model_deprecated": "{target} {state}; {advice}.",
    "model_failed": "{target} did not answer ({reason}).",
    "model_skipped": "{target} cannot take the request ({reason}); it was skipped.",
    "tool_rounds_exhausted": (
        "The run ended after {rounds} tool rounds, and calls of {names} were not run. Raise "
        "`max_tool_rounds`, or continue with `resume=`."
    ),
    "usage_limited": (
        "The provider reported {part} {name} tokens but only {whole} {side} tokens; {whole} were "
        "counted. Its own figures are in `usage.raw`."
    ),
    "usage_negative": (
        "The provider reported {value} for {name}; 0 was counted. Its own figures are in "
        "`usage.raw`."
    ),
    "price_unknown": (
        "The cost is unknown: there is no price for {target}{tier}. Pass `prices=` with its rates."
    ),
    "usage_estimated": "{target} reported no usage; the token counts are estimates.",
    "video_length_unknown": (
        "{target} does not say how long the video is, so its usage and cost are unknown. Pass the "
        "`VideoJob` that `create` returned, or its JSON, not only the id."
    ),
    # changed by a behaviour, which the caller has set
    "first_turn_not_forced": (
        "{target} does not support tool choice 'required' here; the first turn was not forced."
    ),
    "tools_over_limit": (
        "{count} of {total} tools were not sent, because `max_tools` of {target} is {limit}: "
        "{names}."
    ),
    # sent in another form, with nothing left out
    "api_version_chosen": (
        "{target} supports `{setting}` only in some versions of its API; {version} was used."
    ),
    "allowed_tools_narrowed": (
        "{target} has no list of allowed tools; only the allowed tools were sent."
    ),
    "arguments_wrapped": (
        "The arguments are not a JSON object; they were sent in one, under 'input'."
    ),
    "call_id_made": "{problem}; {sent!r} was sent.",
    "call_id_mapped": "{target} rejects the tool call id {id!r}; {sent!r} was sent.",
    "custom_tool_as_function": (
        "{target} does not support free-text tools; a function with one text was sent."
    ),
    "deferred_tools_sent": (
        "{target} cannot search for tools; {count} deferred tools were sent: {names}."
    ),
    "deferred_tools_withheld": (
        "{count} deferred tools were not sent, because no result has named them yet: {names}."
    ),
    "developer_as_system": "{target} has no developer role; a system message was sent.",
    "document_as_plain_text": (
        "{target} knows only plain text documents; the {media_type} document was sent as one."
    ),
    "document_as_text": "{target} does not support text documents; the text was sent.",
    "effort_as_budget": (
        "{target} does not support `reasoning_effort`; a thinking budget of {budget} was sent."
    ),
    "foreign_thinking_as_text": "{reason}; the thinking was sent as text.",
    "namespace_as_name": "{target} has no namespaces; the tool {tool!r} was sent as {sent!r}.",
    "option_unknown": "{name!r} is no known option of {owner}{hint}; it was sent unchanged.",
    "media_type_guessed": "{target} requires a media type for a URL; {media_type} was sent.",
    "refusal_as_text": "{target} does not support a refusal in this place; text was sent.",
    "stale_thinking_as_text": "{reason}; the thinking was sent as text.",
    "tool_error_as_text": "{target} has no error flag; the text of the result says it failed.",
    "tool_reference_as_text": "{target} has no references to tools; a text names them: {names}.",
    "tool_search_as_function": "{target} has no searches for tools; a function was sent.",
    "tools_withheld": (
        "{target} does not support tool choice 'none'{when}; the tools were not sent."
    ),
    "unsigned_call_marked": (
        "{target} requires a signature on tool calls; the documented placeholder was added."
    ),
    "unsigned_thinking_as_text": "{reason}; the thinking was sent as text.",
    "verbosity_as_instruction": "{target} has no `verbosity`; an instruction was sent.",
    "zero_budget_as_effort": "A thinking budget of 0 was sent as reasoning effort 'none'.",
    # sent in another place
    "media_moved": "{target} does not support {media}; it was moved to the next user message.",
    "messages_merged": (
        "{target} does not support consecutive messages of one role; they were merged."
    ),
    "result_media_moved": (
        "{target} does not support media in a tool result; a user message follows with: {kinds}."
    ),
    "result_moved": "The result was moved to directly after its tool call.",
    "results_gathered": "{target} requires the results of a turn in one message.",
    "results_put_first": "{target} requires results before other content of their message.",
    "results_reordered": "The results were put in the order of their tool calls.",
    "tool_media_moved": (
        "{target} supports only text in tool messages; the {part} follows in a user message."
    ),
    # added, where something was missing
    "missing_result_added": "The call of {tool!r} has no result; an error result was added.",
    "placeholder_added": "{target} requires {requirement}; {text!r} was added.",
    # left out, because it was empty
    "blank_text_dropped": "{target} does not support blank text; it was dropped.",
    "empty_message_dropped": "The message is empty; it was dropped.",
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
    "foreign_thinking_dropped": "{reason}; the thinking was dropped.",
    "stale_signatures_dropped": "{reason}; the signatures in the message were dropped.",
    "stale_thinking_dropped": "{reason}; the thinking was dropped.",
    "thinking_only_dropped": (
        "{target} does not support a message of thinking alone; the message was dropped."
    ),
    "trailing_thinking_dropped": (
        "{target} does not support thinking that nothing follows; it was dropped."
    ),
    "unpaired_thinking_dropped": (
        "{target} accepts thinking only with the part it came before; the thinking was dropped."
    ),
    "unsigned_thinking_dropped": "{reason}; the thinking was dropped.",
    # differences between two requests, found by `cache_prefix_diff`
    "cached_content_changed": _CACHE,
    "messages_changed": _CACHE,
    "model_changed": _CACHE,
    "prompt_cache_key_changed": _CACHE,
    "reasoning_effort_changed": _CACHE,
    "service_tier_changed": _CACHE,
    "system_changed": _CACHE,
    "text_format_changed": _CACHE,
    "thinking_changed": _CACHE,
    "tool_choice_changed": _CACHE,
    "tools_changed": _CACHE,
    "verbosity_changed": _CACHE,
}

_KINDS: tuple[tuple[WarningKind, Mapping[str, str]], ...] = (
    ("content", _CONTENT),
    ("setting", _SETTINGS),
    ("history", _HISTORY),
    ("note", _NOTES),
)
WARNINGS: Mapping[str, WarningRow] = {
    code: WarningRow(kind, sentence) for kind, rows in _KINDS for code, sentence in rows.items()
}
"""Every code that this library emits, with its kind and its sentence."""

MEDIA_DROPPED: Mapping[str, str] = {
    "audio": "audio_dropped",
    "document": "document_dropped",
    "image": "image_dropped",
}
"""The code for each kind of media."""

SETTING_DROPPED: Mapping[str, str] = {
    "frequency_penalty": "frequency_penalty_dropped",
    "include_thinking": "include_thinking_dropped",
    "logprobs": "logprobs_dropped",
    "max_tokens": "max_tokens_dropped",
    "metadata": "metadata_dropped",
    "parallel_tool_calls": "parallel_tool_calls_dropped",
    "presence_penalty": "presence_penalty_dropped",
    "reasoning_effort": "reasoning_effort_dropped",
    "seed": "seed_dropped",
    "stop_sequences": "stop_sequences_dropped",
    "temperature": "temperature_dropped",
    "thinking_budget": "thinking_budget_dropped",
    "top_k": "top_k_dropped",
    "top_p": "top_p_dropped",
    "user": "user_dropped",
    "verbosity": "verbosity_dropped",
}
"""The code for each setting that may be dropped."""

SETTING_IMPLIED: Mapping[str, str] = {
    "frequency_penalty": "frequency_penalty_implied",
    "include_thinking": "include_thinking_implied",
    "parallel_tool_calls": "parallel_tool_calls_implied",
    "presence_penalty": "presence_penalty_implied",
    "reasoning_effort": "reasoning_effort_implied",
    "strict": "strict_implied",
    "temperature": "temperature_implied",
    "thinking_budget": "thinking_budget_implied",
    "tool_choice": "tool_choice_implied",
    "top_p": "top_p_implied",
}
"""The code for each setting that may be left out because the target does the same anyway."""


def make_warning(code: str, path: str | None = None, **fields: Any) -> Warning:
    """A warning with the sentence of its row."""
    message = WARNINGS[code].sentence.format(path=path, **fields)
    return Warning(code=code, message=message, path=path)


def target_name(request: Request, dialect: str) -> str:
    """What warnings call the target: provider and model, as far as they are known."""
    provider, model = request.provider, request.model
    if provider and model:
        return f"{provider}:{model}"
    return model or provider or dialect


class WarningList:
    """
    Collects warnings while a request is prepared and encoded.

    `message`, `part` and `inner` are a cursor: the loops over messages, parts and parts of
    results set them, and a path is written only when a warning is added.
    """

    __slots__ = ("inner", "message", "origin", "part", "target", "warnings")

    def __init__(self, target: str = "the target") -> None:
        self.target: str = target
        self.warnings: list[Warning] = []
        self.message: int = 0
        self.part: int | None = None
        self.inner: int | None = None
        self.origin: Callable[[str], str | None] | None = None
        """Maps a path in the request as it is sent to the path in the request as it came."""

    def add(self, code: str, path: str | None = None, **fields: Any) -> None:
        """Add a warning about the place at `path`."""
        if self.origin is not None and path is not None:
            path = self.origin(path)
        self.warnings.append(make_warning(code, path, target=self.target, **fields))

    def add_here(self, code: str, **fields: Any) -> None:
        """Add a warning about the part at the cursor."""
        path = self.message_path()
        if self.part is not None:
            path = f"{path}.content[{self.part}]"
            if self.inner is not None:
                path = f"{path}.content[{self.inner}]"
        self.add(code, path, **fields)

    def message_path(self) -> str:
        """The path of the message at the cursor."""
        return f"messages[{self.message}]"

    def setting_dropped(self, name: str, when: str = "", path: str | None = None) -> None:
        """Add a warning about a dropped setting; `when` is a clause such as ` while thinking`."""
        self.add(SETTING_DROPPED[name], path or name, setting=name, when=when)

    def setting_implied(self, name: str, path: str | None = None) -> None:
        """Add a note about a setting that was left out because the target does the same anyway."""
        self.add(SETTING_IMPLIED[name], path or name, setting=name)

    def media_dropped(self, kind: str, media: str) -> None:
        """
        Add a warning about media at the cursor; `media` says what is not supported.

        Of a tool's result, media must be replaced by a text note.
        """
        if self.inner is None:
            self.add_here(MEDIA_DROPPED[kind], part=kind, media=media)
        else:
            self.add_here("result_media_as_text", media=media)


# The loss policy.


_message_index = re.compile(r"messages\[(\d+)\]").match
_is_part = re.compile(r"messages\[\d+\]\.content\[\d+\]").fullmatch
_FORCED = ("required", "named")
_PROMPTS = ("system", "developer")


def kind_of(warning: Warning) -> WarningKind:
    """The kind of a warning; a code that is not in the table counts as a dropped setting."""
    row = WARNINGS.get(warning.code)
    return "setting" if row is None else row.kind


def is_loss(warning: Warning) -> bool:
    """Whether something was dropped or changed its meaning."""
    return kind_of(warning) != "note"


def raising_losses(
    warnings: Iterable[Warning], request: Request, on_loss: OnLoss = "content"
) -> list[Warning]:
    """The warnings for which this loss policy refuses the request."""
    if on_loss == "warn":
        return []
    if on_loss == "strict":
        return [warning for warning in warnings if is_loss(warning)]
    return [warning for warning in warnings if _is_asked_now(warning, request)]


def check_losses(
    warnings: Iterable[Warning], request: Request, on_loss: OnLoss = "content"
) -> None:
    """Raise `UnsupportedError` if this loss policy refuses the request; it lists every loss."""
    losses = raising_losses(warnings, request, on_loss)
    if not losses:
        return
    sentences = " ".join(f"{warning.message} [{warning.code}]" for warning in losses)
    about_choice = any(warning.code.startswith("tool_choice") for warning in losses)
    error = UnsupportedToolChoiceError if about_choice else UnsupportedError
    raise error(
        f"the request was not sent, because on_loss={on_loss!r} does not allow these losses: "
        f"{sentences} Use another model, or send it anyway with on_loss='warn'."
    )


def current_turn_first(warnings: Iterable[Warning], request: Request) -> tuple[Warning, ...]:
    """The warnings, those about earlier messages last."""
    found = tuple(warnings)
    if len(found) < 2:
        return found
    first = _current_turn(request)
    return tuple(sorted(found, key=lambda warning: _is_earlier(warning, first)))


def _is_asked_now(warning: Warning, request: Request) -> bool:
    """Whether the loss is of something that the current turn asks for."""
    if kind_of(warning) != "content":
        return False
    if warning.code.startswith("tool_choice"):
        return request.tool_choice is not None and request.tool_choice.mode in _FORCED
    path = warning.path or ""
    if not path.startswith("messages["):
        return True
    # Media that a tool returned is not the user's, and a run must not fail after its side effects.
    found = _is_part(path) and _message_index(path)
    if not found:
        return False
    index = int(found[1])
    role = request.messages[index].role
    if role in _PROMPTS:
        return True  # instructions apply to every turn
    return index >= _current_turn(request) and role == "user"


def _is_earlier(warning: Warning, first: int) -> bool:
    found = _message_index(warning.path or "")
    return found is not None and int(found[1]) < first


def _current_turn(request: Request) -> int:
    """The index of the first of the last user messages."""
    messages = request.messages
    first = len(messages)
    while first and messages[first - 1].role != "user":
        first -= 1
    while first and messages[first - 1].role not in ("assistant", "tool"):
        first -= 1
    return first
