import http.client
import logging
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

import interlingua
from interlingua.local.server import LocalServer, local_server
from interlingua.spec.errors import ConfigurationError, RequestTimeoutError
from support.llama import eventually, send

SOURCE = Path(interlingua.__file__).parents[1]


def is_well(url):
    return send(f"{url}/health")[0] == 200


def is_gone(url):
    try:
        send(f"{url}/health")
    except (OSError, http.client.HTTPException):  # also if it ends in the middle of its answer
        return True
    return False


@pytest.fixture
def server(gguf):
    """A server that is not started yet."""
    fresh = LocalServer(gguf, context=512, slots=1, threads=1)
    yield fresh
    fresh.stop()


def test_it_is_ready_when_start_returns(server):
    """The address is on loopback and answers at once."""
    url = server.start()

    assert url.startswith("http://127.0.0.1:")
    assert is_well(url)


def test_threads_that_start_it_at_once_share_it(server):
    """Any number of callers get one server."""
    with ThreadPoolExecutor(8) as pool:
        urls = set(pool.map(lambda _: server.start(), range(8)))

    assert len(urls) == 1
    assert server.start() in urls


def test_stop_ends_it_and_start_makes_a_new_one(server):
    """Stopping is final for an address, can be done twice, and is no end of the object."""
    server.stop()
    url = server.start()
    server.stop()
    server.stop()

    assert is_gone(url)
    assert is_well(server.start())


def test_a_server_that_nobody_holds_ends(gguf):
    """Letting go of the object is enough to end its server."""
    url = LocalServer(gguf, context=512, threads=1).start()

    assert is_gone(url)


def test_a_server_that_died_is_replaced(server):
    """After a crash of llama.cpp the next start gives a server that works."""
    server.start()
    server._process.kill()
    server._process.wait()

    assert is_well(server.start())


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the child is careful
def test_a_forked_child_has_its_own(server):
    """A child starts its own server, though the fork came in the middle of another start."""
    url = server.start()
    with server._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            own = server.start()
            sound = own != url and is_well(own) and is_well(url)
            server.stop()
            os._exit(7 if sound and is_gone(own) else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert server.start() == url
    assert is_well(url)


def run(code, gguf, **options):
    """A program of its own that imports the package from here."""
    program = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); gguf = {str(gguf)!r}\n{code}"
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_a_program_that_ends_takes_it_along(gguf):
    """At exit the shared server goes too, and nothing was said on stderr."""
    done = run(
        "from interlingua.local import local_server\n"
        "server = local_server(gguf)\n"
        "assert local_server(gguf) is server\n"
        "print(server.start())",
        gguf,
    )

    assert done.returncode == 0
    assert done.stderr == ""
    assert is_gone(done.stdout.strip())


def test_a_program_that_is_killed_takes_it_along(gguf):
    """A parent that had no chance to clean up leaves no server behind."""
    done = run(
        "import os, signal\n"
        "from interlingua.local import LocalServer\n"
        "server = LocalServer(gguf, context=512)\n"
        "print(server.start(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)",
        gguf,
    )

    assert done.stdout.startswith("http://127.0.0.1:")
    eventually(lambda: is_gone(done.stdout.strip()))


def test_a_forked_child_does_not_keep_it_alive(gguf):
    """A child that never touches the server can end as any other, and holds no server up."""
    done = run(
        "import os, signal\n"
        "from interlingua.local import LocalServer\n"
        "server = LocalServer(gguf, context=512)\n"
        "print(server.start(), flush=True)\n"
        "if os.fork() == 0: sys.exit(0)\n"
        "assert os.waitstatus_to_exitcode(os.wait()[1]) == 0\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    for descriptor in 0, 1, 2: os.close(descriptor)\n"
        "    signal.pause()\n"
        "print(child, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)",
        gguf,
        timeout=60,
    )

    assert done.returncode == -signal.SIGKILL, (done.stdout, done.stderr)
    url, lingering = done.stdout.split()
    try:
        eventually(lambda: is_gone(url))
    finally:
        os.kill(int(lingering), signal.SIGKILL)


def test_the_shared_server_is_one_a_model():
    """Asking again gives the same server, asking for another model another."""
    assert local_server() is local_server()
    assert local_server("one.gguf") is not local_server("two.gguf")
    assert local_server().model == "smollm2-135m-instruct"
    assert local_server("folder/one.gguf").model == "one"


def test_what_llama_cpp_says_goes_to_the_logger(server, caplog, capfd):
    """Its words are log records at DEBUG, never on the caller's terminal."""
    with caplog.at_level(logging.DEBUG, logger="interlingua.local.server"):
        server.start()
        eventually(lambda: "listening" in caplog.text)

    assert {record.levelname for record in caplog.records} == {"DEBUG"}
    assert capfd.readouterr() == ("", "")


def test_a_broken_file_is_named_with_the_cause(tmp_path):
    """What llama.cpp cannot load is an error with its first complaint."""
    pytest.importorskip("xllamacpp")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(1000))

    with pytest.raises(
        ConfigurationError, match=r"broken\.gguf cannot .+ \(exit code 1\)"
    ) as caught:
        LocalServer(broken).start()

    assert "Traceback" not in caught.value.message


def test_a_slow_start_is_a_timeout(gguf):
    """Loading has a limit, and a second try works."""
    server = LocalServer(gguf, context=512, threads=1, start_timeout=0.001)

    with pytest.raises(RequestTimeoutError, match=r"within 0\.001 s"):
        server.start()

    server.start_timeout = 120.0
    with server:
        assert is_well(server.start())


def test_without_llama_cpp_it_says_what_to_install(tmp_path):
    """An environment without the extra is told of it."""
    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    code = (
        f"import sys; sys.path += [{str(SOURCE)!r}, {str(tmp_path)!r}]\n"
        "from interlingua.local import LocalServer\n"
        "LocalServer().start()"
    )

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "ConfigurationError: Local models need llama.cpp, which is not installed" in done.stderr
    assert "pip install 'interlingua[local]'" in done.stderr
