"""Messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from interlingua.spec.content import (
    PART_TYPES,
    Extra,
    Part,
    Record,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.errors import ConfigurationError

Role: TypeAlias = Literal["system", "user", "assistant", "tool", "developer"]
"""Who speaks: `system`, `user`, `assistant`, `tool` or `developer`."""
ROLES: frozenset[str] = frozenset(("system", "user", "assistant", "tool", "developer"))

_KINDS = frozenset(PART_TYPES)

Content: TypeAlias = str | Part | Iterable[str | Part]
"""What constructors accept as the content of a message."""


class Message(Record, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: Role
    """`system`, `user`, `assistant`, `tool` or `developer`."""
    content: tuple[Part, ...] = ()
    """The parts; a text becomes one `Text`."""
    name: str | None = None
    """The name of the speaker, where the provider has it."""
    id: str | None = None
    """An id, which answers of a call have."""
    metadata: Mapping[str, Any] = {}
    """
    Data of the application; never sent.

    Of an answer: `model` (as it was sent), `provider`, `registry_id`, `finish_reason`, `usage`, and
    `raw_finish_reason` where the reason is `other`.
    """
    extra: Extra = {}
    """Data of the message that must be sent back to a provider, by dialect name."""

    if TYPE_CHECKING:  # `__post_init__` accepts more types than the fields declare

        def __init__(
            self,
            *,
            role: Role,
            content: Content = (),
            name: str | None = None,
            id: str | None = None,  # noqa: A002 -- the field's name
            metadata: Mapping[str, Any] = ...,
            extra: Extra = ...,
        ) -> None: ...

    else:  # to say what to write instead; the type `Hinted` would cost 1 µs for each message
        tool_call_id: Any = None

    def __post_init__(self) -> None:
        content: Any = self.content  # callers may pass a string
        if type(content) is not tuple or not _KINDS.issuperset(map(type, content)):
            msgspec.structs.force_setattr(self, "content", to_parts(content))
        role = self.role
        if role not in ROLES:
            raise ConfigurationError(
                f"Unknown role {role!r}. Use one of {', '.join(sorted(ROLES))}."
            )
        if type(role) is not str:  # a subclass, such as an enumeration
            msgspec.structs.force_setattr(self, "role", str.__str__(role))
        if not TYPE_CHECKING and self.tool_call_id is not None:
            raise ConfigurationError(
                "Message has no field 'tool_call_id'. "
                "Use Message.tool_result(tool_call_id, content)."
            )

    @staticmethod
    def system(content: Content, *more: Content) -> Message:
        """Make a message with instructions that shape the model's behaviour."""
        return Message(role="system", content=to_parts(content, *more))

    @staticmethod
    def developer(content: Content, *more: Content) -> Message:
        """Instructions of the application; OpenAI gives them priority over user messages."""
        return Message(role="developer", content=to_parts(content, *more))

    @staticmethod
    def user(content: Content, *more: Content, name: str | None = None) -> Message:
        """Make a message of the user: `Message.user("What is this?", Image(…))`."""
        return Message(role="user", content=to_parts(content, *more), name=name)

    @staticmethod
    def assistant(content: Content, *more: Content) -> Message:
        """Make a message of the model."""
        return Message(role="assistant", content=to_parts(content, *more))

    @staticmethod
    def tool_result(
        tool_call_id: str,
        content: Any,
        *,
        is_error: bool = False,
        name: str | None = None,
    ) -> Message:
        """Make the message with the result of one tool call: text, a JSON value, or parts."""
        result = ToolResult(
            tool_call_id=tool_call_id, content=content, is_error=is_error, name=name
        )
        return Message(role="tool", content=(result,))

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.content if type(part) is Text)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls to run, without those that the provider runs itself."""
        return tuple([part for part in self.content if type(part) is ToolCall])

    @property
    def reasoning(self) -> str | None:
        """The visible thinking, joined; None if there is none."""
        texts = [part.text for part in self.content if type(part) is Thinking]
        return "".join(texts) or None


def to_parts(value: Content, *more: Content) -> tuple[Part, ...]:
    """The content as a tuple of parts; strings become `Text`."""
    if more:
        return tuple(part for item in (value, *more) for part in to_parts(item))
    content: Any = value  # callers without a type checker may pass anything
    if isinstance(content, str):
        return (Text(text=content),)
    if isinstance(content, PART_TYPES):
        return (content,)
    if not isinstance(content, Iterable) or isinstance(content, (bytes, Mapping)):
        raise ConfigurationError(
            f"The content of a message must be text or parts, not a {type(content).__name__}."
        )
    parts = tuple(Text(text=item) if isinstance(item, str) else item for item in content)
    for part in parts:
        if not isinstance(part, PART_TYPES):
            raise ConfigurationError(
                f"The content of a message holds a {type(part).__name__}, which is not a part."
            )
    return parts


# Messages in other forms, which `plain_dicts` reads.


class SdkObject(Protocol):
    """An object of a vendor's SDK, which is a pydantic model."""

    @property
    def model_fields_set(self) -> set[str]:
        """The names of the fields that have a value of their own."""

    @property
    def model_extra(self) -> dict[str, Any] | None:
        """The fields that the class does not declare."""


AnyMessage: TypeAlias = Message | str | Mapping[str, Any] | SdkObject
"""A `Message`, the text of a user message, a dict, or an object of a vendor's SDK."""


def is_sdk_object(value: object) -> bool:
    """Whether it is an object of a vendor's SDK."""
    return hasattr(type(value), "model_fields_set") and hasattr(type(value), "model_fields")
