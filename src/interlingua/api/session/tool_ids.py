"""
The ids of tool calls in a session: one of our own, and one for each provider.

In the history a call has an id `tu_<ULID>`. On the wire it has the id that the provider gave it.
A provider that did not make the call gets an id that is derived from ours. Both stay the same in
all later turns.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Mapping,
)
from functools import partial
from operator import is_
from typing import Any

from msgspec.structs import replace

from interlingua.providers.provider import find_dialect
from interlingua.runtime.fold import close_stream
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.content import Part, ToolCall, ToolResult
from interlingua.spec.contracts import Adapter
from interlingua.spec.defaults import MANY_PARTS
from interlingua.spec.events import Finish, StreamEvent, ToolCallEnd, ToolCallStart
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Response

PREFIX = "tu_"
_is_ours = re.compile(r"tu_[0-9A-HJKMNP-TV-Z]{26}").fullmatch


def new_call_id() -> str:
    """A new id of a call in a session."""
    return PREFIX + new_ulid()


class ToolIds:
    """The ids of the calls of one session at each provider."""

    def __init__(self, known: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._wire: dict[str, dict[str, str]] = {}
        self._taken: dict[str, _TakenIds] = {}
        for provider, ids in (known or {}).items():
            self._wire[provider] = dict(ids)
            self._taken[provider] = _TakenIds(ids.values())

    def __bool__(self) -> bool:
        return bool(self._wire)

    def table(self) -> dict[str, dict[str, str]]:
        """The ids by provider: for each call of the session, the id on the wire."""
        return {provider: dict(ids) for provider, ids in sorted(self._wire.items()) if ids}

    def copy(self) -> ToolIds:
        """The same ids, which grow apart from now on."""
        return ToolIds(self._wire)

    def keep(self, used: Collection[str]) -> None:
        """Forget the ids of calls that are not in the history."""
        self.__init__(  # type: ignore[misc] # as when they are loaded
            {
                provider: {ours: wire for ours, wire in ids.items() if ours in used}
                for provider, ids in self._wire.items()
            }
        )

    # Between the session and a provider, as `CallIds` of the client.

    def write(self, request: Request, adapter: Adapter) -> Request:
        """The request with the ids that its provider knows."""
        parts = (part for message in request.messages for part in message.content)
        if not any(type(part) in _WITH_IDS for part in parts):
            return request
        provider, pattern = request.provider or "", _IdPattern(adapter, request.model)
        messages = rename(request.messages, lambda ours: self._wire_id(ours, provider, pattern))
        return request if messages is request.messages else replace(request, messages=messages)

    def read(self, response: Response, provider: str) -> Response:
        """The response with the ids of the session; each of its calls is new."""
        return _with_ids(response, lambda call: self.adopt(call.id, provider))

    def read_events(
        self, events: AsyncIterator[StreamEvent], provider: str
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of a response with the ids of the session."""
        return _with_ids_in_events(events, lambda wire_id: self.adopt(wire_id, provider))

    # Between the session and the middleware, which may answer with calls of its own.

    def own(self, response: Response) -> Response:
        """The response with ids of the session in calls that a middleware made."""
        if all(_is_ours(call.id) for call in response.message.tool_calls):
            return response
        return _with_ids(response, lambda call: self._own_id(call.id))

    def own_events(self, events: AsyncIterator[StreamEvent]) -> AsyncGenerator[StreamEvent, None]:
        """The same for events."""
        return _with_ids_in_events(events, self._own_id)

    def _own_id(self, call_id: str) -> str:
        return call_id if _is_ours(call_id) else self.adopt("", "")

    def adopt(self, wire_id: str, provider: str) -> str:
        """A new id of the session for a call that the provider made."""
        ours = new_call_id()
        if wire_id:
            taken = self._taken.setdefault(provider, _TakenIds())
            self._wire.setdefault(provider, {})[ours] = taken.take(wire_id)
        return ours

    def _wire_id(self, ours: str, provider: str, pattern: _IdPattern) -> str:
        if not _is_ours(ours):  # a middleware made it
            return ours
        known = self._wire.setdefault(provider, {})
        wire_id = known.get(ours)
        if wire_id is None:
            taken = self._taken.setdefault(provider, _TakenIds())
            derived = f"call_{ours.removeprefix(PREFIX)}"
            wire_id = known[ours] = taken.take(derived, pattern)
        return wire_id


class _IdPattern:
    """What a provider accepts as the id of a call; looked up when an id is derived."""

    def __init__(self, adapter: Adapter, model: str) -> None:
        self._adapter = adapter
        self._model = model

    def fit(self, call_id: str) -> str:
        from interlingua.client.adapter_members import profile_of
        from interlingua.prepare.history.calls import map_call_id

        profile = profile_of(self._adapter, self._model)
        pattern = profile.tool_call_id_pattern
        if pattern is None and profile.dialect:
            pattern = find_dialect(profile.dialect).FACTS.history.call_id
        return call_id if pattern is None else map_call_id(call_id, pattern)


class _TakenIds:
    """The ids that a provider knows."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._ids = set(ids)
        self._numbers: dict[str, int] = {}  # the last that was tried; one may be used thousandfold

    def take(self, call_id: str, pattern: _IdPattern | None = None) -> str:
        """The id, or one made from it if the provider has it already; it is taken from now on."""
        candidate = call_id if pattern is None else pattern.fit(call_id)
        number = self._numbers.get(call_id, 1)
        while candidate in self._ids:
            number += 1
            candidate = f"{call_id}_{number}"
            if pattern is not None:
                candidate = pattern.fit(candidate)
        if number > 1:
            self._numbers[call_id] = number
        self._ids.add(candidate)
        return candidate


async def _with_ids_in_events(
    events: AsyncIterator[StreamEvent], new_id: Callable[[str], str]
) -> AsyncGenerator[StreamEvent, None]:
    """The events with other ids of their calls; a call has the same one in all its events."""
    by_segment: dict[str, str] = {}
    by_old_id: dict[str, deque[str]] = {}  # a server may use an id twice

    def find(call: ToolCall) -> str:
        known = by_old_id.get(call.id)
        return known.popleft() if known else new_id(call.id)

    try:
        async for event in events:
            kind = type(event)
            if kind is ToolCallStart:
                old_id = event.tool_call_id  # type: ignore[union-attr]
                call_id = by_segment[event.id] = new_id(old_id)  # type: ignore[union-attr]
                by_old_id.setdefault(old_id, deque()).append(call_id)
                event = replace(event, tool_call_id=call_id)  # noqa: PLW2901
            elif kind is ToolCallEnd:
                call = event.tool_call  # type: ignore[union-attr]
                call_id = by_segment.get(event.id) or find(call)  # type: ignore[union-attr]
                event = replace(event, tool_call=replace(call, id=call_id))  # noqa: PLW2901
            elif kind is Finish and event.response is not None:  # type: ignore[union-attr]
                work = partial(_with_ids, event.response, find)  # type: ignore[union-attr]
                is_large = len(event.response.message.content) > MANY_PARTS  # type: ignore[union-attr]
                whole = await asyncio.to_thread(work) if is_large else work()
                event = replace(event, response=whole)  # noqa: PLW2901
            yield event
    finally:
        await close_stream(events)


def _with_ids(response: Response, find: Callable[[ToolCall], str]) -> Response:
    message = response.message
    if not message.tool_calls:
        return response
    content = tuple(
        replace(part, id=find(part)) if type(part) is ToolCall else part for part in message.content
    )
    return replace(response, message=replace(message, content=content))


# Ids in messages.


def rename(messages: tuple[Message, ...], new_id: Callable[[str], str]) -> tuple[Message, ...]:
    """The messages with other ids of calls and results; the same object if none has any."""
    renamed = tuple(_rename_in(message, new_id) for message in messages)
    return messages if all(map(is_, renamed, messages)) else renamed


def _rename_in(message: Message, new_id: Callable[[str], str]) -> Message:
    if not any(type(part) in _WITH_IDS for part in message.content):
        return message
    content = tuple(_renamed(part, new_id) for part in message.content)
    return replace(message, content=content)


def _renamed(part: Part, new_id: Callable[[str], str]) -> Part:
    if type(part) is ToolCall:
        return replace(part, id=new_id(part.id))
    if type(part) is ToolResult:
        return replace(part, tool_call_id=new_id(part.tool_call_id))
    return part


_WITH_IDS: frozenset[Any] = frozenset((ToolCall, ToolResult))


def call_ids(messages: tuple[Message, ...]) -> set[str]:
    """The ids of the calls in messages."""
    return {call.id for message in messages for call in message.tool_calls}


def adopt_messages(
    messages: tuple[Message, ...], ids: ToolIds, used: Collection[str] = ()
) -> tuple[Message, ...]:
    """
    Messages from elsewhere, with ids of the session.

    A call whose id is of another form, or is in `used` already, gets a new one; so does its result.
    The provider that made the call, as the metadata of its message says, keeps its own id.
    """
    renamed: dict[str, str] = {}
    adopted: list[Message] = []
    for message in messages:
        provider = message.metadata.get("provider")
        for call in message.tool_calls:
            if not _is_ours(call.id) or call.id in used:
                wire_id = "" if _is_ours(call.id) or not isinstance(provider, str) else call.id
                renamed[call.id] = ids.adopt(wire_id, provider or "")
            else:
                renamed.pop(call.id, None)
        adopted.append(
            _rename_in(message, lambda old: renamed.get(old, old)) if renamed else message
        )
    return tuple(adopted)
