"""
The HTTP clients for SDKs have the types that SDKs ask for.

Checked by mypy and pyright, never run.
"""

from typing import assert_type

import anthropic
import httpx2
import openai

from interlingua import Client, sync
from interlingua.integrations import sdk
from interlingua.serving import ClientApplication, ModelRoute


def clients(client: Client, blocking: sync.Client) -> None:
    """Both kinds, from both kinds of client."""
    http = sdk.http_client(client, {"gpt-*": "anthropic:claude-haiku-4-5"})
    assert_type(http, httpx2.AsyncClient)
    openai.AsyncOpenAI(http_client=http)
    held = sdk.blocking_http_client(blocking, {"*": ModelRoute("openai:gpt-5.2")}, secret=b"")
    assert_type(held, httpx2.Client)
    anthropic.Anthropic(http_client=held)


def transports(application: ClientApplication) -> None:
    """For an application of one's own."""
    assert_type(sdk.transport(application), httpx2.AsyncBaseTransport)
    assert_type(sdk.blocking_transport(application), httpx2.BaseTransport)
