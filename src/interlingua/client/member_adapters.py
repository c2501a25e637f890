"""Adapters over several others, such as `Balance`: they choose one for each attempt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar, Protocol, TypeAlias

from interlingua.spec.contracts import Adapter
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import Request
from interlingua.spec.response import Response

OnMember: TypeAlias = Callable[[str], object]
"""Called with the name of the key or endpoint that is used."""


class MemberAdapter(Adapter, Protocol):
    """An adapter over several others, such as `Balance`: it chooses one for each attempt."""

    has_members: ClassVar[bool]

    @property
    def first(self) -> Adapter:
        """The one that stands for all where only one can."""

    def rebind(self, name: str) -> Adapter:
        """A copy with another name."""

    async def send_by_member(
        self,
        request: Request,
        send: Callable[[Adapter], Awaitable[Response]],
        on_member: OnMember | None = None,
    ) -> Response:
        """The answer that `send` gets from the chosen adapter."""

    async def perform_by_member(
        self,
        value: Any,
        request_id: str,
        perform: Callable[[Adapter], Awaitable[Any]],
        on_member: OnMember | None = None,
    ) -> Any:
        """The result that `perform` gets from the chosen adapter."""

    def stream_by_member(
        self,
        request: Request,
        send: Callable[[Adapter], AsyncIterator[StreamEvent]],
        on_member: OnMember | None = None,
    ) -> AsyncIterator[StreamEvent]:
        """The events that `send` gets from the chosen adapter."""


def as_member_adapter(adapter: Any) -> MemberAdapter | None:
    """The adapter, if it is one over several others."""
    if getattr(adapter, "has_members", False):  # `isinstance` of a protocol is slow
        members: MemberAdapter = adapter
        return members
    return None
