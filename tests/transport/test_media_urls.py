"""Fetching URLs, and protection against SSRF."""

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
from interlingua.transport import media
from interlingua.transport.media import MAX_REDIRECTS, Fetched, fetch, fetch_media
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
    """The bytes, the media type detected from them, and the file name."""
    told = reply(PDF, headers=("content-type: text/plain",))
    with Server(answering(told)) as server:
        got = get(server.url.replace("/x", "/paper.pdf?a=b"))

    assert got == (PDF, "application/pdf", "paper.pdf")
    (request,) = server.requests
    assert request.method == "GET"
    assert "authorization" not in request.headers
    assert "cookie" not in request.headers


def test_declared_media_type():
    """If neither bytes nor name show the type, the content-type header decides."""
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
def test_private_addresses_are_refused(url):
    """Private addresses are refused in every spelling."""
    with pytest.raises((ConfigurationError, NetworkError)):
        asyncio.run(fetch(url, seconds=5))


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}/", "http://localhost:{}/"])
def test_no_connection_to_private_addresses(url):
    """The URL is refused before a connection is opened, for addresses and for names."""
    refused = pytest.raises(ConfigurationError, match="is not a public address")
    with Server(answering(reply())) as server, refused:
        asyncio.run(fetch(url.format(server.port)))

    assert server.connections == []


@pytest.mark.parametrize(
    "url", ["", "file:///etc/passwd", "ftp://a/b", "//a/b", "/etc/passwd", "data:,x", "http://["]
)
def test_only_http(url):
    """Other schemes and invalid URLs are refused."""
    with pytest.raises(ConfigurationError):
        get(url)


def test_no_passwords():
    """A URL with a user name or password is refused; the error does not show them."""
    with pytest.raises(ConfigurationError) as caught:
        get("http://me:secret@127.0.0.1/")
    assert "secret" not in str(caught.value)


def test_redirects_are_followed():
    """Redirects to allowed addresses are followed, relative ones too."""

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
def test_redirects_are_checked(location):
    """The target of each redirect is checked."""
    with Server(answering(reply(b"secret"))) as inside:
        told = moved(location.format(inside.port))
        with Server(answering(told)) as server, pytest.raises(ConfigurationError):
            get(server.url)

    assert inside.connections == []


def test_redirect_loop():
    """A redirect loop, and a redirect without a location, are errors."""
    given_up = pytest.raises(ConfigurationError, match="redirects more than")
    with Server(answering(moved("/v1/x"))) as server, given_up:
        get(server.url)
    assert len(server.requests) == MAX_REDIRECTS + 1

    refused = pytest.raises(ConfigurationError, match="redirect without a location")
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
def test_refused_files(told, kind, retryable):
    """Missing file, busy server, compressed file, file over the limit."""
    with Server(answering(told)) as server, pytest.raises(kind) as caught:
        get(server.url, max_bytes=100)
    assert caught.value.retryable is retryable


def test_timeout():
    """One timeout covers all redirects and the body."""

    async def script(connection):
        await connection.read_request()

    with Server(script) as server:
        with pytest.raises(RequestTimeoutError):
            get(server.url, seconds=0.2)
        assert server.all_closed()


def test_connection_refused():
    """A refused connection is a network error."""
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


def test_one_failure():
    """If one file fails, the whole request fails with its error."""
    request = Request(messages=(Message.user([Document(url="http://127.0.0.1/x.pdf")]),))

    with pytest.raises(ConfigurationError, match="is not a public address"):
        asyncio.run(fetch_media(request, (Document,)))


@pytest.mark.parametrize("own", [RequestTimeoutError("late"), NetworkError("gone")])
def test_own_errors_are_not_translated(own, monkeypatch):
    """An SDKError is not translated, also if it is a TimeoutError or an OSError."""

    async def fail(*_):
        raise own

    monkeypatch.setattr("interlingua.transport.media._follow", fail)
    with pytest.raises(type(own)) as caught:
        get("http://127.0.0.1/")
    assert caught.value is own


def test_at_most_eight_urls_are_fetched_at_once(monkeypatch):
    """A request with many URLs does not open as many connections."""
    open_now, most = 0, 0

    async def slow(*_):
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.005)
        open_now -= 1
        return Fetched(PDF, "application/pdf", None)

    monkeypatch.setattr(media, "_follow", slow)
    parts = [Document(url=f"http://127.0.0.1/{number}.pdf") for number in range(30)]
    request = Request(model="m", messages=[Message.user(parts)])
    got = asyncio.run(fetch_media(request, (Document,), allowed=here))

    assert all(part.data == PDF for part in got.messages[0].content)
    assert most == media.MAX_FETCHES == 8


def test_all_fetched_files_together_have_a_limit():
    """Files below the limit of one file are refused together."""
    with Server(answering(reply(PDF))) as server:
        urls = [server.url.replace("/x", f"/{number}.pdf") for number in range(5)]
        request = Request(model="m", messages=[Message.user([Document(url=url) for url in urls])])
        with pytest.raises(ConfigurationError, match="larger than 20 bytes together"):
            asyncio.run(fetch_media(request, (Document,), allowed=here, max_total=20))
