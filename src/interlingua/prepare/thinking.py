"""Thinking: efforts, budgets and modes, narrowed to what a model supports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from interlingua.prepare.options import options_for
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request
from interlingua.spec.warnings import WarningList

# OpenAI's `ReasoningEffort` has all of them; Anthropic's `OutputConfigParam.effort` has low to max;
# Gemini's `ThinkingLevel` minimal to high.
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""From least to most."""

# Our own scale: no vendor documents how many tokens an effort stands for. It begins at the least
# budget of Anthropic, and each step doubles it or more.
EFFORT_BUDGETS: Mapping[str, int] = {
    "minimal": 1024,
    "low": 4096,
    "medium": 8192,
    "high": 16384,
    "xhigh": 32768,
    "max": 65536,
}
"""The thinking budget that an effort stands for, where a model supports only one of the two."""

_BESIDE_EFFORT = " beside `reasoning_effort`"
# Sonnet 5.5 of Anthropic has the second in place of the first: it does not think before its answer.
# https://platform.claude.com/docs/en/build-with-claude/thinking#configuring-thinking
_OFF = ("disabled", "between_tools")


def thinking_mode(request: Request, profile: Profile) -> str | None:
    """The profile's mode that this request asks for; None if the model decides."""
    effort, budget = request.reasoning_effort, request.thinking_budget
    if effort is None and budget is None and not request.provider_options:
        return None  # the usual request
    option = options_for(request, profile.dialect).get("thinking")
    if isinstance(option, Mapping) and isinstance(option.get("type"), str):
        return str(option["type"])  # the caller uses the dialect's own field
    modes = profile.thinking_modes or ()
    if budget and "enabled" in modes:
        return "enabled"
    if budget == 0 or effort == "none":
        return next((mode for mode in _OFF if mode in modes), None)
    if effort is None and (budget is None or budget < 0):
        return None
    if "adaptive" in modes:  # a budget will become an effort
        return "adaptive"
    # An effort will become a budget.
    return "enabled" if profile.reasoning_efforts == () and "enabled" in modes else None


def is_thinking(request: Request, profile: Profile) -> bool:
    """Whether this request makes the model think."""
    if profile.thinking is False:
        return False
    mode = thinking_mode(request, profile)
    if mode is not None:
        return mode not in _OFF
    effort, budget = request.reasoning_effort, request.thinking_budget
    if profile.thinking_modes is None and (effort, budget) != (None, None):
        return effort != "none" if budget is None else budget != 0
    if effort == "none" and "none" in (profile.reasoning_efforts or ()):
        return False
    return profile.thinks_by_default


def can_stop(profile: Profile) -> bool:
    """Whether thinking can be turned off."""
    if any(mode in _OFF for mode in profile.thinking_modes or ()):
        return True
    known = profile.reasoning_efforts
    return profile.thinking_modes is None if known is None else "none" in known


def drop_thinking(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Thinking settings for a model that cannot think."""
    # OpenAI refuses settings that a model lacks (seen in recordings: «Unsupported parameter: 'stop'
    # is not supported with this model.»). That it does not think is what `none` asks for, so
    # leaving `none` out loses nothing.
    if profile.thinking is not False:
        return request
    is_off = request.reasoning_effort in (None, "none") and not request.thinking_budget
    warn = warnings.setting_implied if is_off else warnings.setting_dropped
    for name in ("reasoning_effort", "thinking_budget"):
        if getattr(request, name) is not None:
            warn(name)
            request = replace(request, **{name: None})
    # Who asks to see thoughts loses nothing where there are none.
    return replace(request, include_thinking=None)


def ask_for_thoughts(request: Request, profile: Profile, warnings: WarningList) -> Request:  # noqa: ARG001
    """Thinking, where thoughts are hidden unless they are asked for, or are always shown."""
    # Nothing is lost in either case, so there is no warning.
    asked, shown = request.include_thinking, profile.thinking_shown
    if (asked, shown) in ((True, "always"), (False, "never")):
        return replace(request, include_thinking=None)  # there is nothing to ask for
    is_wanted = request.reasoning_effort not in (None, "none") or request.thinking_budget
    if asked is None and shown == "if_asked" and is_wanted:
        return replace(request, include_thinking=True)
    return request


def zero_budget(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A budget of 0 where budgets must be positive."""
    # Anthropic: a budget «Must be ≥1024» (the SDK's `ThinkingConfigEnabledParam`). For Gemini 2.5,
    # 0 turns thinking off: https://ai.google.dev/gemini-api/docs/thinking
    modes = profile.thinking_modes
    if request.thinking_budget != 0 or modes is None or profile.dynamic_budget:
        return request
    warnings.add("zero_budget_as_effort", "thinking_budget")
    return replace(request, thinking_budget=None, reasoning_effort="none")


def budget_to_effort(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A budget for a model that only supports efforts."""
    # Newer models of Anthropic have only `adaptive` thinking with an effort, and OpenAI's API has
    # no budget.
    budget, modes = request.thinking_budget, profile.thinking_modes
    if budget is None or modes is None or "enabled" in modes:
        return request
    if request.reasoning_effort is not None:
        warnings.setting_dropped("thinking_budget", _BESIDE_EFFORT)
        return replace(request, thinking_budget=None)
    if budget < 0:  # -1: the model decides
        warnings.setting_implied("thinking_budget")
        return replace(request, thinking_budget=None)
    effort = _effort_for(budget, profile)
    warnings.add("budget_as_effort", "thinking_budget", effort=effort)
    return replace(request, thinking_budget=None, reasoning_effort=effort)


def effort_to_budget(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """An effort for a model that only supports budgets."""
    # The reverse: Gemini 2.5, and Haiku 4.5 and Sonnet 4.5 of Anthropic, have budgets only.
    effort, modes = request.reasoning_effort, profile.thinking_modes or ()
    if effort is None or profile.reasoning_efforts != () or "enabled" not in modes:
        return request
    if effort == "none" and "disabled" in modes:
        return request
    if request.thinking_budget is not None:
        warnings.setting_dropped("reasoning_effort", " beside `thinking_budget`")
        return replace(request, reasoning_effort=None)
    if effort == "none":
        least = profile.min_thinking_budget or 1
        sent = f"a thinking budget of {least}"
        warnings.add("effort_raised", "reasoning_effort", effort=effort, sent=sent)
        return replace(request, reasoning_effort=None, thinking_budget=least)
    budget = (profile.effort_budgets or EFFORT_BUDGETS).get(effort)
    if budget is None:
        warnings.setting_dropped("reasoning_effort", f" {effort!r}")
    else:
        budget = min(budget, _room_for_thinking(request, profile) or budget)
        warnings.add("effort_as_budget", "reasoning_effort", budget=budget)
    return replace(request, reasoning_effort=None, thinking_budget=budget)


def _room_for_thinking(request: Request, profile: Profile) -> int | None:
    """
    The share of `max_tokens` that an effort may take, where thinking counts within it.

    Each effort is limited to the same share, so that more effort never means less thinking.
    """
    limits = [limit for limit in (request.max_tokens, profile.max_output_tokens) if limit]
    if not profile.budget_below_max_tokens or not limits:
        return None
    return max(profile.min_thinking_budget or 1, min(limits) // 2)


def nearest_effort(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """An effort that the model does not support."""
    # Seen in recordings of OpenAI: «Unsupported value: 'minimal' is not supported with the
    # 'o4-mini' model. Supported values are: 'low', 'medium', and 'high'.»
    effort, known = request.reasoning_effort, profile.reasoning_efforts
    if effort is None or known is None or effort in known:
        return request
    if effort == "none" and can_stop(profile):
        return request  # sent as a mode
    mapped = profile.effort_map.get(effort)
    chosen = mapped if mapped in known else _nearest(effort, known)
    if chosen is None:
        warnings.setting_dropped("reasoning_effort", f" {effort!r}")
        return replace(request, reasoning_effort=None)
    code = "effort_raised" if _rank(chosen) > _rank(effort) else "effort_lowered"
    warnings.add(code, "reasoning_effort", effort=effort, sent=repr(chosen))
    return replace(request, reasoning_effort=chosen)


def tools_before_thinking(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """Tools and thinking together, where the model supports only one at a time."""
    # OpenAI documents of gpt-6-sol and gpt-6-luna that they call functions in Chat Completions only
    # with the effort `none`. A program that declares tools needs them, so thinking goes.
    if profile.tools_while_thinking is not False or not request.tools:
        return request
    if not is_thinking(request, profile):
        return request
    if not can_stop(profile):
        warnings.add("tools_dropped", "tools", when=" while it thinks, and it always thinks")
        return replace(request, tools=(), tool_choice=None, parallel_tool_calls=None)
    warnings.add("thinking_off_for_tools", "reasoning_effort")
    return replace(request, reasoning_effort="none", thinking_budget=None)


def limit_budget(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """A budget below or above the model's limits."""
    budget = request.thinking_budget
    if budget is None or (budget < 0 and profile.dynamic_budget):
        return request
    if budget == 0 and "disabled" in (profile.thinking_modes or ("disabled",)):
        return request
    least, most = profile.min_thinking_budget, profile.max_thinking_budget
    if least is not None and budget < least:
        return _with_budget(request, least, warnings)
    if most is not None and budget > most:
        return _with_budget(request, most, warnings)
    return request


def budget_below_max_tokens(request: Request, profile: Profile, warnings: WarningList) -> Request:
    """
    A budget that leaves no room for an answer within `max_tokens`.

    `max_tokens` is what the caller is ready to pay, so the budget is lowered first, to half of
    it. `max_tokens` is raised only if the smallest budget does not fit.
    """
    # Anthropic: a budget must be «less than `max_tokens`» (the SDK's `ThinkingConfigEnabledParam`).
    budget = request.thinking_budget
    limit = profile.max_output_tokens if request.max_tokens is None else request.max_tokens
    if not profile.budget_below_max_tokens or not budget or not limit or budget < limit:
        return request
    least = profile.min_thinking_budget or 1
    wanted = max(least, limit // 2)
    if wanted < budget:
        request = _with_budget(request, wanted, warnings)
    if wanted < limit:
        return request
    raised = min(wanted + limit, profile.max_output_tokens or wanted + limit)
    if raised <= wanted:
        warnings.setting_dropped("thinking_budget", " with so low an output limit")
        return replace(request, thinking_budget=None)
    warnings.add("max_tokens_raised", "max_tokens", sent=raised)
    return replace(request, max_tokens=raised)


def _with_budget(request: Request, budget: int, warnings: WarningList) -> Request:
    asked = request.thinking_budget or 0
    code = "thinking_budget_lowered" if budget < asked else "thinking_budget_raised"
    warnings.add(code, "thinking_budget", budget=asked, sent=budget)
    return replace(request, thinking_budget=budget)


def _effort_for(budget: int, profile: Profile) -> str:
    """The highest effort within the budget, or the lowest of all."""
    budgets = profile.effort_budgets or EFFORT_BUDGETS
    known = [name for name in profile.reasoning_efforts or () if name in budgets] or list(budgets)
    known.sort(key=lambda name: budgets[name])
    return next((name for name in reversed(known) if budgets[name] <= budget), known[0])


def _rank(effort: str) -> int:
    return EFFORTS.index(effort) if effort in EFFORTS else len(EFFORTS)


def _nearest(effort: str, known: Iterable[str]) -> str | None:
    """The nearest effort, of two the higher; never "none", which would turn thinking off."""
    if effort not in EFFORTS:
        return None
    others = (name for name in known if name in EFFORTS and name != "none")
    wanted = _rank(effort)
    return min(others, key=lambda name: (abs(_rank(name) - wanted), -_rank(name)), default=None)
