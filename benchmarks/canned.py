"""
A server of ready-made replies, in a process of its own: a client's CPU is then all that is counted.

    with serving({"hello": Reply(packets=["{}"])}) as address: ...

The first segment of a path names the reply, whatever follows it, so that one base URL a reply
serves every client. Nothing of a request is read but its length.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """A body; of a stream each packet is a write of its own."""

    packets: list[str]
    is_stream: bool = False
    pace: float = 0.0
    """Seconds between two packets."""
    is_held: bool = False
    """It never ends: the connection stays open until the client closes it."""


@contextmanager
def serving(replies: Mapping[str, Reply]) -> Iterator[str]:
    """The address of a server of these replies."""
    server = subprocess.Popen(  # noqa: S603 -- this very file
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None  # noqa: S101 -- asked for above
    assert server.stdout is not None  # noqa: S101
    try:
        server.stdin.write(json.dumps(replies))
        server.stdin.close()
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def _head(kind: str, more: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{more}\r\n\r\n".encode()


def _writes(reply: Reply) -> list[bytes]:
    """The bytes of a reply, by write."""
    if not reply.is_stream:
        body = "".join(reply.packets).encode()
        return [_head("application/json", f"content-length: {len(body)}") + body]
    head = _head("text/event-stream", "transfer-encoding: chunked")
    packets = [packet.encode() for packet in reply.packets]
    writes = [head, *(b"%x\r\n%b\r\n" % (len(packet), packet) for packet in packets)]
    if not reply.is_held:
        writes[-1] += b"0\r\n\r\n"
    return writes


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, replies: Mapping[str, tuple[list[bytes], float]]) -> None:
        self._replies = replies
        self._buffer = bytearray()
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[:end].decode("latin-1")
        if len(self._buffer) < end + 4 + _length(head):
            return
        self._buffer.clear()  # no client sends its next request before it has the reply
        name = head.split(" ", 2)[1].split("/", 2)[1]
        writes, pace = self._replies[name]
        if pace:
            self._write_slowly(iter(writes), pace)
        else:
            for packet in writes:
                self._transport.write(packet)

    def _write_slowly(self, writes: Iterator[bytes], pace: float) -> None:
        packet = next(writes, None)
        if packet is not None and not self._transport.is_closing():
            self._transport.write(packet)
            asyncio.get_running_loop().call_later(pace, self._write_slowly, writes, pace)


def _length(head: str) -> int:
    found = [line for line in head.lower().split("\r\n") if line.startswith("content-length:")]
    return int(found[0].partition(":")[2]) if found else 0


async def main() -> None:
    given = {name: Reply(*fields) for name, fields in json.load(sys.stdin).items()}
    replies = {name: (_writes(reply), reply.pace) for name, reply in given.items()}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(replies), "127.0.0.1", 0, backlog=1_024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
