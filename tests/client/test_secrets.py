"""
A planted key is looked for in everything that comes out.

One key has a form by which any key of its vendor is known, the other has none: only the adapter
that sends it can know it.
"""

import asyncio
import logging
import pickle
import traceback

import pytest

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import error, error_event, header, text
from interlingua.spec.errors import SDKError
from interlingua.spec.request import Request
from interlingua.transport.canned import CannedReply, CannedTransport
from support.simulated import DIALECTS, KEY, adapters, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))


PLAIN = "planted QQ77 of no form".replace(" ", "/")
every_key = pytest.mark.parametrize("key", [KEY, PLAIN])


@every_key
@every_provider
def test_a_key_stays_where_it_is(provider, key, caplog):
    """Logs, reprs, errors and their causes, explanations, responses, call events."""
    out = []
    words = f"Incorrect API key provided: {key}. {provider}"
    echoed = error(401, words) + header("x-request-id", key) + header("request-id", key)
    with caplog.at_level(logging.DEBUG), simulated(echoed, text("hi")) as peer:
        client = Client(adapters(peer.server.url, key=key))
        client.subscribe(out.append)
        out += [client, client._adapters]
        out.append(client.explain(peer.ask(provider)))
        out.append(client._adapters[provider].dry_run(peer.ask(provider)))
        out += asyncio.run(tried(client, peer.ask(provider)))
        out += asyncio.run(tried(client, peer.ask(provider)))

    seen = "\n".join([*map(repr, out), *map(str, out), caplog.text])
    assert "Incorrect API key" in seen
    assert key not in seen


async def tried(client, request):
    """All that comes of a request in both modes, pickled too."""
    out = []
    async with client:
        for work in (
            client.complete(request),
            collected(client.stream(request), out),
            client.count_tokens(request),
            client.list_models(request.provider),
        ):
            try:
                out.append(await work)
            except SDKError as failure:
                out += [failure, vars(failure), *traceback.format_exception(failure)]
                out.append(pickle.dumps(failure).decode("latin-1"))
    return out


async def collected(events, out):
    async for event in events:
        out.append(event)


def replied(provider, reply, key, **settings):
    """All that comes of replies like this one, to a client with that key."""
    transport = CannedTransport(lambda _: reply)
    adapter = HttpAdapter(
        provider, key, base_url="https://a.example/v1", transport=transport, **settings
    )
    client = Client({provider: adapter})
    told = []
    client.subscribe(told.append)
    out = asyncio.run(tried(client, Request(provider=provider, model="m", messages="hi")))
    return "\n".join([*map(repr, [*out, *told]), *map(str, out)])


@every_key
@every_provider
@pytest.mark.parametrize("status", [200, 302, 401, 500])
@pytest.mark.parametrize(
    "body",
    [
        '{{"error": {{"message": "bad {0}", "code": "{0}", "type": "{0}", "param": ["{0}"]}}}}',
        '{{"error": "bad {0}"}}',
        '{{"message": "bad {0}", "{0}": {{"{0}": 1}}}}',
        "<html>{0}</html>",
        '{{"x": {0}',
        '"{0}"',
        '[{{"error": {{"message": "bad {0}", "status": "{0}"}}}}]',
    ],
)
def test_no_body_that_echoes_it_is_repeated(provider, key, status, body):
    """Whole, streamed, counted, listed; whatever it looks like, an error with a 200 too."""
    headers = {"content-type": "application/json", "request-id": key, "location": f"/?key={key}"}
    text_of = body.format(key).encode()
    seen = replied(provider, CannedReply(status=status, headers=headers, body=text_of), key)

    assert "Error" in seen
    assert key not in seen


@every_key
@every_provider
def test_an_error_in_the_middle_of_a_stream(provider, key):
    """Its events, and what is raised after them."""
    with simulated(text("some words") + error_event(500, f"bad {key}")) as peer:
        client = Client(adapters(peer.server.url, key=key))
        out = asyncio.run(tried(client, peer.ask(provider)))

    seen = "\n".join([*map(repr, out), *map(str, out)])
    assert "some" in seen
    assert "bad [redacted]" in seen
    assert key not in seen


@every_provider
def test_a_secret_of_ones_own_in_a_header(provider):
    """A proxy's token is as good as a key."""
    reply = CannedReply(status=401, body=f'{{"error": {{"message": "no {PLAIN}"}}}}'.encode())
    seen = replied(provider, reply, "k", default_headers={"X-Proxy-Token": f"Bearer {PLAIN}"})

    assert "no [redacted]" in seen
    assert PLAIN not in seen


def test_a_key_that_cannot_be_sent():
    """A line break in it is told, without the key."""
    client = Client.from_env(
        {"OPENAI_API_KEY": f"{KEY}\n", "OPENAI_BASE_URL": "http://127.0.0.1:9"}
    )

    async def work():
        async with client:
            await client.complete(Request(model="m", messages="hi"))

    with pytest.raises(SDKError) as caught:
        asyncio.run(work())

    assert KEY not in "".join(traceback.format_exception(caught.value))


@every_key
@every_provider
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_key_in_a_header_about_limits_is_redacted(provider, key, is_stream):
    """Of an error: in its limits, in a copy of them, and in their JSON form."""
    echoed = error(429, "Too many requests.") + header("x-ratelimit-limit-requests", f"5;k={key}")
    with simulated(echoed) as peer:
        client = Client(adapters(peer.server.url, key=key))
        request = peer.ask(provider)

        async def ask():
            async with client:
                if is_stream:
                    return [event async for event in client.stream(request)]
                return await client.complete(request)

        with pytest.raises(SDKError) as caught:
            asyncio.run(ask())

    limits = caught.value.rate_limit
    assert limits.requests_limit == 5
    assert limits.raw["x-ratelimit-limit-requests"] == "5;k=[redacted]"
    assert key not in repr(limits)
    assert key.encode() not in pickle.dumps(caught.value)
