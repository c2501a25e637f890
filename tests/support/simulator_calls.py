"""The simulator called in process, as an ASGI server would call it."""

import asyncio
import json
from dataclasses import dataclass, field

from interlingua import Request, dialects
from interlingua.conformance.laws import cut_frames
from interlingua.dialects import StreamAccumulator
from interlingua.providers.catalog.profiles import profile_for

BASE = {"openai_chat": "/v1"}  # where the path of a dialect leaves the version out


@dataclass
class Reply:
    status: int = 0
    headers: dict = field(default_factory=dict)
    chunks: list = field(default_factory=list)
    error: Exception | None = None

    @property
    def body(self):
        return b"".join(self.chunks)

    @property
    def json(self):
        return json.loads(self.body)


async def call_async(app, path, body=None, headers=None, *, method="POST", gone=None):
    """One request; `gone` is an event that says when the client leaves."""
    path, _, query = path.partition("?")
    raw = (
        body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    )
    pairs = [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": pairs,
    }
    waiting = [raw]
    reply = Reply()

    async def receive():
        if waiting:
            return {"type": "http.request", "body": waiting.pop()}
        await (gone or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        else:
            reply.chunks.append(message["body"])

    try:
        await app(scope, receive, send)
    except ConnectionError as error:
        reply.error = error
    return reply


def call(app, path, body=None, headers=None, *, method="POST"):
    return asyncio.run(call_async(app, path, body, headers, method=method))


def encode(dialect, request, *, stream=False):
    """The call of a client that knows the dialect's profile."""
    profile = profile_for(dialect, request.model)
    return dialects.get(dialect).encode_request(request, profile, stream=stream)


def ask(app, dialect, request, *, stream=False, headers=None):
    """The reply to a canonical request, sent in that dialect."""
    wire = encode(dialect, request, stream=stream)
    path = BASE.get(dialect, "") + wire.path
    return call(app, path, wire.body, {**wire.headers, **(headers or {})})


def read(dialect, reply, *, stream=False):
    """The response that a client of ours reads in the reply."""
    codec = dialects.get(dialect)
    if reply.status >= 400:
        raise codec.decode_error(reply.status, reply.headers, reply.body)
    if not stream:
        return codec.decode_response(json.loads(reply.body), headers=reply.headers)
    return read_stream(dialect, reply.chunks)


def read_stream(dialect, chunks):
    events = decode_stream(dialect, chunks)
    accumulator = StreamAccumulator()
    for event in events:
        accumulator.feed(event)
    return accumulator.response()


def decode_stream(dialect, chunks):
    codec = dialects.get(dialect)
    decoder = codec.stream_decoder()
    events = []
    for frame in cut_frames(chunks, codec.FACTS.framings[0]):
        events += decoder.feed(frame)
    return events + decoder.finish()


def hello(**more):
    return Request(model="m", messages="Hello?", **more)
