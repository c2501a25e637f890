"""What a target accepts of a history, and what the caller wants done with the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request


class Target(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """What a dialect, server or model accepts of a history; every default accepts everything."""

    dialect: str
    model: str = ""
    """The model that will read the history; empty if it does not matter."""

    # calls
    paired_calls: bool = False
    """Every call must have one result, and every result its call."""
    stored: bool = False
    """Earlier turns are kept by the server: a result may answer a call that is not here."""
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
    """The first call of a message must carry a `thoughtSignature`."""

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


class RepairPolicy(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """What to do where a repair can be made in more than one way."""

    unanswered: Literal["error", "drop"] = "error"
    """A call without a result gets one that says so, or is left out."""
    foreign_thinking: Literal["drop", "text"] = "drop"
    """A thought the target cannot take back is left out, or said as text."""
    unsigned_calls: Literal["sentinel", "text"] = "sentinel"
    """A call that should be signed gets a signature that is not checked, or is told as text."""


DEFAULT_POLICY = RepairPolicy()

TARGETS: dict[str, Target] = {
    target.dialect: target
    for target in (
        Target(
            dialect="openai_responses",
            paired_calls=True,
            call_id=r"[\s\S]{1,64}",
            call_name=r"[A-Za-z0-9_-]{1,128}",
            unique_call_ids="history",  # results find their call by id alone
            ordered_results=True,
            least="message",
            empty_messages=False,
            empty_prompt=False,
            lone_surrogates=False,
            foreign_blocks=False,
            media={"audio": ()},
            thinking="native",
            unmarked_thinking=("encrypted",),
            trailing_thinking=False,  # «provided without its required following item»
            paired_thinking=True,
            bound=("id", "status"),  # «provided without its required 'reasoning' item»
        ),
        Target(
            dialect="openai_chat",
            paired_calls=True,
            call_id=r"[\s\S]{1,64}",  # 40 at OpenAI itself
            call_name=r"[A-Za-z0-9_.:/-]{1,128}",
            unique_call_ids="turn",
            valid_arguments=True,  # it is text, but many servers parse it for their templates
            calls_last=True,  # they are a field beside the content
            results="next",
            ordered_results=True,
            result_media=False,
            least="message",
            empty_messages=False,
            empty_prompt=False,
            lone_surrogates=False,
            foreign_blocks=False,
            media={
                "image": ("url", "data"),
                "audio": ("data",),
                "document": ("data", "file_id", "text"),
            },
            thinking="native",
            unmarked_thinking=(),
            thinking_only=False,
        ),
        Target(
            dialect="anthropic_messages",
            paired_calls=True,
            call_id=r"[A-Za-z0-9_-]{1,64}",
            call_name=r"[A-Za-z0-9_-]{1,128}",
            unique_call_ids="turn",
            valid_arguments=True,
            results="next",
            joins_roles=True,
            ordered_results=True,
            results_first=True,
            gather_results=True,
            results_as_user=True,
            empty_text=False,
            least="turn",
            empty_messages=False,
            lone_surrogates=False,
            foreign_blocks=False,
            media={"audio": ()},
            thinking="native",
            unmarked_thinking=("signed", "redacted"),
            signed_thinking=True,
            trailing_thinking=False,  # «the final block in an assistant message cannot be thinking»
        ),
        Target(
            dialect="gemini_generate",
            paired_calls=True,
            call_id=r"[\s\S]+",
            call_name=r"[A-Za-z0-9_.:-]{1,128}",
            unique_call_ids="turn",
            valid_arguments=True,
            results="next",
            joins_roles=True,
            ordered_results=True,
            results_first=True,
            gather_results=True,
            results_as_user=True,
            inline_system=False,
            least="turn",
            empty_messages=False,
            empty_prompt=False,
            lone_surrogates=False,
            foreign_blocks=False,
            thinking="native",
            unmarked_thinking=("signed", "plain"),
            bound=("thoughtSignature",),
        ),
    )
}
"""What each dialect accepts, as far as its servers agree; a model's profile may say otherwise."""

_STORED = ("previous_response_id", "conversation", "prompt", "cachedContent")
_OPERATION = "path"


def find_target(target: Target | str) -> Target:
    """The target of this name; a target is itself."""
    if isinstance(target, Target):
        return target
    found = TARGETS.get(target)
    if found is None:
        raise ConfigurationError(f"unknown dialect {target!r}; use one of {', '.join(TARGETS)}")
    return found


def target_for(
    dialect: str,
    request: Request,
    profile: Profile,
    options: Mapping[str, Any],
    quirks: Mapping[str, Any] | None = None,
) -> Target:
    """
    What will read this request: its dialect's target, where the profile says no more.

    `quirks` are fields of the target in which one server differs.
    """
    target = TARGETS[dialect]
    facts = {} if profile is NEUTRAL_PROFILE else _facts(request, profile)
    if options and not options.keys().isdisjoint(_STORED):
        facts["stored"] = True
    if _OPERATION in options:  # to count tokens or make a cache, there need be nothing to answer
        facts["least"] = "nothing"
    if quirks:
        facts |= quirks
    return msgspec.structs.replace(target, **facts) if facts else target


def _facts(request: Request, profile: Profile) -> dict[str, Any]:
    """What a profile adds; a field that is neutral leaves the dialect's own word."""
    facts: dict[str, Any] = {}
    if profile.tool_call_id_pattern is not None:
        facts["call_id"] = profile.tool_call_id_pattern
    if profile.tool_result_types == ():
        facts["result_media"] = False
    if profile.signed_calls:
        facts["signed_calls"] = True
    if not profile.system_mid_conversation:
        facts["inline_system"] = False
    if profile.thinking_bound_to_model:
        facts |= {"thinking_per_model": True, "model": request.model}
    return facts
