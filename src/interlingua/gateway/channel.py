"""
What the parent process and a worker tell each other: JSON after its length, on a pair of sockets.

The parent sends a `Source` at the start and at each reload; the worker answers each with a `Report`
when it serves it. Whoever ends closes its side, and the other one notices.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TypeVar

import msgspec

from interlingua.spec.content import Record

_LENGTH = 8  # bytes
Value = TypeVar("Value")


class Report(Record, frozen=True, kw_only=True):
    """What a worker says about a configuration that it was sent."""

    error: str = ""
    """Why it cannot use it; empty if it serves it."""


def encode(value: object) -> bytes:
    """The bytes of a message."""
    data = msgspec.json.encode(value)
    return len(data).to_bytes(_LENGTH) + data


async def receive(reader: asyncio.StreamReader, kind: type[Value]) -> Value | None:
    """The next message; None if the other side has ended."""
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH))
        return msgspec.json.decode(await reader.readexactly(length), type=kind)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def receive_first(channel: socket.socket, kind: type[Value]) -> Value | None:
    """The same before there is an event loop."""
    with channel.makefile("rb") as file:
        length = int.from_bytes(file.read(_LENGTH))
        data = file.read(length)
    return msgspec.json.decode(data, type=kind) if length and len(data) == length else None
