"""Lists of models, of OpenAI and of compatible hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlingua.dialects.openai_shared.rules import without_none
from interlingua.spec.content import Json
from interlingua.spec.operations import Operation, ServedModel
from interlingua.wire.fields import extra_of
from interlingua.wire.models import ModelFields, read_models, retrieve_model, write_price

# OpenAI's list has none of these (recorded: `created`, `id`, `object`, `owned_by`). The names are
# those of other hosts: OpenRouter and Groq have `context_length`, Mistral `max_context_length`,
# vLLM `max_model_len`, llama.cpp `meta.n_ctx`, Groq `max_output_length`, GitHub Copilot
# `capabilities.limits`.
MODEL_FIELDS = ModelFields(
    name=("display_name", "displayName", "name"),
    context_window=(
        *("context_length", "context_window", "max_context_length", "max_model_len", "meta.n_ctx"),
        *("max_input_tokens", "inputTokenLimit", "capabilities.limits.max_context_window_tokens"),
        "capabilities.limits.max_prompt_tokens",
    ),
    max_output_tokens=(
        *("max_completion_tokens", "top_provider.max_completion_tokens", "max_output_tokens"),
        *("max_output_length", "max_tokens", "outputTokenLimit"),
        "capabilities.limits.max_output_tokens",
    ),
    id_prefix="models/",  # of Gemini's address for clients of OpenAI
)


def list_models(models: Sequence[ServedModel], query: Mapping[str, str]) -> Json:  # noqa: ARG001
    """The list of all models; OpenAI's list has no pages."""
    return {"object": "list", "data": [describe_model(model) for model in models]}


def describe_model(model: ServedModel) -> dict[str, Json]:
    """
    The description of one model; an unknown date is sent as 0.

    OpenAI's own list has only the first four fields; the other names are in use at other hosts.
    """
    known: dict[str, Json] = {
        "name": model.name,
        "description": model.description,
        "context_length": model.context_window,
        "max_completion_tokens": model.max_output_tokens,
        "input_modalities": _listed(model.input_modalities),
        "output_modalities": _listed(model.output_modalities),
        "capabilities": without_none(
            function_calling=model.supports_tools,
            reasoning=model.supports_reasoning,
            structured_outputs=model.supports_structured_output,
        ),
        "pricing": without_none(
            prompt=_price(model.input_cost_per_million),
            completion=_price(model.output_cost_per_million),
        ),
    }
    return {
        "id": model.id,
        "object": "model",
        "created": int(model.created_at or 0),
        "owned_by": model.owner or model.provider,
        **{name: value for name, value in known.items() if value},
        **extra_of(model, "openai"),
    }


def _listed(words: tuple[str, ...] | None) -> list[str] | None:
    return None if words is None else list(words)


def _price(price: float | None) -> str | None:
    return None if price is None else write_price(price)


def decode_models(_status: int, _headers: Mapping[str, str], body: bytes) -> list[ServedModel]:
    """The models of one page."""
    return read_models(body, MODEL_FIELDS, "openai", describe_model)


def list_body(rows: Sequence[Mapping[str, Json]], *, has_more: bool) -> dict[str, Json]:
    """One page of a list with these rows, each of which has an `id`."""
    ids = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
    return {"object": "list", "data": list(rows), "has_more": has_more, **ids}


def model_operation() -> Operation:
    """The operation that asks for one model."""
    return retrieve_model("/v1/models", MODEL_FIELDS, "openai", describe_model)
