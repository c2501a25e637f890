"""URLs, names and sockets: where a request goes, and how it gets there."""

import asyncio
import re
import socket
import ssl
from base64 import b64decode
from urllib.parse import unquote

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import ConfigurationError, NetworkError, RequestTimeoutError
from interlingua.transport.http1 import addresses
from interlingua.transport.http1.addresses import (
    Resolver,
    connect,
    find_target,
    open_connection,
    parse_url,
    resolve,
)
from interlingua.transport.http1.exchange import _write_head
from support import virtual_time
from support.http_calls import call, read, run
from support.loops import every_loop
from support.patience import PATIENCE
from support.run_profile import examples
from support.servers import Server, answering, free_port, reply

# URLs.

TABLE = [
    ("http://h", "h", 80, "/"),
    ("https://h", "h", 443, "/"),
    ("HTTP://H.Example:80/A", "h.example", 80, "/A"),
    ("http://h:8080?x=1", "h", 8080, "/?x=1"),
    ("http://h:/x", "h", 80, "/x"),
    ("http://h/x#f?y", "h", 80, "/x"),
    ("http://h/x?y#z?w", "h", 80, "/x?y"),
    ("http://h/a/../b//c;d=1", "h", 80, "/a/../b//c;d=1"),
    ("http://[::1]:8080/x", "::1", 8080, "/x"),
    ("https://[2001:DB8::1]", "2001:db8::1", 443, "/"),
    ("http://u:p@h:1/x", "h", 1, "/x"),
    ("http://a@b@c/", "c", 80, "/"),
    ("http://bücher.example/ä?ö=ü", "xn--bcher-kva.example", 80, "/%C3%A4?%C3%B6=%C3%BC"),
    ("http://h。example/", "h.example", 80, "/"),
    ("http://h/a b?c d", "h", 80, "/a%20b?c%20d"),
    ("http://h/%41%zz%?%", "h", 80, "/%41%25zz%25?%25"),
    ("http://h/?a[]=b?c&d='e'", "h", 80, "/?a[]=b?c&d='e'"),
    ('http://h/a|b{c}"d"<e>\\', "h", 80, "/a%7Cb%7Bc%7D%22d%22%3Ce%3E%5C"),
    ("http://h/x\r\ny: z", "h", 80, "/xy:%20z"),
    ("http://h/\x00\x7f", "h", 80, "/%00%7F"),
    ("http://h/v1\n", "h", 80, "/v1"),
    ("http://h\n/v1", "h", 80, "/v1"),
]


@pytest.mark.parametrize(("text", "host", "port", "target"), TABLE)
def test_the_parts_of_a_url(text, host, port, target):
    """What is not allowed in a request is percent-encoded; a fragment is not sent."""
    url = parse_url(text)

    assert (url.host, url.port, url.target) == (host, port, target)


@pytest.mark.parametrize(
    ("url", "origin", "address"),
    [
        ("http://h/", "h", "h:80"),
        ("https://h:443/", "h", "h:443"),
        ("https://h:80/", "h:80", "h:80"),
        ("http://[::1]/", "[::1]", "[::1]:80"),
        ("http://[::1]:8080/", "[::1]:8080", "[::1]:8080"),
        ("http://u:secret@h:9/", "h:9", "h:9"),
    ],
)
def test_the_names_of_a_host(url, origin, address):
    """In the `host` header without the usual port, in messages with it."""
    assert (parse_url(url).origin, parse_url(url).address) == (origin, address)


REFUSED = [
    "", "x", "/v1", "ftp://h/", "https:/h", "https:h", "//h/x", "http://", "http:///x", "http://:80/",
    "http://user@/", "http://h:99999/", "http://h:-1/", "http://h:x/", "http://h: 80/", "http://h:٨/",
    "http://a b/", "http://a%20b/", "http://h\\x/", "http://h<x/", "http://h\x00/", "http://h\x7f/",
    "http://[::g]/", "http://[::1", "http://[fe80::1%25eth0]/", "http://h\u2028/", "http://a℀b/",
    "http://h\ud800/", "http://h/\ud800", "http://h/?\ud800", "http://u\ud800@h/", "http\u017f://h/",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_url(text):
    """It is a ConfigurationError, which shows nothing of it but the host."""
    with pytest.raises(ConfigurationError, match="The request URL is invalid") as caught:
        parse_url(text)
    assert "user" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "pair"),
    [
        ("http://u:p@h/", b"u:p"),
        ("http://u@h/", b"u:"),
        ("http://:p@h/", b":p"),
        ("http://a%40b:c%3Ad%25@h/", b"a@b:c:d%"),
        ("http://ü:ß@h/", "ü:ß".encode()),
        ("http://u%0d%0ax:y@h/", b"u\r\nx:y"),
        ("http://@h/", None),
    ],
)
def test_a_user_name_in_a_url(url, pair):
    """It becomes basic authentication, in which no byte can end the header."""
    found = parse_url(url).authorization
    assert (found and b64decode(found.removeprefix("Basic "))) == pair


_ANY_URLS = st.one_of(
    st.text(max_size=40),
    st.text(max_size=30).map("http://h/{}".format),
    st.text(max_size=30).map("http://{}/x".format),
    st.text("ab.:@/?#[]%\\ \r\n\t\x00é。\ud800", max_size=30).map("https://{}".format),
)


@settings(max_examples=examples(2000))
@given(text=_ANY_URLS)
def test_no_url_adds_to_a_request(text):
    """Whatever it is: it is refused, or its request has one line, its own headers, and no more."""
    try:
        target = find_target(text, None)
    except ConfigurationError:
        return
    request = HttpRequest(url=text, headers={"x-key": "a"})
    written = _write_head(request, target).split(b"\r\n")

    assert re.fullmatch(rb"POST /[!-~]* HTTP/1\.1", written[0])
    assert re.fullmatch(rb"host: [!-~]+", written[1])
    assert [line.partition(b":")[0] for line in written[1:]] == [
        *(name.encode() for name in target.headers),
        b"x-key",
        b"content-length",
        b"",
        b"",
    ]


_LABELS = st.text("abcxyz0129", min_size=1, max_size=8)
_WORDS = st.text("abcXYZ012-_~!$&'()*+,;=:@/ äß日%", max_size=15)


@settings(max_examples=examples(500))
@given(
    scheme=st.sampled_from(["http", "https"]),
    labels=st.lists(_LABELS, min_size=1, max_size=3),
    port=st.none() | st.integers(1, 65535),
    path=_WORDS,
    query=st.none() | _WORDS,
)
def test_httpx2_takes_a_url_apart_in_the_same_way(scheme, labels, port, path, query):
    """Host, port, path and query of URLs that both accept."""
    host = ".".join(["x", *labels, "example"])
    text = f"{scheme}://{host}" + (f":{port}" if port else "") + f"/{path}"
    text += "" if query is None else f"?{query}"
    ours, theirs = parse_url(text), httpx2.URL(text)

    assert ours.host == theirs.host
    assert ours.port == (theirs.port or {"http": 80, "https": 443}[scheme])
    assert unquote(ours.target).rstrip("?") == unquote(theirs.raw_path.decode()).rstrip("?")


# Names.


def answers(*found):
    """A look-up that finds these addresses, and counts how often it was asked."""
    asked = []

    async def getaddrinfo(host, port, **_):
        asked.append(host)
        await asyncio.sleep(1)
        for each in found:
            if isinstance(each, Exception):
                raise each
        families = {True: socket.AF_INET6, False: socket.AF_INET}
        return [(families[":" in ip], socket.SOCK_STREAM, 6, "", (ip, port)) for ip in found]

    asyncio.get_running_loop().getaddrinfo = getaddrinfo
    return asked


def test_families_take_turns():
    """In the order of the system, but the first of the other family is second (RFC 8305)."""

    async def work():
        answers("::1", "::2", "::3", "1.1.1.1", "1.1.1.2")
        return [where[0] for _, where in await resolve("h", 1)]

    assert virtual_time.run(work()) == ["::1", "1.1.1.1", "::2", "1.1.1.2", "::3"]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_address_is_not_looked_up(host):
    """It is its own address."""

    async def work():
        asked = answers()
        found = await resolve(host, 5)
        return asked, [where[:2] for _, where in found]

    assert virtual_time.run(work()) == ([], [(host, 5)])


def test_look_ups_are_shared_and_kept_for_a_while():
    """Calls at the same time share one; ten seconds later it is asked again."""

    async def work():
        asked, resolver = answers("1.1.1.1"), Resolver()
        found = await asyncio.gather(*(resolver.resolve("h", 1) for _ in range(50)))
        assert len(asked) == 1
        assert all(each == found[0] for each in found)
        await resolver.resolve("h", 2)
        await resolver.resolve("i", 1)
        assert asked == ["h", "h", "i"]
        resolver.forget("h", 1)
        await resolver.resolve("h", 1)
        assert asked == ["h", "h", "i", "h"]

    virtual_time.run(work())


def test_a_look_up_that_is_too_old_is_made_again(monkeypatch):
    """After ten seconds."""
    clock = 1000.0
    monkeypatch.setattr(addresses, "monotonic", lambda: clock)

    async def work():
        nonlocal clock
        asked, resolver = answers("1.1.1.1"), Resolver()
        for seconds in (0, 9, 2):
            clock += seconds
            await resolver.resolve("h", 1)
        return len(asked)

    assert virtual_time.run(work()) == 2


def test_a_failed_look_up_is_shared_and_not_kept():
    """Those that waited for it get the error; later calls ask again."""

    async def work():
        asked, resolver = answers(socket.gaierror(-2, "unknown")), Resolver()

        async def fail():
            with pytest.raises(socket.gaierror, match="unknown") as caught:
                await resolver.resolve("h", 1)
            resolver.forget("h", 1)
            return caught.value

        errors = await asyncio.gather(*(fail() for _ in range(20)))
        assert len(asked) == 1
        assert len({id(error) for error in errors}) == 20
        await fail()
        assert len(asked) == 2

    virtual_time.run(work())


def test_a_cancelled_look_up_does_not_hold_up_others():
    """The next that waits makes it."""

    async def work():
        asked, resolver = answers("1.1.1.1"), Resolver()
        first, second = (asyncio.ensure_future(resolver.resolve("h", 1)) for _ in range(2))
        await asyncio.sleep(0.5)
        first.cancel()
        assert [where[0] for _, where in await second] == ["1.1.1.1"]
        assert len(asked) == 2

    virtual_time.run(work())


def test_look_ups_do_not_fill_the_memory():
    """Neither those that succeed nor those that fail."""

    async def work():
        answers(socket.gaierror(-2, "unknown"))
        resolver = Resolver()
        for number in range(600):
            with pytest.raises(socket.gaierror):
                await resolver.resolve(f"h{number}", 1)
        yet = max(len(each) for each in vars(resolver).values())
        answers("1.1.1.1")
        for number in range(600):
            await resolver.resolve(f"h{number}", 1)
        return yet, max(len(each) for each in vars(resolver).values())

    assert max(virtual_time.run(work())) <= 256


@pytest.mark.parametrize("host", ["..", "h..x", "a" * 64 + ".example"])
def test_what_cannot_be_a_name(host):
    """The error says so, and a retry does not help."""

    async def work(transport):
        with pytest.raises(NetworkError, match="It is not a valid name") as caught:
            await read(transport, call(f"http://{host}/v1"))
        return caught.value

    assert not run(work).retryable


def test_a_failed_connection_is_looked_up_again(monkeypatch):
    """The host may have moved, whether it refused or did not answer in time."""
    forgotten = []
    monkeypatch.setattr(Resolver, "forget", lambda _, *peer: forgotten.append(peer))
    port = free_port()

    async def work(transport):
        with pytest.raises(NetworkError):
            await read(transport, call(f"http://127.0.0.1:{port}/"))
        with pytest.raises(RequestTimeoutError):
            await read(transport, call(f"https://127.0.0.1:{deaf.port}/"))

    async def silent(connection):
        await connection.gone()

    with Server(silent) as deaf:
        run(work, timeouts=Timeouts(connect=0.1))

    assert forgotten == [("127.0.0.1", port), ("127.0.0.1", deaf.port)]


# Sockets.


class Network:
    """Addresses that answer, refuse or stay silent, after so many seconds."""

    def __init__(self, **behaviours):
        self.behaviours = {f"10.0.0.{name[1:]}": each for name, each in behaviours.items()}
        self.begun = {}
        self.sockets = {}

    @property
    def addresses(self):
        return [(socket.AF_INET, (ip, 1)) for ip in self.behaviours]

    async def connect(self):
        """The number of the address that won, and when."""
        loop = asyncio.get_running_loop()
        began = loop.time()

        async def sock_connect(sock, where):
            self.begun[where[0]] = loop.time() - began
            self.sockets[where[0]] = sock
            seconds, error = self.behaviours[where[0]]
            await asyncio.sleep(seconds)
            if error is not None:
                raise error

        loop.sock_connect = sock_connect
        with await connect(self.addresses) as won:
            (winner,) = [ip for ip, sock in self.sockets.items() if sock is won]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert [ip for ip, sock in self.sockets.items() if sock.fileno() != -1] == [winner]
        return int(winner.rpartition(".")[2]), loop.time() - began


REFUSED_AT_ONCE = (0, ConnectionRefusedError(111, "refused"))
SILENT = (1e6, None)


@pytest.mark.parametrize(
    ("network", "winner", "seconds", "begun"),
    [
        (Network(a1=(0.1, None)), 1, 0.1, [0]),
        (Network(a1=(0.1, None), a2=(0, None)), 1, 0.1, [0]),
        (Network(a1=SILENT, a2=(0.1, None)), 2, 0.35, [0, 0.25]),
        (Network(a1=REFUSED_AT_ONCE, a2=(0.1, None)), 2, 0.1, [0, 0]),
        (Network(a1=(0.1, OSError(5, "x")), a2=(0.1, None)), 2, 0.2, [0, 0.1]),
        (Network(a1=SILENT, a2=REFUSED_AT_ONCE, a3=(0, None)), 3, 0.25, [0, 0.25, 0.25]),
        (Network(a1=SILENT, a2=SILENT, a3=SILENT, a4=(0, None)), 4, 0.75, [0, 0.25, 0.5, 0.75]),
        (Network(a1=(0.3, None), a2=(0.2, None)), 1, 0.3, [0, 0.25]),
        (Network(a1=(0.5, None), a2=(0.2, None)), 2, 0.45, [0, 0.25]),
        (Network(a1=(9, None), a2=REFUSED_AT_ONCE), 1, 9, [0, 0.25]),
    ],
)
def test_the_first_address_that_answers_is_used(network, winner, seconds, begun):
    """The next is tried after a failure, or after a quarter of a second; losers are closed."""
    got, after = virtual_time.run(network.connect())

    assert got == winner
    assert after == pytest.approx(seconds)
    assert [*network.begun.values()] == pytest.approx(begun)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_addresses_that_answer_at_the_same_time(is_cancelled):
    """One is used and the other closed; both are, if the call is cancelled just then."""
    sockets = []

    async def work():
        answer = asyncio.Event()

        async def sock_connect(sock, _):
            sockets.append(sock)
            await answer.wait()

        asyncio.get_running_loop().sock_connect = sock_connect
        task = asyncio.ensure_future(connect([(socket.AF_INET, ("10.0.0.1", 1))] * 2))
        await asyncio.sleep(1)
        answer.set()
        if is_cancelled:
            task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0)
        assert task.cancelled() is is_cancelled
        return sum(sock.fileno() != -1 for sock in sockets)

    assert virtual_time.run(work()) == (not is_cancelled)
    for sock in sockets:
        sock.close()


def test_no_address_answers():
    """The error is the first that came; nothing stays open."""
    network = Network(a1=(0.1, OSError(101, "first")), a2=REFUSED_AT_ONCE, a3=(1, OSError(5, "x")))

    with pytest.raises(OSError, match="first"):
        virtual_time.run(network.connect())
    assert all(sock.fileno() == -1 for sock in network.sockets.values())


def test_a_host_without_an_address():
    """It is an error, not a wait."""
    with pytest.raises(OSError, match="no address"):
        virtual_time.run(connect([]))


def test_a_cancelled_connection_closes_all_sockets():
    """Those that were tried until then."""
    network = Network(a1=SILENT, a2=SILENT, a3=SILENT)

    async def work():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(network.connect(), 0.6)
        await asyncio.sleep(0)

    virtual_time.run(work())
    assert len(network.sockets) == 3
    assert all(sock.fileno() == -1 for sock in network.sockets.values())


class Full:
    """A port that lets no connection in, because those that wait are enough."""

    def __enter__(self):
        self._sockets = [socket.socket()]
        self._sockets[0].bind(("127.0.0.1", 0))
        self._sockets[0].listen(0)
        self.address = self._sockets[0].getsockname()
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(self.address)
            self._sockets.append(sock)
        return self

    def __exit__(self, *_):
        for sock in self._sockets:
            sock.close()


@every_loop
def test_a_dead_address_before_one_that_answers(loop):
    """With real sockets."""

    async def find(_host, _port):
        return [(socket.AF_INET, dead.address), *await resolve("127.0.0.1", server.port)]

    async def work(transport):
        pool = transport._pools.get(asyncio.get_running_loop())
        pool._resolve = find
        got = await asyncio.wait_for(read(transport, call("http://two.test/")), PATIENCE)
        return got[2]

    with Full() as dead, Server(answering(reply(b"alive"))) as server:
        assert run(work, loop=loop) == b"alive"


# Connections.


def test_a_connection_that_is_lost_at_once_is_an_error():
    """Nothing was sent, so it says that no connection was made."""

    class Loop(asyncio.SelectorEventLoop):
        async def create_connection(self, *args, **options):
            made = await super().create_connection(*args, **options)
            made[0].abort()
            await asyncio.sleep(0.01)
            return made

    async def work():
        target = find_target(server.url, None)
        with pytest.raises(NetworkError, match="Cannot connect to") as caught:
            await open_connection(target, resolve, ssl.create_default_context)
        return caught.value

    with Server(answering(reply())) as server, asyncio.Runner(loop_factory=Loop) as runner:
        error = runner.run(work())

    assert (error.phase, error.retryable) == ("connect", True)
