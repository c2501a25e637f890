"""
One connection of the default transport, fed with damaged replies.

An input is what a server sends after each of some requests, divided by `NEXT`. In it `NONCE` stands
for a text that only one request has, so that a reply to another request is noticed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from itertools import permutations
from typing import Any

from interlingua.spec.errors import NetworkError
from interlingua.transport.http1.connection import (
    ClosedError,
    Connection,
    InvalidReplyError,
    Reply,
)

NEXT = b"\n====\n"
NONCE = b"@@@@@@@@"
_NONCES = (b"k3v9q0xw", b"z7m2p4ty", b"h8c1r5nb", b"d6f0j2lg", b"s4w8u6ea", b"b9x3i7oc")
_NO_LOOP: Any = None  # nothing is waited for
_ERRORS = (InvalidReplyError, ClosedError, EOFError)

_OK = b"HTTP/1.1 200 OK\r\n"
_SIZED = _OK + b"content-length: 8\r\n\r\n" + NONCE
_REPLIES = (
    _SIZED,
    _SIZED + _SIZED,
    _SIZED + b"garbage",
    _SIZED + b"\r\n",
    _OK + b"\r\nuntil the end " + NONCE,
    _OK + b"connection: close\r\ncontent-length: 8\r\n\r\n" + NONCE,
    b"%btransfer-encoding: chunked\r\nx: %b\r\n\r\n8;a=b\r\n%b\r\n0\r\nx: y\r\n\r\n"
    % (_OK, NONCE, NONCE),
    b"HTTP/1.1 103 Early\r\nlink: a\r\n\r\n" + _OK + b"x:\ny: z\nContent-Length: 8\n\n" + NONCE,
    b"HTTP/1.1 204 No Content\r\nx-nonce: " + NONCE + b"\r\n\r\n",
)
SEEDS: list[bytes] = [NEXT.join(_REPLIES[:6]), *map(NEXT.join, permutations(_REPLIES, 2))]
"""Replies in a row; some end with bytes that nobody asked for."""


def read_replies(data: bytes) -> None:
    """
    Send a request for each part of the input; `NetworkError` unless each has a reply.

    A connection that can serve no more is followed by another one, as in a pool.
    """
    source = random.Random(data)  # noqa: S311 -- no secrets
    connection, answered = _open(), 0
    parts = list(zip(data.split(NEXT), _NONCES, strict=False))
    for part, nonce in parts:
        reply = Reply(_NO_LOOP)
        connection.send(b"?", reply)
        for piece in _cut(part.replace(NONCE, nonce), source):
            if not connection.transport.is_closing():
                connection.data_received(piece)
        if reply.connection is not None:  # the server has sent all, and closes
            connection.eof_received()
        answered += _check(reply, nonce)
        if not (connection.is_reusable and connection.can_serve()):
            connection.connection_lost(None)
            connection = _open()
    connection.connection_lost(None)
    if answered < len(parts):
        raise NetworkError(f"{answered} of {len(parts)} requests have a reply.")


def _open() -> Connection:
    connection = Connection(_NO_LOOP)
    connection.connection_made(_Wire())
    return connection


def _check(reply: Reply, nonce: bytes) -> bool:
    """Whether the reply is complete; it must have ended, and be about no other request."""
    is_failed = reply.error is not None
    assert reply.is_complete is not is_failed, "neither complete nor failed, or both"  # noqa: S101
    assert reply.connection is None, "the connection is in use"  # noqa: S101
    assert not is_failed or isinstance(reply.error, _ERRORS), repr(reply.error)  # noqa: S101
    body = reply.take() if reply.size else b""
    seen = repr(dict(reply.headers)).encode() + body
    assert not any(n in seen for n in _NONCES if n != nonce), "another reply"  # noqa: S101
    return reply.is_complete


def _cut(data: bytes, source: random.Random) -> Iterator[bytes]:
    """Pieces of any size, mostly large."""
    at = 0
    while at < len(data):
        size = source.choice((1, 3, 20, 1000, 1000))
        yield data[at : at + size]
        at += size


class _Wire(asyncio.Transport):
    """Sends nothing, and can be closed."""

    is_closed = False

    def write(self, _: object) -> None:
        assert not self.is_closed, "a request on a closed connection"  # noqa: S101

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close
