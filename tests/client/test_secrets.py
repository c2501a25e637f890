"""A planted key is looked for in everything that comes out."""

import asyncio
import logging
import pickle
import traceback

import pytest

from interlingua.client.client import Client
from interlingua.simulator import error, text
from interlingua.spec.errors import SDKError
from interlingua.spec.request import Request
from simulated import DIALECTS, KEY, run, simulated, stream

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))


@every_provider
def test_a_key_stays_where_it_is(provider, caplog):
    """Logs, reprs, errors and their causes, explanations, responses, call events."""
    out = []
    echoed = error(401, f"Incorrect API key provided: {KEY}. {provider}")
    with caplog.at_level(logging.DEBUG), simulated(echoed, text("hi"), key=None) as peer:
        peer.client.subscribe(out.append)
        out += [peer.client, peer.client._adapters]
        out.append(peer.client.explain(peer.ask(provider)))
        try:
            run(peer, lambda client: client.complete(peer.ask(provider)))
        except SDKError as failure:
            out += [failure, vars(failure), *traceback.format_exception(failure)]
        events, _ = stream(peer, peer.ask(provider))
        out += events

    seen = "\n".join([*map(repr, out), *map(str, out), caplog.text])
    assert "Incorrect API key" in seen
    assert KEY not in seen


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


def test_errors_can_be_pickled_without_it():
    """As when they cross processes."""
    with simulated(error(401, f"bad key {KEY}")) as peer:
        _, failure = stream(peer, peer.ask("openai"))

    assert KEY.encode() not in pickle.dumps(vars(failure))
