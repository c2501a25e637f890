"""
The behaviour of an adapter in a registry file.

It is the mapping `behaviour:` with the fields of `Behaviour`. Configurations in camel case, with
times in milliseconds (`toolBehaviour`, `promptAddendum`, `retry.baseDelayMs`, …), are read as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from interlingua.spec.behaviour import Behaviour, RetrySettings
from interlingua.spec.check import Row, row_for, rows_of
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from interlingua.client.config import Section

Rows: TypeAlias = Mapping[str, Row | None]


def _rows(record: type[msgspec.Struct]) -> dict[str, Row]:
    """What each key of a record must be in a file, which has lists for tuples."""
    return {
        row.name: row._replace(types=(list,)) if row.types == (tuple,) else row
        for row in rows_of(record)
    }


_MAPPING = row_for("", Mapping[str, Any])
_RETRY = _rows(RetrySettings)
_BEHAVIOUR: Rows = _rows(Behaviour) | {"retry": _MAPPING}


class _Key(NamedTuple):
    """A key in camel case: the field that it sets, and by what its value is divided."""

    field: str
    per_unit: int | None = None


_TOP: dict[str, _Key] = {
    "defaultModel": _Key("default_model"),
    "modelMap": _Key("model_map"),
    "maxTokens": _Key("max_tokens"),
    "temperature": _Key("temperature"),
    "streaming": _Key("streaming"),
    "promptAddendum": _Key("prompt_addendum"),
}
_TOOLS: dict[str, _Key] = {
    "strictMode": _Key("strict_tools"),
    "maxTools": _Key("max_tools"),
    "parallelCalls": _Key("parallel_tool_calls"),
    "forceToolUseOnFirstTurn": _Key("force_first_turn"),
    "coreTools": _Key("core_tools"),
}
_RETRIES: dict[str, _Key] = {
    "maxRetries": _Key("max_retries"),
    "baseDelayMs": _Key("base_delay", 1000),
    "maxDelayMs": _Key("max_delay", 1000),
    "retryableErrors": _Key("errors"),
}
_KEYS: dict[str, str] = {
    "retry": "retry",
    **{key.field: name for name, key in _TOP.items()},
    **{key.field: "toolBehaviour" for key in _TOOLS.values()},
}
"""The keys of an adapter in camel case that set a field."""
OTHER_KEYS: Rows = {
    **{name: row_for(name, str) for name in ("providerId", "apiKey", "apiBaseUrl")},
    **{name: _BEHAVIOUR[key.field] for name, key in _TOP.items()},
    "toolBehaviour": _MAPPING,
    "retry": _MAPPING,
}
"""The keys of an adapter in camel case, and what they must be."""


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
    tools.check({name: _BEHAVIOUR[key.field] for name, key in _TOOLS.items()})
    retry.check({name: _RETRY[key.field] for name, key in _RETRIES.items()})
    others = _renamed(section, _TOP) | _renamed(tools, _TOOLS)
    retries = _renamed(retry, _RETRIES)
    if retries:
        others["retry"] = retries
    for field in fields.keys() & others.keys():
        raise section.error(
            "behaviour", f"Adapter {name!r}: {field} of `behaviour` is set twice. Leave one out."
        )
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
        raise section.error(key, f"Adapter {name!r}: {error.message}") from None


def _renamed(section: Section, keys: Mapping[str, _Key]) -> dict[str, Any]:
    """The fields that the keys of a section set."""
    fields: dict[str, Any] = {}
    for name, key in keys.items():
        value = section.get(name)
        if value is not None:
            fields[key.field] = value if key.per_unit is None else value / key.per_unit
    return fields
