"""Narrow a request to what its target takes: each change is a warning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import compress
from operator import ne
from typing import Any, TypeAlias, get_args

from msgspec.structs import astuple, replace

from interlingua.prepare.media import drop_media
from interlingua.prepare.options import options_for
from interlingua.prepare.thinking import (
    budget_below_max_tokens,
    budget_to_effort,
    drop_thinking,
    effort_to_budget,
    is_thinking,
    limit_budget,
    nearest_effort,
    thinking_mode,
    tools_before_thinking,
    zero_budget,
)
from interlingua.spec.contracts import Profile, Setting, StructuredOutput
from interlingua.spec.request import Request, ToolChoice, ToolDefinition
from interlingua.spec.warnings import Losses

Rule: TypeAlias = Callable[[Request, Profile, Losses], Request]
_Fields: TypeAlias = frozenset[str]

_SAMPLING = ("temperature", "top_p", "top_k")
_PENALTIES = ("frequency_penalty", "presence_penalty")
_USUAL = {  # what a model does when it is not told
    "temperature": 1,
    "top_p": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
}
_FORCED = ("required", "named")
_LOGPROBS = ("logprobs", "top_logprobs")
_LOGPROBS_INCLUDED = "message.output_text.logprobs"


def adjust_settings(request: Request, profile: Profile, losses: Losses) -> Request:
    """The request as the profile takes it; the same object if that changes nothing."""
    said = tuple(map(ne, astuple(request), _UNSAID))
    for rule in _due(said):
        request = rule(request, profile, losses)
    return request


def structured_output_mode(request: Request, profile: Profile) -> StructuredOutput | None:
    """How to get the asked JSON; None if no schema is asked for, or no way remains."""
    if request.response_format is None or request.response_format.type != "json_schema":
        return None
    native = profile.structured_output_with_tools or not request.tools
    ways = (way for way in profile.structured_output if native or way != "native")
    return next(ways, None)


# Lengths.


def limit_max_tokens(request: Request, profile: Profile, losses: Losses) -> Request:
    """More output than the model can give."""
    asked, most = request.max_tokens, profile.max_output_tokens
    if asked is None or most is None or asked <= most:
        return request
    losses.add("max_tokens_lowered", f"this model gives at most {most} tokens", "max_tokens")
    return replace(request, max_tokens=most)


def limit_stop_sequences(request: Request, profile: Profile, losses: Losses) -> Request:
    """More stop sequences than the target takes."""
    asked, most = request.stop_sequences, profile.stop_sequences
    if asked is None or most is None or len(asked) <= most:
        return request
    if most == 0:
        return _drop(request, ("stop_sequences",), "this model takes none", losses)
    message = f"at most {most} are taken; the others were left out"
    losses.add("stop_sequences_cut", message, f"stop_sequences[{most}]")
    return replace(request, stop_sequences=asked[:most])


# Settings.


def drop_sampling(request: Request, profile: Profile, losses: Losses) -> Request:
    """Sampling where it is never taken, or not in this version of the API."""
    if not profile.sampling:
        return _drop(request, _SAMPLING, "this model does not take it", losses)
    if profile.sampling_versions is not None:
        version = options_for(request, profile.dialect).get("version", profile.api_version)
        if version not in profile.sampling_versions:
            why = f"version {version} of the API does not take it"
            return _drop(request, _SAMPLING, why, losses)
    return request


def drop_while_thinking(request: Request, profile: Profile, losses: Losses) -> Request:
    """Settings that are not taken while the model thinks."""
    if not profile.rejected_while_thinking or not is_thinking(request, profile):
        return request
    why = "it is not taken while the model thinks"
    names = [name for name in profile.rejected_while_thinking if name != "logprobs"]
    request = _drop(request, names, why, losses)
    if "logprobs" in profile.rejected_while_thinking:
        request = _without_logprobs(request, profile, why, losses)
    return request


def limit_temperature(request: Request, profile: Profile, losses: Losses) -> Request:
    """A temperature above the target's scale."""
    asked, most = request.temperature, profile.max_temperature
    if asked is None or most is None or asked <= most:
        return request
    losses.add("temperature_lowered", f"the highest taken here is {most:g}", "temperature")
    return replace(request, temperature=most)


def drop_settings(request: Request, profile: Profile, losses: Losses) -> Request:
    """Settings this model or server does not have."""
    names: list[str] = []
    if not profile.penalties:
        names += _PENALTIES
    names += [name for name in ("seed", "n", "verbosity") if not getattr(profile, name)]
    return _drop(request, names, "it is not taken here", losses)


def drop_logprobs(request: Request, profile: Profile, losses: Losses) -> Request:
    """Probabilities of tokens, which are asked for among a dialect's own options."""
    if profile.logprobs:
        return request
    return _without_logprobs(request, profile, "it is not taken here", losses)


# Tools.


def drop_tools(request: Request, profile: Profile, losses: Losses) -> Request:
    """Tools for a model that calls none."""
    if profile.tools or not request.tools:
        return request
    losses.add("tools_dropped", "this model calls no tools", "tools")
    return _without_tools(request)


def drop_strict(request: Request, profile: Profile, losses: Losses) -> Request:
    """The promise that a tool's input fits its schema, where it cannot be made (so often)."""
    most = profile.max_strict_tools if profile.strict_tools else 0
    if most is None or not request.tools:
        return request
    tools = list(request.tools)
    marked = 0
    for i, tool in enumerate(tools):
        if isinstance(tool, ToolDefinition) and tool.strict is not None:
            marked += tool.strict
            if profile.strict_tools and marked <= most:
                continue
            code = "strict_dropped" if tool.strict else "strict_implied"
            losses.add(code, f"at most {most} tools may be strict here", f"tools[{i}].strict")
            tools[i] = replace(tool, strict=None)
    changed = any(new is not old for new, old in zip(tools, request.tools, strict=True))
    return replace(request, tools=tuple(tools)) if changed else request


def choice_without_tools(request: Request, profile: Profile, losses: Losses) -> Request:
    """A choice among no tools."""
    if profile.tool_choice_without_tools or request.tools:
        return request
    message = "there are no tools to choose among"
    if request.tool_choice is not None:
        forced = request.tool_choice.mode in _FORCED
        code = "tool_choice_dropped" if forced else "tool_choice_implied"
        losses.add(code, message, "tool_choice")
        request = replace(request, tool_choice=None)
    if request.parallel_tool_calls is not None:
        losses.add("parallel_tool_calls_implied", message, "parallel_tool_calls")
        request = replace(request, parallel_tool_calls=None)
    return request


def relax_tool_choice(request: Request, profile: Profile, losses: Losses) -> Request:
    """A choice the model refuses, always or while it thinks."""
    choice = request.tool_choice
    if choice is None:
        return request
    known = profile.tool_choice_modes
    why = ""
    if known is None or choice.mode in known:
        if not profile.thinking_tool_choice or not is_thinking(request, profile):
            return request
        mode = thinking_mode(request, profile) or "adaptive"
        known, why = profile.thinking_tool_choice.get(mode), " while the model thinks"
        if known is None or choice.mode in known:
            return request
    if choice.mode == "none":
        message = f"tool choice 'none' is not accepted{why}; the tools were not sent"
        losses.add("tools_withheld", message, "tool_choice")
        return _without_tools(request)
    message = f"tool choice {choice.mode!r} is not accepted{why}; the model may choose"
    losses.add("tool_choice_relaxed", message, "tool_choice")
    always = profile.tool_choice_modes
    may_choose = "auto" in known and (always is None or "auto" in always)
    relaxed = ToolChoice(allowed=choice.allowed) if may_choose else None
    return replace(request, tool_choice=relaxed)


def drop_parallel(request: Request, profile: Profile, losses: Losses) -> Request:
    """Several calls at once, where they come one at a time."""
    if profile.parallel_tool_calls or request.parallel_tool_calls is None:
        return request
    state = "dropped" if request.parallel_tool_calls else "implied"
    message = "calls come one at a time here"
    losses.add(f"parallel_tool_calls_{state}", message, "parallel_tool_calls")
    return replace(request, parallel_tool_calls=None)


# Content.


def check_response_format(request: Request, profile: Profile, losses: Losses) -> Request:
    """A schema that cannot be asked for natively; who calls falls back to what remains."""
    form = request.response_format
    if form is None or form.type != "json_schema":
        return request
    way = structured_output_mode(request, profile)
    if way is None:
        message = "this model has no way to keep to a schema"
        losses.add("response_format_dropped", message, "response_format")
        return replace(request, response_format=None)
    if way != "native":
        message = f"no native structured output here; it remains to use a {way}"
        losses.add("structured_output_fallback", message, "response_format")
    return request


_THINKING = frozenset(("thinking_budget", "reasoning_effort"))  # each may be said as the other
_TOOLS = frozenset(("tools",))
_CHOICE = frozenset(("tool_choice",))
_PARALLEL = frozenset(("parallel_tool_calls",))
_OPTIONS = frozenset(("provider_options",))

RULES: tuple[tuple[Rule, _Fields], ...] = (
    (drop_thinking, _THINKING),
    (zero_budget, _THINKING),
    (budget_to_effort, _THINKING),
    (effort_to_budget, _THINKING),
    (nearest_effort, _THINKING),
    (drop_tools, _TOOLS),
    (tools_before_thinking, _TOOLS),
    (limit_budget, _THINKING),
    (limit_max_tokens, frozenset(("max_tokens",))),
    (budget_below_max_tokens, _THINKING),
    (limit_stop_sequences, frozenset(("stop_sequences",))),
    (drop_sampling, frozenset(_SAMPLING)),
    (drop_while_thinking, frozenset(get_args(Setting)) | _OPTIONS),
    (limit_temperature, frozenset(("temperature",))),
    (drop_settings, frozenset((*_PENALTIES, "seed", "n", "verbosity"))),
    (drop_logprobs, _OPTIONS),
    (drop_strict, _TOOLS),
    (choice_without_tools, _CHOICE | _PARALLEL),
    (relax_tool_choice, _CHOICE),
    (drop_parallel, _PARALLEL),
    (check_response_format, frozenset(("response_format",))),
    (drop_media, frozenset(("messages",))),
)
"""
In the order they are tried: tools are dropped before they could stop the thinking.

Each with the fields it is about: where none is said it need not run.
"""
_UNSAID = astuple(Request())


@lru_cache(maxsize=256)
def _due(said: tuple[bool, ...]) -> tuple[Rule, ...]:
    """The rules about the fields of a request that are said."""
    names = set(compress(Request.__struct_fields__, said))
    return tuple(rule for rule, about in RULES if not about.isdisjoint(names))


def _drop(request: Request, names: Iterable[str], why: str, losses: Losses) -> Request:
    gone = [name for name in names if getattr(request, name) is not None]
    if request.n == 1 and "n" in gone:
        gone.remove("n")  # every server takes one answer
    for name in gone:
        usual = getattr(request, name) == _USUAL.get(name)
        code = f"{name}_implied" if usual else f"{name}_dropped"
        losses.add(code, f"{why}; it was left out", name)
    return replace(request, **dict.fromkeys(gone)) if gone else request


def _without_tools(request: Request) -> Request:
    return replace(request, tools=None, tool_choice=None, parallel_tool_calls=None)


def _without_logprobs(request: Request, profile: Profile, why: str, losses: Losses) -> Request:
    if not request.provider_options:
        return request
    kept = dict(request.provider_options)
    for owner in (profile.dialect, request.provider or ""):
        options = kept.get(owner)
        if isinstance(options, Mapping) and (fewer := _other_options(options)) is not options:
            kept[owner] = fewer
            path = f"provider_options.{owner}"
            losses.add("logprobs_dropped", f"{why}; it was left out", path)
    same = all(kept[owner] is options for owner, options in request.provider_options.items())
    return request if same else replace(request, provider_options=kept)


def _other_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options that ask for no probabilities; the same object if none does."""
    asked = {name: options.get(name) for name in _LOGPROBS}
    gone = [name for name, value in asked.items() if value is not None and value is not False]
    included = options.get("include")
    among = isinstance(included, list) and _LOGPROBS_INCLUDED in included
    if not gone and not among:
        return options
    fewer = {name: value for name, value in options.items() if name not in gone}
    if among:
        fewer["include"] = [name for name in fewer["include"] if name != _LOGPROBS_INCLUDED]
    return fewer
