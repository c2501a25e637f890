"""Whatever goes wrong on the wire, on real sockets: the right error, told once, never a success."""

import asyncio
import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import (
    Simulator,
    cut,
    duplicate,
    error,
    error_event,
    latency,
    malformed,
    reset,
    serve_in_thread,
    stall,
    text,
)
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ContextLengthError,
    DecodeError,
    ErrorClass,
    InvalidRequestError,
    NetworkError,
    NotFoundError,
    ProviderTimeoutError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
    ServerError,
    StreamError,
)
from interlingua.spec.request import Request
from interlingua.transport.http1.transport import HttpTransport
from interlingua.transport.httpx2_transport import HttpxTransport
from support.http_calls import make_certificate, server_tls
from support.patience import with_some_timeout
from support.servers import Server, answering, free_port, reply
from support.simulated import DIALECTS, complete, simulated, stream

WORDS = "one two three four five six seven eight nine ten " * 12
SHORT = 1_000  # tokens: a longer answer may be streamed underneath
every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))


def failure_of(peer, request):
    """The error of a whole call."""
    with pytest.raises(SDKError) as caught:
        complete(peer, request)
    return caught.value


# What the provider says.

STATUSES = {
    401: (AuthenticationError, ErrorClass.AUTH, False),
    403: (AccessDeniedError, ErrorClass.AUTH, False),
    404: (NotFoundError, ErrorClass.INVALID_REQUEST, False),
    408: (ProviderTimeoutError, ErrorClass.NETWORK, True),
    # retryable, as the vendors' own clients have it
    409: (InvalidRequestError, ErrorClass.INVALID_REQUEST, True),
    413: (ContextLengthError, ErrorClass.CONTEXT_OVERFLOW, False),
    422: (InvalidRequestError, ErrorClass.INVALID_REQUEST, False),
    429: (RateLimitError, ErrorClass.RATE_LIMIT, True),
    500: (ServerError, ErrorClass.SERVER_ERROR, True),
    502: (ServerError, ErrorClass.SERVER_ERROR, True),
    503: (ServerError, ErrorClass.SERVER_ERROR, True),
    504: (ServerError, ErrorClass.SERVER_ERROR, True),
    529: (ServerError, ErrorClass.SERVER_ERROR, True),
}


@every_provider
@pytest.mark.parametrize("status", sorted(STATUSES))
def test_statuses(provider, status):
    """Each vendor's own body for each, whole and streamed; before the first event no events."""
    kind, error_class, retryable = STATUSES[status]
    with simulated(error(status)) as peer:
        whole = failure_of(peer, peer.ask(provider, request_id="r"))
        events, streamed = stream(peer, peer.ask(provider, request_id="r"))

    assert events == []
    for failure in (whole, streamed):
        assert (type(failure), failure.error_class) == (kind, error_class)
        assert (failure.status_code, failure.retryable) == (status, retryable)
        assert (failure.provider, failure.request_id) == (provider, "r")
        assert failure.partial is None
        assert failure.message


@every_provider
def test_a_wait_that_is_asked_for(provider):
    """`Retry-After` reaches the error."""
    with simulated(error(429, retry_after=7)) as peer:
        assert failure_of(peer, peer.ask(provider)).retry_after == 7


@every_provider
def test_an_error_event_after_a_200_has_its_true_class(provider):
    """The true class, after the text that had come, which it carries."""
    with simulated(text(WORDS) + error_event(529)) as peer:
        events, failure = stream(peer, peer.ask(provider))

    assert isinstance(failure, ServerError)
    told(events, failure, WORDS)


def told(events, failure, so_far):
    """Every segment is closed, then the error, then the end; the error has what had come."""
    assert [event.type for event in events[-2:]] == ["error", "finish"]
    assert events[-2].error is failure
    assert events[-1].finish_reason.reason == "error"
    assert failure.partial is events[-1].response is events[-2].response
    assert so_far.startswith(failure.partial.text)
    assert failure.partial.text
    begun = [
        event.id for event in events if event.type.endswith("_start") and hasattr(event, "index")
    ]
    ended = [event.id for event in events if event.type.endswith("_end")]
    assert sorted(begun) == sorted(ended)


# What the network does, through either transport.


TRANSPORTS = (HttpTransport, HttpxTransport)


@pytest.fixture(params=TRANSPORTS)
def transport(request):
    return request.param


def fails(base_url, **settings):
    """The errors of a whole call and of a stream."""
    found = []

    async def run():
        adapter = HttpAdapter("openai", "k", base_url=base_url, **settings)
        async with Client({"openai": adapter}) as client:
            request = Request(model="openai:m", messages="hi", request_id="r")
            try:
                await client.complete(request)
            except SDKError as failure:
                found.append(failure)
            try:
                async for _ in client.stream(request):
                    raise AssertionError("an event came")
            except SDKError as failure:
                found.append(failure)

    asyncio.run(run())
    return found


@pytest.mark.parametrize(
    ("base_url", "retryable"),
    [
        ("http://127.0.0.1:{port}/v1", True),  # refused
        ("http://no-such-host.invalid/v1", True),  # no such name
    ],
)
def test_no_connection(transport, base_url, retryable):
    """Refused, or a name nobody has."""
    failures = fails(base_url.format(port=free_port()), transport=transport())

    assert len(failures) == 2
    for failure in failures:
        assert isinstance(failure, NetworkError)
        assert (failure.retryable, failure.request_id) == (retryable, "r")


def test_tls_that_fails(transport, tmp_path):
    """A certificate nobody vouches for, and a server that speaks none."""
    path = tmp_path / "both.pem"
    make_certificate(path)
    context = server_tls(path)
    with serve_in_thread(Simulator(text("hi")), tls=context) as server:
        untrusted = fails(server.url, transport=transport())
    with serve_in_thread(Simulator(text("hi"))) as server:
        plain = fails(server.url.replace("http:", "https:"), transport=transport())

    for failure in (*untrusted, *plain):
        assert isinstance(failure, NetworkError)
        assert not failure.retryable


@every_provider
@pytest.mark.parametrize("fault", [reset(), cut()], ids=["reset", "closed"])
def test_gone_before_the_head(transport, provider, fault):
    """A network error that may be tried again."""
    with simulated(text(WORDS) + fault, transport=transport()) as peer:
        whole = failure_of(peer, peer.ask(provider))
        events, streamed = stream(peer, peer.ask(provider))

    assert events == []
    for failure in (whole, streamed):
        assert isinstance(failure, NetworkError)
        assert failure.retryable


@every_provider
@pytest.mark.parametrize("make", [reset, cut, lambda at: cut(at, clean=True)])
def test_gone_in_the_middle(transport, provider, make):
    """Of a whole body and of a stream, however it ends: never a short success."""
    with simulated(text(WORDS) + make(40), transport=transport()) as peer:
        whole = failure_of(peer, peer.ask(provider, max_tokens=SHORT))
    with simulated(text(WORDS) + make(5_000), transport=transport()) as peer:
        events, streamed = stream(peer, peer.ask(provider))

    assert isinstance(whole, (NetworkError, DecodeError))
    assert isinstance(streamed, StreamError)
    assert streamed.retryable
    told(events, streamed, WORDS)


def at_once(work, items):
    """Do what waits most of the time for all items at once, each in a thread of its own."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(work, items))


def test_silence(transport):
    """Before the first byte, and in the middle: two clocks, two phases, not retried unasked."""
    at_once(lambda provider: check_silence(transport, provider), sorted(DIALECTS))


def check_silence(transport, provider):
    clocks = Timeouts(first_byte=0.1)
    with simulated(text(WORDS) + stall(), timeout=clocks, transport=transport()) as peer:
        whole = failure_of(peer, peer.ask(provider))
        events, early = stream(peer, peer.ask(provider))

    assert events == []
    for failure in (whole, early):
        assert isinstance(failure, RequestTimeoutError)
        assert (failure.phase, failure.retryable) == ("first_byte", False)
    with_some_timeout(lambda seconds: check_late_silence(transport, provider, seconds))


def check_late_silence(transport, provider, seconds):
    clocks = Timeouts(stream_read=seconds)  # in which the beginning comes
    with simulated(text(WORDS) + stall(5_000), timeout=clocks, transport=transport()) as peer:
        events, late = stream(peer, peer.ask(provider))

    assert isinstance(late, RequestTimeoutError)
    assert (late.phase, late.retryable) == ("stream_read", False)
    told(events, late, WORDS)


def test_a_slow_stream_is_not_a_silent_one():
    """Each piece winds the clock anew (field bug 78)."""
    at_once(check_slow_stream, TRANSPORTS)


def check_slow_stream(transport):
    with_some_timeout(lambda seconds: check_slow_pieces(transport, seconds), first=1.0)


def check_slow_pieces(transport, silence):
    slow = text("one two three") + latency(between=silence / 20, write_bytes=100)
    with simulated(slow, timeout=Timeouts(stream_read=silence), transport=transport()) as peer:
        events, failure = stream(peer, peer.ask("openai"))
        (exchange,) = peer.app.script.received

    assert failure is None
    assert events[-1].response.text == "one two three"
    assert exchange.sent_bytes / 100 > 20  # longer in all than any silence may be


def test_a_slow_head_and_body(transport):
    """A server that feeds a whole answer byte by byte runs into the clock of the exchange."""
    loris = text(WORDS) + latency(between=0.05, write_bytes=1)
    with simulated(loris, timeout=0.3, transport=transport()) as peer:
        failure = failure_of(peer, peer.ask("anthropic", max_tokens=SHORT))

    assert isinstance(failure, RequestTimeoutError)
    assert failure.phase == "request"


@every_provider
def test_a_body_that_is_too_large(transport, provider):
    """It is not read to its end."""
    with serve_in_thread(Simulator(text("x" * 200_000))) as server:
        base = f"{server.url}/v1" if provider == "openai_compatible" else server.url
        small = transport(limits=Limits(body=10_000))
        adapter = HttpAdapter(provider, "k", base_url=base, transport=small)

        async def run():
            try:
                await adapter.complete(Request(model="m", messages="hi"))
            finally:
                await adapter.close()

        with pytest.raises(DecodeError, match="larger than 10000 bytes"):
            asyncio.run(run())


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_a_stream_that_is_answered_whole_is_no_way_around_the_limit(transport, packed):
    """JSON instead of events: read as it comes, and no further than a whole body."""
    body = json.dumps({"id": "1", "choices": [], "pad": "x" * 200_000}).encode()
    headers = ["content-type: application/json"]
    if packed:
        body = gzip.compress(body)
        headers.append("content-encoding: gzip")
    with Server(answering(reply(body, headers=headers))) as server:
        small = transport(limits=Limits(body=10_000))
        adapter = HttpAdapter("openai_compatible", "k", base_url=server.url, transport=small)

        async def run():
            try:
                async for _ in adapter.stream(Request(model="m", messages="hi")):
                    raise AssertionError("an event came")
            finally:
                await adapter.close()

        with pytest.raises(DecodeError, match=r"larger than 10000") as caught:
            asyncio.run(run())
        assert not caught.value.retryable
        assert server.all_closed()


def test_a_refusal_before_all_was_read(transport):
    """The server's own error, not a connection that was lost while the rest was sent."""

    async def refuse(connection):
        await connection.reader.readuntil(b"\r\n\r\n")
        body = b'{"error": {"message": "too big"}}'
        connection.writer.transport.pause_reading()  # what is left is never read
        await connection.send(reply(body, status="413 Too Large", headers=["connection: close"]))

    with Server(refuse) as server:
        adapter = HttpAdapter("openai_compatible", "k", base_url=server.url, transport=transport())

        async def run():
            try:
                await adapter.complete(Request(model="m", messages="x" * 30_000_000))
            finally:
                await adapter.close()

        with pytest.raises(ContextLengthError, match="HTTP 413: too big") as caught:
            asyncio.run(run())
    assert not caught.value.retryable


def test_a_redirect(transport):
    """Final; where to is said, and nothing was sent there."""
    with Server(answering(reply())) as other:
        moved = reply(status="307 Temporary Redirect", headers=[f"location: {other.url}"])
        with Server(answering(moved)) as server:
            failures = fails(server.url, transport=transport())
    for failure in failures:
        assert isinstance(failure, InvalidRequestError)
        assert (failure.status_code, failure.retryable) == (307, False)
        assert f"127.0.0.1:{other.port}" in failure.message
    assert (len(failures), other.requests) == (2, [])


@every_provider
def test_nonsense(transport, provider):
    """A body that is not JSON, and an event that is not."""
    with simulated(text(WORDS) + malformed(), transport=transport()) as peer:
        whole = failure_of(peer, peer.ask(provider, max_tokens=SHORT))
    with simulated(text(WORDS) + malformed(3), transport=transport()) as peer:
        _, streamed = stream(peer, peer.ask(provider))

    assert isinstance(whole, DecodeError)
    assert isinstance(streamed, (DecodeError, StreamError))
    assert (whole.request_id is None, streamed.request_id is None) == (False, False)


@every_provider
def test_an_event_that_comes_twice(transport, provider):
    """Either it does no harm, or it is an error: it is never an ill-formed stream."""
    for at in range(4):
        with simulated(text(WORDS) + duplicate(at), transport=transport()) as peer:
            events, failure = stream(peer, peer.ask(provider))
        assert failure is None or isinstance(failure, StreamError)
        assert events[-1].type == "finish"


@every_provider
@pytest.mark.usefixtures("no_backoff")
def test_a_stream_is_tried_again_only_before_its_first_event(transport, provider):
    """The server counts."""
    with simulated(
        reset(), error(503, retry_after=0), text(WORDS), max_retries=3, transport=transport()
    ) as peer:
        events, failure = stream(peer, peer.ask(provider))
        assert len(peer.app.script.received) == 3
    assert failure is None
    assert events[-1].response.text == WORDS
    with simulated(text(WORDS) + error_event(503), max_retries=3, transport=transport()) as peer:
        _, failure = stream(peer, peer.ask(provider))
        assert len(peer.app.script.received) == 1
    assert failure.partial.text
