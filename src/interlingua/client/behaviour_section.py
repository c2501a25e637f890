"""
The behaviour of an adapter in a registry file.

It is the mapping `behaviour:` with the fields of `Behaviour`. Configurations in camel case, with
times in milliseconds (`toolBehaviour`, `promptAddendum`, `retry.baseDelayMs`, …), are read as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from interlingua.spec.behaviour import Behaviour, RetrySettings
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from interlingua.client.config import Section

_RETRY: dict[str, type] = {
    "max_retries": int,
    "base_delay": float,
    "max_delay": float,
    "errors": list,
}
_BEHAVIOUR: dict[str, type] = {
    "prompt_addendum": str,
    "max_tools": int,
    "core_tools": list,
    "force_first_turn": bool,
    "strict_tools": bool,
    "parallel_tool_calls": bool,
    "max_tokens": int,
    "temperature": float,
    "streaming": bool,
    "default_model": str,
    "model_map": dict,
    "retry": dict,
}


class _Key(NamedTuple):
    """A key in camel case: its type, the field that it sets, and how its value is converted."""

    kind: type
    field: str
    convert: Callable[[Any], Any] = lambda value: value


def _seconds(milliseconds: float) -> float:
    return milliseconds / 1000


_TOP: dict[str, _Key] = {
    "defaultModel": _Key(str, "default_model"),
    "modelMap": _Key(dict, "model_map"),
    "maxTokens": _Key(int, "max_tokens"),
    "temperature": _Key(float, "temperature"),
    "streaming": _Key(bool, "streaming"),
    "promptAddendum": _Key(str, "prompt_addendum"),
}
_TOOLS: dict[str, _Key] = {
    "strictMode": _Key(bool, "strict_tools"),
    "maxTools": _Key(int, "max_tools"),
    "parallelCalls": _Key(bool, "parallel_tool_calls"),
    "forceToolUseOnFirstTurn": _Key(bool, "force_first_turn"),
    "coreTools": _Key(list, "core_tools"),
}
_RETRIES: dict[str, _Key] = {
    "maxRetries": _Key(int, "max_retries"),
    "baseDelayMs": _Key(float, "base_delay", _seconds),
    "maxDelayMs": _Key(float, "max_delay", _seconds),
    "retryableErrors": _Key(list, "errors"),
}
_KEYS: dict[str, str] = {
    "retry": "retry",
    **{key.field: name for name, key in _TOP.items()},
    **{key.field: "toolBehaviour" for key in _TOOLS.values()},
}
"""The keys of an adapter in camel case that set a field."""
OTHER_KEYS: Mapping[str, type] = {
    "providerId": str,
    "apiKey": str,
    "apiBaseUrl": str,
    **{name: key.kind for name, key in _TOP.items()},
    "toolBehaviour": dict,
    "retry": dict,
}
"""The keys of an adapter in camel case, and their types."""


def read_behaviour(name: str, section: Section) -> Behaviour | None:
    """The behaviour of the adapter with this name; None if the file sets nothing of it."""
    own = section.section("behaviour", f"adapters.{name}.behaviour").check(_BEHAVIOUR)
    fields: dict[str, Any] = {key: own.get(key) for key in own if own.get(key) is not None}
    if "retry" in fields:
        place = f"adapters.{name}.behaviour.retry"
        inner = own.section("retry", place).check(_RETRY)
        fields["retry"] = {key: inner.get(key) for key in inner}
    tools = section.section("toolBehaviour", f"adapters.{name}.toolBehaviour")
    retry = section.section("retry", f"adapters.{name}.retry")
    _check_keys(tools, _TOOLS)
    _check_keys(retry, _RETRIES)
    others = _renamed(section, _TOP) | _renamed(tools, _TOOLS)
    retries = _renamed(retry, _RETRIES)
    if retries:
        others["retry"] = retries
    for field in fields.keys() & others.keys():
        raise section.error("behaviour", f"adapter {name!r}: {field} of `behaviour` is set twice")
    fields |= others
    if not fields:
        return None
    try:
        if "retry" in fields:
            fields["retry"] = RetrySettings(**fields["retry"])
        return Behaviour(**fields)
    except ConfigurationError as error:
        key = _KEYS.get(error.setting or "", "behaviour")
        key = key if key in section else "behaviour"
        raise section.error(key, f"adapter {name!r}: {error.message}") from None


def _check_keys(section: Section, known: Mapping[str, _Key]) -> None:
    section.check({name: key.kind for name, key in known.items()})


def _renamed(section: Section, keys: Mapping[str, _Key]) -> dict[str, Any]:
    """The fields that the keys of a section set."""
    return {
        key.field: key.convert(section.get(name))
        for name, key in keys.items()
        if section.get(name) is not None
    }
