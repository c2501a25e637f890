"""Narrow the settings of a request to what its target supports, with a warning for each change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import is_
from typing import Any, TypeAlias, get_args

from msgspec.structs import replace

from interlingua.prepare.options import Settings, declares_tools, options_for
from interlingua.prepare.thinking import (
    ask_for_thoughts,
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
from interlingua.spec.facts import Facts
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ToolChoice,
    ToolChoiceMode,
    ToolDefinition,
    ToolSpec,
    tool_key,
)
from interlingua.spec.warnings import WarningList

Rule: TypeAlias = Callable[[Request, Profile, WarningList], Request]
_Fields: TypeAlias = frozenset[str]

_SAMPLING = ("temperature", "top_p", "top_k")
_PENALTIES = ("frequency_penalty", "presence_penalty")
_NEUTRAL = {"temperature": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0}
"""Values that have no effect."""
STRUCTURED_OUTPUT: tuple[StructuredOutput, ...] = get_args(StructuredOutput)
"""All ways to get JSON that matches a schema, best first."""
_FORCED = ("required", "named")
_THINKING_NOW = " while the model thinks"
_OWN_RULES = ("tools", "parallel_tool_calls", "logprobs", "stop_sequences")
_FLAGS = tuple(
    name
    for name in Request.__struct_fields__
    if name in Profile.__struct_fields__ and name not in _OWN_RULES
)
"""The settings with a field of the same name in `Profile`, which is False if it is unsupported."""
_MOST_NAMES = 10
_LOGPROBS = ("logprobs", "top_logprobs")
_LOGPROBS_INCLUDED = "message.output_text.logprobs"


def adjust_settings(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """The request as the profile accepts it; the same object if nothing changes."""
    names = _named.names_in(request)
    if request.tools:
        names = (*names, "tools")
    if request.provider_options:
        names = (*names, "provider_options")
    for rule in _applicable(names):
        request = rule(request, profile, warnings)
    return request


def structured_output_mode(request: Request, profile: Profile) -> StructuredOutput | None:
    """How to get the JSON that was asked for; None if no schema is asked for or no mode fits."""
    if request.response_format is None or request.response_format.type != "json_schema":
        return None
    modes = structured_output_modes(profile, has_tools=bool(request.tools))
    return modes[0] if modes else None


def structured_output_modes(profile: Profile, *, has_tools: bool) -> tuple[StructuredOutput, ...]:
    """The supported ways to get an object, best first; all of them where nothing is known."""
    modes = STRUCTURED_OUTPUT if profile.structured_output is None else profile.structured_output
    if has_tools and profile.structured_output_with_tools is False:
        return tuple(mode for mode in modes if mode != "native")
    return modes


# Lengths.


def limit_max_tokens(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """`max_tokens` above the model's limit."""
    return _limit(request, "max_tokens", profile.max_output_tokens, "max_tokens_lowered", warnings)


def max_tokens_sent(request: Request, profile: Profile, facts: Facts) -> int | None:
    """The `max_tokens` that a prepared request is sent with; None if it is sent without."""
    if request.max_tokens is not None or facts.default_max_tokens is None:
        return request.max_tokens
    # Anthropic: a budget must be «less than `max_tokens`» (`ThinkingConfigEnabledParam`).
    default = facts.default_max_tokens + (request.thinking_budget or 0)
    return profile.max_output_tokens or default


def limit_stop_sequences(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """More stop sequences than the target supports."""
    asked, most = request.stop_sequences, profile.stop_sequences
    if asked is None or most is None or len(asked) <= most:
        return request
    if most == 0:
        return _drop(request, ("stop_sequences",), warnings)
    warnings.add("stop_sequences_cut", f"stop_sequences[{most}]", limit=most)
    return replace(request, stop_sequences=asked[:most])


# Settings.


def drop_sampling(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Sampling settings that the model does not support."""
    return _drop(request, _SAMPLING, warnings) if profile.sampling is False else request


def choose_version(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Sampling settings that only some versions of the API support."""
    versions = profile.sampling_versions
    asked = [name for name in _SAMPLING if getattr(request, name) is not None]
    if versions is None or not asked or not profile.dialect:
        return request
    chosen = options_for(request, profile.dialect).get("version")
    version = profile.api_version if chosen is None else chosen
    if version in versions:
        return request
    needed = [name for name in asked if getattr(request, name) != _NEUTRAL.get(name)]
    if chosen is not None or not profile.sampling or not needed or not versions:
        return _drop(request, _SAMPLING, warnings, f" in version {version} of its API")
    own = {**request.provider_options.get(profile.dialect, {}), "version": versions[-1]}
    warnings.add("api_version_chosen", needed[0], setting=needed[0], version=versions[-1])
    options = {**request.provider_options, profile.dialect: own}
    return replace(request, provider_options=options)


def drop_while_thinking(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Settings that are not supported while the model thinks."""
    if not profile.rejected_while_thinking or not is_thinking(request, profile):
        return request
    names = [name for name in profile.rejected_while_thinking if name != "logprobs"]
    request = _drop(request, names, warnings, _THINKING_NOW)
    if "logprobs" in profile.rejected_while_thinking:
        request = _without_logprobs(request, profile, warnings, _THINKING_NOW)
    return request


def limit_temperature(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A temperature above the target's limit."""
    return _limit(request, "temperature", profile.max_temperature, "temperature_lowered", warnings)


def drop_settings(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Settings that this model or server does not support."""
    names: list[str] = []
    if profile.penalties is False:
        names += _PENALTIES
    names += [name for name in _FLAGS if getattr(profile, name) is False]
    return _drop(request, names, warnings)


def drop_logprobs(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Log probabilities; the options of a dialect may ask for them too."""
    if profile.logprobs is not False:
        return request
    return _without_logprobs(request, profile, warnings)


# Tools.


def drop_tools(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Tools for a model that does not support them; some models have only hosted ones."""
    if profile.tools is not False or not request.tools:
        return request
    # Seen in recordings: Gemini's image models, which call no functions, search the web.
    is_hosted = profile.hosted_tools is True
    hosted = tuple(tool for tool in request.tools if is_hosted and isinstance(tool, BuiltinTool))
    if len(hosted) == len(request.tools):
        return request
    warnings.add("tools_dropped", "tools", when="")
    return replace(_without_tools(request), tools=hosted)


def drop_strict(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """`strict` on tools, where the target does not support it or not on so many tools."""
    is_strict = profile.strict_tools is not False
    most = profile.max_strict_tools if is_strict else 0
    if most is None or not request.tools:
        return request
    tools = list(request.tools)
    dropped: list[int] = []
    implied: list[int] = []
    count = 0
    for i, tool in enumerate(tools):
        if isinstance(tool, ToolDefinition) and tool.strict is not None:
            count += tool.strict
            if is_strict and count <= most:
                continue
            (dropped if tool.strict else implied).append(i)
            tools[i] = replace(tool, strict=None)
    if dropped:
        warn_not_strict(request.tools, dropped, most, warnings)
    for i in implied:
        warnings.setting_implied("strict", f"tools[{i}].strict")
    return request if all(map(is_, tools, request.tools)) else replace(request, tools=tuple(tools))


def warn_not_strict(
    tools: tuple[ToolSpec, ...], indexes: list[int], limit: int, warnings: WarningList
) -> None:
    """Add one warning for all tools that lose `strict`."""
    path, names = f"tools[{indexes[0]}].strict", list_names(tools, indexes)
    warnings.add("strict_dropped", path, limit=limit, tools=names)


def list_names(tools: tuple[ToolSpec, ...], indexes: list[int]) -> str:
    """The names of these tools, of which only the first are listed."""
    names = [tool_key(tools[i])[1] for i in indexes[:_MOST_NAMES]]
    return ", ".join(names) + (", …" if len(indexes) > _MOST_NAMES else "")


def choice_without_tools(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A tool choice without tools."""
    if profile.tool_choice_without_tools is not False or request.tools:
        return request
    if request.provider_options and declares_tools(options_for(request, profile.dialect)):
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


def other_modes(
    request: Request, profile: Profile, mode: ToolChoiceMode
) -> tuple[tuple[ToolChoiceMode, ...], str] | None:
    """The supported modes of tool choice, and when, if this mode is not; None if it is."""
    known = profile.tool_choice_modes
    if known is not None and mode not in known:
        return known, ""
    if not profile.thinking_tool_choice or not is_thinking(request, profile):
        return None
    known = profile.thinking_tool_choice.get(thinking_mode(request, profile) or "adaptive")
    return None if known is None or mode in known else (known, _THINKING_NOW)


def relax_tool_choice(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A tool choice that the model does not support, always or while it thinks."""
    choice = request.tool_choice
    other = None if choice is None else other_modes(request, profile, choice.mode)
    if choice is None or other is None:
        return request
    known, when = other
    if choice.mode == "none":
        warnings.add("tools_withheld", "tool_choice", when=when)
        return _without_tools(request)
    warnings.add("tool_choice_relaxed", "tool_choice", mode=choice.mode, when=when)
    always = profile.tool_choice_modes
    may_choose = "auto" in known and (always is None or "auto" in always)
    relaxed = ToolChoice(allowed=choice.allowed) if may_choose else None
    return replace(request, tool_choice=relaxed)


def drop_parallel(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """`parallel_tool_calls` for a model that does not support it."""
    if profile.parallel_tool_calls is not False or request.parallel_tool_calls is None:
        return request
    if request.parallel_tool_calls:
        warnings.setting_dropped("parallel_tool_calls")
    else:
        warnings.setting_implied("parallel_tool_calls")
    return replace(request, parallel_tool_calls=None)


# Content.


def check_response_format(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A schema for a model that supports it in no way."""
    form = request.response_format
    if form is None or form.type != "json_schema":
        return request
    if structured_output_mode(request, profile) is not None:
        return request
    warnings.add("response_format_dropped", "response_format")
    return replace(request, response_format=None)


_THINKING = frozenset(("thinking_budget", "reasoning_effort"))  # each may be sent as the other
_TOOLS = frozenset(("tools",))
_CHOICE = frozenset(("tool_choice",))
_PARALLEL = frozenset(("parallel_tool_calls",))
_OPTIONS = frozenset(("provider_options",))

RULES: tuple[tuple[Rule, _Fields], ...] = (
    (drop_thinking, _THINKING | {"include_thinking"}),
    (ask_for_thoughts, _THINKING | {"include_thinking"}),
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
    (choose_version, frozenset(_SAMPLING)),
    (drop_settings, frozenset((*_PENALTIES, *_FLAGS))),
    (drop_logprobs, _OPTIONS | {"logprobs"}),
    (drop_strict, _TOOLS),
    (choice_without_tools, _CHOICE | _PARALLEL),
    (relax_tool_choice, _CHOICE),
    (drop_parallel, _PARALLEL),
    (check_response_format, frozenset(("response_format",))),
)
"""
The rules in their order, each with its fields. A rule runs only if one of them is set.

Tools are dropped before `tools_before_thinking`, so that dropped tools do not stop the thinking.
"""
_named = Settings(*sorted(frozenset[str]().union(*(each for _, each in RULES)) - _TOOLS - _OPTIONS))
"""The fields of the rules that are None if they are not set."""


@lru_cache(maxsize=256)  # a program makes requests with few combinations of settings
def _applicable(names: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules for the fields of a request that are set."""
    return tuple(rule for rule, fields in RULES if not fields.isdisjoint(names))


def _drop(request: Request, names: Iterable[str], warnings: WarningList, when: str = "") -> Request:
    dropped = [name for name in names if getattr(request, name) is not None]
    for name in dropped:
        if getattr(request, name) == _NEUTRAL.get(name):
            warnings.setting_implied(name)
        else:
            warnings.setting_dropped(name, when)
    return replace(request, **dict.fromkeys(dropped)) if dropped else request


def _limit(
    request: Request, name: str, most: float | None, code: str, warnings: WarningList
) -> Request:
    asked = getattr(request, name)
    if asked is None or most is None or asked <= most:
        return request
    warnings.add(code, name, limit=most)
    return replace(request, **{name: most})


def _without_tools(request: Request) -> Request:
    return replace(request, tools=(), tool_choice=None, parallel_tool_calls=None)


def _without_logprobs(
    request: Request, profile: Profile, warnings: WarningList, when: str = ""
) -> Request:
    changed: dict[str, Mapping[str, Any]] = {}
    was_asked = request.logprobs is not None
    request = _drop(request, ("logprobs",), warnings, when)
    for owner in (profile.dialect, request.provider or ""):
        options = request.provider_options.get(owner)
        if isinstance(options, Mapping) and (fewer := _other_options(options)) is not options:
            changed[owner] = fewer
            if not was_asked:  # otherwise there is a warning already
                warnings.setting_dropped("logprobs", when, f"provider_options.{owner}")
    if not changed:
        return request
    return replace(request, provider_options={**request.provider_options, **changed})


def _other_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options without those that ask for log probabilities; the same object if none does."""
    # `top_logprobs=0` asks for them too, so only None and False do not.
    dropped = [
        name for name in _LOGPROBS if options.get(name) is not None and options[name] is not False
    ]
    included = options.get("include")
    is_included = isinstance(included, list) and _LOGPROBS_INCLUDED in included
    if not dropped and not is_included:
        return options
    fewer = {name: value for name, value in options.items() if name not in dropped}
    if is_included:
        fewer["include"] = [name for name in fewer["include"] if name != _LOGPROBS_INCLUDED]
    return fewer
