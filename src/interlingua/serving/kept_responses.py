"""
Keeps responses and conversations, so that requests can refer to them with every model.

What is kept is what the client has seen: the items of the request and of the response, with the
sealed state. So a request that refers to them is, once they are put in their places, one that
contains them. Of a response only what it has added to the history before it is kept
(`kept_histories`). No caller reads what another one's request made.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote

from msgspec.structs import asdict, replace

from interlingua.client.stores.contract import Store
from interlingua.runtime.ulid import new_ulid
from interlingua.serving.application import (
    Incoming,
    RefusedError,
    decode_operation,
    encode_operation,
    serve_of,
)
from interlingua.serving.asgi import Reply
from interlingua.serving.kept_histories import Histories, History, items_of, pack, unpack
from interlingua.serving.sealed_state import KeptSeals, kept_seals_in
from interlingua.serving.storage import Room, Storage
from interlingua.spec.content import Extra, Json
from interlingua.spec.contracts import Frame, WireCall
from interlingua.spec.events import ErrorEvent, Finish, StreamEvent, StreamStart
from interlingua.spec.kept import (
    Items,
    KeptConversation,
    KeptForm,
    KeptKind,
    KeptQuery,
    References,
)
from interlingua.spec.operations import Failure
from interlingua.spec.request import Request
from interlingua.spec.response import Response

DAY = 86_400.0
KEEP = 30 * DAY
"""Seconds that responses are kept, unless told otherwise: as long as OpenAI keeps them."""


def kept_form(dialect: str) -> KeptForm | None:
    """How a dialect refers to what is kept; None if it has no such references."""
    form: KeptForm | None = getattr(serve_of(dialect), "KEPT", None)
    return form


class KeptResponses:
    """
    The responses and conversations of all callers, in a store.

        kept = KeptResponses(store, seconds=30 * 86_400)
        app = ClientApplication(Client(adapters), kept=kept)

    What is kept ends after `seconds`; `clock` is in seconds since 1970. The program closes the
    store.
    """

    def __init__(
        self, store: Store, *, seconds: float = KEEP, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock

    def of_caller(
        self, name: str, seconds: float | None = None, most: Storage | None = None
    ) -> Shelf | None:
        """Return what is kept for a caller; None if nothing is (`seconds` is 0)."""
        seconds = self._seconds if seconds is None else seconds
        if seconds <= 0:
            return None
        return Shelf(self._store, name, seconds, self._clock, most or Storage())


class Draft(NamedTuple):
    """What is known about a response that will be kept, before there is one."""

    id: str
    references: References
    history: History
    """The beginning of the items that the model is given."""
    rest: Items
    """The other ones."""
    new: Items
    """Those that the request has itself, and does not only refer to."""
    echo: Mapping[str, Json]
    """Fields of the response."""


class Keeping:
    """One request for an answer whose response a server keeps."""

    def __init__(self, shelf: Shelf, form: KeptForm, draft: Draft, dialect: str) -> None:
        self._shelf = shelf
        self._form = form
        self._draft = draft
        self._dialect = dialect

    def mark(self, response: Response) -> Response:
        """The response with the id under which it is kept."""
        extra = self._echoed(response.extra)
        if not self._draft.references.is_kept:
            return replace(response, extra=extra)
        return replace(response, id=self._draft.id, extra=extra)

    def mark_event(self, event: StreamEvent) -> StreamEvent:
        """The event with that id."""
        match event:
            case StreamStart():
                id = self._draft.id if self._draft.references.is_kept else event.id
                return replace(event, id=id, extra=self._echoed(event.extra))
            case Finish() | ErrorEvent() if event.response is not None:
                return replace(event, response=self.mark(event.response))
        return event

    def _echoed(self, extra: Extra) -> Extra:
        """The fields of an answer of the same dialect; another one repeats those of the request."""
        own = extra.get(self._dialect)
        return extra if own is None else {**extra, self._dialect: {**own, **self._draft.echo}}

    async def keep(self, body: Mapping[str, Json]) -> None:
        """Keep the response with this body."""
        await self._shelf.keep(self._draft, body, self._form)

    async def keep_last(self, frames: Iterable[Frame]) -> None:
        """Keep the response if one of these frames is the last of a whole stream."""
        for frame in frames:
            body = self._form.last_body(frame)
            if body is not None:
                await self.keep(body)


async def start_keeping(incoming: Incoming, shelf: Shelf | None) -> tuple[Incoming, Keeping | None]:
    """The request with what it refers to in its place, and what keeps its response."""
    form = kept_form(incoming.dialect)
    kind = incoming.route.kind
    if shelf is None or form is None or kind not in ("answer", "count"):
        return incoming, None
    body, draft = await shelf.resolve(incoming.call, form)
    body = {name: value for name, value in body.items() if name not in form.options}
    if not draft.references.is_answer:
        return incoming._replace(call=replace(incoming.call, body=body)), None
    if draft.references.is_kept or draft.references.conversation is not None:
        await shelf.check_room()
    call = replace(incoming.call, body={**body, **draft.echo})
    return incoming._replace(call=call), Keeping(shelf, form, draft, incoming.dialect)


class Memory(NamedTuple):
    """What a server remembers of and for one request for an answer; nothing, by default."""

    shelf: Shelf | None = None
    keeping: Keeping | None = None
    seals: KeptSeals | None = None

    async def with_seals(self, request: Request) -> Memory:
        """The same with the seals that a request refers to."""
        if self.shelf is None:
            return self
        return self._replace(seals=await self.shelf.load_seals(kept_seals_in(request)))

    async def keep(self, body: Mapping[str, Json]) -> None:
        """Keep what has to be kept of an answer with this body."""
        await self._save_seals()
        if self.keeping is not None:
            await self.keeping.keep(body)

    async def keep_last(self, frames: Iterable[Frame]) -> None:
        """Keep what has to be kept before these frames are sent."""
        await self._save_seals()
        if self.keeping is not None:
            await self.keeping.keep_last(frames)

    async def _save_seals(self) -> None:
        if self.shelf is not None and self.seals is not None:
            await self.shelf.save_seals(self.seals)


def is_about_kept(incoming: Incoming) -> bool:
    """Whether a request asks for an operation on what is kept."""
    operation = incoming.route.operation
    return operation is not None and operation.name in Shelf.OPERATIONS


async def perform_kept(incoming: Incoming, shelf: Shelf | None) -> Reply:
    """The reply to an operation on what is kept; 400 if nothing is kept for the caller."""
    form = kept_form(incoming.dialect)
    if form is None:
        raise RefusedError(Failure(status=404))
    if shelf is None:
        raise RefusedError(Failure(status=400, message=form.refusal))
    operation, value = decode_operation(incoming)
    return encode_operation(incoming, await shelf.perform(operation.name, value, form), value)


def without_references(request: Request, dialect: str) -> Request:
    """The request without the fields that are about what this server keeps."""
    form, own = kept_form(dialect), request.provider_options.get(dialect)
    if form is None or not own or form.options.isdisjoint(own):
        return request
    rest = {name: value for name, value in own.items() if name not in form.options}
    options = {**request.provider_options, dialect: rest}
    return replace(request, provider_options=options)


class Shelf:
    """What is kept for one caller."""

    def __init__(
        self,
        store: Store,
        caller: str,
        seconds: float,
        clock: Callable[[], float],
        most: Storage,
    ) -> None:
        self._room = Room(store, caller, most)
        self._store = store
        self._caller = quote(caller, safe="")
        self._seconds = seconds
        self._clock = clock
        self._histories = Histories(store, caller, seconds, clock)

    # Requests that refer to what is kept, and their responses.

    async def resolve(self, call: WireCall, form: KeptForm) -> tuple[dict[str, Json], Draft]:
        """The body with what it refers to in its place, and what to keep with its response."""
        references, body = form.read(call), call.body if isinstance(call.body, dict) else {}
        before: Items = ()
        history: History = ()
        if references.previous is not None:
            history = await self._history(references.previous, form, "previous")
            before = items_of(history)
        elif references.conversation is not None:
            await self._conversation(references.conversation, form)
            before = await self._conversation_items(references.conversation)
            history = await self._history_with(before[-1][0]) if before else ()
        found, latest = await self._find_items(references.items, form)
        own = form.own_items(body, found, _new_id)
        needed = form.history([item for _, item in before])
        whole = (*before[len(before) - len(needed) :], *own)
        resolved = form.resolve(body, [item for _, item in whole], references)
        new = tuple((id, item) for id, item in own if id not in found)
        history, rest = _split(whole, history or latest)
        id, echo = _new_id(form.response_prefix), form.echo(references)
        return resolved, Draft(id, references, history, rest, new, echo)

    async def check_room(self) -> None:
        """Raise `QuotaExceededError` if there is no room for more."""
        await self._room.check("responses", "response_bytes", period=self._seconds)

    async def _count(self, size: int, responses: int = 0) -> None:
        """Count what was stored, until its time is over."""
        amounts = {"responses": responses, "response_bytes": size}
        await self._room.count(self._seconds, period=self._seconds, **amounts)

    async def keep(self, draft: Draft, body: Mapping[str, Json], form: KeptForm) -> None:
        """Keep a response; `StoreError` if it cannot be kept."""
        output = form.output(body)
        conversation = draft.references.conversation
        if conversation is not None:
            await self._append(conversation, (*draft.new, *output), form)
        if not draft.references.is_kept:
            return
        new = {id for id, _ in draft.new}
        for id, _ in (*(each for each in draft.rest if each[0] in new), *output):
            await self._put(self._item_key(id), draft.id.encode())
        size = await self._histories.keep(draft.id, dict(body), draft.history, draft.rest, output)
        await self._count(size, responses=1)

    async def _find_items(
        self, ids: Sequence[str], form: KeptForm
    ) -> tuple[dict[str, Json], History]:
        """The items with these ids, and the history with the last of them, which has most."""
        known: dict[str, Json] = {}
        latest: History = ()
        for id in reversed(ids):
            if id not in known:
                history = await self._history_with(id)
                latest = latest or history
                known.update(items_of(history))
            if id not in known:
                raise RefusedError(form.not_found("item", id))
        return {id: known[id] for id in ids}, latest

    async def _history_with(self, item_id: str) -> History:
        """The history up to the response that has added an item; empty if it is not kept."""
        holder = await self._store.get(self._item_key(item_id))
        return await self._histories.load(holder.decode()) if holder else ()

    async def _history(self, id: str, form: KeptForm, kind: KeptKind) -> History:  # noqa: A002
        history = await self._histories.load(id)
        if not history:
            raise RefusedError(form.not_found(kind, id))
        return history

    def _item_key(self, id: str) -> str:  # noqa: A002 -- the name of the field
        return f"item/{self._caller}/{id}"

    async def _put(self, key: str, value: bytes) -> None:
        await self._store.put(key, value, ttl=self._seconds)

    # Seals that are too large for the ids of calls.

    async def load_seals(self, names: Iterable[str]) -> KeptSeals:
        """The seals with these names that are kept."""
        found = {name: await self._store.get(self._seal_key(name)) for name in names}
        return KeptSeals({name: data.decode() for name, data in found.items() if data})

    async def save_seals(self, seals: KeptSeals) -> None:
        """Keep the new seals."""
        while seals.new:
            name, text = seals.new.popitem()
            await self._put(self._seal_key(name), text.encode())

    def _seal_key(self, name: str) -> str:
        return f"seal/{self._caller}/{name}"

    # Operations.

    async def perform(self, name: str, value: KeptQuery, form: KeptForm) -> Any:
        """The result of an operation on what is kept."""
        return await self.OPERATIONS[name](self, value, form)

    async def _get_response(self, value: KeptQuery, form: KeptForm) -> dict[str, Json]:
        body = await self._histories.find(value.id)
        if body is None:
            raise RefusedError(form.not_found("response", value.id))
        return body

    async def _list_input_items(self, value: KeptQuery, form: KeptForm) -> Items:
        *before, last = await self._history(value.id, form, "response")
        return (*items_of(before), *last.input)

    async def _delete_response(self, value: KeptQuery, form: KeptForm) -> None:
        if not await self._histories.delete(value.id):
            raise RefusedError(form.not_found("response", value.id))

    # Conversations: a record, and a list of additions and deletions, which many may append to.

    async def _create_conversation(self, value: KeptQuery, form: KeptForm) -> KeptConversation:
        made = KeptConversation(
            id=_new_id(form.conversation_prefix),
            created_at=int(self._clock()),
            metadata=value.metadata,
        )
        await self.check_room()
        await self._put_conversation(made)
        await self._count(len(pack(asdict(made))), responses=1)
        await self._add(made, value, form)
        return made

    async def _get_conversation(self, value: KeptQuery, form: KeptForm) -> KeptConversation:
        return await self._conversation(value.id, form)

    async def _update_conversation(self, value: KeptQuery, form: KeptForm) -> KeptConversation:
        known = await self._conversation(value.id, form)
        changed = replace(known, metadata=value.metadata)
        await self._put_conversation(changed)
        return changed

    async def _delete_conversation(self, value: KeptQuery, form: KeptForm) -> None:
        await self._conversation(value.id, form)
        await self._store.delete(self._conversation_key(value.id))

    async def _add_conversation_items(self, value: KeptQuery, form: KeptForm) -> Items:
        await self.check_room()
        return await self._add(await self._conversation(value.id, form), value, form)

    async def _list_conversation_items(self, value: KeptQuery, form: KeptForm) -> Items:
        await self._conversation(value.id, form)
        return await self._conversation_items(value.id)

    async def _get_conversation_item(self, value: KeptQuery, form: KeptForm) -> tuple[str, Json]:
        await self._conversation(value.id, form)
        for id, item in await self._conversation_items(value.id):
            if id == value.item_id:
                return id, item
        raise RefusedError(form.not_found("conversation_item", value.item_id))

    async def _delete_conversation_item(self, value: KeptQuery, form: KeptForm) -> KeptConversation:
        known = await self._conversation(value.id, form)
        await self._get_conversation_item(value, form)
        await self._append_to(known, value.item_id)
        return known

    async def _add(self, known: KeptConversation, value: KeptQuery, form: KeptForm) -> Items:
        new = form.own_items({"input": list(value.items)}, {}, _new_id)
        if new:
            await self._append_to(known, new)
        return new

    async def _append(self, id: str, items: Items, form: KeptForm) -> None:  # noqa: A002
        await self._append_to(await self._conversation(id, form), items)

    async def _append_to(self, known: KeptConversation, change: Items | str) -> None:
        """Add items, or remove the one with this id."""
        key, left = self._conversation_key(known.id), self._left(known)
        data = pack(change)
        await self._store.append(key, data, ttl=left)
        await self._count(len(data))

    async def _conversation(self, id: str, form: KeptForm) -> KeptConversation:  # noqa: A002
        data = await self._store.get(self._conversation_key(id))
        if data is None:
            raise RefusedError(form.not_found("conversation", id))
        return KeptConversation(**unpack(data))

    async def _conversation_items(self, id: str) -> Items:  # noqa: A002 -- the name of the field
        items: dict[str, Json] = {}
        for change in await self._store.items(self._conversation_key(id)):
            made = unpack(change)
            if isinstance(made, str):
                items.pop(made, None)
            else:
                items.update((id, item) for id, item in made)
        return tuple(items.items())

    async def _put_conversation(self, made: KeptConversation) -> None:
        key, data = self._conversation_key(made.id), pack(asdict(made))
        await self._store.put(key, data, ttl=self._left(made))

    def _left(self, known: KeptConversation) -> float:
        """The seconds that a conversation is kept from now on."""
        return max(known.created_at + self._seconds - self._clock(), 1.0)

    def _conversation_key(self, id: str) -> str:  # noqa: A002 -- the name of the field
        return f"conversation/{self._caller}/{id}"

    OPERATIONS: ClassVar[Mapping[str, Callable[[Shelf, KeptQuery, KeptForm], Awaitable[Any]]]] = {
        "get_response": _get_response,
        "list_input_items": _list_input_items,
        "delete_response": _delete_response,
        "create_conversation": _create_conversation,
        "get_conversation": _get_conversation,
        "update_conversation": _update_conversation,
        "delete_conversation": _delete_conversation,
        "add_conversation_items": _add_conversation_items,
        "list_conversation_items": _list_conversation_items,
        "get_conversation_item": _get_conversation_item,
        "delete_conversation_item": _delete_conversation_item,
    }
    """What can be done with what is kept, by the names of the operations."""


def _new_id(prefix: str) -> str:
    return f"{prefix}{new_ulid().lower()}"


def _split(items: Items, history: History) -> tuple[History, Items]:
    """Items as a history and what follows it; all of them follow if they begin otherwise."""
    first = items_of(history)
    begins = [item for _, item in items[: len(first)]] == [item for _, item in first]
    return (history, items[len(first) :]) if begins else ((), items)
