"""Talk to the real llama.cpp server over plain HTTP."""

import asyncio
import json
import time
import urllib.error
import urllib.request

from interlingua import Client, LocalAdapter, dialects
from interlingua.conformance.laws import cut_frames, decode_frames, fold
from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from support.patience import PATIENCE

SERVED = ("openai_chat", "openai_responses", "anthropic_messages")

_PROFILES = {"openai_chat": Profile(quirks=ChatQuirks(stream_usage=True))}
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def send(url, body=None):
    """POST a body (GET if there is none): the status, the headers and the body of the answer."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})  # noqa: S310 # loopback
    try:
        with _OPENER.open(request, timeout=PATIENCE) as reply:
            return reply.status, dict(reply.headers), reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def address(url, path):
    """Where a dialect's path is on this server: the version is not in the path of Chat."""
    return url + (path if path.startswith("/v1/") else f"/v1{path}")


def encode(dialect, request, *, stream=False):
    """The request as this server wants it; in a stream Chat gives counts only if asked."""
    profile = _PROFILES.get(dialect, NEUTRAL_PROFILE)
    return dialects.get(dialect).encode_request(request, profile, stream=stream)


def call(url, dialect, request, *, stream=False):
    """What the server answers to a request: the call we made and the body, which must be good."""
    wire = encode(dialect, request, stream=stream)
    status, headers, body = send(address(url, wire.path), wire.body)
    assert status == 200, body
    assert headers["Content-Type"].startswith("text/event-stream" if stream else "application/json")
    return wire, body


def whole(url, dialect, request):
    """The whole answer, decoded."""
    return dialects.get(dialect).decode_response(json.loads(call(url, dialect, request)[1]))


def streamed(url, dialect, request):
    """The answer as a stream, decoded and added up; it must obey the grammar."""
    _, body = call(url, dialect, request, stream=True)
    return fold(decode_frames(dialects.get(dialect), cut_frames([body])))


def eventually(claim):
    """Wait until the claim holds."""
    end = time.monotonic() + PATIENCE
    while not claim():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


def ask_local(local, dialect, work):
    """What the work gives with a client of the local model, spoken to in this dialect."""

    async def whole():
        async with Client({"local": LocalAdapter(server=local, dialect=dialect)}) as client:
            return await work(client)

    return asyncio.run(whole())
