"""What reads foreign input, each with inputs that it accepts."""

from __future__ import annotations

import asyncio
import gzip
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import brotli

from fuzzing.connection import SEEDS, read_replies
from fuzzing.gateway import FuzzedGateway, is_asked, read_asked
from fuzzing.gateway import seeds as requests_for_gateways
from fuzzing.recorded import (
    ADDRESS,
    Exchange,
    Performed,
    all_exchanges,
    make_adapter,
    make_simulator,
    perform,
    record,
)
from interlingua import dialects
from interlingua.api.session.document import dump_session, read_session
from interlingua.api.session.saved import SavedSession
from interlingua.api.session.turns import Turn
from interlingua.conformance.laws import read_cases
from interlingua.serving.application import find_route, serve_of
from interlingua.serving.kept_responses import Shelf
from interlingua.spec.content import Text, Thinking, ToolCall, ToolResult
from interlingua.spec.contracts import Dialect, Frame, HttpRequest, WireCall
from interlingua.spec.defaults import Limits
from interlingua.spec.errors import ProviderError, SDKError
from interlingua.spec.events import (
    ErrorEvent,
    ProviderEvent,
    StepFinish,
    StreamEvent,
    StreamRestart,
    StreamStart,
    ToolResultEvent,
)
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.messages import Message
from interlingua.spec.operations import OperationResult
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.transport import CannedReply, CannedTransport
from interlingua.transport.bodies import inflater_for
from interlingua.transport.cassette import FORMAT, load_exchanges
from interlingua.wire.aws_event_stream import ChunkDecoder, encode_chunk
from interlingua.wire.json_array import JSONArrayDecoder
from interlingua.wire.json_text import dumps, loads
from interlingua.wire.media import decode_base64, parse_data_url, sniff
from interlingua.wire.partial_json import PartialJSON
from interlingua.wire.ratelimit_headers import parse_rate_limit
from interlingua.wire.ratelimit_values import parse_retry_after
from interlingua.wire.secrets import Redactor, redact, redact_url
from interlingua.wire.sse import SSEDecoder

zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
LIMIT = 1_000_000  # bytes that one input may become
Use = Callable[[bytes], object]


class Target(NamedTuple):
    """A decoder, and inputs that it accepts."""

    use: Use
    seeds: list[bytes]


def prove(name: str, target: Target) -> None:
    """Raise `AssertionError` unless there are seeds and the target accepts each of them."""
    if not target.seeds:
        raise AssertionError(f"{name} has no seed.")
    for seed in target.seeds:
        try:
            target.use(seed)
        except SDKError as error:
            raise AssertionError(f"{name} refuses its seed {seed[:300]!r}.") from error


def chunks(data: bytes) -> Iterable[bytes]:
    """The data in pieces whose sizes depend on it."""
    source, at = random.Random(data), 0  # noqa: S311 -- no secrets
    while at < len(data):
        size = source.choice((1, 2, 7, 64, 1000))
        yield data[at : at + size]
        at += size


# Formats.


def grow(data: bytes) -> object:
    """Partial JSON, fragment by fragment."""
    partial = PartialJSON()
    for chunk in chunks(data):
        partial.feed(chunk.decode("utf-8", "replace"))
    return partial.value


def inflate(coding: str) -> Use:
    """Compressed data."""

    def use(data: bytes) -> int:
        inflater = inflater_for({"content-encoding": coding}, Limits(inflated=LIMIT))
        assert inflater is not None  # noqa: S101
        return sum(len(piece) for chunk in chunks(data) for piece in inflater.feed(chunk))

    return use


def read_headers(data: bytes) -> object:
    """Headers about limits."""
    text = data.decode("latin-1")
    names = ("retry-after", "retry-after-ms", "x-ratelimit-reset-tokens", "ratelimit-remaining")
    limits = parse_rate_limit(dict.fromkeys(names, text))
    return parse_retry_after(dict.fromkeys(names, text)), limits and limits.reset_after


def remove_keys(data: bytes) -> object:
    """Redaction keeps the length."""
    assert len(Redactor(("known-secret",)).redact(data)) == len(data)  # noqa: S101
    text = data.decode("utf-8", "replace")
    return redact(text), redact_url("https://a.test/?" + text.replace("[", ""))


def read_media(data: bytes) -> object:
    """Media types and data URLs."""
    text = data.decode("latin-1")
    return sniff(data), decode_base64(text), parse_data_url("data:" + text)


def _formats() -> dict[str, Target]:
    json = b'{"a": [1, 2.5, "x", null], "b": {"c": true}}'
    return {
        "json": Target(loads, [json]),
        "partial_json": Target(grow, [json]),
        "inflate": Target(inflate("gzip"), [gzip.compress(json)]),
        "inflate.br": Target(inflate("br"), [brotli.compress(json)]),
        "inflate.zstd": Target(inflate("zstd"), [zstd.compress(json)]),
        "headers": Target(read_headers, [b"12", b"6m0s", b"Wed, 21 Oct 2026 07:28:00 GMT"]),
        "redact": Target(remove_keys, [b"api_key=sk-12345678901234567890 &x=1"]),
        "connection": Target(read_replies, SEEDS),
        "media": Target(read_media, [b"image/png;base64,iVBORw0KGgo="]),
    }


# Documents.


def subclasses(kind: type) -> Iterator[type]:
    """Every class that is derived from this one."""
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def _from_file(read: Callable[[Path], object]) -> Use:
    def use(data: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "document"
            path.write_bytes(data)
            return read(path)

    return use


def _session() -> bytes:
    turn = Turn(messages=(Message.user("Hi."), Message.assistant("Ho.")))
    return dump_session(SavedSession(session_id="s", model="m", options={"seed": 1}, turns=(turn,)))


def _cassette() -> bytes:
    request = {"method": "POST", "url": "https://a.test/v1", "headers": {}, "json": {}}
    reply = {"status": 200, "headers": {}, "chunks": [{"text": "{}", "after": 0.1}], "after": 0.1}
    return dumps({"format": FORMAT, "exchanges": [{"request": request, "reply": reply}]})


def _events() -> list[StreamEvent]:
    """An event of every type."""
    message = Message.assistant(
        [Thinking("t"), Text("a"), ToolCall(id="c", name="f", arguments={})]
    )
    response = Response(id="r", model="m", message=message)
    error = ProviderError("failed", status_code=500)
    return [
        *events_from_response(response),
        StreamRestart(start=StreamStart(id="r", model="m")),
        ProviderEvent(dialect="d", data={"a": 1}),
        ToolResultEvent(result=ToolResult(tool_call_id="c", content="x")),
        StepFinish(step=0, response=response),
        ErrorEvent(error=error, response=response),
    ]


def _documents(performed: Iterable[Performed]) -> dict[str, Target]:
    """Every type that `from_json` reads, and the files of sessions and cassettes."""
    examples: list[Any] = [
        Message.user("Hello?"),
        Message.tool_result("c1", {"a": 1}, name="t"),
        Request(model="m", messages="Hello?"),
        Response(id="r", model="m", message=Message.assistant("Hi.")),
    ]
    for each in performed:
        examples += each.result if isinstance(each.result, list) else [each.result]
    kinds = (Message, Request, Response, *subclasses(OperationResult))
    documents: dict[str, Target] = {}
    for kind in kinds:
        seeds = [to_json(example) for example in examples if type(example) is kind][:20]
        documents[kind.__name__] = Target(_read_as(kind), seeds or [to_json(kind())])
    documents["messages"] = Target(_read_as(list[Message]), [to_json([Message.user("Hello?")])])
    documents["event"] = Target(_read_as(StreamEvent), [to_json(event) for event in _events()])
    documents["session"] = Target(_from_file(read_session), [_session()])
    documents["cassette"] = Target(_from_file(load_exchanges), [_cassette()])
    return {f"document.{name}": target for name, target in documents.items()}


def _read_as(kind: Any) -> Use:
    return lambda data: from_json(data, kind)


# Dialects.


def read_stream(dialect: Dialect, decoder_type: type[Any]) -> Use:
    """Bytes to frames to events to a response."""

    def use(data: bytes) -> object:
        frames, decoder, accumulator = decoder_type(), dialect.stream_decoder(), StreamAccumulator()
        try:
            for chunk in chunks(data):
                for frame in frames.feed(chunk):
                    for event in decoder.feed(frame):
                        accumulator.feed(event)
            for frame in frames.finish():
                for event in decoder.feed(frame):
                    accumulator.feed(event)
            for event in decoder.finish():
                accumulator.feed(event)
        finally:
            accumulator.end_segments()
        return accumulator.partial()

    return use


def read_messages(dialect: Dialect) -> Use:
    """The same for a stream of AWS, whose messages have the right checksums, or not."""
    read = read_stream(dialect, ChunkDecoder)

    def use(data: bytes) -> object:
        if data[:1] > b"\x80":
            return read(data)
        frames = [Frame(data=each.decode("latin-1")) for each in data.split(b"\n\n") if each]
        return read(b"".join(map(encode_chunk, frames)))

    return use


def read_error(dialect: Dialect) -> Use:
    """An error body; this never raises, not even an error of the library."""

    def use(data: bytes) -> object:
        text = data.decode("latin-1")
        headers = {"retry-after": text, "content-type": text, "date": text}
        try:
            return dialect.decode_error(400 + len(data) % 200, headers, data)
        except SDKError as error:
            raise AssertionError("decode_error raised") from error

    return use


def _as_array(stream: bytes) -> bytes:
    return b"[" + b",\n".join(frame.encode() for frame in _frame_texts(stream)) + b"]"


def _frame_texts(stream: bytes) -> list[str]:
    decoder = SSEDecoder()
    frames = [*decoder.feed(stream), *decoder.finish()]
    return [frame.data for frame in frames if frame.data.startswith("{")]


def _codec(name: str, folder: Path) -> dict[str, Target]:
    """The decoders of a dialect; their seeds are the fixtures of its tests."""
    dialect = dialects.get(name)
    cases = [case for case in read_cases(folder) if not case.name.startswith("error")]
    calls = [case.call for case in cases if case.call is not None]
    path = next((call.path for call in calls if call.path), "")
    streams = [case.stream for case in cases if case.stream is not None]
    answers = [dumps(case.response) for case in cases if case.response is not None]
    errors = [b'{"error": {"message": "m", "type": "t", "code": "429"}}', b"<html>", b""]
    # Only some end without a frame that is not JSON (`[DONE]`), which an array cannot have.
    uses = {
        "request": Target(
            lambda data: dialect.decode_request(WireCall(path=path, body=loads(data))),
            [dumps(call.body) for call in calls],
        ),
        "response": Target(lambda data: dialect.decode_response(loads(data)), answers),
        "stream": Target(read_stream(dialect, SSEDecoder), streams),
        "error": Target(read_error(dialect), errors),
    }
    arrays = {
        "array": Target(read_stream(dialect, JSONArrayDecoder), [*map(_as_array, streams)]),
        "messages": Target(
            read_messages(dialect), ["\n\n".join(_frame_texts(each)).encode() for each in streams]
        ),
    }
    uses |= {use: target for use, target in arrays.items() if _accepts(target)}
    return {f"{name}.{use}": target for use, target in uses.items()}


def _accepts(target: Target) -> bool:
    try:
        prove("", target)
    except AssertionError:
        return False
    return True


# Operations: the client side.


class Loop:
    """Runs coroutines; the event loop is made once."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, work: Any) -> Any:
        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(work)


LOOP = Loop()


def read_reply(performed: Performed, number: int) -> Use:
    """One reply of an operation; the others are as they were recorded."""
    operation = dialects.get(performed.dialect).OPERATIONS[performed.key]
    replies = [exchange.reply for exchange in performed.exchanges]
    variant = performed.key.partition(".")[2]

    def use(data: bytes) -> object:
        damaged = CannedReply(
            status=replies[number].status, headers=replies[number].headers, body=data
        )
        given = iter([*replies[:number], damaged, *replies[number + 1 :]])
        last = replies[-1]

        async def work() -> object:
            transport = CannedTransport(lambda _: next(given, last))
            adapter = make_adapter(performed.dialect, variant, transport)
            return await perform(adapter, operation, performed.value())

        return LOOP.run(work())

    return use


def _operations(performed: Iterable[Performed]) -> dict[str, Target]:
    found: dict[str, Target] = {}
    for each in performed:
        for number, exchange in enumerate(each.exchanges):
            end = f".{number + 1}" if len(each.exchanges) > 1 else ""
            name = f"{each.dialect}.{each.key}{end}"
            body = exchange.reply.body
            found[name] = Target(read_reply(each, number), [body])  # of a job, the last look
    return found


# Operations: the server side. An input is a request: a line, headers, a blank line, the body.


def write_request(request: HttpRequest) -> bytes:
    """The request as text, as `read_request` reads it."""
    parts = urlsplit(request.url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    lines = [f"{request.method} {target}", *(f"{n}: {v}" for n, v in request.headers.items())]
    assert isinstance(request.body, bytes)  # noqa: S101 -- the recorder reads it
    return "\n".join(lines).encode("utf-8", "replace") + b"\n\n" + request.body


def read_request(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The ASGI scope and the body of a request."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.partition(b" ")
    path, _, query = target.partition(b"?")
    headers = [
        (n.strip().lower(), v.strip()) for n, _, v in (line.partition(b":") for line in lines)
    ]
    scope = {
        "type": "http",
        "method": method.decode("latin-1"),
        "path": path.decode("latin-1"),
        "query_string": query,
        "headers": headers,
    }
    return scope, body


async def _answer(app: Any, data: bytes) -> int:
    scope, body = read_request(data)
    waiting, status = [body], 0

    async def receive() -> Mapping[str, Any]:
        if waiting:
            return {"type": "http.request", "body": waiting.pop()}
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def send(message: Mapping[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    return status


def serve_request(before: list[Exchange]) -> Use:
    """A request to a simulator that got these requests before; a refusal is an `SDKError`."""
    requests = [write_request(exchange.request) for exchange in before]

    async def work(data: bytes) -> None:
        app = make_simulator()
        for request in requests:
            await _answer(app, request)
        status = await _answer(app, data)
        if status >= 400:
            raise SDKError(f"HTTP {status}")

    return lambda data: LOOP.run(work(data))


_MORE_PATHS = {
    "openai_chat": ("/v1/chat/completions",),
    "openai_responses": ("/v1/responses",),
    "anthropic_messages": (
        "/v1/messages",
        "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
        "/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict",
        "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
        "/model/m/invoke",
        "/model/m/invoke-with-response-stream",
    ),
    "gemini_generate": (
        "/v1beta/models/m:generateContent",
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        "/v1beta/models/m:streamGenerateContent",
    ),
    "bedrock_converse": ("/model/m/converse", "/model/m/converse-stream"),
}
"""Where answers are asked for; recorded are only operations."""
_READ_PATHS = (
    *("/v1beta/models", "/v1beta/models/m", "/models", "/models/m", "/v1/models/m"),
    *("/foundation-models", "/foundation-models/m"),
)


def _requests_for_answers(name: str) -> Iterator[HttpRequest]:
    call = dialects.get(name).encode_request(Request(model="m", messages="Hello?", max_tokens=9))
    headers = (
        {**call.headers, serve_of(name).SERVER.own_headers[0]: "x"}
        if serve_of(name).SERVER.own_headers
        else dict(call.headers)
    )
    for path in _MORE_PATHS.get(name, ()):
        yield HttpRequest(url=f"{ADDRESS}{path}", headers=headers, body=dumps(call.body))
        streamed = {**call.body, "stream": True}
        yield HttpRequest(url=f"{ADDRESS}{path}", headers=headers, body=dumps(streamed))
    for path in _READ_PATHS:
        yield HttpRequest(method="GET", url=f"{ADDRESS}{path}", headers=headers)


class Endpoint(NamedTuple):
    """A route of a dialect; `str` is its name among the targets."""

    dialect: str
    name: str
    pattern: str

    def __str__(self) -> str:
        return f"serve.{self.dialect}.{self.name} {self.pattern}"


def endpoint_of(data: bytes) -> Endpoint:
    """The endpoint that a request is for."""
    scope, _ = read_request(data)
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    route = find_route(scope["method"], scope["path"], headers)
    if route.operation is not None:
        return Endpoint(route.dialect, route.operation.name, route.operation.pattern.pattern)
    return Endpoint(route.dialect, route.kind, route.facts.pattern.pattern if route.facts else "")


def endpoints() -> set[Endpoint]:
    """Every route of every dialect that has a server side."""
    found: set[Endpoint] = set()
    for name in dialects.names():
        serve = getattr(dialects.get(name), "serve", None)
        for route in () if serve is None else serve.SERVER.routes:
            found.add(Endpoint(name, route.kind, route.pattern.pattern))
        for operation in getattr(serve, "SERVED", ()):
            found.add(Endpoint(name, operation.name, operation.pattern.pattern))
    return found


def is_covered(endpoint: Endpoint, found: Mapping[str, Target]) -> bool:
    """
    Whether an endpoint is among the targets; a shared path may be there for another dialect.

    What only gateways do, the simulator does not: it is among the requests for gateways.
    """
    if endpoint.name in Shelf.OPERATIONS or endpoint.pattern.endswith("/compact"):
        return "gateway" in found and is_asked(endpoint.pattern)
    names = (str(endpoint._replace(dialect=name)) for name in dialects.names())
    return any(name in found for name in names)


def _served(performed: Iterable[Performed]) -> dict[str, Target]:
    """One target for each endpoint; requests that need earlier ones have theirs."""
    free: dict[Endpoint, list[bytes]] = {}
    bound: dict[Endpoint, Target] = {}
    for name in dialects.names():
        for request in _requests_for_answers(name):
            data = write_request(request)
            free.setdefault(endpoint_of(data), []).append(data)
    for before, exchange in all_exchanges(performed):
        data = write_request(exchange.request)
        if before:
            bound.setdefault(endpoint_of(data), Target(serve_request(before), [data]))
        else:
            free.setdefault(endpoint_of(data), []).append(data)
    targets = {str(each): Target(serve_request([]), seeds) for each, seeds in free.items()}
    return targets | {str(each): target for each, target in bound.items() if each not in free}


def targets(fixtures: Path) -> dict[str, Target]:
    """Each decoder by its name; `fixtures` is the folder with those of the dialects."""
    found = _formats()
    performed: list[Performed] = []
    for name in dialects.names():
        performed += LOOP.run(record(name))
        found |= _codec(name, fixtures / name)
    found |= _documents(performed) | _operations(performed) | _served(performed)
    return found | {"gateway": _gateway()}


def _gateway() -> Target:
    """Whole requests for a gateway."""
    front = FuzzedGateway()
    seeds = [asked.write() for asked in requests_for_gateways()]
    return Target(lambda data: LOOP.run(front.check(read_asked(data))), seeds)
