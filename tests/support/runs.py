"""Runs of the high-level functions, and how they end."""

import asyncio

from interlingua import sync
from interlingua.api.execute.execution import execute
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.runner import ToolRound, ToolRunner
from interlingua.spec.errors import SDKError
from interlingua.streams.grammar import Grammar
from support.simulated import MODELS


def named(provider):
    return f"{provider}:{MODELS[provider]}"


async def broken(client, provider, whole, **options):
    """The error that a run ends with, and the events before it, which keep to the grammar."""
    grammar, events = Grammar(), []
    try:
        if whole:
            await generate(named(provider), "?", client=client, **options)
        async for event in stream(named(provider), "?", client=client, **options):
            grammar.feed(event)
            events.append(event)
    except SDKError as error:
        if events:
            grammar.finish()
        return error, events
    raise AssertionError("it did not fail")


async def collect(events):
    """Read it to its end."""
    return [event async for event in events]


MODES = ("whole", "stream", "sync", "execute")
"""The functions that run tools, each with the same options."""


def run_in(mode, peer, provider, prompt="?", **options):
    """The result of a run in one of the modes; an error is raised, also by `execute`."""
    model = named(provider)
    if mode == "sync":
        with sync.Client.wrap(peer.client) as client:
            return sync.generate(model, prompt, client=client, **options)

    async def work(client):
        if mode == "whole":
            return await generate(model, prompt, client=client, **options)
        if mode == "stream":
            events = stream(model, prompt, client=client, **options)
            await collect(events)
            return events.result()
        messages = options.pop("messages", None) or prompt
        result = await execute(model, messages, client=client, **options)
        if result.error is not None:
            raise result.error.exception
        return result

    return asyncio.run(work(peer.client))


async def run_tools(ready, messages=(), signal=None, **settings):
    """The results of a round, after all its tools have ended."""
    calls = ToolRound(ready, messages)
    async for _ in ToolRunner(**settings).run(calls, signal):
        pass
    return calls.settled()
