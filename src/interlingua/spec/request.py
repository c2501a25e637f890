"""What is asked of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from interlingua.spec.content import Extra, Json, ToolType
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message

ToolChoiceMode: TypeAlias = Literal["auto", "none", "required", "named"]
FormatType: TypeAlias = Literal["text", "json", "json_schema"]
OnLoss: TypeAlias = Literal["content", "strict", "warn"]
"""What to do when the target cannot express all of a request; see `Request.on_loss`."""


class ToolDefinition(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    tag="function",
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """A tool the caller runs: its name, what it is for, and the JSON Schema of its input."""

    name: str
    description: str | None = None
    parameters: Json = None
    """A JSON Schema of type object; None for a tool without input, or a `custom` one."""
    strict: bool | None = None
    type: ToolType = "function"
    extra: Extra = {}


class BuiltinTool(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    tag="builtin",
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """A tool the provider runs itself (web search, code execution, MCP), carried verbatim."""

    dialect: str
    data: Json = None


ToolSpec: TypeAlias = ToolDefinition | BuiltinTool


class ToolChoice(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """Whether, and which, tools the model must call."""

    mode: ToolChoiceMode = "auto"
    tool_name: str | None = None
    """The tool that must be called, with mode `named`."""
    allowed: tuple[str, ...] | None = None
    """Only these may be called, with mode `auto` or `required`."""
    extra: Extra = {}

    if TYPE_CHECKING:  # what `__post_init__` takes besides; at run time msgspec's own stays

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


class ResponseFormat(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """The shape the answer's text must have."""

    type: FormatType = "text"
    json_schema: Json = None
    strict: bool | None = None
    name: str | None = None
    description: str | None = None
    extra: Extra = {}


class Request(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """
    One call, in the canonical language.

    None means "not said"; 0, 0.0, "" and () are values. `provider_options` is keyed by
    provider or dialect, and is merged over the encoded body last.
    """

    model: str = ""
    messages: tuple[Message, ...] = ()
    provider: str | None = None
    tools: tuple[ToolSpec, ...] | None = None
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

    if TYPE_CHECKING:  # as of `ToolChoice`

        def __init__(  # noqa: PLR0913 -- every field
            self,
            *,
            model: str = "",
            messages: str | Message | Iterable[str | Message] = (),
            provider: str | None = None,
            tools: Iterable[ToolSpec] | None = None,
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
        messages: Any = self.messages  # a caller without a type checker may pass text
        if type(messages) is not tuple or not _MESSAGE.issuperset(map(type, messages)):
            set_field(self, "messages", _messages(messages))
        if self.tools is not None and type(self.tools) is not tuple:
            set_field(self, "tools", tuple(self.tools))
        if self.stop_sequences is not None and type(self.stop_sequences) is not tuple:
            set_field(self, "stop_sequences", _texts(self.stop_sequences))


_MESSAGE = frozenset((Message,))


def _messages(given: Any) -> tuple[Message, ...]:
    if isinstance(given, str):
        return (Message.user(given),)
    if isinstance(given, Message):
        return (given,)
    messages = tuple(Message.user(item) if isinstance(item, str) else item for item in given)
    for message in messages:
        if not isinstance(message, Message):
            raise ConfigurationError(
                f"messages hold a {type(message).__name__}; use Message.user(...) and its like, "
                "or plain text"
            )
    return messages


def _texts(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
