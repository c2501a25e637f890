"""
The facts of a dialect, as data.

Each dialect states one `Facts` record in its own folder. Everything outside that folder reads the
record and never asks for a dialect by name, so a dialect of another package works like ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua.spec.content import Json

Framing: TypeAlias = Literal["sse", "json-array"]
"""How a stream is cut into frames: server-sent events, or JSON objects one after another."""

SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})
"""The JSON types that are neither objects nor arrays."""


class HistoryRules(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """
    What a dialect, server or model accepts of a history.

    Every default accepts everything.
    """

    dialect: str
    """The dialect whose `extra` fields and opaque blocks count as the target's own."""
    model: str = ""
    """The model that will read the history; empty if it does not matter."""

    # calls
    paired_calls: bool = False
    """Every call must have one result, and every result its call."""
    stored: bool = False
    """Earlier turns are kept by the server: a result may answer a call that is not here."""
    stored_options: tuple[str, ...] = ()
    """Provider options that say so: a request with one of them has its earlier turns there."""
    call_id: str | None = None
    """A regular expression that the whole of a call's id must match."""
    call_name: str | None = None
    """The same for the name of the tool that was called."""
    unique_call_ids: Literal["no", "turn", "history"] = "no"
    """Within what no two calls may have the same id; there an empty id is none either."""
    valid_arguments: bool = False
    """A call's arguments must be an object."""
    calls_last: bool = False
    """Calls stand after whatever else their message holds."""
    signed_calls: bool = False
    """The first call of a message must carry a signature, in `signature_field`."""
    signature_field: str = ""
    """The field of a part's `extra` that holds the signature of the thought it came with."""
    unchecked_signature: str = ""
    """The signature that the provider documents as valid for calls it did not make."""

    # results
    results: Literal["anywhere", "next"] = "anywhere"
    """Where the results of a turn may stand: after it, or right after it and together."""
    joins_roles: bool = False
    """Consecutive messages of the model are one turn to the server."""
    ordered_results: bool = False
    """Results stand in the order of their calls."""
    results_first: bool = False
    """Results stand before whatever else their message holds."""
    gather_results: bool = False
    """Results that stand together must be in one message."""
    result_media: bool = True
    """A result may hold images, sounds and documents."""

    # messages
    least: Literal["nothing", "message", "turn"] = "nothing"
    """What a history must hold at least: a message of any kind, or one that is no prompt."""
    merge_roles: bool = False
    """Consecutive messages of one role must be one message."""
    results_as_user: bool = False
    """Results are said in the user's role."""
    inline_system: bool = True
    """A system or developer message may come after the conversation has begun."""

    # parts
    empty_text: bool = True
    """A text may be empty or blank, and a failed result without content."""
    empty_messages: bool = True
    """A message may hold nothing."""
    empty_prompt: bool = True
    """A system prompt may hold nothing."""
    lone_surrogates: bool = True
    """Text may hold half of a surrogate pair."""
    lone_documents: bool = True
    """A document may stand in a message without text."""
    foreign_blocks: bool = True
    """Opaque blocks of other dialects are welcome."""

    media: Mapping[str, tuple[str, ...]] = {}
    """Of a kind of media, the forms it takes (`url`, `data`, `file_id`, `text`), if not all."""

    # thinking
    thinking: Literal["any", "native", "none"] = "any"
    """Whose thoughts it reads: everybody's, its own dialect's, or nobody's."""
    unmarked_thinking: tuple[str, ...] = ("signed", "redacted", "encrypted", "plain")
    """Which thoughts without a maker's mark count as its own."""
    thinking_per_model: bool = False
    """A thought and its signatures are good only for the model that made them."""
    signed_thinking: bool = False
    """A thought must be signed or redacted."""
    trailing_thinking: bool = True
    """A thought may be the last thing the model made in a turn."""
    thinking_only: bool = True
    """A message may hold nothing but thoughts."""
    paired_thinking: bool = False
    """A thought may come back only with the part it stood before."""
    bound: tuple[str, ...] = ()
    """The fields of a part's `extra` that are good only beside the thought it came with."""


class SchemaRules(msgspec.Struct, frozen=True, kw_only=True):
    """
    What one target accepts of JSON Schema.

    A keyword of the vocabulary in none of the three sets is moved to the description as a
    hint. What is not of the vocabulary may be newer than this list, and is left alone; only
    extensions (`x-…`) are removed, which tell a model nothing.
    """

    name: str
    keywords: frozenset[str]
    """Accepted, and left alone."""
    silent: frozenset[str]
    """Removed without a hint: they tell a model nothing."""
    blocking: frozenset[str] = frozenset()
    """To remove them would change the meaning: with them, no strict schema is possible."""
    formats: frozenset[str] | None = None
    """The accepted formats of a string; None for any."""
    pointed: frozenset[str] = frozenset({"$defs"})
    """The keywords of the root that a `$ref` may point into."""
    enum_types: frozenset[str] = SCALARS
    """The types an `enum` may list."""
    max_min_items: int | None = None
    """The largest `minItems` accepted."""
    lookaround: bool = True
    """Whether a `pattern` may look around."""
    strict: bool = False
    """Whether objects must be closed and every schema must say what it is."""
    all_required: bool = False
    """Whether every property must be required, so that optional ones become nullable."""
    typed_values: bool = False
    """Whether an `enum` or `const` needs a `type` beside it."""
    typed_items: bool = False
    """Whether an array must describe its items."""
    inline_root: bool = False
    """Whether the root must say what it is in place, not by `$ref`."""
    object_root: bool = False
    """Whether the root must be an object, and no union."""
    optional_cycles: bool = False
    """Whether a `$ref` that closes a circle may only be in a property that is not required."""


class CacheStep(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a cached prompt depends on."""

    fields: tuple[str, ...]
    """Where it stands in a body, by any of its names; a dot leads into an object."""
    code: str
    """The warning that names a change of it."""
    cost: str
    """What a change of it costs."""
    default: Json = None
    """The value that the provider assumes where the field is absent."""


class CacheRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a provider is asked to keep a prompt, and what a kept prompt depends on."""

    mark: str = ""
    """The field that marks the end of a prefix to keep; empty if the provider takes no marks."""
    marked_places: tuple[str, ...] = ()
    """The fields of a body that may hold marks, the last one the provider reads first."""
    marked_blocks: tuple[str, ...] = ()
    """The types of content blocks that may carry a mark."""
    key: str = ""
    """The field that leads the calls of one conversation to the same cache; empty if none."""
    fields: tuple[str, ...] = ()
    """The fields of a body that ask for caching, as `explain` shows them."""
    order: tuple[CacheStep, ...] = ()
    """What comes before the messages, in the order in which the provider reads it."""
    messages: str = "messages"
    """The field that holds the messages."""
    stored: tuple[str, ...] = ()
    """The fields that name earlier messages at the provider: what begins is then not here."""
    first_image: bool = False
    """The first image of a conversation makes the provider read every message anew."""


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """How a provider that broke off its answer is asked for the rest of it."""

    reason: str
    """The raw finish reason of an answer that goes on."""
    token: tuple[str, ...]
    """Where the response's `extra` holds the token for the rest, name by name."""
    option: str
    """The provider option in which the same request, sent again, carries the token."""


def _unchanged(body: Json) -> Json:
    return body


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is true of one dialect, beyond its functions."""

    name: str
    history: HistoryRules
    """What it accepts of a history, as far as its servers agree."""
    schema: SchemaRules | None = None
    """What it accepts of JSON Schema in strict tools and formats; None for all of it."""
    json_mode: bool = True
    """Whether it can ask for any JSON object; if not, an instruction asks for it."""
    cache: CacheRules = CacheRules()
    framings: tuple[Framing, ...] = ("sse",)
    """The framings of its streams. A reply of JSON is a stream only where `json-array` is one."""
    paused: tuple[str, ...] = ()
    """The raw finish reasons of a turn that the provider paused: it is asked to go on."""
    continuation: Continuation | None = None
    token_family: str = ""
    """The row of token rates for models whose id tells nothing."""
    quirks: type[msgspec.Struct] | None = None
    """The record of how its servers differ from each other; None if they do not."""
    history_quirks: Callable[[Any], Mapping[str, Any]] | None = None
    """The fields of `history` that such a record changes."""
    sealed_field: str = ""
    """The field that comes back unread, in which a server can keep state of its own."""
    normal_request: Callable[[Json], Json] = _unchanged
    """A request body with defaults left out and shorthand written long, to compare bodies."""
    normal_response: Callable[[Json], Json] = _unchanged
    """The same for a response body."""
