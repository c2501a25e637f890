"""Messages: who said what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from interlingua.spec.content import (
    PART_TYPES,
    Extra,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.errors import ConfigurationError

Role: TypeAlias = Literal["system", "user", "assistant", "tool", "developer"]
ROLES: frozenset[str] = frozenset(("system", "user", "assistant", "tool", "developer"))

_KINDS = frozenset(PART_TYPES)

Content: TypeAlias = str | Part | Iterable[str | Part]
"""What a constructor takes for a message's content."""


class Message(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """One turn, or a piece of one. A conversation is a sequence of these."""

    role: Role
    content: tuple[Part, ...] = ()
    name: str | None = None
    id: str | None = None
    metadata: Mapping[str, Any] = {}
    """The application's own; never sent."""
    extra: Extra = {}
    """What a provider wants echoed on the message itself, by dialect name."""

    if TYPE_CHECKING:  # what `__post_init__` takes besides; at run time msgspec's own stays

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

    def __post_init__(self) -> None:
        content: Any = self.content  # a caller without a type checker may pass text
        if type(content) is not tuple or not _KINDS.issuperset(map(type, content)):
            msgspec.structs.force_setattr(self, "content", to_parts(content))
        if self.role not in ROLES:
            raise ConfigurationError(
                f"unknown role {self.role!r}; use one of {', '.join(sorted(ROLES))}"
            )

    @staticmethod
    def system(content: Content) -> Message:
        """Instructions that shape the model's behaviour."""
        return Message(role="system", content=to_parts(content))

    @staticmethod
    def developer(content: Content) -> Message:
        """Instructions of the application, not of the end user."""
        return Message(role="developer", content=to_parts(content))

    @staticmethod
    def user(content: Content, *, name: str | None = None) -> Message:
        """What the user says or shows."""
        return Message(role="user", content=to_parts(content), name=name)

    @staticmethod
    def assistant(content: Content) -> Message:
        """What the model said."""
        return Message(role="assistant", content=to_parts(content))

    @staticmethod
    def tool_result(
        tool_call_id: str,
        content: Any,
        *,
        is_error: bool = False,
        name: str | None = None,
    ) -> Message:
        """The answer to one tool call: text, a JSON value, or parts."""
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
        """The calls the caller is asked to make; tools the provider ran are not among them."""
        return tuple(part for part in self.content if type(part) is ToolCall)

    @property
    def reasoning(self) -> str | None:
        """The thinking that can be read, joined; None if there is none."""
        texts = [part.text for part in self.content if type(part) is Thinking]
        return "".join(texts) or None


def to_parts(given: Content) -> tuple[Part, ...]:
    """Plain strings become `Text`; one part or any iterable becomes a tuple."""
    content: Any = given
    if isinstance(content, str):
        return (Text(text=content),)
    if isinstance(content, PART_TYPES):
        return (content,)
    if not isinstance(content, Iterable) or isinstance(content, (bytes, Mapping)):
        raise ConfigurationError(
            f"message content must be text or parts, not {type(content).__name__}"
        )
    parts = tuple(Text(text=item) if isinstance(item, str) else item for item in content)
    for part in parts:
        if not isinstance(part, PART_TYPES):
            raise ConfigurationError(
                f"message content holds a {type(part).__name__}, which is not a part"
            )
    return parts
