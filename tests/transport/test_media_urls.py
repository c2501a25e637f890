"""Fetching what a URL shows, and not what it must not."""

import asyncio

import pytest

from interlingua.spec.content import Audio, Document, Image, Text, ToolResult
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    NetworkError,
    RequestTimeoutError,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.transport.media_urls import MAX_REDIRECTS, fetch, fetch_media
from support.servers import CHUNKED, Server, answering, free_port, piece, reply

PDF = b"%PDF-1.7 ..."


def here(address):
    """For these tests one address of this machine stands for the open internet."""
    return address == "127.0.0.1"


def get(url, **settings):
    return asyncio.run(fetch(url, **{"allowed": here, **settings}))


def moved(location, status="302 Found"):
    return reply(status=status, headers=(f"location: {location}",))


def test_a_file():
    """Its bytes, its type by its bytes, its name."""
    told = reply(PDF, headers=("content-type: text/plain",))
    with Server(answering(told)) as server:
        got = get(server.url.replace("/x", "/paper.pdf?a=b"))

    assert got == (PDF, "application/pdf", "paper.pdf")
    (request,) = server.requests
    assert request.method == "GET"
    assert "authorization" not in request.headers
    assert "cookie" not in request.headers


def test_the_type_it_is_said_to_have():
    """Where neither bytes nor name tell, the server is believed."""
    told = reply(b"plain", headers=("content-type: Text/Plain; charset=utf-8",))
    with Server(answering(told)) as server:
        assert get(server.url).media_type == "text/plain"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://0.0.0.0/",
        "http://169.254.169.254/latest/meta-data/", "http://10.1.2.3/", "http://192.168.0.1/",
        "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[fe80::1]/",
        "http://2130706433/", "http://127.1/", "http://0x7f.0.0.1/", "http://0177.0.0.1/",
        "http://localhost.localdomain/", "http://example.com@127.0.0.1/",
    ],
)  # fmt: skip
def test_inside_is_refused(url):
    """Nothing that leads inside is asked, however it is spelt."""
    with pytest.raises((ConfigurationError, NetworkError)):
        asyncio.run(fetch(url, seconds=5))


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}/", "http://localhost:{}/"])
def test_nothing_is_connected_to_inside(url):
    """The refusal comes before the connection, for addresses and for names."""
    refused = pytest.raises(ConfigurationError, match="not on the open internet")
    with Server(answering(reply())) as server, refused:
        asyncio.run(fetch(url.format(server.port)))

    assert server.connections == []


@pytest.mark.parametrize(
    "url", ["", "file:///etc/passwd", "ftp://a/b", "//a/b", "/etc/passwd", "data:,x", "http://["]
)
def test_only_the_web(url):
    """Other schemes, and what is no URL, are refused."""
    with pytest.raises(ConfigurationError):
        get(url)


def test_no_passwords():
    """A URL with a user or password in it is refused without saying them."""
    with pytest.raises(ConfigurationError) as caught:
        get("http://me:secret@127.0.0.1/")
    assert "secret" not in str(caught.value)


def test_redirects_are_followed():
    """To a place that is allowed, also one named relative to this."""

    async def script(connection):
        asked = await connection.read_request()
        away = moved(last.url, "308 Permanent Redirect")
        await connection.send(away if asked.target == "/next" else moved("/next"))

    with Server(answering(reply(PDF))) as last, Server(script) as first:
        assert get(first.url).data == PDF

    assert [request.target for request in first.requests] == ["/v1/x", "/next"]


@pytest.mark.parametrize(
    "location",
    ["http://127.0.0.2:{}/", "http://[::1]:{}/", "http://169.254.169.254/", "file:///etc/passwd"],
)
def test_a_redirect_is_looked_at_again(location):
    """The first host may be fine and the next one not."""
    with Server(answering(reply(b"secret"))) as inside:
        told = moved(location.format(inside.port))
        with Server(answering(told)) as server, pytest.raises(ConfigurationError):
            get(server.url)

    assert inside.connections == []


def test_redirects_without_end():
    """A loop is given up, and so is a redirect to nowhere."""
    given_up = pytest.raises(ConfigurationError, match="redirects more than")
    with Server(answering(moved("/v1/x"))) as server, given_up:
        get(server.url)
    assert len(server.requests) == MAX_REDIRECTS + 1

    refused = pytest.raises(ConfigurationError, match="nowhere")
    with Server(answering(reply(status="302 Found"))) as server, refused:
        get(server.url)


@pytest.mark.parametrize(
    ("told", "kind", "retryable"),
    [
        (reply(status="404 Not Found"), ConfigurationError, False),
        (reply(status="503 Busy"), NetworkError, True),
        (reply(status="429 Slow"), NetworkError, True),
        (reply(b"x", headers=("content-encoding: gzip",)), DecodeError, False),
        (reply(b"x" * 101), ConfigurationError, False),
        (CHUNKED + piece(b"x" * 101), ConfigurationError, False),
    ],
)
def test_what_cannot_be_had(told, kind, retryable):
    """No file, a busy server, a packed file, one that is too large."""
    with Server(answering(told)) as server, pytest.raises(kind) as caught:
        get(server.url, max_bytes=100)
    assert caught.value.retryable is retryable


def test_too_slow():
    """All of it has one clock."""

    async def script(connection):
        await connection.read_request()

    with Server(script) as server:
        with pytest.raises(RequestTimeoutError):
            get(server.url, seconds=0.2)
        assert server.all_closed()


def test_nobody_there():
    """No connection is a network error."""
    with pytest.raises(NetworkError):
        get(f"http://127.0.0.1:{free_port()}/")


def test_only_what_the_server_cannot_take_is_fetched():
    """Documents and sounds here, in tool results too; an image URL goes to the provider."""
    with Server(answering(reply(PDF))) as server:
        url = server.url.replace("/x", "/paper.pdf")
        inner = ToolResult(tool_call_id="c", content=(Document(url=url), Text(text="x")))
        image = Image(url="https://a.example/b.png")
        parts = (Document(url=url), image, Audio(data=b"x"), Document(url="data:,x"))
        request = Request(messages=(Message.user(parts), Message(role="tool", content=(inner,))))

        got = asyncio.run(fetch_media(request, (Audio, Document), allowed=here))
        same = asyncio.run(fetch_media(request, (), allowed=here))

    fetched = Document(data=PDF, media_type="application/pdf", file_name="paper.pdf")
    assert got.messages[0].content == (fetched, *parts[1:])
    assert got.messages[1].content[0].content == (fetched, Text(text="x"))
    assert same is request
    assert len(server.requests) == 1


def test_one_that_fails():
    """The error of a part is the error of all."""
    request = Request(messages=(Message.user([Document(url="http://127.0.0.1/x.pdf")]),))

    with pytest.raises(ConfigurationError, match="not on the open internet"):
        asyncio.run(fetch_media(request, (Document,)))


@pytest.mark.parametrize("own", [RequestTimeoutError("late"), NetworkError("gone")])
def test_an_error_of_ours_passes_as_it_is(own, monkeypatch):
    """Also one that is a TimeoutError or an OSError to Python."""

    async def fail(*_):
        raise own

    monkeypatch.setattr("interlingua.transport.media_urls._follow", fail)
    with pytest.raises(type(own)) as caught:
        get("http://127.0.0.1/")
    assert caught.value is own
