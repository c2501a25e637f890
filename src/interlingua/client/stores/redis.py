"""The store of several machines, in a Redis or Valkey server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha1
from typing import Any, TypeVar
from uuid import uuid4

from interlingua.client.stores import redis_scripts
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
from interlingua.client.stores.redis_link import Call, Link, load_redis
from interlingua.spec.errors import StoreError
from interlingua.transport.per_loop import PerLoop

Result = TypeVar("Result")


class RedisStore:
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
        call = self._call(redis_scripts.RESERVE, keys, arguments)
        try:
            reply = await self._wait(call)
        except (asyncio.CancelledError, StoreError):
            if call.is_sent:  # the server may take it, even later, and would hold it for its lease
                self._give_back(id_, checked, lease)
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
        return bool(await self._run(redis_scripts.SETTLE, keys, arguments))

    def _settlement(
        self, id_: str, limits: Sequence[Limit], real: Sequence[float]
    ) -> tuple[list[str], list[Any]]:
        return self._limit_keys(id_, limits), [self._now(), id_, *real, *_arguments(limits)]

    def _give_back(self, id_: str, limits: Sequence[Limit], lease: float) -> None:
        """Send it until the server has answered; nobody waits for that."""
        keys, arguments = self._settlement(id_, limits, [0.0] * len(limits))
        # Each time a server that hangs is waited for as long as `redis_link.PATIENCE`, a second.
        self._call(redis_scripts.GIVE_BACK, keys, arguments, repeats=min(60, 1 + int(lease)))

    async def renew(self, reservation: Reservation, lease: float) -> bool:
        """Extend the lease to this long from now; False if it has ended or was settled."""
        check_lease(lease)
        limits = reservation.limits
        arguments = [self._now(), reservation.id, microseconds(lease), *_arguments(limits)]
        keys = self._limit_keys(reservation.id, limits)
        return bool(await self._run(redis_scripts.RENEW, keys, arguments))

    async def used(self, key: str, period: float | None = None) -> float:
        """What counts now for a key with this period, reservations included."""
        keys = self._bucket_keys(key, period)
        width = 0 if period is None else slot_width(period)
        return float(await self._run(redis_scripts.USED, keys, [self._now(), width]))

    # Values, counters, lists.

    async def add(self, key: str, amount: float, *, ttl: float | None = None) -> float:
        """Add to a counter; its new value."""
        check_added(amount)
        arguments = [repr(float(amount)), _milliseconds(ttl)]
        keys = [f"{self._prefix}c:{key}"]
        return float(await self._run(redis_scripts.ADD, keys, arguments, repeats=0))

    async def get(self, key: str) -> bytes | None:
        """The value; None if there is none or its time has ended."""
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
        return int(await self._run(redis_scripts.APPEND, keys, arguments, repeats=0))

    async def items(self, key: str, start: int = 0) -> list[bytes]:
        """The values of a list, from an index on."""
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
        command = _command(script, keys, arguments)
        return self._link().send(command, script=script, repeats=repeats)

    async def _wait(self, call: Call) -> Any:
        call.give_up_after(self._timeout)
        try:
            return await call.future
        finally:
            call.timer.cancel()

    def _now(self) -> int | str:
        return "" if self._clock is None else microseconds(self._clock())

    def _limit_keys(self, id_: str, limits: Sequence[Limit]) -> list[str]:
        buckets = (self._bucket_keys(limit.key, limit.period) for limit in limits)
        return [f"{self._prefix}r:{id_}", *(key for pair in buckets for key in pair)]

    def _bucket_keys(self, key: str, period: float | None) -> list[str]:
        name = f"{period and float(period)}:{key}"
        return [f"{self._prefix}b:{name}", f"{self._prefix}o:{name}"]


_hashes: dict[str, str] = {}


def _command(script: str, keys: Sequence[str], arguments: Sequence[Any]) -> list[Any]:
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
