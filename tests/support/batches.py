"""Batches against the simulator, over HTTP on loopback, and against replies that are given."""

import asyncio
import json

from interlingua import Client, batch
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, error, serve_in_thread, text
from interlingua.transport import CannedReply, CannedTransport
from support.simulated import KEY

MODELS = {
    "openai": "gpt-5.2",
    "openai_compatible": "house-model",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-flash",
    "mistral": "mistral-small-latest",
    "xai": "grok-4.3",
}
VERSIONED = ("openai_compatible", "mistral", "xai")
"""The rows whose base URLs have the version."""


def answer(request):
    """Answers by what is asked: an answer, a failure of one request, or none in time."""
    asked = request.messages[-1].text
    if "bad" in asked:
        return error(400, "No such thing.")
    if "busy" in asked:
        return error(429, "Too many.")
    if "late" in asked:
        return error(408)
    return text(f"Answer to {asked}")


def client_for(url, provider, **settings):
    base = f"{url}/v1" if provider in VERSIONED else url
    return Client({provider: HttpAdapter(provider, KEY, base_url=base, **settings)})


def with_client(provider, work, *answers, **settings):
    """Run `work(client, app)` against a simulator that answers so."""
    app = Simulator(*(answers or (answer,)), strict=True, **settings)
    with serve_in_thread(app) as server:

        async def whole():
            async with client_for(server.url, provider) as client:
                return await work(client, app)

        return asyncio.run(whole())


async def finish(job, client):
    return await batch.wait(job, client=client, poll_interval=0.001)


async def collect(job, client, **options):
    return {item.id: item async for item in batch.results(job, client=client, **options)}


def faulty(provider, *replies):
    """A client whose provider replies so, and the transport that shows what was sent."""
    transport = CannedTransport(list(replies))
    return Client({provider: HttpAdapter(provider, "k", transport=transport)}), transport


BATCH = {"id": "batch_1", "object": "batch", "status": "validating", "endpoint": "/v1/responses"}
FILE = {"id": "file-1", "object": "file", "filename": "b", "bytes": 1, "purpose": "batch"}


def reply(value, status=200):
    headers = {"content-type": "application/json"}
    return CannedReply(status=status, headers=headers, body=json.dumps(value).encode())
