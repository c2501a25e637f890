"""The transports under the SDKs' HTTP clients, with small applications that show what they get."""

import asyncio
import gc
import importlib
import subprocess
import sys
import threading

import pytest

from interlingua.integrations import sdk
from interlingua.spec.errors import ConfigurationError
from support import virtual_time
from support.blocking import until
from support.patience import PATIENCE
from support.simulated import settled

LIBRARIES = ("httpx2", "httpx")
URL = "http://in.invalid/some/path?a=b"
START = {"type": "http.response.start", "status": 200, "headers": [(b"x-kind", b"test")]}
END = {"type": "http.response.body", "body": b"", "more_body": False}


@pytest.fixture(params=LIBRARIES)
def library(request):
    """An HTTP library, where it is installed."""
    return pytest.importorskip(request.param, reason=f"needs {request.param}")


def connect(library, app, **settings):
    """An async client of the library that talks to this application."""
    transport = sdk.transport(app, library=library.__name__)
    return library.AsyncClient(transport=transport, **settings)


def connect_blocking(library, app, **settings):
    """The same, blocking."""
    transport = sdk.blocking_transport(app, library=library.__name__)
    return library.Client(transport=transport, **settings)


def body(data):
    return {"type": "http.response.body", "body": data, "more_body": True}


class Endless:
    """Sends pieces for ever; tells how many were taken and whether it was told of the end."""

    def __init__(self, piece=b"x" * 1000):
        self.piece = piece
        self.sent = 0
        self.told = threading.Event()

    async def __call__(self, _scope, receive, send):
        await receive()
        watching = asyncio.ensure_future(self._watch(receive))
        await send(START)
        try:
            while True:
                await send(body(self.piece))
                self.sent += 1
                await asyncio.sleep(0)
        except OSError:
            await watching

    async def _watch(self, receive):
        while (await receive())["type"] != "http.disconnect":
            pass
        self.told.set()


async def one_piece(_scope, receive, send):
    """Sends a piece, and nothing more until its client leaves."""
    await receive()
    await send(START)
    await send(body(b"one"))
    while (await receive())["type"] != "http.disconnect":
        pass


async def silent(_scope, receive, _send):
    """Never answers."""
    while (await receive())["type"] != "http.disconnect":
        pass


def test_the_application_gets_the_request(library):
    """Method, path, query, headers and body are those of the request."""
    seen = {}

    async def app(scope, receive, send):
        seen.update(scope, body=(await receive())["body"])
        await send(START)
        await send(END)

    with connect_blocking(library, app) as http:
        reply = http.put(URL, content=b"words", headers={"X-Name": "value"})

    assert (reply.status_code, reply.headers["x-kind"], reply.content) == (200, "test", b"")
    assert (seen["method"], seen["path"], seen["query_string"]) == ("PUT", "/some/path", b"a=b")
    assert seen["body"] == b"words"
    assert {(b"x-name", b"value"), (b"content-length", b"5")} <= {*seen["headers"]}


def test_a_body_is_streamed_in(library):
    """The second piece is made only after the application has the first."""
    has_first = asyncio.Event()

    async def app(_scope, receive, send):
        pieces = []
        while True:
            message = await receive()
            pieces.append(message["body"])
            has_first.set()
            if not message["more_body"]:
                break
        await send(START)
        await send(body(b"|".join(pieces)))
        await send(END)

    async def pieces():
        yield b"one"
        await asyncio.wait_for(has_first.wait(), PATIENCE)
        yield b"two"

    async def post():
        async with connect(library, app) as http:
            return (await http.post(URL, content=pieces())).content

    assert asyncio.run(post()) == b"one|two|"


def test_a_blocking_body_is_streamed_in(library):
    """The same from a thread; its generator may wait for the event loop, and even ask it."""
    got = []

    async def app(scope, receive, send):
        while scope["method"] == "POST" and (message := await receive())["more_body"]:
            got.append(message["body"])
        await send(START)
        await send(body(b"|".join(got)))
        await send(END)

    def pieces():
        yield b"one"
        yield b"asked: " + http.get(URL).content

    with connect_blocking(library, app) as http:
        assert http.post(URL, content=pieces()).content == b"one|asked: one"


def test_files_are_streamed_in(library, tmp_path):
    """A form with a file arrives whole, from both clients."""
    path = tmp_path / "words.txt"
    path.write_bytes(b"word " * 50_000)

    async def app(_scope, receive, send):
        size = 0
        while (message := await receive())["more_body"]:
            size += len(message["body"])
        await send(START)
        await send(body(str(size + len(message["body"])).encode()))
        await send(END)

    async def post():
        async with connect(library, app) as http:
            with path.open("rb") as file:
                return await http.post(URL, files={"file": file})

    with connect_blocking(library, app) as http, path.open("rb") as file:
        replies = [http.post(URL, files={"file": file}), asyncio.run(post())]
    for reply in replies:
        assert reply.content.decode() == reply.request.headers["content-length"]


def test_a_slow_reader_slows_the_application_down(library):
    """Only a few pieces wait for a reader that has taken one; then closing is told."""
    app = Endless()

    async def read():
        async with connect(library, app) as http, http.stream("GET", URL) as reply:
            await anext(aiter(reply.aiter_raw()))
            for _ in range(2000):
                await asyncio.sleep(0)
            assert app.sent < 40
        await settled(app.told.is_set)

    asyncio.run(read())


def test_a_slow_thread_slows_the_application_down(library):
    """The same for a blocking reader, for which the loop reads somewhat ahead."""
    app = Endless()
    with connect_blocking(library, app) as http, http.stream("GET", URL) as reply:
        next(reply.iter_raw())
        before = -1
        while before != app.sent:  # until it stands still
            before = app.sent
            threading.Event().wait(0.1)
        assert app.sent < 400
    assert app.told.wait(PATIENCE)


def test_a_reply_that_is_lost(library):
    """The application is told when nothing holds the reply any more."""
    app = Endless()

    async def lose():
        http = connect(library, app)
        await http.send(http.build_request("GET", URL), stream=True)
        gc.collect()
        await settled(app.told.is_set)

    asyncio.run(lose())


def test_closing_while_another_task_reads(library):
    """The reader gets an error at once, and does not wait for ever."""

    async def close():
        async with connect(library, one_piece) as http:
            reply = await http.send(http.build_request("GET", URL), stream=True)
            pieces = aiter(reply.aiter_raw())
            assert await anext(pieces) == b"one"
            reader = asyncio.ensure_future(anext(pieces))
            await asyncio.sleep(0)
            await reply.aclose()
            with pytest.raises(library.RemoteProtocolError, match="closed before its end"):
                await reader

    asyncio.run(close())


def test_closing_while_another_thread_reads(library):
    """The same for threads: the reader ends."""
    http = connect_blocking(library, one_piece)
    reply = http.send(http.build_request("GET", URL), stream=True)
    got = []
    reader = threading.Thread(target=lambda: got.extend(reply.iter_raw()))
    reader.start()
    until(lambda: got)
    http.close()
    reader.join(PATIENCE)

    assert got == [b"one"]
    assert not reader.is_alive()


@pytest.mark.parametrize("app", [silent, one_piece])
def test_the_read_timeout(library, app):
    """Silence before the headers or in a body is a `ReadTimeout` after the seconds that are set."""

    async def read():
        loop = asyncio.get_running_loop()
        async with connect(library, app, timeout=7) as http:
            began = loop.time()
            with pytest.raises(library.ReadTimeout, match=r"within 7 s"):
                await http.get(URL)
            assert loop.time() - began == pytest.approx(7, abs=0.1)

    virtual_time.run(read())


@pytest.mark.parametrize("app", [silent, one_piece])
def test_the_read_timeout_of_a_blocking_client(library, app):
    """The same for a thread that waits."""
    with (
        connect_blocking(library, app, timeout=0.05) as http,
        pytest.raises(library.ReadTimeout, match=r"within 0.05 s"),
    ):
        http.get(URL)


async def failing(_scope, _receive, _send):
    raise ValueError("It broke.")


async def failing_later(_scope, _receive, send):
    await send(START)
    await send(body(b"one"))
    raise ValueError("It broke.")


@pytest.mark.parametrize("app", [failing, failing_later])
def test_an_application_that_fails(library, app):
    """It is a lost connection in the library's own class; the cause is kept."""

    async def read():
        async with connect(library, app) as http:
            await http.get(URL)

    with pytest.raises(library.RemoteProtocolError, match="ValueError") as failed:
        asyncio.run(read())
    assert isinstance(failed.value.__cause__.__cause__, ValueError)
    with (
        connect_blocking(library, app) as http,
        pytest.raises(library.RemoteProtocolError, match="ValueError"),
    ):
        http.get(URL)


def test_a_blocking_client_in_the_loop_of_blocking_calls(library):
    """It would wait for itself for ever, so it is an error that says so."""
    failed = []

    async def app(_scope, _receive, send):
        try:
            http.get(URL)
        except ConfigurationError as error:
            failed.append(error)
        await send(START)
        await send(END)

    with connect_blocking(library, app) as http:
        http.get(URL)
    assert "Deadlock" in str(failed[0])


def test_proxies_of_the_environment_are_not_used(library, monkeypatch):
    """Nothing leaves the process, whatever the environment says."""
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with connect_blocking(library, one_piece) as http, http.stream("GET", URL) as reply:
        assert next(reply.iter_raw()) == b"one"


def test_a_library_is_imported_when_it_is_asked_for():
    """Importing the module imports none of them."""
    code = (
        "import sys; from interlingua.integrations import sdk; "
        "print([name for name in ('httpx', 'httpx2') if name in sys.modules])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert printed.strip() == "[]"


def test_a_library_that_is_not_installed(monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigurationError, match="pip install httpx"):
        sdk.http_client(library="httpx")


def test_an_unknown_library():
    """Only two libraries have clients that SDKs accept."""
    with pytest.raises(ConfigurationError, match="'httpx2' or 'httpx', not 'requests'"):
        sdk.blocking_transport(one_piece, library="requests")


def test_a_client_for_the_older_library():
    """`library="httpx"` makes clients of httpx, for SDKs that use it."""
    httpx = pytest.importorskip("httpx")
    from interlingua.simulator import scripted

    asynchronous = sdk.http_client(scripted(), library="httpx")
    blocking = sdk.blocking_http_client(scripted(), library="httpx")

    assert isinstance(asynchronous, httpx.AsyncClient)
    assert isinstance(blocking, httpx.Client)
    assert importlib.import_module("httpx2").Client not in type(blocking).__mro__
