"""
One connection to a Redis server, for all tasks of one event loop.

Commands that wait are sent together and their replies read in order, so that fifty tasks need one
connection and few system calls. A task does this as long as there are commands, and then ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from interlingua.spec.errors import ConfigurationError, StoreError
from interlingua.transport.per_loop import abort_without_loop


def load_redis() -> Any:
    """The client library; raises if it is not installed."""
    try:
        import redis.asyncio as library
    except ImportError as error:
        raise ConfigurationError(
            "RedisStore needs the redis package. Install it: pip install 'interlingua[redis]'",
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
_LATE = 0.1
"""By what part of its time a timeout comes too late if the event loop was held up."""
_GRACE = 0.2
"""For what part of the time a reply is then waited for."""


class Call:
    """A command that waits for its reply."""

    __slots__ = ("command", "future", "is_sent", "packed", "repeats", "script", "timer")

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
        self.timer: asyncio.TimerHandle

    def give_up_after(self, seconds: float) -> None:
        """Fail with `StoreError` if there is no reply by then."""
        loop = self.future.get_loop()
        deadline = loop.time() + seconds

        def give_up(*, is_last: bool = False) -> None:
            if self.future.done():
                return
            if not is_last and loop.time() - deadline > seconds * _LATE:
                # The program has held up the loop: the reply may be here, but was not read.
                self.timer = loop.call_later(seconds * _GRACE, partial(give_up, is_last=True))
                return
            self.future.set_exception(
                StoreError(
                    f"Redis did not answer in {seconds * 1000:g} ms. Check the server and the "
                    "network, or set a longer timeout=."
                )
            )

        self.timer = loop.call_at(deadline, give_up)


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
        writer = getattr(self._connection, "_writer", None)
        if writer is not None:
            abort_without_loop(writer.transport)
        for name in ("_reader", "_writer"):
            setattr(self._connection, name, None)

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
            async with asyncio.timeout(self._patience):
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

    async def _connect(self) -> None:
        """Connect, also if the server has closed the connection since the last command."""
        reader = getattr(self._connection, "_reader", None)
        if reader is not None and reader.at_eof():
            await self._connection.disconnect(nowait=True)
        await self._connection.connect()

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
