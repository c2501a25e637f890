"""
What an adapter of a program's own says about itself: its shape, its profile, its token estimate.

An adapter needs `name`, `complete` and `stream`. What else it has is found here, so that capability
checks, the loss policy, estimates and `explain` work on it as on an `HttpAdapter`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from msgspec.structs import replace

from interlingua.prepare.prepare import prepare
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.profile_check import (
    check_window,
    refuse_losses,
    too_long,
    wrong_kind,
)
from interlingua.runtime.callbacks import signature_of
from interlingua.spec.check import describe
from interlingua.spec.contracts import NEUTRAL_PROFILE, AdapterCapabilities, Prepared, Profile
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.facts import Facts, HistoryRules
from interlingua.spec.request import OnLoss, Request, ToolChoiceMode
from interlingua.spec.response import Warning
from interlingua.tokens.estimate import estimate_request

_OPTIONAL = (
    *("initialize", "get_ready", "close", "cancel", "profile_for", "estimate_input_tokens"),
    *("supports_tool_choice", "perform", "list_models", "count_tokens"),
)
_FIELDS = {
    "supports_thinking": "thinking",
    "supports_tools": "tools",
    "supports_system_prompt": "system_prompt",
    "supports_streaming": "streaming",
    "supports_streaming_tool_calls": "streaming_tool_calls",
    "supports_parallel_tool_calls": "parallel_tool_calls",
    "max_context_tokens": "context_window",
    "max_output_tokens": "max_output_tokens",
}
"""The fields of `Profile` for the capabilities that mean the same."""
_PROMPTS = ("system", "developer")


# Its shape.


def check_adapter(name: str, adapter: Any) -> None:
    """Raise `ConfigurationError` if this cannot be an adapter; `name` is its key in the client."""
    if isinstance(adapter, HttpAdapter):
        return
    own = getattr(adapter, "name", None)
    if own is None or isinstance(adapter, type):
        raise ConfigurationError(
            f"Client: {name!r} must be an adapter, with `name`, `complete` and `stream`, "
            f"not {describe(adapter)}."
        )
    if not isinstance(own, str) or not own:
        raise wrong_shape(name, f"`name` must be a string, not {describe(own)}")
    for method in ("complete", "stream"):
        _check_method(name, method, getattr(adapter, method, None))
    for method in _OPTIONAL:
        member = getattr(adapter, method, None)
        if member is not None and not callable(member):
            raise wrong_shape(name, f"`{method}` must be a method, not {describe(member)}")


def _check_method(name: str, method: str, member: Any) -> None:
    if member is None:
        raise wrong_shape(name, f"it has no method `{method}(request)`")
    if not callable(member):
        raise wrong_shape(name, f"`{method}` must be a method, not {describe(member)}")
    if method == "complete" and inspect.isasyncgenfunction(member):
        raise wrong_shape(name, "`complete` must return the response, and it yields")
    if method == "stream" and inspect.iscoroutinefunction(member):
        raise wrong_shape(name, "`stream` must yield events, in an `async def` with `yield`")
    try:
        signature_of(member).bind(Request())
    except TypeError:
        raise wrong_shape(
            name, f"`{method}` must take the request, by position, and no more"
        ) from None
    except ValueError:  # a function without a signature, such as one written in C
        return


def wrong_shape(name: str, what: str) -> ConfigurationError:
    """The error for an adapter that is not as the protocol says."""
    return ConfigurationError(
        f"The adapter {name!r} has a wrong shape: {what}. See the protocol `Adapter`."
    )


# Its profile.


def profile_of(adapter: Any, model: str) -> Profile:
    """The profile of a model at an adapter: its own, or what its capabilities say."""
    profile_for = getattr(adapter, "profile_for", None)
    if profile_for is None:
        profile = _from_capabilities(getattr(adapter, "capabilities", None))
    else:
        profile = profile_for(model)
    if isinstance(adapter, HttpAdapter) and isinstance(profile, Profile):
        return profile
    if not isinstance(profile, Profile):
        raise wrong_shape(
            adapter.name, f"`profile_for` must return a Profile, not {describe(profile)}"
        )
    supports = getattr(adapter, "supports_tool_choice", None)
    if supports is None or profile.tool_choice_modes is not None:
        return profile
    modes = tuple(mode for mode in get_args(ToolChoiceMode) if supports(mode) is not False)
    is_limit = len(modes) < len(get_args(ToolChoiceMode))
    return replace(profile, tool_choice_modes=modes) if is_limit else profile


def _from_capabilities(capabilities: Any) -> Profile:
    """The profile of a record of capabilities, which may be a dict or any object."""
    if capabilities is None:
        return NEUTRAL_PROFILE
    if isinstance(capabilities, AdapterCapabilities):
        return capabilities.profile
    read: Callable[[str], Any] = (
        capabilities.get
        if isinstance(capabilities, Mapping)
        else lambda name: getattr(capabilities, name, None)
    )
    fields = {field: read(name) for name, field in _FIELDS.items()}
    fields["image_types"] = _image_types(read)
    fields["caching"] = bool(read("supports_prompt_caching"))
    if read("supports_structured_output") is False:
        fields["structured_output"] = (
            ("prompt",) if fields["tools"] is False else ("tool", "prompt")
        )
    return Profile(**fields)


def _image_types(read: Callable[[str], Any]) -> tuple[str, ...] | None:
    if read("supports_images") is False:
        return ()
    types = read("accepted_image_media_types")
    return tuple(types) if types else None


def prepare_custom(adapter: Any, request: Request, profile: Profile) -> Prepared:
    """The request as the adapter supports it: no format has rules of its own here."""
    facts = Facts(name=adapter.name, history=HistoryRules(dialect=adapter.name))
    return prepare(request, profile, facts)


def policy_of(adapter: Any, request: Request) -> OnLoss:
    """Which losses raise: as the call says, or the client, or the adapter."""
    own: OnLoss = getattr(adapter, "on_loss", None) or "content"
    return request.on_loss or own


def check_custom(
    adapter: Any, request: Request, profile: Profile, warnings: Iterable[Warning]
) -> None:
    """Raise what the loss policy does not allow; and a request that is clearly too long."""
    on_loss = policy_of(adapter, request)
    if on_loss == "warn":
        return
    if profile.kind not in (None, "chat"):
        raise wrong_kind(request.model, profile.kind)
    refuse_losses(warnings, request, on_loss)
    window = profile.context_window
    if window is None:
        return
    if getattr(adapter, "estimate_input_tokens", None) is None:
        check_window(request, window, "")
    elif (tokens := estimate_tokens(adapter, request)) > window:
        raise too_long(tokens, window)


# Its estimate of tokens.


def estimate_tokens(adapter: Any, request: Request) -> int:
    """The number of input tokens, as the adapter estimates them, or else by our estimate."""
    estimate: Callable[..., int] | None = getattr(adapter, "estimate_input_tokens", None)
    if estimate is None:
        return estimate_request(request)
    if isinstance(adapter, HttpAdapter) or not _takes_parts(estimate):
        return estimate(request)
    prompts = [message for message in request.messages if message.role in _PROMPTS]
    others = [message for message in request.messages if message.role not in _PROMPTS]
    prompt = "\n\n".join(message.text for message in prompts) or None
    return estimate(others, list(request.tools), prompt)


def _takes_parts(estimate: Callable[..., Any]) -> bool:
    """Whether it takes messages, tools and the system prompt, instead of a request."""
    try:
        signature_of(estimate).bind((), (), None)
    except (TypeError, ValueError):
        return False
    return True
