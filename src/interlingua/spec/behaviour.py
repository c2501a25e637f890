"""
`Behaviour`: how a provider is used, as data. Each field is off by default.

Models differ in more than their format: some call tools only if they are told to, some lose
accuracy with many tools. A behaviour compensates for that at one provider, in what is sent: it
never changes the caller's messages or tools. A value that a request sets takes precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from interlingua.spec.check import Amount, Count, Positive, Row, advice, check_value, rows_of
from interlingua.spec.content import Record
from interlingua.spec.errors import ConfigurationError, ErrorClass

RETRIED: Mapping[str, ErrorClass] = {
    **{each.value: each for each in ErrorClass},
    "timeout": ErrorClass.NETWORK,
    "context_length": ErrorClass.CONTEXT_OVERFLOW,
    "tool_error": ErrorClass.INVALID_REQUEST,
    "unknown": ErrorClass.OTHER,
}
"""The names of errors in `RetrySettings.errors`: error classes, and more exact names."""


class RetrySettings(Record, frozen=True, kw_only=True):
    """When calls of a provider are retried. None means the default of `RetryPolicy`."""

    max_retries: Count | None = None
    """How often a call is repeated."""
    base_delay: Amount | None = None
    """Seconds before the first retry."""
    max_delay: Amount | None = None
    """The longest delay in seconds."""
    errors: tuple[str, ...] | None = None
    """
    Which errors are retried: error classes such as `rate_limit`, `server_error` and `network`.

    `timeout` also retries answers that did not arrive in time, and `tool_error` a request that was
    refused because the provider had lost a tool call. By default: every retryable error.
    """

    if TYPE_CHECKING:  # `__post_init__` accepts more types than the fields declare

        def __init__(
            self,
            *,
            max_retries: int | None = None,
            base_delay: float | None = None,
            max_delay: float | None = None,
            errors: Iterable[str] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        _as_tuples(self, "errors")
        for row in rows_of(RetrySettings):
            _check(row, self, "retry", "retry")
        for name in self.errors or ():
            if name not in RETRIED:
                hint = advice(name, RETRIED)
                raise ConfigurationError(
                    f"retry.errors: there is no error class {name!r}. {hint}", setting="retry"
                )


class Behaviour(Record, frozen=True, kw_only=True):
    """
    How one provider is used.

        Behaviour(prompt_addendum="Call tools; do not describe what you would do.", max_tools=20)
    """

    prompt_addendum: str = ""
    """Added to the end of the system prompt of each request, unless that has it already."""
    max_tools: Positive | None = None
    """
    The number of tools above which only some are sent.

    Core tools, those of active skills and built-in ones are always sent. Then come tools of active
    connectors, and then the others, by relevance to the last user message.
    """
    core_tools: tuple[str, ...] = ()
    """The names of tools that are always sent."""
    force_first_turn: bool = False
    """A conversation without an answer yet must begin with a tool call, if there are tools."""
    strict_tools: bool | None = None
    """The `strict` of tools that do not set it."""
    parallel_tool_calls: bool | None = None
    """The `parallel_tool_calls` of requests with tools that do not set it."""
    max_tokens: Positive | None = None
    """The `max_tokens` of requests that do not set it."""
    temperature: Amount | None = None
    """The `temperature` of requests that do not set it."""
    streaming: bool | None = None
    """False: streams are read as whole answers. True: they are sent as streams in any case."""
    default_model: str = ""
    """The model of requests to this provider without one."""
    model_map: Mapping[str, str] = {}
    """Names of models that callers use, and the provider's names for them."""
    retry: RetrySettings | None = None
    """When its calls are retried."""

    if TYPE_CHECKING:  # as in `RetrySettings`

        def __init__(  # noqa: PLR0913 -- every field
            self,
            *,
            prompt_addendum: str = "",
            max_tools: int | None = None,
            core_tools: Iterable[str] = (),
            force_first_turn: bool = False,
            strict_tools: bool | None = None,
            parallel_tool_calls: bool | None = None,
            max_tokens: int | None = None,
            temperature: float | None = None,
            streaming: bool | None = None,
            default_model: str = "",
            model_map: Mapping[str, str] = ...,
            retry: RetrySettings | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        _as_tuples(self, "core_tools")
        retry: object = self.retry
        if isinstance(retry, Mapping):
            known = {name: retry[name] for name in RetrySettings.__struct_fields__ if name in retry}
            msgspec.structs.force_setattr(self, "retry", RetrySettings(**known))
        for row in rows_of(Behaviour):
            _check(row, self, "behaviour", row.name)
        if self.default_model.endswith(":"):
            raise _wrong("default_model", "must have a name after the colon")
        if not all(self.model_map.values()):
            raise _wrong("model_map", "must not have empty names of models")


def _wrong(field: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"behaviour.{field} {what}.", setting=field)


def _as_tuples(record: Record, name: str) -> None:
    value: Any = getattr(record, name)
    if value is not None and type(value) is not tuple:
        items = (value,) if isinstance(value, str) else tuple(value)
        msgspec.structs.force_setattr(record, name, items)


def _check(row: Row, record: Record, place: str, setting: str) -> None:
    """Raise `ConfigurationError`, with the name of the setting, for a value that is not right."""
    try:
        check_value(row, getattr(record, row.name), place)
    except ConfigurationError as error:
        raise ConfigurationError(error.message, setting=setting) from None
