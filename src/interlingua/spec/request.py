"""Requests to a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from interlingua.spec.content import Extra, Json, Record, ToolType
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message

ToolChoiceMode: TypeAlias = Literal["auto", "none", "required", "named"]
FormatType: TypeAlias = Literal["text", "json", "json_schema"]
OnLoss: TypeAlias = Literal["content", "strict", "warn"]
"""What to do when the target cannot express all of a request; see `Request.on_loss`."""


class ToolDefinition(Record, frozen=True, kw_only=True, tag_field="kind", tag="function"):
    """A tool that the caller runs: its name, description and input schema."""

    name: str
    description: str | None = None
    parameters: Json = None
    """A JSON Schema of type object; None for a tool without input and for a `custom` tool."""
    strict: bool | None = None
    type: ToolType = "function"
    extra: Extra = {}


class BuiltinTool(Record, frozen=True, kw_only=True, tag_field="kind", tag="builtin"):
    """A tool that the provider runs (web search, code execution, MCP), in its wire form."""

    dialect: str
    data: Json = None


ToolSpec: TypeAlias = ToolDefinition | BuiltinTool


class ToolChoice(Record, frozen=True, kw_only=True):
    """Whether the model may or must call tools, and which."""

    mode: ToolChoiceMode = "auto"
    tool_name: str | None = None
    """The tool to call, with mode `named`."""
    allowed: tuple[str, ...] | None = None
    """The only tools that may be called, with mode `auto` or `required`."""
    extra: Extra = {}

    if TYPE_CHECKING:  # `__post_init__` accepts more types than the fields declare

        def __init__(
            self,
            *,
            mode: ToolChoiceMode = "auto",
            tool_name: str | None = None,
            allowed: str | Iterable[str] | None = None,
            extra: Extra = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.allowed is not None and type(self.allowed) is not tuple:
            msgspec.structs.force_setattr(self, "allowed", _texts(self.allowed))


class ResponseFormat(Record, frozen=True, kw_only=True):
    """The format of the response text."""

    type: FormatType = "text"
    json_schema: Json = None
    strict: bool | None = None
    name: str | None = None
    description: str | None = None
    extra: Extra = {}


class Request(Record, frozen=True, kw_only=True):
    """
    One request, in the canonical language.

    None means "not set"; 0, 0.0, "" and () are values. `provider_options` is keyed by provider or
    dialect, and is merged over the encoded body last.
    """

    model: str = ""
    messages: tuple[Message, ...] = ()
    provider: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    stop_sequences: tuple[str, ...] | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    n: int | None = None
    reasoning_effort: str | None = None
    thinking_budget: int | None = None
    verbosity: str | None = None
    user: str | None = None
    metadata: Mapping[str, Any] | None = None
    provider_options: Mapping[str, Any] = {}
    request_id: str | None = None
    on_loss: OnLoss | None = None
    """
    When a loss raises `UnsupportedError` before anything is sent; never sent itself.

    `"content"` (the default of adapters): a loss of what the current turn asks for. `"strict"`:
    any loss. `"warn"`: none.
    """

    if TYPE_CHECKING:  # as in `ToolChoice`

        def __init__(  # noqa: PLR0913 -- every field
            self,
            *,
            model: str = "",
            messages: str | Message | Iterable[str | Message] = (),
            provider: str | None = None,
            tools: Iterable[ToolSpec] | None = (),
            tool_choice: ToolChoice | None = None,
            parallel_tool_calls: bool | None = None,
            response_format: ResponseFormat | None = None,
            temperature: float | None = None,
            top_p: float | None = None,
            top_k: int | None = None,
            max_tokens: int | None = None,
            stop_sequences: str | Iterable[str] | None = None,
            seed: int | None = None,
            frequency_penalty: float | None = None,
            presence_penalty: float | None = None,
            n: int | None = None,
            reasoning_effort: str | None = None,
            thinking_budget: int | None = None,
            verbosity: str | None = None,
            user: str | None = None,
            metadata: Mapping[str, Any] | None = None,
            provider_options: Mapping[str, Any] = ...,
            request_id: str | None = None,
            on_loss: OnLoss | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        set_field = msgspec.structs.force_setattr
        messages: Any = self.messages  # callers may pass a string
        if type(messages) is not tuple or not _MESSAGE.issuperset(map(type, messages)):
            set_field(self, "messages", _messages(messages))
        tools: Any = self.tools
        if type(tools) is not tuple:
            set_field(self, "tools", () if tools is None else tuple(tools))
        if self.stop_sequences is not None and type(self.stop_sequences) is not tuple:
            set_field(self, "stop_sequences", _texts(self.stop_sequences))


_MESSAGE = frozenset((Message,))


def _messages(value: Any) -> tuple[Message, ...]:
    if isinstance(value, str):
        return (Message.user(value),)
    if isinstance(value, Message):
        return (value,)
    messages = tuple(Message.user(item) if isinstance(item, str) else item for item in value)
    for message in messages:
        if not isinstance(message, Message):
            raise ConfigurationError(
                f"messages contain a {type(message).__name__}; use Message.user(...) or plain text"
            )
    return messages


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
