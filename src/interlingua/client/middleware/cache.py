"""`Cache`: answers an equal request from a store, without a call."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from threading import Lock
from time import perf_counter
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from interlingua.client.middleware.cache_key import key_of
from interlingua.client.middleware.contract import (
    Call,
    CompleteNext,
    PerformNext,
    StreamNext,
)
from interlingua.lazy import Remade
from interlingua.prepare.history.scan import HistoryScan
from interlingua.providers.replies import LARGE
from interlingua.runtime.fold import close_stream
from interlingua.runtime.log import logger
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.content import Part, ToolCall
from interlingua.spec.contracts import Adapter
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.modalities.embeddings import EmbedResult
from interlingua.spec.modalities.judgements import ModerationResult, RerankResult
from interlingua.spec.operations import OperationResult
from interlingua.spec.request import Request
from interlingua.spec.response import Attempt, Cost, Response
from interlingua.streams.accumulate import events_from_response
from interlingua.transport.media import load_media_async

OPERATIONS = ("count_tokens", "embed")
"""The operations whose results depend only on their value, and change nothing at the provider."""
STORED = frozenset(("stop", "tool_calls"))
"""The finish reasons of answers that are stored: the model itself ended the answer."""
_ABOUT_COST = frozenset(("price_unknown",))
_OF_FALLBACKS = frozenset(
    ("answer_not_accepted", "answer_rejected", "model_failed", "model_skipped")
)
"""The warnings of answers to another request than the one that was made."""
_DOCUMENT = b'{"interlingua":'
"""How the entry of a result of ours begins."""
FROM_CACHE = Cost(source="cache")
"""What an answer from a cache costs."""


class ValueStore(Protocol):
    """The part of `Store` that a cache uses."""

    async def get(self, key: str) -> bytes | None:
        """The value; None if there is none or its time has ended."""

    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> bool:
        """Set a value; returns whether it was set."""


class Cache(Remade):
    """
    Answers an equal request from a store, whole or as a stream.

        client = Client.from_env(middleware=[Cache(ttl=3600)])

    Requests are equal if nothing differs that can change the answer, settings of the adapter
    included. Callers with different API keys share nothing, unless `key` is given: a function of
    the request whose text, such as the name of the tenant, takes the place of the API key; with
    None, the request is not cached. Without `store`, `max_size` bytes are kept in memory, and the
    answers that were not used for the longest time are dropped first. Equal requests at the same
    time wait for the first one, up to `wait` seconds. A store that does not answer within
    `store_timeout` seconds is left out.
    """

    def __init__(
        self,
        *,
        store: ValueStore | None = None,
        ttl: float | None = 3600.0,
        key: Callable[[Any], str | None] | None = None,
        operations: Iterable[str] = OPERATIONS,
        max_entry: int = 1024 * 1024,
        max_size: int = 64 * 1024 * 1024,
        wait: float = 30.0,
        store_timeout: float = 0.25,
    ) -> None:
        if ttl is not None and not ttl > 0:
            raise ConfigurationError("Cache: ttl must be a number of seconds above 0, or None.")
        timeout = None if store is None else store_timeout
        self._entries = _Entries(store or MemoryEntries(max_size), ttl, timeout)
        self._key = key
        self._operations = frozenset(operations)
        self._max_entry = max_entry
        self._wait = wait
        self._flights: dict[tuple[asyncio.AbstractEventLoop, str], _Flight] = {}

    async def complete(self, request: Request, call_next: CompleteNext, call: Call) -> Response:
        """Return a stored answer, or the answer of the next layer."""
        began = perf_counter()
        adapter = call.adapters.get(request.provider or "")
        request = await _with_files(request, adapter)
        key = await self._key_of(request, "generate", adapter)
        if key is None:
            return await call_next(request)
        entry = await self._enter(key, request.request_id)
        stored = _read_answer(entry, request, began)
        if stored is not None:
            return stored
        with _leading(entry) as flight:
            response = await call_next(request)
            await self._store(key, _write_answer(response, request, call.attempts()), flight)
            return response

    async def stream(
        self, request: Request, call_next: StreamNext, call: Call
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of a stored answer, or the events of the next layer."""
        began = perf_counter()
        adapter = call.adapters.get(request.provider or "")
        request = await _with_files(request, adapter)
        key = await self._key_of(request, "generate", adapter)
        entry = None if key is None else await self._enter(key, request.request_id)
        stored = _read_answer(entry, request, began)
        if stored is not None:
            for event in _replay(stored):
                yield event
            return
        with _leading(entry) as flight:
            events: AsyncIterator[StreamEvent] = call_next(request)
            try:
                async for event in events:
                    # Stored before it is delivered: a reader may leave after the last event.
                    if key is not None and type(event) is Finish and event.response is not None:
                        entry = _write_answer(event.response, request, call.attempts())
                        await self._store(key, entry, flight)
                    yield event
            finally:
                await close_stream(events)

    async def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Any:
        """Return a stored result of an operation that changes nothing, or the next layer's."""
        key = None
        if operation.name in self._operations:
            if isinstance(value, Request):
                value = await _with_files(value, operation.adapter)
            key = await self._key_of(value, operation.name, operation.adapter)
        if key is None:
            return await call_next(value)
        entry = await self._enter(key, operation.request_id)
        if isinstance(entry, bytes):
            return _read_result(entry, operation)
        with _leading(entry) as flight:
            result = await call_next(value)
            await self._store(key, _write_result(result, operation.name), flight)
            return result

    async def _key_of(self, value: Any, name: str, adapter: Adapter | None) -> str | None:
        """The key of a value; None if it is not cached."""
        if adapter is None or getattr(value, "keep_raw", False):
            return None
        tenant = None
        if self._key is not None:
            tenant = self._key(value)
            if tenant is None:
                return None
        if isinstance(value, Request) and HistoryScan(value.messages).rough_size > LARGE:
            return await asyncio.to_thread(key_of, value, name, adapter, tenant)
        return key_of(value, name, adapter, tenant)

    async def _enter(self, key: str, request_id: str | None) -> bytes | _Flight | None:
        """
        What is stored, or the flight that this call leads from now on.

        None if neither: the call that this one waited for has failed, or takes too long.
        """
        place = (asyncio.get_running_loop(), key)
        while (flight := self._flights.get(place)) is not None:
            # The task of the flight itself would wait for ever; a hedged request is sent now.
            is_own = flight.task is asyncio.current_task() or flight.request_id == request_id
            is_over = False if is_own else await flight.wait(self._wait)
            if is_over is not None:
                return flight.entry if is_over else await self._entries.get(key)
        flight = _Flight(request_id, lambda: self._flights.pop(place, None))
        self._flights[place] = flight
        with _leading(flight, is_over=False):
            entry = await self._entries.get(key)
        if entry is None:
            return flight
        flight.end(entry)
        return entry

    async def _store(self, key: str, entry: bytes | None, flight: _Flight | None) -> None:
        """Hand the answer to the calls that wait for it, and store it."""
        if entry is not None and len(entry) > self._max_entry:
            entry = None
        if flight is not None:
            flight.end(entry)
        if entry is not None:
            await self._entries.put(key, entry)


class _Flight:
    """A call that other calls with the same key wait for."""

    __slots__ = ("_done", "_remove", "entry", "request_id", "task")

    def __init__(self, request_id: str | None, remove: Callable[[], object]) -> None:
        self._done: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        self._remove = remove
        self.request_id = request_id
        self.task = asyncio.current_task()
        self.entry: bytes | None = None
        """What was stored; None if the call failed, or its answer is not stored."""

    async def wait(self, seconds: float) -> bool | None:
        """Whether the call has ended by then; None if it was left, so that another must lead."""
        done, _ = await asyncio.wait({self._done}, timeout=seconds)
        return self._done.result() if done else False

    def end(self, entry: bytes | None = None, *, is_left: bool = False) -> None:
        """The call has ended; idempotent."""
        if not self._done.done():
            self.entry = entry
            self._remove()
            self._done.set_result(None if is_left else True)


@contextmanager
def _leading(entry: bytes | _Flight | None, *, is_over: bool = True) -> Iterator[_Flight | None]:
    """End the flight that this call leads, if any, after the block, or only if the block fails."""
    flight = entry if isinstance(entry, _Flight) else None
    try:
        yield flight
    except BaseException as error:
        if flight is not None:
            flight.end(is_left=isinstance(error, (asyncio.CancelledError, GeneratorExit)))
        raise
    if flight is not None and is_over:
        flight.end()


# Entries.

_MAGIC = b"ilc1"
_SUM = 16


class _Entries:
    """
    The entries of a store, each with a check sum over itself and its key.

    A damaged entry, or one of another program, is none. A store that fails has no entries; that
    is logged once until it works again.
    """

    def __init__(self, store: ValueStore, ttl: float | None, timeout: float | None) -> None:
        self._store = store
        self._ttl = ttl
        self._timeout = timeout
        self._is_down = False

    async def get(self, key: str) -> bytes | None:
        value: Any = None
        try:
            async with asyncio.timeout(self._timeout):
                value = await self._store.get(key)
        except Exception as error:  # noqa: BLE001 -- a cache that fails must not end the call
            self._note(error)
            return None
        self._is_down = False
        if not isinstance(value, bytes):
            return None
        entry = value[len(_MAGIC) + _SUM :]
        return entry if value == _sealed(key, entry) else None

    async def put(self, key: str, entry: bytes) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await self._store.put(key, _sealed(key, entry), ttl=self._ttl)
        except Exception as error:  # noqa: BLE001 -- as above
            self._note(error)

    def _note(self, error: Exception) -> None:
        if not self._is_down:
            self._is_down = True
            logger.warning(
                "The cache is not used: its store %r failed (%s). Calls go on without it.",
                type(self._store).__name__,
                str(error) or type(error).__name__,
            )


def _sealed(key: str, entry: bytes) -> bytes:
    return _MAGIC + blake2b(key.encode() + entry, digest_size=_SUM).digest() + entry


class MemoryEntries:
    """Values in memory, up to a total size; those not used for the longest time go first."""

    def __init__(self, max_size: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_size = max_size
        self._clock = clock
        self._lock = Lock()
        self._values: OrderedDict[str, tuple[bytes, float | None]] = OrderedDict()
        self.size: int = 0
        """The bytes of all keys and values."""

    async def get(self, key: str) -> bytes | None:
        """The value; None if there is none or its time has ended."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            value, ends_at = found
            if ends_at is not None and ends_at <= self._clock():
                self._drop(key)
                return None
            self._values.move_to_end(key)
            return value

    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> bool:
        """Set a value; False if it is larger than all values together may be."""
        size = len(key) + len(value)
        with self._lock:
            self._drop(key)
            if size > self._max_size:
                return False
            self._values[key] = (value, None if ttl is None else self._clock() + ttl)
            self.size += size
            while self.size > self._max_size:
                self._drop(next(iter(self._values)))
        return True

    def _drop(self, key: str) -> None:
        found = self._values.pop(key, None)
        if found is not None:
            self.size -= len(key) + len(found[0])


# Answers as entries.


async def _with_files(request: Request, adapter: Adapter | None) -> Request:
    """The request with the bytes of its files, if the adapter reads them: a file may change."""
    if getattr(adapter, "reads_files", False) and HistoryScan(request.messages).holds_media:
        return await load_media_async(request)
    return request


def _write_answer(
    response: Response, request: Request, attempts: tuple[Attempt, ...]
) -> bytes | None:
    """The entry of an answer; None if it is not stored: cut off, empty, or of another model."""
    message = response.message
    model = message.metadata.get("model")  # of a whole answer: what its attempt was asked for
    if model is None:
        model = attempts[-1].model if attempts else request.model
    is_own = response.provider == request.provider and model == request.model
    is_own = is_own and not any(each.code in _OF_FALLBACKS for each in response.warnings)
    is_whole = response.finish_reason.reason in STORED and bool(message.content)
    if not (is_own and is_whole and all(call.is_valid for call in message.tool_calls)):
        return None
    # What is said about this one call is not stored.
    metadata = {"provider": request.provider, "model": request.model}
    bare = replace(
        response,
        message=replace(message, id=None, metadata=metadata),
        cost=None,
        warnings=[each for each in response.warnings if each.code not in _ABOUT_COST],
        rate_limit=None,
        raw=None,
        request_id=None,
        provider_request_id=None,
        latency_ms=None,
        attempts=(),
    )
    try:
        return to_json(bare)
    except SDKError:  # it has no JSON form
        return None


def _read_answer(entry: object, request: Request, began: float) -> Response | None:
    """The answer in an entry; None if there is no entry, or it is of another version."""
    if not isinstance(entry, bytes):
        return None
    try:
        response = from_json(entry, Response)
    except SDKError:
        return None
    message = response.message
    return replace(
        response,
        message=replace(message, content=tuple(map(_renamed, message.content))),
        cost=FROM_CACHE,
        request_id=request.request_id,
        latency_ms=round((perf_counter() - began) * 1000),
    )


def _renamed(part: Part) -> Part:
    """A call gets a new id: the same answer may come twice in one conversation."""
    return replace(part, id=f"call_{new_ulid()}") if type(part) is ToolCall else part


def _replay(response: Response) -> Iterator[StreamEvent]:
    *events, finish = events_from_response(response)
    yield from events
    yield replace(finish, response=response)


_RESULTS: Mapping[str, type[OperationResult]] = {
    "embed": EmbedResult,
    "moderate": ModerationResult,
    "rerank": RerankResult,
}
"""The classes of results that are stored, by their operations."""


def _read_result(entry: bytes, operation: Call) -> Any:
    kind = _RESULTS.get(operation.name)
    if kind is None or not entry.startswith(_DOCUMENT):
        return msgspec.json.decode(entry)
    return replace(from_json(entry, kind), cost=FROM_CACHE, request_id=operation.request_id)


def _write_result(result: Any, name: str) -> bytes | None:
    """The entry of the result of an operation; None if JSON would not give the same value back."""
    if name in _RESULTS and isinstance(result, _RESULTS[name]):
        warnings = tuple(each for each in result.warnings if each.code not in _ABOUT_COST)
        return to_json(replace(result, cost=None, raw=None, request_id=None, warnings=warnings))
    try:
        entry = msgspec.json.encode(result)
        is_plain = _is_plain(result) and msgspec.json.decode(entry) == result
    except (TypeError, ValueError, RecursionError):
        return None
    return entry if is_plain else None


def _is_plain(value: Any) -> bool:
    """Whether it is made only of types that JSON keeps."""
    if type(value) is list:
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(_is_plain, value.values()))
    return value is None or type(value) in (str, int, float, bool)
