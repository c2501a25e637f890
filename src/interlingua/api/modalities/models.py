"""What a provider itself says: `served_models`, `served_model`, `count_tokens`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Unpack

from interlingua.api.modalities.perform import MediaCall, MediaOptions
from interlingua.api.run.clients import BlockingClient, find_client, with_access
from interlingua.api.run.options import Prompt, make_messages
from interlingua.api.tools.tool import ToolOrFunction, read_tools
from interlingua.client.client import Client
from interlingua.spec.messages import AnyMessage
from interlingua.spec.operations import OperationInput, ServedModel
from interlingua.spec.request import Request
from interlingua.spec.request_check import check_request


async def served_models(
    provider: str | None = None,
    *,
    client: Client | BlockingClient | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> list[ServedModel]:
    """
    List the models that a provider, or each configured provider, serves now.

        for model in await served_models("openrouter"):
            print(model.id, model.context_window, model.input_cost_per_million)

    What a provider does not say is None; the catalog (`interlingua.catalog`) may know it. If one
    of several providers fails, its error is logged; if all fail, the first error is raised.
    """
    access = {"api_key": api_key, "base_url": base_url, "headers": headers, "provider": provider}
    return await with_access(find_client(client), None, access).list_models(provider)


async def served_model(model: str, **options: Unpack[MediaOptions]) -> ServedModel:
    """
    Return what its provider says about one model now.

        model = await served_model("anthropic:claude-haiku-4-5")
        print(model.context_window, model.max_output_tokens)

    A model that the provider does not serve raises `NotFoundError`; a provider that describes no
    single models, `UnsupportedError`: use `served_models`.
    """
    call = MediaCall(model, options)
    value = OperationInput(**call.fields())
    found: ServedModel = await call.run(call.perform("retrieve_model", value))
    return found


async def count_tokens(
    model: str,
    prompt: Prompt = None,
    *,
    messages: AnyMessage | Iterable[AnyMessage] | None = None,
    system: str | None = None,
    tools: Iterable[ToolOrFunction] | None = None,
    **options: Unpack[MediaOptions],
) -> int:
    """
    Count the input tokens of a prompt, as the provider counts them.

        tokens = await count_tokens("anthropic:claude-haiku-4-5", "How long is this?")

    A provider that cannot count raises `UnsupportedError`; `client.estimate_input_tokens` estimates
    without a network.
    """
    call = MediaCall(model, options)
    conversation = make_messages(prompt, messages, system)
    request = check_request(
        Request(messages=conversation, tools=read_tools(tools), **call.fields())
    )
    tokens: int = await call.run(call.perform("count_tokens", request))
    return tokens
