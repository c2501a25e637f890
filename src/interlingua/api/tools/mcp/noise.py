"""Limits on what a noisy MCP server makes this process print and log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_MINUTE = 60.0  # seconds
_RECORDS = 20
"""Log records of one kind in a minute."""
_STDERR_BYTES = 256 * 1024
"""Bytes that a server writes to our stderr in a minute."""
# Those that log about messages of a server: `mcp` logs each line that is no message.
_LOGGERS = (
    "client",  # the name in `mcp.client.session`
    "mcp.client.session",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.jsonrpc_dispatcher",
)


class Allowance:
    """An amount that may be used in each minute."""

    def __init__(self, amount: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._amount = amount
        self._clock = clock
        self._until = 0.0
        self._used = 0

    def take(self, amount: int = 1) -> int:
        """How much of this amount may be used now."""
        now = self._clock()
        if now >= self._until:
            self._until, self._used = now + _MINUTE, 0
        taken = min(amount, self._amount - self._used)
        self._used += taken
        return taken

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left of this minute."""
        return self._used >= self._amount


class LimitedRecords(logging.Filter):
    """Lets a number of records of each kind pass in a minute; the last one says so."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[str, str, int], Allowance] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        # By place: the text may hold what the server has sent.
        kind = (record.name, record.pathname, record.lineno)
        allowance = self._kinds.setdefault(kind, Allowance(_RECORDS, self._clock))
        if not allowance.take():
            return False
        if allowance.is_spent:
            record.msg = f"{record.getMessage()} (more records like this follow; not logged)"
            record.args = ()
        return True


_limited = LimitedRecords()


def limit_records() -> None:
    """Limit what the package `mcp` logs about the messages of servers, in this process."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_limited)  # once: it is the same object


def limited_stderr(name: str, write: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """`write`, which gets no more of a server's stderr in a minute than is allowed."""
    allowance = Allowance(_STDERR_BYTES)
    was_spent = False

    def write_some(chunk: bytes) -> None:
        nonlocal was_spent
        taken = allowance.take(len(chunk))
        if taken:
            write(chunk[:taken])
        if taken == len(chunk):
            was_spent = False
        elif not was_spent:
            was_spent = True
            note = f"\n[The MCP server {name} writes too much to stderr; errlog= gets all of it.]\n"
            write(note.encode())

    return write_some
