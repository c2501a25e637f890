"""
Messages in every form that a function accepts.

A message is a `Message`, a string, a dict, or an object of the OpenAI or Anthropic SDK. The form of
Chat Completions is read by `spec`, because a `Request` takes it too; the forms of other APIs by
their dialects. In OpenAI's Responses API the items of one turn are one message, so neighbouring
items of one dialect are read together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from interlingua import dialects
from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.messages import AnyMessage, Message
from interlingua.spec.plain_dicts import (
    list_messages,
    to_message,
    to_messages,
    without_objects,
)

_COMMON_ROLES = ("user", "assistant")
_OURS = frozenset((Message,))


class _Reader(Protocol):
    """A dialect that reads the messages of its API's SDK."""

    def is_sdk_message(self, item: Mapping[str, UncheckedJson]) -> bool:
        """Whether an item has a form that only messages of this API have."""

    def decode_sdk_messages(
        self, items: Sequence[Mapping[str, UncheckedJson]]
    ) -> tuple[Message, ...]:
        """The messages."""


def read_messages(messages: AnyMessage | Iterable[AnyMessage]) -> tuple[Message, ...]:
    """
    Return messages of every form that functions take, as ours.

    Each is a `Message`, the text of a user message, or a dict or object of OpenAI's chat API, of
    its Responses API or of Anthropic's API. `ConfigurationError` says which one is wrong, and why.

        item = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
        request = Request(model="openai:gpt-5.2", messages=read_messages([item]))
    """
    if type(messages) is tuple and _OURS.issuperset(map(type, messages)):
        return messages  # fast path: those of a session, or of a result
    items = list_messages(messages)
    try:
        return to_messages(items)
    except ConfigurationError:
        plain = [item if isinstance(item, Message) else without_objects(item) for item in items]
        readers = [_find_reader(item) for item in plain]
        if not any(readers):
            raise
    return tuple(_read_runs(plain, readers))


def _find_reader(item: object) -> _Reader | None:
    """The dialect whose form a message has; None if it has that of `spec`, or none at all."""
    if isinstance(item, Mapping):
        for name in dialects.names():
            dialect: Any = dialects.get(name)
            if hasattr(dialect, "is_sdk_message") and dialect.is_sdk_message(item):
                return dialect  # type: ignore[no-any-return] # a module satisfies the protocol
    return None


def _read_runs(items: list[Any], readers: list[_Reader | None]) -> Iterator[Message]:
    """The messages of all items; what comes between those of one dialect is read by it too."""
    start, reader = 0, None
    for index, item in enumerate(items):
        own = readers[index]
        if own is None and _is_common(item):
            continue
        if own is None or (reader is not None and own is not reader):
            yield from _read_run(items, start, index, reader)
            start, reader = index, None
        if own is None:
            yield to_message(item, f"messages[{index}]")
            start = index + 1
        else:
            reader = own
    yield from _read_run(items, start, len(items), reader)


def _is_common(item: Any) -> bool:
    """Whether a message has the same form in all APIs: a role, and text."""
    if not isinstance(item, Mapping) or item.keys() != {"role", "content"}:
        return False
    content = item["content"]
    texts = [content] if isinstance(content, str) else content
    return item["role"] in _COMMON_ROLES and isinstance(texts, list) and all(map(_is_text, texts))


def _is_text(block: Any) -> bool:
    is_block = isinstance(block, Mapping) and block.keys() == {"type", "text"}
    return isinstance(block, str) or (is_block and block["type"] == "text")


def _read_run(
    items: list[Any], start: int, end: int, reader: _Reader | None
) -> tuple[Message, ...]:
    if reader is None:
        return tuple(to_message(items[i], f"messages[{i}]") for i in range(start, end))
    try:
        return reader.decode_sdk_messages(items[start:end])
    except SDKError as error:
        raise _located(items, start, end, reader, error) from None


def _located(
    items: list[Any], start: int, end: int, reader: _Reader, error: SDKError
) -> ConfigurationError:
    """The error with the place of the item that cannot be read."""
    for index in range(start, end):
        try:
            reader.decode_sdk_messages([items[index]])
        except SDKError as wrong:
            return ConfigurationError(f"messages[{index}] cannot be read. {wrong.message}")
    return ConfigurationError(f"messages[{start}] and those after it cannot be read. {error}")
