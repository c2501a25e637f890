"""Runs of the high-level functions, and how they end."""

from interlingua.api.run.generate import generate, stream
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
