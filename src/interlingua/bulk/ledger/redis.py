"""The ledger of several machines, in a Redis or Valkey server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from interlingua.bulk.answers import Answer, decode_answer, encode_answer
from interlingua.bulk.ledger.base import OwnedLedger, split_hashes
from interlingua.bulk.ledger.contract import LEASE, Entry, State, Totals
from interlingua.bulk.ledger.owners import machine_folder
from interlingua.client.stores.redis import Call, Link, script_command
from interlingua.spec.errors import ConfigurationError
from interlingua.transport.per_loop import PerLoop

_TIMEOUT = 10.0  # seconds
_PREFIX = "{interlingua-bulk}:"  # in braces, so that a cluster keeps all keys on one node
_FIELDS = ("state", "owner", "attempts", "body")
_CLAIM = """
local e = redis.call('HMGET', KEYS[1], 'state', 'owner', 'attempts', 'body')
if e[1] then
  local attempts = tonumber(e[3] or '0')
  if e[1] == 'done' or (e[1] == 'failed' and attempts >= tonumber(ARGV[2])) then return e end
  if e[1] == 'claimed' and e[2] ~= ARGV[1]
     and redis.call('EXISTS', ARGV[3] .. e[2]) == 1 then return e end
end
redis.call('HSET', KEYS[1], 'state', 'claimed', 'owner', ARGV[1])
return nil
"""
_PUT = """
local e = redis.call('HMGET', KEYS[1], 'state', 'counted')
redis.call('HINCRBY', KEYS[1], 'attempts', 1)
redis.call('HINCRBYFLOAT', KEYS[2], 'cost', ARGV[3])
redis.call('HSET', KEYS[1], 'owner', '')
if e[2] == 'done' then
  redis.call('HSET', KEYS[1], 'state', 'done')
  return 0
end
redis.call('HSET', KEYS[1], 'state', ARGV[1], 'body', ARGV[2], 'counted', ARGV[1])
if e[2] ~= ARGV[1] then
  if e[2] then redis.call('HINCRBY', KEYS[2], e[2], -1) end
  redis.call('HINCRBY', KEYS[2], ARGV[1], 1)
end
return 1
"""
_RELEASE = """
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'state', redis.call('HGET', KEYS[1], 'counted') or 'released',
           'owner', '')
return 1
"""


class RedisLedger(OwnedLedger):
    """
    A ledger in a Redis server, shared by the workers of any machines.

    Each step is one script in the server. A server that loses what it has when it ends is refused:
    it must have `appendonly yes`, unless `volatile` says that the loss is accepted.
    """

    def __init__(self, url: str, *, lease: float = LEASE, volatile: bool = False) -> None:
        super().__init__(machine_folder(), lease)
        self._links: PerLoop[Link] = PerLoop(
            lambda: Link(url, _TIMEOUT), lambda link: link.close(), lambda link: link.discard()
        )
        self._volatile = volatile

    async def _prepare(self) -> None:
        if self._volatile:
            return
        persistence: bytes = await self._send("INFO", "persistence")
        if b"aof_enabled:1" not in persistence:
            raise ConfigurationError(
                "This Redis server loses the ledger when it ends, and all rows would be paid for "
                "again. Set `appendonly yes`, or accept the loss with volatile=True."
            )

    async def _live(self) -> None:
        await self._send("SET", self._owner_key(self._id), b"1", "PX", int(self._lease * 1000))

    async def _forget(self, owner: str) -> None:
        await self._send("DEL", self._owner_key(owner))

    async def _disconnect(self) -> None:
        await self._links.close()

    async def look(self, hashes: Sequence[bytes]) -> list[Entry | None]:
        """Return the entries of requests, in their order."""
        link = self._link()
        calls = [link.send(["HMGET", _entry_key(each), *_FIELDS]) for each in hashes]
        return list(map(_read, await self._wait(calls)))

    async def claim(self, requests: Sequence[bytes], attempts: int) -> list[Entry | None]:
        """Take requests for this process; else the entries that stand in their way."""
        values = [self._id, attempts, self._owner_key("")]
        replies = await self._run_all(_CLAIM, [[_entry_key(each)] for each in requests], values)
        entries = list(map(_read, replies))
        owners = {
            entry.owner for entry in entries if entry is not None and entry.state == "claimed"
        }
        dead = [each for each in owners if self._owner is not None and self._owner.is_dead(each)]
        if not dead or self._owner is None:
            return entries
        for each in dead:
            await self._forget(each)
            self._owner.bury(each)
        return await self.claim(requests, attempts)

    async def put(self, request: bytes, answer: Answer) -> None:
        """Record what became of a request."""
        values = [answer.status, encode_answer(answer), repr(answer.cost or 0.0)]
        await self._run_all(_PUT, [[_entry_key(request), f"{_PREFIX}totals"]], values)

    async def release(self, requests: Sequence[bytes]) -> None:
        """End the claims of requests that were not sent."""
        await self._run_all(_RELEASE, [[_entry_key(each)] for each in requests], [self._id])

    async def totals(self) -> Totals:
        """Return the sums over all entries; claims are not counted."""
        reply = await self._send("HMGET", f"{_PREFIX}totals", "done", "failed", "cost")
        done, failed, cost = reply
        return Totals(int(done or 0), int(failed or 0), 0, float(cost or 0.0))

    async def note_batch(self, reference: str, requests: Sequence[bytes] | None) -> None:
        """Remember a batch with its requests; None: forget it."""
        place = f"{_PREFIX}batches"
        if requests is None:
            await self._send("HDEL", place, reference)
        else:
            await self._send("HSET", place, reference, b"".join(requests))

    async def batches(self) -> dict[str, list[bytes]]:
        """Return the batches that were not read yet."""
        reply = await self._send("HGETALL", f"{_PREFIX}batches")
        pairs = reply.items() if isinstance(reply, dict) else zip(*[iter(reply)] * 2, strict=True)
        return {reference.decode(): split_hashes(joined) for reference, joined in pairs}

    # Sending.

    @staticmethod
    def _owner_key(owner: str) -> str:
        return f"{_PREFIX}owner:{owner}"

    def _link(self) -> Link:
        return self._links.get(asyncio.get_running_loop())

    async def _send(self, *command: Any) -> Any:
        (reply,) = await self._wait([self._link().send(command)])
        return reply

    async def _run_all(
        self, script: str, keys: Sequence[Sequence[str]], arguments: Sequence[Any]
    ) -> list[Any]:
        """Run a script once for each of several lists of keys, in one exchange."""
        link = self._link()
        calls = [link.send(script_command(script, each, arguments), script=script) for each in keys]
        return await self._wait(calls)

    @staticmethod
    async def _wait(calls: Sequence[Call]) -> list[Any]:
        """The replies to calls that were sent together."""
        countdowns = [call.give_up_after(_TIMEOUT) for call in calls]
        try:
            return await asyncio.gather(*(call.future for call in calls))
        finally:
            for countdown in countdowns:
                countdown.stop()


def _entry_key(request: bytes) -> str:
    return f"{_PREFIX}a:{request.hex()}"


def _read(reply: Any) -> Entry | None:
    if reply is None or reply[0] is None:
        return None
    state: State = reply[0].decode()
    answer = None if reply[3] is None else decode_answer(reply[3])
    return Entry(state, (reply[1] or b"").decode(), int(reply[2] or 0), answer)
