"""One connection without a socket: what arrives is read the same however it is cut."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.transport.http1.connection import (
    HIGH_WATER,
    MAX_HEAD,
    InvalidReplyError,
    Reply,
)
from support.http1_connection import Talk, drain
from support.http1_replies import cuts, pieces_at, replies
from support.patterns import LINEAR, growth
from support.run_profile import examples

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
EMPTY = OK + b"content-length: 0\r\n\r\n"


def hear(wire, method="POST"):
    """The talk and the reply after these bytes have arrived at once."""
    talk = Talk()
    reply = talk.ask(method)
    talk.hear(wire)
    return talk, reply


@settings(max_examples=examples(400))
@given(data=st.data())
def test_however_the_bytes_are_cut_the_reply_is_the_same(data):
    """Status, headers, body, end and whether the connection is free, for replies in a row."""
    talk = Talk()
    for _ in range(3):
        written = data.draw(replies())
        reply = talk.ask(written.method)
        body = b""
        for piece in data.draw(cuts(written.wire)):
            talk.hear(piece)
            body += reply.take()
        if written.is_until_close:
            assert not reply.is_complete
            talk.end()

        assert reply.is_complete
        assert reply.error is None
        assert reply.connection is None
        assert (reply.status, dict(reply.headers)) == (written.status, written.headers)
        assert body + drain(reply) == written.body
        assert talk.can_serve is written.is_reusable
        if not written.is_reusable:
            assert talk.wire.is_closed
            return


@settings(max_examples=examples(400))
@given(data=st.data())
def test_a_reply_that_is_cut_short_is_an_error(data):
    """After what came before it; only a body until the close may end anywhere."""
    written = data.draw(replies().filter(lambda each: each.wire))
    end = data.draw(st.integers(0, len(written.wire) - 1))
    talk = Talk()
    reply = talk.ask(written.method)
    talk.hear(*data.draw(cuts(written.wire[:end])) if end else ())
    talk.end()
    body = drain(reply)

    assert written.body.startswith(body)
    assert talk.owner.released == [False]
    assert talk.owner.forgotten == 1
    if end >= written.size_of_head and written.is_until_close:
        assert reply.is_complete
        assert body == written.wire[written.size_of_head : end]
    else:
        assert not reply.is_complete
        assert isinstance(reply.error, EOFError)
        with pytest.raises(EOFError):
            reply.take()


@settings(max_examples=examples(200))
@given(data=st.data())
def test_what_nobody_asked_for_is_not_delivered(data):
    """Bytes after a reply end the connection, whether they come with it or later."""
    written = data.draw(replies(method="POST", ends=("length", "chunked")))
    extra = data.draw(replies(method="POST").map(lambda each: each.wire) | st.just(b"x"))
    wire = written.wire + extra[: data.draw(st.integers(1, len(extra)))]
    talk = Talk()
    reply = talk.ask()
    talk.hear(*data.draw(cuts(wire)))

    assert reply.is_complete
    assert reply.error is None
    assert (reply.status, dict(reply.headers)) == (written.status, written.headers)
    assert drain(reply) == written.body
    assert not talk.can_serve
    assert talk.wire.is_closed


def test_line_breaks_after_a_reply_do_no_harm():
    """Old servers send one; a parser skips it, in the same bytes or before the next reply."""
    talk, first = hear(OK + b"content-length: 2\r\n\r\nok\r\n")
    assert first.is_complete
    assert talk.can_serve
    second = talk.ask()
    talk.hear(b"\r\n", OK + b"content-length: 3\r\n\r\nyes")

    assert drain(second) == b"yes"
    assert talk.can_serve


def test_blanks_around_a_value_are_not_part_of_it():
    """RFC 9112, section 5.1."""
    _, reply = hear(OK + b"a:  1 \t\r\nb:\t\r\nc:\r\nd: e f \r\ncontent-length: 0 \r\n\r\n")

    assert reply.headers == {"a": "1", "b": "", "c": "", "d": "e f", "content-length": "0"}


@pytest.mark.parametrize("chunk", [b"1 ;a=b\r\nx\r\n", b"1\t\r\nx\r\n"])
def test_blanks_before_an_extension(chunk):
    """Old servers write them; they do not change where a chunk ends."""
    talk, reply = hear(CHUNKED + chunk + b"0\r\n\r\n")

    assert drain(reply) == b"x"
    assert talk.can_serve


def test_trailers_are_not_headers_of_the_next_reply():
    """They are skipped, also one without a value."""
    talk, first = hear(CHUNKED + b"1\r\na\r\n0\r\nx-last: 1\r\nx-empty:\r\n\r\n")
    second = talk.ask()
    talk.hear(EMPTY)

    assert "x-last" not in first.headers
    assert second.headers == {"content-length": "0"}


def test_headers_of_a_response_before_the_reply_are_skipped():
    """So is its status; a length in it means nothing."""
    early = b"HTTP/1.1 103 Early\r\nlink: </a>\r\ncontent-length: 5\r\n\r\n"
    _, reply = hear(early + EMPTY)

    assert (reply.status, reply.headers) == (200, {"content-length": "0"})


REFUSED = {
    "length and chunks": OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\nabcde",
    "chunks and length": OK + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\nabcde",
    "two lengths": OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
    "the same length twice": OK + b"content-length: 1\r\ncontent-length: 1\r\n\r\na",
    "a list of lengths": OK + b"content-length: 1, 1\r\n\r\na",
    "a length with a sign": OK + b"content-length: +1\r\n\r\na",
    "a negative length": OK + b"content-length: -1\r\n\r\na",
    "an empty length": OK + b"content-length:\r\n\r\na",
    "a length of 30 digits": OK + b"content-length: " + b"9" * 30 + b"\r\n\r\na",
    "a length in hexadecimal": OK + b"content-length: 0x1\r\n\r\na",
    "a coding that was not accepted": OK + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks that are not the last coding": OK + b"transfer-encoding: chunked, gzip\r\n\r\nabc",
    "a coding that is like chunked": OK + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding with a parameter": OK + b"transfer-encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
    "a coding named twice": CHUNKED[:-2] + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "an empty coding": OK + b"transfer-encoding:\r\n\r\nabc",
    "a chunk without a size": CHUNKED + b"\r\na\r\n",
    "a chunk of no hexadecimal size": CHUNKED + b"g\r\na\r\n",
    "a chunk of a negative size": CHUNKED + b"-1\r\na\r\n",
    "a chunk with a prefix": CHUNKED + b"0x1\r\na\r\n",
    "a chunk of a huge size": CHUNKED + b"f" * 17 + b"\r\na\r\n",
    "a chunk that is longer than its size": CHUNKED + b"1\r\nab\r\n0\r\n\r\n",
    "a null byte in a value": OK + b"a: b\0c\r\n\r\n",
    "a null byte in a name": OK + b"a\0b: c\r\n\r\n",
    "a bare line feed in a name": OK + b"a\nb: c\r\n\r\n",
    "a bare carriage return in a value": OK + b"a: b\rc\r\n\r\n",
    "a control character in a value": OK + b"a: b\x01c\r\n\r\n",
    "a blank before a colon": OK + b"content-length : 5\r\n\r\nabcde",
    "a header without a name": OK + b": a\r\n\r\n",
    "a header without a colon": OK + b"abc\r\n\r\n",
    "a folded header": OK + b"a: b\r\n c\r\n\r\n",
    "an upgrade": b"HTTP/1.1 101 Up\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\nabc",
    "an upgrade without headers": b"HTTP/1.1 101 Up\r\n\r\n" + EMPTY,
    "a body before the reply": b"HTTP/1.1 104 X\r\ncontent-length: 3\r\n\r\nabc" + EMPTY,
    "chunks before the reply": (
        b"HTTP/1.1 104 X\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" + EMPTY
    ),
    "status 000": b"HTTP/1.1 000 X\r\ncontent-length: 0\r\n\r\n" + EMPTY,
    "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "a TLS alert": b"\x15\x03\x01\x00\x02\x02\x28",
    "a request": b"GET / HTTP/1.1\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("wire", REFUSED.values(), ids=REFUSED)
def test_what_has_no_clear_end_is_refused(wire):
    """However it is cut, it is an error and never a success, and the connection is closed."""
    each = [wire[at : at + 1] for at in range(len(wire))]
    for pieces in ([wire], each, *(pieces_at(wire, [at]) for at in range(1, len(wire)))):
        talk = Talk()
        reply = talk.ask()
        talk.hear(*pieces)

        assert isinstance(reply.error, InvalidReplyError)
        assert not reply.is_complete
        assert talk.wire.is_aborted
        assert talk.owner.released == [False]
        assert reply.connection is None


@pytest.mark.parametrize("wire", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_is_refused_after_a_reply(wire):
    """The same, on a connection that has served a request."""
    talk, first = hear(EMPTY)
    assert first.is_complete
    reply = talk.ask()
    talk.hear(wire)

    assert isinstance(reply.error, InvalidReplyError)
    assert talk.owner.released == [True, False]


ENDLESS = {
    "headers": (OK, b"a: b\r\n"),
    "headers without values": (OK, b"a:\n"),
    "one name": (OK, b"a"),
    "one value": (OK + b"a: ", b"b"),
    "a reason": (b"HTTP/1.1 200 ", b"b"),
    "empty lines": (b"", b"\r\n"),
    "early responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "trailers": (CHUNKED + b"1\r\na\r\n0\r\n", b"a: b\r\n"),
    "one trailer": (CHUNKED + b"1\r\na\r\n0\r\na: ", b"b"),
    "an extension": (CHUNKED + b"1;", b"a"),
    "zeros before a size": (CHUNKED, b"0"),
    "blanks after a size": (CHUNKED + b"1", b" "),
}


@pytest.mark.parametrize("size", [1000, 262_144])
@pytest.mark.parametrize(("begin", "unit"), ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends_is_refused(begin, unit, size):
    """After 64 KiB without a body, and one more segment; nothing of it is kept."""
    talk = Talk()
    reply = talk.ask()
    talk.hear(begin)
    sent, segment = 0, unit * (size // len(unit))
    while reply.error is None:
        assert sent <= MAX_HEAD + len(segment)
        talk.hear(segment)
        sent += len(segment)

    assert isinstance(reply.error, InvalidReplyError)
    assert talk.wire.is_aborted
    assert len(drain(reply)) <= 1


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 100 Continue\r\n\r\n"])
@pytest.mark.parametrize("size", [MAX_HEAD, MAX_HEAD + 1])
def test_the_limit_of_a_head_does_not_depend_on_how_it_is_cut(before, size):
    """A head of 64 KiB is read and one byte more is refused."""
    begin, end = before + OK + b"a: ", b"\r\ncontent-length: 100000\r\n\r\n"
    head = begin + b"b" * (size - len(begin) - len(end)) + end
    wire = head + b"x" * 100_000
    ways = [
        [wire],
        [head, wire[size:]],
        [wire[:-1], wire[-1:]],
        [wire[at : at + 1000] for at in range(0, len(wire), 1000)],
        pieces_at(wire, [MAX_HEAD - 1]),
        pieces_at(wire, [MAX_HEAD]),
        pieces_at(wire, [10, MAX_HEAD]),
    ]
    for pieces in ways:
        talk = Talk()
        reply = talk.ask()
        talk.hear(*pieces)

        assert reply.is_complete is (size == MAX_HEAD)
        assert (reply.error is None) is (size == MAX_HEAD)
        assert bool(reply.status) is (size == MAX_HEAD)


@pytest.mark.parametrize("begin", [OK, CHUNKED + b"0\r\n"], ids=["headers", "trailers"])
def test_repeated_headers_take_linear_time(begin):
    """Thousands of one name are joined at once, not one by one."""
    assert growth(hear, lambda size: begin + b"a:\n" * size + b"\n") < LINEAR


def test_a_reader_holds_the_server_back():
    """Reading stops above 256 KiB that nobody has taken, and goes on when they are taken."""
    talk, reply = hear(OK + b"content-length: 10000000\r\n\r\n")
    piece = b"x" * 60_000
    while not talk.wire.is_paused:
        talk.hear(piece)
    assert HIGH_WATER < reply.size <= HIGH_WATER + len(piece)
    assert len(reply.take()) > HIGH_WATER
    assert not talk.wire.is_paused
    assert reply.size == 0
    talk.hear(piece)
    assert not talk.wire.is_paused


def test_a_reply_that_ends_while_it_is_held_back_frees_its_connection():
    """TLS may deliver the end after reading was stopped."""
    talk, reply = hear(OK + b"content-length: 300000\r\n\r\n" + b"x" * 299_999)
    assert talk.wire.is_paused
    talk.hear(b"x")

    assert not talk.wire.is_paused
    assert talk.can_serve
    assert len(drain(reply)) == 300_000
    assert not talk.wire.is_paused


def test_the_writer_waits_while_the_peer_does_not_read():
    """`drain` returns when the peer has read on, or the connection is lost."""

    async def main():
        for end in (Talk.lose, lambda talk: talk.connection.resume_writing()):
            talk = Talk(asyncio.get_running_loop())
            talk.ask()
            await talk.connection.drain()
            talk.connection.pause_writing()
            waiting = asyncio.ensure_future(talk.connection.drain())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not waiting.done()
            end(talk)
            await waiting
            await talk.connection.drain()

    asyncio.run(main())


def test_nothing_is_written_to_a_lost_connection():
    """The reader of the reply gets the error."""
    talk = Talk()
    reply = talk.ask(data=b"head")
    talk.lose(ConnectionResetError())
    talk.connection.write(b"body")

    assert talk.wire.written == b"head"
    assert isinstance(reply.error, ConnectionResetError)


def test_a_cut_connection_fails_its_reply():
    """Also if its pool is closed while a task waits for the reply."""

    async def main(wait):
        talk = Talk(asyncio.get_running_loop())
        reply = talk.ask()
        waiting = asyncio.ensure_future(wait(reply))
        await asyncio.sleep(0)
        talk.connection.cut()
        talk.lose()
        with pytest.raises(Exception) as caught:  # noqa: PT011 -- the exchange translates it
            await asyncio.wait_for(waiting, 5)
        assert caught.value is reply.error
        assert talk.wire.is_aborted
        assert talk.owner.released == [False]

    asyncio.run(main(Reply.wait_for_head))


def test_the_end_of_the_server_side_fails_a_reply_at_once():
    """Also while bytes of the request wait for a server that does not read them."""
    talk = Talk()
    reply = talk.ask()
    talk.wire.unsent = 1000
    talk.connection.eof_received()

    assert isinstance(reply.error, EOFError)
    assert talk.wire.is_aborted


def test_a_connection_with_unsent_bytes_is_cut_when_it_is_closed():
    """A server that has answered and reads no more would keep it open for ever."""
    talk, reply = hear(OK + b"connection: close\r\ncontent-length: 0\r\n\r\n")
    assert reply.is_complete
    assert not talk.wire.is_aborted
    talk = Talk()
    talk.ask()
    talk.wire.unsent = 1000
    talk.hear(OK + b"connection: close\r\ncontent-length: 0\r\n\r\n")

    assert talk.wire.is_aborted


def test_two_tasks_cannot_wait_for_one_reply():
    """The second one is told so."""

    async def main():
        talk = Talk(asyncio.get_running_loop())
        reply = talk.ask()
        first = asyncio.ensure_future(reply.wait())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="Another task"):
            await reply.wait()
        talk.hear(EMPTY)
        await first

    asyncio.run(main())


def test_only_a_reused_connection_without_a_byte_of_a_reply_is_stale():
    """And only if the other side ended it."""

    def ended(*heard, is_reused=True, error=None, is_cut=False):
        talk = Talk()
        talk.connection.is_reused = is_reused
        reply = talk.ask()
        talk.hear(*heard)
        if is_cut:
            talk.connection.cut()
        talk.lose(error)
        return talk.connection.is_stale(reply)

    assert ended()
    assert ended(error=ConnectionResetError())
    assert not ended(is_reused=False)
    assert not ended(b"H")
    assert not ended(b"garbage")
    assert not ended(is_cut=True)
