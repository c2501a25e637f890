"""Several workers: they are started, replaced and ended together, and share one address."""

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from interlingua.gateway import workers
from interlingua.gateway.source import Source
from interlingua.gateway.workers import Address, Workers
from interlingua.simulator import (
    Script,
    Simulator,
    latency,
    pieces,
    serve_in_thread,
    stall,
    text,
)
from interlingua.spec.errors import ConfigurationError
from support.gateways import Program, file_text, open_stream, read_rest, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

WORDS = "".join(f"w{number} " for number in range(20))


def answer(between=0.0, stops=False):
    """A simulator that answers with the words, one by one; it may stop after some of them."""
    turn = text(WORDS) + pieces(len("w0 ")) + latency(between=between)
    if stops:
        turn += stall(at=2000)
    return Simulator(Script(lambda _: turn))


def words_of(data):
    """The words in the bytes of a stream."""
    return re.findall(r"w\d+ ?", "".join(re.findall(r'"content":"([^"]*)"', data.decode())))


def is_whole(data):
    """Whether a stream was read to its end, with every word."""
    assert words_of(data) == words_of(b'"content":"%s"' % WORDS.encode())[: len(words_of(data))]
    return len(words_of(data)) == 20 and b"[DONE]" in data and data.endswith(b"0\r\n\r\n")


def test_all_workers_answer_at_one_address(tmp_path):
    """Connections are spread over them."""
    with (
        serve_in_thread(answer(between=0.1)) as upstream,
        Program(tmp_path, file_text(upstream.url), "--workers", "3") as front,
    ):
        assert len(front.workers()) == 3
        bare = [count_sockets(pid) for pid in front.workers()]
        streams = [open_stream(front) for _ in range(30)]
        for stream in streams:
            stream.recv(10)
        connected = [count_sockets(pid) for pid in front.workers()]
        front.send(signal.SIGTERM)

        assert all(is_whole(read_rest(stream)) for stream in streams)
        assert front.wait() == -signal.SIGTERM
        assert all(some > none for some, none in zip(connected, bare, strict=True))
        assert "".join(front.errors) == f"Configuration: {front.path}\n"


def count_sockets(pid):
    """How many sockets a process has."""
    folder = Path(f"/proc/{pid}/fd")
    return sum(str(each.readlink()).startswith("socket:") for each in folder.iterdir())


def test_a_killed_worker_costs_only_its_own_streams_and_is_replaced(tmp_path):
    """The streams of the others go on to their end, and new ones are answered."""
    with (
        serve_in_thread(answer(between=0.05)) as upstream,
        Program(tmp_path, file_text(upstream.url), "--workers", "2") as front,
    ):
        streams = [open_stream(front) for _ in range(24)]
        begun = [stream.recv(10) for stream in streams]
        victim, other = front.workers()
        os.kill(victim, signal.SIGKILL)
        later = [open_stream(front) for _ in range(8)]
        received = [read_rest(stream) for stream in streams]
        front.said("Worker 1 has ended with SIGKILL. It is replaced.")
        after = [read_rest(stream) for stream in later]

        assert all(begun)
        whole = sum(map(is_whole, received))
        assert 0 < whole < 24
        assert all(map(is_whole, after))
        wait_until(lambda: len(front.workers()) == 2)
        assert victim not in front.workers()
        assert other in front.workers()


@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_streams_end_after_a_signal_to_stop(tmp_path, options):
    """New connections are refused meanwhile."""
    with (
        serve_in_thread(answer(between=0.05)) as upstream,
        Program(tmp_path, file_text(upstream.url), *options) as front,
    ):
        streams = [open_stream(front) for _ in range(6)]
        for stream in streams:
            stream.recv(10)
        front.send(signal.SIGTERM)

        assert all(is_whole(read_rest(stream)) for stream in streams)
        assert front.wait() == -signal.SIGTERM
        with pytest.raises(OSError, match="refused"):
            open_stream(front)


@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["alone", "workers"])
def test_the_grace_of_a_stop_ends(tmp_path, options):
    """Streams that take longer are cut, without a traceback for each."""
    more = "  timeouts: {grace: 0.2}\n"
    with (
        serve_in_thread(answer(stops=True)) as upstream,
        Program(tmp_path, file_text(upstream.url, more), *options) as front,
    ):
        stream = open_stream(front)
        stream.recv(10)
        front.send(signal.SIGTERM)

        assert not is_whole(read_rest(stream))
        assert front.wait() == -signal.SIGTERM
        assert not [line for line in front.errors if "Traceback" in line]


def test_a_second_interrupt_does_not_wait(tmp_path):
    """The first Ctrl-C lets streams end, the second does not."""
    with (
        serve_in_thread(answer(stops=True)) as upstream,
        Program(tmp_path, file_text(upstream.url), "--workers", "2") as front,
    ):
        stream = open_stream(front)
        stream.recv(10)
        front.send(signal.SIGINT)
        wait_until(lambda: len(front.workers()) == 1)
        front.send(signal.SIGINT)

        assert not is_whole(read_rest(stream))
        assert front.wait() == 130


def test_workers_end_when_their_parent_is_killed(tmp_path):
    """No process is left that nobody can end."""
    with (
        serve_in_thread(answer()) as upstream,
        Program(tmp_path, file_text(upstream.url), "--workers", "2") as front,
    ):
        pids = front.workers()
        front.send(signal.SIGKILL)
        front.wait()

        wait_until(lambda: not any(map(is_running, pids)))


def is_running(pid):
    """Whether there is a process of this id."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_workers_that_end_at_once_end_the_gateway(monkeypatch, capfd):
    """After growing pauses, with a message that says how they ended."""
    pauses = []
    wait_for = workers.asyncio.timeout
    monkeypatch.setattr(workers, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(
        workers.asyncio, "timeout", lambda seconds: pauses.append(seconds) or wait_for(seconds)
    )
    source = Source(secret=b"x" * 16, environ={"OPENAI_API_KEY": "k"})
    parent = Workers(
        source,
        Address("127.0.0.1", 0, 1),
        lambda: source,
        command=(sys.executable, "-S", "-c", "raise SystemExit(7)"),
    )
    began = time.monotonic()
    with pytest.raises(ConfigurationError, match="at once 8 times, the last time with status 7"):
        parent.run(1, lambda: pytest.fail("It is not ready."))

    assert time.monotonic() - began < 60
    assert pauses == [0.001 * 2**number for number in range(6)]
    assert capfd.readouterr().err.count("It is replaced.") == 7


def test_the_address_is_left_to_the_other_workers():
    """The socket of a worker that is out is closed, and opened again at the same port."""
    address = Address("127.0.0.1", 0, 2)
    first = address.first
    port = first.getsockname()[1]
    address.leave_to_others(0)

    assert first.fileno() == -1
    assert address.open(0).getsockname()[1] == port
    address.leave_to_others(0)
    address.leave_to_others(1)  # the last one stays
    assert address.open(1).fileno() != -1
    address.close()


def test_one_socket_is_shared_where_the_system_does_not_spread(monkeypatch):
    """All workers accept from the same one."""
    monkeypatch.setattr(workers, "can_spread", lambda: False)
    address = Address("127.0.0.1", 0, 3)

    assert address.open(1) is address.open(2) is address.first
    address.leave_to_others(1)
    assert address.first.fileno() != -1
    address.close()
