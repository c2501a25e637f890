"""
The store of several machines, in a Redis or Valkey server.

All tasks of one event loop share one connection, a `Link`. Commands that wait are sent together and
their replies read in order, so that fifty tasks need one connection and few system calls. A task
does this as long as there are commands, and then ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha1
from typing import Any, TypeVar
from uuid import uuid4

from interlingua.client.stores.buckets import MICROSECONDS, microseconds, slot_width
from interlingua.client.stores.contract import (
    Limit,
    Refused,
    Reservation,
    check_added,
    check_amounts,
    check_lease,
    check_limits,
    check_ttl,
)
from interlingua.client.stores.redis_scripts import (
    ADD,
    APPEND,
    GIVE_BACK,
    RENEW,
    RESERVE,
    SETTLE,
    USED,
)
from interlingua.lazy import Remade
from interlingua.spec.errors import ConfigurationError, StoreError
from interlingua.transport.per_loop import PerLoop, collect_unclosed


def load_redis() -> Any:
    """The client library; raises if it is not installed."""
    try:
        import redis.asyncio as library
    except ImportError as error:
        raise ConfigurationError(
            "RedisStore needs the redis package. Run `pip install 'interlingua[redis]'`.",
            cause=error,
        ) from error
    return library


PATIENCE = 1.0
"""
Seconds after which a connection that has not answered is given up.

Longer than a caller waits: the replies of a slow server come in time for the next callers, and what
is sent on one connection is done in its order.
"""
_PAUSE = 0.05
"""Seconds before a command is sent again that may be sent again more than once."""
_SLICES = 20
"""In how many parts a timeout is counted."""
_HELD_UP = 0.5
"""How much of a part counts in which the program has held up the event loop."""


class Countdown:
    """
    Calls a function after some seconds in which the event loop was free.

    While a program holds up its event loop, replies that have arrived are not read. Such a time
    does not say that the server is slow, so of each time only a small part counts: enough that a
    server that is away is given up at last, also by a loop that is always busy.
    """

    __slots__ = ("_end", "_left", "_loop", "_on_end", "_slice", "_timer")

    def __init__(self, seconds: float, on_end: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._left, self._slice = seconds, seconds / _SLICES
        self._on_end = on_end
        self._start()

    def stop(self) -> None:
        """Do not call the function."""
        self._timer.cancel()

    def _start(self) -> None:
        self._end = self._loop.time() + self._slice
        self._timer = self._loop.call_at(self._end, self._count)

    def _count(self) -> None:
        late = self._loop.time() - self._end
        self._left -= self._slice * _HELD_UP if late > self._slice else self._slice + late
        if self._left > 0:
            self._start()
        else:
            self._on_end()


class Call:
    """A command that waits for its reply."""

    __slots__ = ("command", "future", "is_sent", "packed", "repeats", "script")

    def __init__(
        self, command: Sequence[Any], packed: list[bytes], script: str | None, *, repeats: int
    ) -> None:
        self.command = command
        self.packed = packed
        """The bytes of the command."""
        self.script = script
        self.is_sent = False
        """The server may have done it, or will."""
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # A caller that was cancelled does not ask for the error.
        self.future.add_done_callback(_retrieve)
        self.repeats = repeats

    def give_up_after(self, seconds: float) -> Countdown:
        """Fail with `StoreError` if there is no reply by then."""

        def give_up() -> None:
            if not self.future.done():
                self.future.set_exception(
                    StoreError(
                        f"Redis did not answer in {seconds * 1000:g} ms. Check the server and the "
                        "network, or set a longer timeout=."
                    )
                )

        return Countdown(seconds, give_up)


def _retrieve(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


class Link:
    """The connection of one event loop; it is opened on use, and again after a failure."""

    def __init__(self, url: str, timeout: float) -> None:
        """`timeout`: how long a caller waits; the connection waits longer, see `PATIENCE`."""
        library = load_redis()
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        self._library = library
        try:
            pool = library.ConnectionPool.from_url(url)
        except ValueError as error:
            raise ConfigurationError(f"RedisStore: {error}", setting="url") from error
        options = {
            **pool.connection_kwargs,
            "socket_timeout": None,  # `PATIENCE` bounds everything at once
            "socket_connect_timeout": None,
            "decode_responses": False,
            "encoding_errors": "surrogatepass",  # a key is any text
            "retry": Retry(NoBackoff(), 0),
        }
        self._connection = pool.connection_class(**options)
        self._patience = max(timeout, PATIENCE)
        self._waiting: list[Call] = []
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def send(self, command: Sequence[Any], *, script: str | None = None, repeats: int = 1) -> Call:
        """
        The call, with its future reply. A call that nobody waits for any more is not sent.

        `script` is the text of the script that the command names by its hash: it is sent if the
        server does not know it. A command is sent again so often if the connection ends before its
        reply: the server may have been restarted since the last command.
        """
        try:
            packed = self._connection.pack_command(*command)
        except self._library.DataError as error:  # here, because only this call is wrong
            raise ConfigurationError(f"RedisStore: {error}") from error
        call = Call(command, packed, script, repeats=repeats)
        self._add(call)
        return call

    def _add(self, call: Call) -> None:
        if self._is_closed:
            return
        self._waiting.append(call)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Close the connection; calls that wait fail."""
        self._is_closed = True
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._connection.disconnect(nowait=True)

    def discard(self) -> None:
        """Close the connection without the event loop, which is no longer running."""
        del self._connection
        collect_unclosed()

    async def _work(self) -> None:
        try:
            while self._waiting:
                calls = [call for call in self._waiting if not call.future.done()]
                self._waiting.clear()
                if calls:
                    await self._exchange(calls)
        finally:
            self._task = None
            for call in self._waiting:
                if not call.future.done():
                    call.future.set_exception(StoreError("The Redis store was closed."))
            self._waiting.clear()

    async def _exchange(self, calls: Sequence[Call]) -> None:
        """Send the commands and read their replies; whatever fails ends the connection."""
        errors = (self._library.RedisError, OSError, TimeoutError)
        try:
            async with self._limited():
                await self._connect()
                for call in calls:
                    call.is_sent = True
                packed = [part for call in calls for part in call.packed]
                await self._connection.send_packed_command(packed)
                is_replica = [await self._read(call) for call in calls]
            if any(is_replica):  # the master is another server now, perhaps at the same address
                await self._connection.disconnect(nowait=True)
        except errors as error:
            await self._connection.disconnect(nowait=True)
            self._fail(calls, error)
        except BaseException:
            await self._connection.disconnect(nowait=True)
            self._fail(calls, None)
            raise

    @asynccontextmanager
    async def _limited(self) -> AsyncIterator[None]:
        """Raise `TimeoutError` in the block when a connection is given up."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as limit:
            countdown = Countdown(self._patience, lambda: limit.reschedule(loop.time()))
            try:
                yield
            finally:
                countdown.stop()

    async def _connect(self) -> None:
        """Connect, also if the server has closed the connection since the last command."""
        if self._connection.is_connected and await self._has_ended():
            await self._connection.disconnect(nowait=True)
        await self._connection.connect()

    async def _has_ended(self) -> bool:
        """Whether the connection was closed, or something arrived that no command asked for."""
        connection = self._connection
        try:
            if hasattr(connection, "can_read"):
                return bool(await connection.can_read())
            return bool(await connection.can_read_destructive())  # its name before redis 8
        except self._library.ConnectionError:
            return True

    async def _read(self, call: Call) -> bool:
        """Read the reply of a call; whether the server has refused it because it is a replica."""
        from redis.exceptions import NoScriptError

        is_replica = False
        try:
            reply = await self._connection.read_response()
        except NoScriptError:
            # The server keeps the script from now on.
            call.packed = self._connection.pack_command("EVAL", call.script, *call.command[2:])
            self._waiting.append(call)
        except self._library.ResponseError as error:
            is_replica = _is_replica(error)
            if is_replica and call.repeats:
                call.repeats = 0
                self._waiting.append(call)
            elif not call.future.done():
                call.future.set_exception(_store_error(error))
        else:
            if not call.future.done():
                call.future.set_result(reply)
        return is_replica

    def _fail(self, calls: Sequence[Call], error: Exception | None) -> None:
        """Send again what can be, and give the others the error."""
        for call in calls:
            if call.future.done():
                continue
            if error is not None and call.repeats:
                call.repeats -= 1
                if call.repeats:  # a server that refuses connections would be asked all at once
                    call.future.get_loop().call_later(_PAUSE, self._add, call)
                else:
                    self._waiting.append(call)
            else:
                call.future.set_exception(_store_error(error))


def _is_replica(error: Exception) -> bool:
    """Whether a server refused to write. Before Redis 7, errors of scripts have no class."""
    from redis.exceptions import ReadOnlyError

    return isinstance(error, ReadOnlyError) or "-READONLY" in str(error)


def _store_error(error: Exception | None) -> StoreError:
    message = "the store was closed" if error is None else (str(error) or type(error).__name__)
    return StoreError(f"Redis: {message}.", cause=error)


Result = TypeVar("Result")


class RedisStore(Remade):
    """
    Limits, values, counters and lists in a Redis or Valkey server, shared by any machines.

    Every decision is one script in the server, by the server's clock. An operation that has not
    been answered after `timeout` seconds raises `StoreError`; what that means for a call is decided
    by the middleware that asked. Whether values survive a restart is a setting of the server.
    """

    def __init__(
        self,
        url: str = "redis://localhost:6379",
        *,
        timeout: float = 0.05,
        prefix: str = "interlingua",
        clock: Callable[[], float] | None = None,
    ) -> None:
        """
        Name the server; the connection is opened at the first use.

        `url`: `redis://`, `rediss://` (TLS) or `unix://`, with user, password and database. All
        keys begin with `prefix` in braces, so that a cluster keeps them on one node. `clock`: for
        tests, the time of limits instead of the server's.
        """
        load_redis()
        self._timeout = timeout
        self._prefix = f"{{{prefix}}}:"
        self._clock = clock
        self._links: PerLoop[Link] = PerLoop(
            lambda: Link(url, timeout), lambda link: link.close(), lambda link: link.discard()
        )

    def __repr__(self) -> str:
        """Without the URL, which may contain a password."""
        return f"RedisStore(prefix={self._prefix!r})"

    # Limits.

    async def reserve(
        self, limits: Sequence[Limit], *, lease: float = 60.0
    ) -> Reservation | Refused:
        """Take all amounts, or none."""
        checked = check_limits(limits, lease)
        id_ = uuid4().hex
        keys = self._limit_keys(id_, checked)
        arguments = [self._now(), id_, microseconds(lease), *_arguments(checked)]
        call = self._call(RESERVE, keys, arguments)
        try:
            reply = await self._wait(call)
        except (asyncio.CancelledError, StoreError) as error:
            if call.is_sent:  # the server may take it, even later, and would hold it for its lease
                given = self._give_back(id_, checked, lease)
                if isinstance(error, asyncio.CancelledError):  # the event loop may end now
                    await asyncio.wait({given.future}, timeout=self._timeout)
            raise
        if reply[0] == 1:
            taken_at = float(reply[1]) / MICROSECONDS
            return Reservation(id=id_, limits=checked, taken_at=taken_at)
        limit = checked[reply[1] - 1]
        return Refused(
            key=limit.key,
            used=float(reply[2]),
            maximum=limit.maximum,
            retry_after=float(reply[3]) / MICROSECONDS if reply[3] else None,
        )

    async def settle(self, reservation: Reservation, amounts: Mapping[str, float]) -> bool:
        """Replace what was taken by the real amounts; False if it was settled before."""
        check_amounts(amounts)
        real = [float(amounts.get(limit.key, limit.amount)) for limit in reservation.limits]
        keys, arguments = self._settlement(reservation.id, reservation.limits, real)
        return bool(await self._run(SETTLE, keys, arguments))

    def _settlement(
        self, id_: str, limits: Sequence[Limit], real: Sequence[float]
    ) -> tuple[list[str], list[Any]]:
        return self._limit_keys(id_, limits), [self._now(), id_, *real, *_arguments(limits)]

    def _give_back(self, id_: str, limits: Sequence[Limit], lease: float) -> Call:
        """Send it until the server has answered, also if nobody waits for that."""
        keys, arguments = self._settlement(id_, limits, [0.0] * len(limits))
        # Each time a server that hangs is waited for as long as `PATIENCE`, a second.
        return self._call(GIVE_BACK, keys, arguments, repeats=min(60, 1 + int(lease)))

    async def renew(self, reservation: Reservation, lease: float) -> bool:
        """Extend the lease to this long from now; False if it has ended or was settled."""
        check_lease(lease)
        limits = reservation.limits
        arguments = [self._now(), reservation.id, microseconds(lease), *_arguments(limits)]
        keys = self._limit_keys(reservation.id, limits)
        return bool(await self._run(RENEW, keys, arguments))

    async def used(self, key: str, period: float | None = None) -> float:
        """Return what counts now for a key with this period, reservations included."""
        keys = self._bucket_keys(key, period)
        width = 0 if period is None else slot_width(period)
        return float(await self._run(USED, keys, [self._now(), width]))

    # Values, counters, lists.

    async def add(self, key: str, amount: float, *, ttl: float | None = None) -> float:
        """Add to a counter; its new value."""
        check_added(amount)
        arguments = [repr(float(amount)), _milliseconds(ttl)]
        keys = [f"{self._prefix}c:{key}"]
        return float(await self._run(ADD, keys, arguments, repeats=0))

    async def get(self, key: str) -> bytes | None:
        """Return the value; None if there is none or its time has ended."""
        value: bytes | None = await self._send(["GET", f"{self._prefix}v:{key}"])
        return value

    async def put(
        self, key: str, value: bytes, *, ttl: float | None = None, only_new: bool = False
    ) -> bool:
        """Set a value; returns whether it was set."""
        command: list[Any] = ["SET", f"{self._prefix}v:{key}", value]
        if ttl is not None:
            command += ["PX", _milliseconds(ttl)]
        if only_new:
            command.append("NX")
        sent = self._link().send(command, repeats=int(not only_new))
        return await self._wait(sent) is not None

    async def delete(self, key: str) -> bool:
        """Remove the value, counter and list of a key; whether there was one."""
        return bool(await self._send(["DEL", *(f"{self._prefix}{kind}:{key}" for kind in "vcl")]))

    async def append(self, key: str, value: bytes, *, ttl: float | None = None) -> int:
        """Add to the end of a list; the new length."""
        keys = [f"{self._prefix}l:{key}"]
        arguments = [value, _milliseconds(ttl)]
        return int(await self._run(APPEND, keys, arguments, repeats=0))

    async def items(self, key: str, start: int = 0) -> list[bytes]:
        """Return the values of a list, from an index on."""
        command = ["LRANGE", f"{self._prefix}l:{key}", max(0, start), -1]
        values: list[bytes] = await self._send(command)
        return values

    async def close(self) -> None:
        """Close the connections; the next use opens another."""
        await self._links.close()

    # Sending.

    def _link(self) -> Link:
        return self._links.get(asyncio.get_running_loop())

    async def _send(self, command: Sequence[Any]) -> Any:
        return await self._wait(self._link().send(command))

    async def _run(
        self,
        script: str,
        keys: Sequence[str],
        arguments: Sequence[Any],
        *,
        repeats: int = 1,
    ) -> Any:
        return await self._wait(self._call(script, keys, arguments, repeats=repeats))

    def _call(
        self,
        script: str,
        keys: Sequence[str],
        arguments: Sequence[Any],
        *,
        repeats: int = 1,
    ) -> Call:
        command = script_command(script, keys, arguments)
        return self._link().send(command, script=script, repeats=repeats)

    async def _wait(self, call: Call) -> Any:
        countdown = call.give_up_after(self._timeout)
        try:
            return await call.future
        finally:
            countdown.stop()

    def _now(self) -> int | str:
        return "" if self._clock is None else microseconds(self._clock())

    def _limit_keys(self, id_: str, limits: Sequence[Limit]) -> list[str]:
        buckets = (self._bucket_keys(limit.key, limit.period) for limit in limits)
        return [f"{self._prefix}r:{id_}", *(key for pair in buckets for key in pair)]

    def _bucket_keys(self, key: str, period: float | None) -> list[str]:
        name = f"{period and float(period)}:{key}"
        return [f"{self._prefix}b:{name}", f"{self._prefix}o:{name}"]


_hashes: dict[str, str] = {}


def script_command(script: str, keys: Sequence[str], arguments: Sequence[Any]) -> list[Any]:
    """The command that runs a script by its hash."""
    hashed = _hashes.get(script)
    if hashed is None:
        hashed = _hashes[script] = sha1(script.encode(), usedforsecurity=False).hexdigest()
    return ["EVALSHA", hashed, len(keys), *keys, *arguments]


def _arguments(limits: Sequence[Limit]) -> list[Any]:
    """What the scripts read of each limit."""
    values: list[Any] = []
    for limit in limits:
        is_paced = limit.burst is not None and limit.period is not None and limit.maximum > 0
        interval = microseconds(limit.period or 0) / limit.maximum if is_paced else 0.0
        values += [
            float(limit.amount),
            float(limit.maximum),
            limit.mode,
            0 if limit.period is None else slot_width(limit.period),
            float(limit.burst or 0) if limit.burst is not None else -1,
            interval,
            0 if limit.ttl is None else microseconds(limit.ttl),
        ]
    return values


def _milliseconds(ttl: float | None) -> int | str:
    check_ttl(ttl)
    return "" if ttl is None else max(1, round(ttl * 1000))
