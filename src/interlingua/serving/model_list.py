"""The models that a `ClientApplication` lists, with what the catalog knows about them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime

from interlingua.client.client import Client
from interlingua.client.configured import row_of
from interlingua.providers.catalog.models import ModelInfo, find_model
from interlingua.providers.catalog.search import list_models
from interlingua.providers.operation_check import KIND_OF_OPERATION
from interlingua.serving.application import serve_of
from interlingua.spec.contracts import ModelKind
from interlingua.spec.operations import ServedModel


def served_kinds(dialect: str) -> set[ModelKind]:
    """The kinds of models that requests of this dialect can ask."""
    names = (operation.name for operation in getattr(serve_of(dialect), "SERVED", ()))
    return {"chat", *(KIND_OF_OPERATION[name] for name in names if name in KIND_OF_OPERATION)}


def describe_target(name: str, client: Client, provider: str, model: str) -> ServedModel:
    """A model of the client under a public name; only the name, if the catalog does not know it."""
    info = find_model(model, _section(client, provider))
    return ServedModel(id=name, provider=provider) if info is None else _read(name, provider, info)


def catalog_models(client: Client, kinds: Collection[ModelKind]) -> Iterator[ServedModel]:
    """The models of these kinds at every provider of the client, as `provider:model`."""
    today = datetime.now(UTC).date()
    for provider in tuple(client.calls.adapters):
        for info in list_models(_section(client, provider)):
            if info.kind in kinds and not _is_retired(info, today):
                yield _read(f"{provider}:{info.id}", provider, info)


def _section(client: Client, provider: str) -> str:
    """The name of a provider in the catalog."""
    row = row_of(client.calls.adapters.get(provider))
    return provider if row is None else row.name


def _is_retired(info: ModelInfo, today: date) -> bool:
    return info.retires is not None and info.retires <= today


def _read(name: str, provider: str, info: ModelInfo) -> ServedModel:
    released = info.released
    return ServedModel(
        id=name,
        provider=provider,
        name=info.display_name,
        created_at=None
        if released is None
        else datetime(released.year, released.month, released.day, tzinfo=UTC).timestamp(),
        context_window=info.context_window,
        max_output_tokens=info.max_output,
        input_modalities=info.input_modalities or None,
        output_modalities=info.output_modalities or None,
        supports_tools=info.supports_tools,
        supports_reasoning=info.supports_reasoning,
        supports_structured_output=info.supports_structured_output,
        input_cost_per_million=info.input_cost_per_million,
        output_cost_per_million=info.output_cost_per_million,
    )
