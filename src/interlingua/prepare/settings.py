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
from interlingua.spec.warnings import WarningList

Rule: TypeAlias = Callable[[Request, Profile, WarningList], Request]
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
_THINKING_NOW = " while the model thinks"
_LOGPROBS = ("logprobs", "top_logprobs")
_LOGPROBS_INCLUDED = "message.output_text.logprobs"


def adjust_settings(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """The request as the profile takes it; the same object if that changes nothing."""
    said = tuple(map(ne, astuple(request), _UNSAID))
    for rule in _due(said):
        request = rule(request, profile, warnings)
    return request


def structured_output_mode(request: Request, profile: Profile) -> StructuredOutput | None:
    """How to get the asked JSON; None if no schema is asked for, or no way remains."""
    if request.response_format is None or request.response_format.type != "json_schema":
        return None
    native = profile.structured_output_with_tools or not request.tools
    ways = (way for way in profile.structured_output if native or way != "native")
    return next(ways, None)


# Lengths.


def limit_max_tokens(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """More output than the model can give."""
    asked, most = request.max_tokens, profile.max_output_tokens
    if asked is None or most is None or asked <= most:
        return request
    warnings.add("max_tokens_lowered", "max_tokens", limit=most)
    return replace(request, max_tokens=most)


def limit_stop_sequences(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """More stop sequences than the target takes."""
    asked, most = request.stop_sequences, profile.stop_sequences
    if asked is None or most is None or len(asked) <= most:
        return request
    if most == 0:
        return _drop(request, ("stop_sequences",), warnings)
    warnings.add("stop_sequences_cut", f"stop_sequences[{most}]", limit=most)
    return replace(request, stop_sequences=asked[:most])


# Settings.


def drop_sampling(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Sampling where it is never taken, or not in this version of the API."""
    if not profile.sampling:
        return _drop(request, _SAMPLING, warnings)
    if profile.sampling_versions is not None:
        version = options_for(request, profile.dialect).get("version", profile.api_version)
        if version not in profile.sampling_versions:
            return _drop(request, _SAMPLING, warnings, f" in version {version} of its API")
    return request


def drop_while_thinking(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Settings that are not taken while the model thinks."""
    if not profile.rejected_while_thinking or not is_thinking(request, profile):
        return request
    names = [name for name in profile.rejected_while_thinking if name != "logprobs"]
    request = _drop(request, names, warnings, _THINKING_NOW)
    if "logprobs" in profile.rejected_while_thinking:
        request = _without_logprobs(request, profile, warnings, _THINKING_NOW)
    return request


def limit_temperature(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A temperature above the target's scale."""
    asked, most = request.temperature, profile.max_temperature
    if asked is None or most is None or asked <= most:
        return request
    warnings.add("temperature_lowered", "temperature", limit=most)
    return replace(request, temperature=most)


def drop_settings(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Settings this model or server does not have."""
    names: list[str] = []
    if not profile.penalties:
        names += _PENALTIES
    names += [name for name in ("seed", "n", "verbosity") if not getattr(profile, name)]
    return _drop(request, names, warnings)


def drop_logprobs(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Probabilities of tokens, which are asked for among a dialect's own options."""
    if profile.logprobs:
        return request
    return _without_logprobs(request, profile, warnings)


# Tools.


def drop_tools(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Tools for a model that calls none."""
    if profile.tools or not request.tools:
        return request
    warnings.add("tools_dropped", "tools", when="")
    return _without_tools(request)


def drop_strict(request: Request, profile: Profile, warnings: WarningList) -> Request:
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
            if tool.strict:
                warnings.add("strict_dropped", f"tools[{i}].strict", limit=most)
            else:
                warnings.setting_implied("strict", f"tools[{i}].strict")
            tools[i] = replace(tool, strict=None)
    changed = any(new is not old for new, old in zip(tools, request.tools, strict=True))
    return replace(request, tools=tuple(tools)) if changed else request


def choice_without_tools(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A choice among no tools."""
    if profile.tool_choice_without_tools or request.tools:
        return request
    if request.tool_choice is not None:
        if request.tool_choice.mode in _FORCED:
            warnings.add("tool_choice_dropped", "tool_choice", mode=request.tool_choice.mode)
        else:
            warnings.setting_implied("tool_choice")
        request = replace(request, tool_choice=None)
    if request.parallel_tool_calls is not None:
        warnings.setting_implied("parallel_tool_calls")
        request = replace(request, parallel_tool_calls=None)
    return request


def relax_tool_choice(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A choice the model refuses, always or while it thinks."""
    choice = request.tool_choice
    if choice is None:
        return request
    known = profile.tool_choice_modes
    when = ""
    if known is None or choice.mode in known:
        if not profile.thinking_tool_choice or not is_thinking(request, profile):
            return request
        mode = thinking_mode(request, profile) or "adaptive"
        known, when = profile.thinking_tool_choice.get(mode), _THINKING_NOW
        if known is None or choice.mode in known:
            return request
    if choice.mode == "none":
        warnings.add("tools_withheld", "tool_choice", when=when)
        return _without_tools(request)
    warnings.add("tool_choice_relaxed", "tool_choice", mode=choice.mode, when=when)
    always = profile.tool_choice_modes
    may_choose = "auto" in known and (always is None or "auto" in always)
    relaxed = ToolChoice(allowed=choice.allowed) if may_choose else None
    return replace(request, tool_choice=relaxed)


def drop_parallel(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Several calls at once, where they come one at a time."""
    if profile.parallel_tool_calls or request.parallel_tool_calls is None:
        return request
    if request.parallel_tool_calls:
        warnings.setting_dropped("parallel_tool_calls")
    else:
        warnings.setting_implied("parallel_tool_calls")
    return replace(request, parallel_tool_calls=None)


# Content.


def check_response_format(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A schema that cannot be asked for natively; who calls falls back to what remains."""
    form = request.response_format
    if form is None or form.type != "json_schema":
        return request
    way = structured_output_mode(request, profile)
    if way is None:
        warnings.add("response_format_dropped", "response_format")
        return replace(request, response_format=None)
    if way != "native":
        warnings.add("structured_output_fallback", "response_format", way=way)
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


def _drop(request: Request, names: Iterable[str], warnings: WarningList, when: str = "") -> Request:
    gone = [name for name in names if getattr(request, name) is not None]
    if request.n == 1 and "n" in gone:
        gone.remove("n")  # every server takes one answer
    for name in gone:
        if getattr(request, name) == _USUAL.get(name):
            warnings.setting_implied(name)
        else:
            warnings.setting_dropped(name, when)
    return replace(request, **dict.fromkeys(gone)) if gone else request


def _without_tools(request: Request) -> Request:
    return replace(request, tools=None, tool_choice=None, parallel_tool_calls=None)


def _without_logprobs(
    request: Request, profile: Profile, warnings: WarningList, when: str = ""
) -> Request:
    if not request.provider_options:
        return request
    kept = dict(request.provider_options)
    for owner in (profile.dialect, request.provider or ""):
        options = kept.get(owner)
        if isinstance(options, Mapping) and (fewer := _other_options(options)) is not options:
            kept[owner] = fewer
            warnings.setting_dropped("logprobs", when, f"provider_options.{owner}")
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
