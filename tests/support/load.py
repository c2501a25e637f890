"""Many streams through a gateway whose workers are killed and reloaded meanwhile; Linux only."""

import asyncio
import json
import os
import random
import re
import signal
from pathlib import Path
from typing import NamedTuple

from interlingua.simulator import Script, Simulator, latency, pieces, text
from support.patience import PATIENCE

WORDS = tuple(f"w{number} " for number in range(20))
_FIND_TEXT = re.compile(rb'"content":"([^"]*)"').findall


class CountingSimulator(Simulator):
    """Answers with the words, one by one, and counts the requests that are under way."""

    def __init__(self, between):
        turn = text("".join(WORDS)) + pieces(3) + latency(between=between)
        super().__init__(Script(lambda _: turn, keep=1))
        self.active = 0
        self.most = 0

    async def handle(self, incoming, receive, send):
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            await super().handle(incoming, receive, send)
        finally:
            self.active -= 1


class Outcome(NamedTuple):
    """What became of a stream."""

    port: int
    """Of the client."""
    words: tuple
    is_whole: bool
    has_left: bool
    status: bytes


def request_bytes(key, model="any"):
    """A request for a stream."""
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    data = json.dumps(body).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        f"authorization: Bearer {key}\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def read_stream(url, key, leaves_after=None):
    """Read a stream to its end, or leave after some words."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    own_port = writer.get_extra_info("sockname")[1]
    received = b""
    has_left = False
    try:
        writer.write(request_bytes(key))
        while chunk := await reader.read(65536):
            received += chunk
            if leaves_after is not None and len(words_of(received)) >= leaves_after:
                has_left = True
                break
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()
    words = words_of(received)
    is_whole = words == WORDS and b"[DONE]" in received and received.endswith(b"0\r\n\r\n")
    return Outcome(own_port, words, is_whole, has_left, received[9:12])


def words_of(received):
    """The words of a stream so far."""
    return tuple(re.findall(r"w\d+ ", b"".join(_FIND_TEXT(received)).decode()))


async def read_streams(url, key, count, *, over, chance=random.Random(7)):  # noqa: B008
    """Start so many streams over some seconds; a third of the clients leave at random."""

    async def one():
        leaves_after = chance.randrange(len(WORDS)) if chance.random() < 1 / 3 else None
        await asyncio.sleep(chance.random() * over)
        return await read_stream(url, key, leaves_after)

    return await asyncio.gather(*(one() for _ in range(count)))


# What the system knows about the workers.


def sockets_of(pid):
    """The connections of a process: pairs of its own port and that of the other side."""
    inodes = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(str(each.readlink()).partition("[")[2].rstrip("]"))
        except FileNotFoundError:
            continue  # closed meanwhile
    found = []
    for line in Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[9] in inodes and fields[3] != "0A":  # 0A is a socket that listens
            found.append(tuple(int(place.split(":")[1], 16) for place in fields[1:3]))
    return found


def count_others(pid):
    """The descriptors of a process that are no connections."""
    return len([*Path(f"/proc/{pid}/fd").iterdir()]) - len(sockets_of(pid))


def kill_worker(pid, port):
    """Kill a worker at once; returns the ports of the clients that it served."""
    os.kill(pid, signal.SIGSTOP)  # so that it accepts no others between the look and the end
    served = {theirs for own, theirs in sockets_of(pid) if own == port}
    os.kill(pid, signal.SIGKILL)
    return served


class Shaken(NamedTuple):
    """What became of all streams, and of the workers."""

    outcomes: list
    cut: set
    """The ports of the clients whose worker was killed."""
    grown: dict
    """Descriptors that a worker has beyond those at the beginning, by its id."""


async def shake(front, upstream, texts, count, *, over, kills):
    """
    Read streams while workers are killed and the file is reloaded; then see what is left.

    `texts` are the files, which take turns.
    """
    port = int(front.url.rpartition(":")[2])
    await read_streams(front.url, front.key, 40, over=0)  # so that all modules are loaded
    quiet = {pid: count_others(pid) for pid in front.workers()}
    streams = asyncio.create_task(read_streams(front.url, front.key, count, over=over))
    cut = set()
    for number in range(2 * kills + 1):
        await asyncio.sleep(over / (2 * kills + 1))
        front.write(texts[number % len(texts)])
        front.send(signal.SIGHUP)
        if number % 2:
            # The last one may just have been started, and not run yet.
            cut |= kill_worker(front.workers()[0], port)
    outcomes = await streams
    workers = front.workers()
    await until(lambda: not upstream.active)
    await until(lambda: not any(own == port for pid in workers for own, _ in sockets_of(pid)))
    grown = {pid: count_others(pid) - quiet[pid] for pid in workers if pid in quiet}
    return Shaken(outcomes, cut, grown)


async def until(condition):
    """Wait until it holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 -- what others do
            await asyncio.sleep(0.02)


def check(outcomes, cut=frozenset()):
    """Every stream has each word once and in order, to its end unless its worker was killed."""
    for each in outcomes:
        assert each.words == WORDS[: len(each.words)], each
        assert each.is_whole or each.has_left or each.port in cut, each
