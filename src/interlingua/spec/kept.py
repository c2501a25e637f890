"""
How a server keeps responses and conversations, so that later requests can refer to them.

A dialect says which fields of its bodies refer to what is kept (`KeptForm`); a server keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from interlingua.spec.content import Json, Record
from interlingua.spec.contracts import Frame, WireCall
from interlingua.spec.operations import Failure

Items: TypeAlias = tuple[tuple[str, Json], ...]
"""Items as they were sent, each with the id by which it can be found."""

KeptKind: TypeAlias = Literal["response", "previous", "conversation", "item", "conversation_item"]
"""What was not found: a response, the one before a request, a conversation, an item of either."""

NewKeptId: TypeAlias = Callable[[str], str]
"""Makes an id with this prefix."""


class References(NamedTuple):
    """What a request refers to, and whether its own response is to be kept."""

    previous: str | None = None
    """The id of the response before it."""
    conversation: str | None = None
    """The id of its conversation."""
    items: tuple[str, ...] = ()
    """The ids of single items."""
    is_kept: bool = True
    is_answer: bool = True
    """Whether its response can be kept at all: a count of tokens cannot."""


class KeptQuery(Record, frozen=True, kw_only=True):
    """The value of an operation on what is kept."""

    id: str = ""
    """The id of the response or the conversation."""
    item_id: str = ""
    items: tuple[Json, ...] = ()
    """Items to add."""
    metadata: dict[str, Json] = {}
    after: str | None = None
    """The id of the last item of the page before."""
    limit: int = 20
    is_ascending: bool = False


class KeptConversation(Record, frozen=True, kw_only=True):
    """A conversation without its items."""

    id: str
    created_at: int
    metadata: dict[str, Json] = {}


class KeptForm(msgspec.Struct, frozen=True, kw_only=True):
    """How the bodies of a dialect refer to what a server keeps."""

    response_prefix: str
    conversation_prefix: str
    options: frozenset[str]
    """The fields of a request that no other server is sent."""
    read: Callable[[WireCall], References]
    """What a call refers to; `InvalidRequestError` if that makes no sense."""
    own_items: Callable[[Mapping[str, Json], Mapping[str, Json], NewKeptId], Items]
    """The items of a body, with those that it refers to by their ids."""
    resolve: Callable[[Mapping[str, Json], Sequence[Json], References], dict[str, Json]]
    """The body with all of these items, and without references."""
    output: Callable[[Mapping[str, Json]], Items]
    """The items of a response."""
    history: Callable[[Sequence[Json]], list[Json]]
    """The items that a next request needs of those before it."""
    last_body: Callable[[Frame], dict[str, Json] | None]
    """The response in the last frame of a whole stream; None in every other frame."""
    echo: Callable[[References], dict[str, Json]]
    """The fields of a response that say how it is kept."""
    not_found: Callable[[KeptKind, str], Failure]
    """The failure of a reference to something that is not kept, or no longer."""
    refusal: str
    """What the client of a server that keeps nothing is told."""
