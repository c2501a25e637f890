"""One loop behind every blocking call."""

import asyncio
import contextvars
import gc
import os
import selectors
import signal
import subprocess
import sys
import threading
import traceback

import pytest

from interlingua.simulator import text, tool_call, tool_loop
from interlingua.spec.errors import AbortError, ConfigurationError
from interlingua.sync.loop_thread import Background, background
from support.blocking import NEVER, WORDS, interrupted, left, says, start, until
from support.simulated import SLOW, simulated

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")


async def here():
    return asyncio.get_running_loop(), threading.get_ident()


def test_one_loop_for_everyone():
    """Calls from several threads, with and without a loop of their own, meet in the same one."""
    found = [background.run(here())]

    async def inside():
        return background.run(here())

    def work():
        found.append(background.run(here()))
        found.append(asyncio.run(inside()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.append(asyncio.run(inside()))

    assert len(found) == 10
    assert len(set(found)) == 1
    assert found[0][1] != threading.get_ident()


def test_many_threads_start_one_loop():
    """The first calls may come at once."""
    made = Background()
    barrier = threading.Barrier(8)
    found = []

    def work():
        barrier.wait()
        found.append(made.run(here()))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made.stop()

    assert len(set(found)) == 1


def test_results_and_errors():
    """What the work returns is returned, what it raises is raised where it is waited for."""

    async def fail():
        raise KeyError("no")

    async def nothing():
        return None

    assert background.run(nothing()) is None
    with pytest.raises(KeyError) as caught:
        background.run(fail())
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[0] == "test_results_and_errors"
    assert names[-1] == "fail"


def test_the_callers_context():
    """Context variables of the caller are seen by the work, and what it sets stays there."""
    name = contextvars.ContextVar("name", default="nobody")

    async def read():
        seen = name.get()
        name.set("changed")
        return seen

    name.set("me")

    assert background.run(read()) == "me"
    assert name.get() == "me"


def test_waiting_for_oneself():
    """A blocking call in the loop's own thread is refused: it could never end."""
    asked = here()

    async def work():
        return background.run(asked)

    with pytest.raises(ConfigurationError, match="Deadlock: a blocking function"):
        background.run(work())


@pytest.mark.parametrize("leaving", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_work_that_exits(leaving):
    """It exits its caller, in its own thread; the loop goes on, and so do other calls."""
    going = threading.Event()
    done = []

    async def waits():
        going.set()
        await asyncio.sleep(0.05)
        return "still here"

    async def exits():
        async def inner():
            raise leaving

        await asyncio.ensure_future(inner())

    other = threading.Thread(target=lambda: done.append(background.run(waits())))
    other.start()
    going.wait()
    with pytest.raises(type(leaving)):
        background.run(exits())
    other.join()

    assert done == ["still here"]
    assert background.run(here())


@pytest.mark.skipif(os.name == "nt", reason="there are no such signals there")
def test_a_wait_that_is_broken_off():
    """The work is cancelled; work that has not begun never begins."""
    seen = []

    async def work(name):
        seen.append(f"{name} begins")
        interrupt()
        try:
            await asyncio.sleep(60)
        finally:
            seen.append(f"{name} ends")

    async def busy():
        held.set()
        free.wait()

    with interrupted() as interrupt:
        background.run(work("first"))
    until(lambda: len(seen) == 2)
    held, free = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: background.run(busy()))
    thread.start()
    held.wait()
    with interrupted() as interrupt:
        interrupt()
        background.run(work("second"))
    free.set()
    thread.join()
    background.run(asyncio.sleep(0))

    assert seen == ["first begins", "first ends"]


def test_ctrl_c_while_the_loop_is_made(monkeypatch):
    """It is raised where the call waits, without a half-made loop; the next call has a loop."""

    class Selector(selectors.DefaultSelector):
        def __init__(self):
            super().__init__()
            if not interrupts:
                interrupts.append(os.kill(os.getpid(), signal.SIGINT))

    interrupts = []
    made = Background()
    monkeypatch.setattr(selectors, "DefaultSelector", Selector)
    with pytest.raises(KeyboardInterrupt):
        made.run(here())

    assert interrupts
    assert made.run(here())
    made.stop()
    gc.collect()  # a half-made loop complains


def test_a_loop_that_cannot_be_made(monkeypatch):
    """The error is raised where the call waits; a later call tries again."""

    def fail():
        raise OSError("too many open files")

    made = Background()
    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "new_event_loop", fail)
        with pytest.raises(OSError, match="too many open files"):
            made.run(here())

    assert made.run(here())
    made.stop()


def test_work_that_is_cancelled():
    """Whoever waits is told by an error of ours, not by one that asyncio keeps for itself."""

    async def work():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    with pytest.raises(AbortError):
        background.run(work())


def test_stopping_ends_what_runs():
    """Its tasks are cancelled, its thread is joined, and no call begins any more."""
    made = Background()
    going = threading.Event()
    errors = []

    async def work():
        going.set()
        await asyncio.sleep(60)

    def wait():
        try:
            made.run(work())
        except AbortError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    going.wait()
    made.stop()
    thread.join()
    made.stop()

    assert len(errors) == 1
    assert not made._thread.is_alive()
    with pytest.raises(ConfigurationError, match="is exiting"):
        made.run(here())


QUIET = {
    "calls": "for _ in range(3): client.complete(ask)",
    "streams": "for _ in range(3): list(client.stream(ask))",
    "a stream left in the middle": "stream = client.stream(ask); next(stream)",
    "a stream never begun": "stream = client.stream(ask)",
    "closed by hand": "client.complete(ask); client.close(); client.complete(ask)",
    "collected": "client.complete(ask); del client; gc.collect(); time.sleep(0.05)",
    "threads": """
def work():
    for _ in range(3):
        client.complete(ask)
        list(client.stream(ask))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    "loops": """
async def main():
    client.complete(ask)
    list(client.stream(ask))
    await client.asynchronous.complete(ask)
for _ in range(3): asyncio.run(main())
""",
    "an exit": "client.complete(ask); sys.exit(0)",
    "closed by an object that ends with the program": """
class Holder:
    def __del__(self):
        client.close()
holder = Holder()
client.complete(ask)
""",
    "closed at exit, and never used": """
import atexit
from interlingua.sync.loop_thread import background
atexit.unregister(background.stop)
atexit.register(client.close)
atexit.register(background.stop)
""",
    "at exit": """
import atexit
atexit.register(client.complete, ask)
client.complete(ask)
""",
}


@pytest.mark.parametrize("code", QUIET.values(), ids=QUIET)
def test_nothing_is_left_at_exit(code):
    """Whatever the program did, it ends in silence, and with every connection closed.

    Field bug 83.
    """
    with simulated(WORDS) as peer:
        assert says(code, peer.server.url) == ("", "", 0)
        until(lambda: peer.server.open_connections == 0)


def test_a_program_that_ends_does_not_wait_for_calls_under_way():
    """A program that ends does not wait for their answers; whoever waits for them is told.

    Field bug 83.
    """
    code = """
from interlingua import SDKError
def wait(work):
    try:
        work()
    except SDKError:
        pass
for work in (lambda: client.complete(ask), lambda: list(client.stream(ask))):
    threading.Thread(target=wait, args=(work,), daemon=True).start()
time.sleep(0.5)
"""
    with simulated(NEVER) as peer:
        assert says(code, peer.server.url) == ("", "", 0)
        until(lambda: peer.server.open_connections == 0)


def test_a_tool_that_hangs_does_not_keep_a_program_from_ending():
    """A handler that hangs does not keep the program from ending (field bug 83)."""
    code = """
from interlingua.errors import RequestTimeoutError
@tool
def hang() -> str:
    time.sleep(60)
try:
    sync.generate("gpt-5.2", "go", tools=[hang], client=client, timeout=0.5)
except RequestTimeoutError:
    print("over")
"""
    with simulated(tool_loop(tool_call("hang"), text("x"))) as peer:
        assert says(code, peer.server.url) == ("over\n", "", 0)


@forks
def test_parent_and_child_go_on_after_a_fork():
    """Parent and child go on, each with a loop and connections of its own; both end in silence.

    Field bug 83.
    """
    code = """
client.complete(ask)
child = os.fork()
if child == 0:
    client.complete(ask)
    list(client.stream(ask))
    sys.exit(7)
client.complete(ask)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
client.complete(ask)
"""
    with simulated(WORDS) as peer:
        assert says(code, peer.server.url) == ("", "", 0)
        assert peer.server.accepted == 2
        assert len(peer.app.script.received) == 5


@forks
def test_a_fork_while_other_threads_call_does_not_harm_the_child():
    """The locks that other threads hold at that moment do not matter to the child.

    Field bug 83.
    """
    code = """
stop = threading.Event()
def work():
    while not stop.is_set():
        client.complete(ask)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        client.complete(ask)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
stop.set()
for thread in threads: thread.join()
"""
    with simulated(WORDS) as peer:
        assert says(code, peer.server.url) == ("", "", 0)


@forks
def test_a_fork_waits_until_the_loop_imports_nothing(tmp_path):
    """A child that is forked while another thread imports a module could never import it."""
    slow = "import sys, time; sys.begun.set(); time.sleep(0.2)"
    (tmp_path / "a_slow_module.py").write_text(slow, encoding="utf-8")
    code = f"""
from interlingua.sync.loop_thread import background
sys.path.insert(0, {str(tmp_path)!r})
sys.begun = threading.Event()
async def load():
    import a_slow_module
thread = threading.Thread(target=lambda: background.run(load()))
thread.start()
sys.begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    import a_slow_module
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
thread.join()
background.run(load())
"""
    with simulated(WORDS) as peer:
        assert says(code, peer.server.url) == ("", "", 0)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
@pytest.mark.parametrize(
    ("answer", "work"),
    [
        (NEVER, "client.complete(ask)"),
        (NEVER, "sync.generate('gpt-5.2', 'Hello', client=client)"),
        (NEVER, "sync.execute('gpt-5.2', 'Hello', client=client)"),
        (SLOW, "for event in client.stream(ask): pass"),
        (SLOW, "for event in sync.stream('gpt-5.2', 'Hello', client=client): pass"),
    ],
    ids=["complete", "generate", "execute", "client.stream", "stream"],
)
def test_ctrl_c(answer, work):
    """The wait ends at once, the server sees the connection closed, and later calls work."""
    code = f"""
try:
    {work}
except KeyboardInterrupt:
    print("interrupted", flush=True)
client.cancel("nobody")
signal.pause()
"""
    with simulated(answer) as peer:
        program = start(code, peer.server.url)
        try:
            until(lambda: peer.app.script.received)
            program.send_signal(signal.SIGINT)
            assert program.stdout.readline() == "interrupted\n"
            until(lambda: left(peer))
            assert program.poll() is None  # it was not the end of the program that closed it
        finally:
            program.kill()
            out, err = program.communicate()

    assert (out, err) == ("", "")


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_ctrl_c_that_nobody_catches():
    """The program ends as others do, with nothing said but the interruption."""
    with simulated(NEVER) as peer:
        with start("client.complete(ask)", peer.server.url) as program:
            until(lambda: peer.app.script.received)
            program.send_signal(signal.SIGINT)
            _, err = program.communicate(timeout=60)
        until(lambda: left(peer))

    assert program.returncode == -signal.SIGINT
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert "Traceback" in err
    assert err.count("Traceback") == 1


def test_loading_is_light():
    """`import interlingua.sync` starts no thread, and the package does not load it."""
    code = """
import sys, threading, interlingua
assert "interlingua.sync" not in sys.modules
import interlingua.sync
assert threading.active_count() == 1
assert "httptools" not in sys.modules and "mcp" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
