"""
The properties of a dialect, as data.

Each dialect has one `Facts` record in its own folder. Code outside that folder reads the record and
never checks the name of a dialect, so a dialect from another package works like the built-in ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from interlingua.spec.content import Json, Part, Record, Thinking, ToolType

Framing: TypeAlias = Literal["sse", "json-array", "aws-event-stream"]
"""
How a stream is split into frames: server-sent events, a sequence of JSON objects, or the binary
messages of AWS.
"""

SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})
"""The JSON types that are neither objects nor arrays."""


class HistoryRules(Record, frozen=True, kw_only=True):
    """
    Which histories a dialect, server or model accepts.

    Every default accepts everything.
    """

    dialect: str
    """The dialect of the target; `extra` fields and opaque blocks of others are foreign."""
    model: str = ""
    """The model that will read the history; empty if it makes no difference."""
    provider: str = ""
    """The provider that will read it; empty if that makes no difference, or is not known."""

    # calls
    tools: bool = True
    """Calls and results are accepted; if not, they are sent as text."""
    tool_types: tuple[ToolType, ...] = ("function", "custom", "search")
    """The types of tools that there are; the others are sent as functions."""
    namespaces: bool = True
    """Tools may be in namespaces; if not, they get names of their own."""
    tool_names: Mapping[tuple[str | None, str], str] = {}
    """The names of the tools of the request, by namespace and name."""
    paired_calls: bool = False
    """Every call must have exactly one result, and every result must have its call."""
    undeclared_calls: bool = True
    """
    Calls and results are accepted in a request without tools; if not, they are sent as text.

    A target that accepts none has no form for the tool choice `none` either: no tools are sent.
    """
    stored: bool = False
    """The server stores earlier turns: a result may belong to a call that is not in the history."""
    stored_options: tuple[str, ...] = ()
    """The provider options that refer to stored turns; with one of them, `stored` is true."""
    call_id: str | None = None
    """A regular expression that the whole id of a call must match."""
    call_name: str | None = None
    """A regular expression that the whole tool name of a call must match."""
    unique_call_ids: Literal["no", "turn", "history"] = "no"
    """The scope in which call ids must be unique and not empty."""
    valid_arguments: bool = False
    """The arguments of a call must be an object."""
    calls_last: bool = False
    """Calls must come after all other parts of their message."""
    signed_calls: bool = False
    """The first call of a message must have a signature, in `signature_field`."""
    signature_field: str = ""
    """The field in `extra` of a part that holds the signature of the thought before it."""
    unchecked_signature: str = ""
    """The placeholder that the provider documents for calls it did not create."""

    # results
    results: Literal["anywhere", "next"] = "anywhere"
    """Where results may be: anywhere after their call, or together in the next message."""
    joins_roles: bool = False
    """The server treats consecutive assistant messages as one turn."""
    ordered_results: bool = False
    """Results must be in the order of their calls."""
    results_first: bool = False
    """Results must come before all other parts of their message."""
    gather_results: bool = False
    """Consecutive results must be in one message."""
    result_media: bool = True
    """A result may contain images, audio and documents."""

    # messages
    least: Literal["nothing", "message", "turn"] = "nothing"
    """The minimum: nothing, any message, or a message that is not a system message."""
    user_first: bool = False
    """The first message that is not a system message must be from the user."""
    merge_roles: bool = False
    """Consecutive messages of one role, after the leading prompts, must be one message."""
    results_as_user: bool = False
    """Results are sent with the role `user`."""
    system: bool = True
    """System and developer messages are accepted; if not, they are sent as user text."""
    single_system: bool = False
    """Several leading system messages must be one message."""
    prefill: bool = True
    """The last message may be from the assistant."""
    paused: tuple[str, ...] = ()
    """The raw finish reasons of a paused turn: the request is sent again to continue it."""
    inline_system: bool = True
    """A system or developer message may come after the conversation has begun."""

    # parts
    empty_text: bool = True
    """Text may be empty or blank, and a failed result may have no content."""
    empty_messages: bool = True
    """A message may have no parts."""
    blank_prompts: bool = True
    """A system message may be blank."""
    empty_prompt: bool = True
    """A system message may have no parts."""
    lone_surrogates: bool = True
    """Text may contain lone surrogates."""
    lone_documents: bool = True
    """A message may contain a document without text."""
    foreign_blocks: bool = True
    """Opaque blocks of other dialects are accepted."""

    media: Mapping[str, tuple[str, ...]] = {}
    """The accepted sources (`url`, `data`, `file_id`, `text`) by kind of media; default: all."""

    media_roles: tuple[str, ...] = ("system", "developer", "user", "assistant", "tool")
    """The roles whose messages may contain media."""
    misplaced_media: Literal["keep", "drop", "move"] = "keep"
    """What happens to media in messages of other roles; `move` is to the next user message."""

    # thinking
    thinking: Literal["any", "native", "none"] = "any"
    """Which thinking parts are accepted: all, those of its own dialect, or none."""
    thinking_dialects: tuple[str, ...] = ()
    """Other dialects whose thinking is accepted as its own: the same models answer through them."""
    unmarked_thinking: tuple[str, ...] = ("signed", "redacted", "encrypted", "plain")
    """Which thinking parts of unknown origin are treated as its own."""
    thinking_per_model: bool = False
    """A thinking part and its signatures are valid only for the model that created them."""
    signed_thinking: bool = False
    """A thinking part must be signed or redacted."""
    bare_thinking: bool = True
    """A thinking part may be a mere reference: the server stores its content."""
    thinking_content: str = ""
    """The field in `extra` of a thinking part that holds its content as plain text."""
    trailing_thinking: bool = True
    """A thinking part may be the last part of a turn."""
    thinking_only: bool = True
    """A message may consist of thinking parts only."""
    paired_thinking: bool = False
    """A thinking part is valid only together with the part that followed it."""
    bound: tuple[str, ...] = ()
    """The fields in `extra` of a part that are valid only next to its thinking part."""


class SchemaRules(msgspec.Struct, frozen=True, kw_only=True):
    """
    Which JSON Schema keywords one target accepts.

    A known keyword in none of the three sets is moved to the description as a hint. An unknown
    keyword may be newer than this list and is kept; only extensions (`x-…`) are removed, because
    they tell a model nothing.
    """

    name: str
    keywords: frozenset[str]
    """Accepted, and kept."""
    silent: frozenset[str]
    """Removed without a hint: they tell a model nothing."""
    blocking: frozenset[str] = frozenset()
    """Removing them would change the meaning: a schema with one of them cannot be strict."""
    formats: frozenset[str] | None = None
    """The accepted values of `format`; None for all."""
    pointed: frozenset[str] = frozenset({"$defs"})
    """The root keywords that a `$ref` may point into."""
    enum_types: frozenset[str] = SCALARS
    """The types of values that an `enum` may list."""
    max_min_items: int | None = None
    """The maximum value of `minItems`."""
    lookaround: bool = True
    """Whether a `pattern` may use lookaround."""
    strict: bool = False
    """Whether objects must be closed and every schema must have a type."""
    all_required: bool = False
    """Whether every property must be required, so that optional ones become nullable."""
    typed_values: bool = False
    """Whether `enum` and `const` need a `type`."""
    typed_items: bool = False
    """Whether an array must describe its items."""
    object_root: bool = False
    """Whether the root must be an object and not a union."""
    root_references: bool = False
    """Whether the schema of a tool may be a reference at its root."""
    optional_cycles: bool = False
    """Whether a recursive `$ref` is accepted only in an optional property."""


class CacheStep(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a request that a cached prompt depends on."""

    fields: tuple[str, ...]
    """The body fields that hold it, under any of its names; a dot separates nested fields."""
    code: str
    """The code of the warning about a change."""
    cost: str
    """What a change costs."""
    default: Json = None
    """The value that the provider assumes where the field is absent."""


class CacheRules(msgspec.Struct, frozen=True, kw_only=True):
    """How prompt caching is requested, and what a cached prompt depends on."""

    mark: str = ""
    """The field that marks the end of a cached prefix; empty if there are no marks."""
    carried_mark: str = ""
    """The key in `extra` of a part or tool that had a mark; empty if it is `mark`."""
    marked_places: tuple[str, ...] = ()
    """The body fields that may contain marks, in reverse order of the prompt."""
    marked_blocks: tuple[str, ...] = ()
    """The types of content blocks that may have a mark."""
    key: str = ""
    """The field that routes the calls of a conversation to one cache; empty if there is none."""
    fields: tuple[str, ...] = ()
    """The body fields about caching, as `explain` shows them."""
    order: tuple[CacheStep, ...] = ()
    """What comes before the messages in the prompt, in order."""
    messages: str = "messages"
    """The field that holds the messages."""
    stored: tuple[str, ...] = ()
    """The fields that refer to stored messages; then the start of the prompt is not in the body."""
    first_image: bool = False
    """The first image of a conversation invalidates the cached messages."""


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """How to request the rest of a response that the provider interrupted."""

    reason: str
    """The raw finish reason of an interrupted response."""
    token: tuple[str, ...]
    """The path to the continuation token in `extra` of the response."""
    option: str
    """The provider option that holds the token when the request is sent again."""


class Carrier(NamedTuple):
    """What is in a thinking part that has state for a server."""

    text: str
    """The text that clients show."""
    value: str
    """The value of the opaque field."""
    number: int = 0
    """The number of such parts before it in the answer."""
    call_id: str = ""
    """The id of the call whose state it has; empty if it has other state."""


class SealedField(msgspec.Struct, frozen=True, kw_only=True):
    """
    The field of thinking that clients of a dialect return unchanged.

    Not every client returns thinking: the other places are those that more of them return.
    """

    name: str
    make: Callable[[Carrier], Thinking]
    """A thinking part with this text, and with this value in the field."""
    read: Callable[[Part], tuple[str, ...]]
    """The values of the field that a part has."""
    on_parts: bool = False
    """Whether any part of the model may have the field, in `extra`."""
    is_placed: bool = True
    """Whether thinking keeps its place among the other parts of a message."""
    call_path: tuple[str, ...] = ()
    """The path in `extra` of a call to another opaque field; empty if there is none."""
    id_length: int = 0
    """The most characters of the id of a call that may hold state; 0 if ids hold none."""
    ids_if_hidden: bool = False
    """Whether ids hold only the state of thinking without text, which some clients drop."""


def _unchanged(body: Json) -> Json:
    return body


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of one dialect, besides its functions."""

    name: str
    """The name of the dialect."""
    history: HistoryRules
    """Which histories all of its servers accept."""
    schema: SchemaRules | None = None
    """The JSON Schema rules for strict tools and formats; None if everything is accepted."""
    options: frozenset[str] | None = None
    """The known keys of its provider options; None if they are not known."""
    defers: str = ""
    """The field of its tools that defers them; empty if there is none."""
    json_mode: bool = True
    """Whether it can ask for any JSON object. If not, `prepare` adds an instruction."""
    only_strict_formats: bool = False
    """Whether a response format must be strict. If it cannot be, `prepare` adds an instruction."""
    cache: CacheRules = CacheRules()
    """How caching is requested, and what a cached prompt depends on."""
    framings: tuple[Framing, ...] = ("sse",)
    """The framings of its streams. A JSON reply is a stream only if `json-array` is listed."""
    names_model: bool = True
    """Whether its answers have an id, and name the model; if not, the request tells the model."""
    continuation: Continuation | None = None
    """How to request the rest of an interrupted response; None if there is no way."""
    default_max_tokens: int | None = None
    """
    The `max_tokens` of a request without one, beside its thinking, if nothing else is known.

    None if the API needs none.
    """
    length_options: tuple[str, ...] = ()
    """The provider options that limit the length of an answer in tokens."""
    token_family: str = ""
    """The row of token rates for models with an unknown id."""
    quirks: type[msgspec.Struct] | None = None
    """The type of record that describes how servers differ; None if they do not."""
    history_quirks: Callable[[Any], Mapping[str, Any]] | None = None
    """Returns the fields of `history` that such a record changes."""
    paths: tuple[str, ...] = ()
    """
    The endpoints of calls that generate, after the version; `{model}` is the name of the model.

    A base URL that ends in one of them is understood as the address before it.
    """
    sealed_field: SealedField | None = None
    """A field that clients return unchanged, in which a server can store state."""
    normal_request: Callable[[Json], Json] = _unchanged
    """Normalises a request body (defaults removed, shorthand expanded), to compare bodies."""
    normal_response: Callable[[Json], Json] = _unchanged
    """Normalises a response body."""
