"""
What both of OpenAI's dialects share: schema and cache rules, and the server side besides the codec.

Error bodies are as recorded or documented. For a status that the vendor is not known to send, the
body has the usual shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from interlingua.prepare.cache import ALL
from interlingua.prepare.schema.read import DATES, DYNAMIC, SILENT, words
from interlingua.spec.content import Json
from interlingua.spec.errors import ContextLengthError
from interlingua.spec.facts import CacheStep, SchemaRules
from interlingua.spec.operations import Failure, Operation, ServedModel, ServerRoute
from interlingua.wire.classify import error_text, overflow_text
from interlingua.wire.fields import extra_of
from interlingua.wire.models import ModelFields, read_models, retrieve_model, write_price

# https://developers.openai.com/api/docs/guides/structured-outputs; beyond that page, recorded
# requests with `$schema`, `title`, `default` and any format of a number were accepted.
STRICT_SCHEMA = SchemaRules(
    name="OpenAI strict",
    # «'additionalProperties' is required to be supplied and to be false» (recorded, of a function).
    strict=True,
    # «'required' is required to be supplied and to be an array including every key in properties»
    # (recorded).
    all_required=True,
    # OpenAI's errors: «schema must have a 'type' key», «array schema missing items».
    typed_values=True,
    typed_items=True,
    object_root=True,  # the guide: «Root objects must not be `anyOf` and must be an object»
    lookaround=False,  # the guide does not promise it, and a refused schema fails the request
    keywords=words(
        "type description properties required additionalProperties items anyOf enum const "
        "$defs definitions $ref pattern format minimum maximum exclusiveMinimum "
        "exclusiveMaximum multipleOf minItems maxItems minLength maxLength title default $schema"
    ),
    silent=SILENT | {"$anchor"},  # a `$ref` to one is refused itself
    # The guide has the first name; older drafts of JSON Schema have the second.
    pointed=frozenset({"$defs", "definitions"}),
    # The guide lists `allOf`, `not`, `if`, `then`, `else` and the keywords of dependencies as not
    # supported. Without them, an answer could be valid that the schema forbids.
    blocking=DYNAMIC
    | words(
        "allOf not if then else patternProperties propertyNames unevaluatedProperties "
        "dependentRequired dependentSchemas dependencies prefixItems"
    ),
    # The guide's list of supported values of `format`.
    formats=DATES | {"email", "hostname", "ipv4", "ipv6", "uuid"},
)
"""Tools with `strict: true`, and `json_schema` formats with `strict: true`."""

# https://developers.openai.com/api/docs/guides/prompt-caching: requests are routed by their prefix
# and the key. A change of either field is among the reasons for a miss in the SDK's
# `PromptCacheDiagnosticsCacheMiss`.
CACHE_KEY_STEPS = (
    CacheStep(fields=("prompt_cache_key",), code="prompt_cache_key_changed", cost=ALL),
    CacheStep(fields=("service_tier",), code="service_tier_changed", cost=ALL),
)
"""What leads a call to the machine that has its prompt."""


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
KEY_HEADERS = ("authorization", "api-key")  # the second is Azure's
LIMIT_HEADERS = {
    "requests_limit": "x-ratelimit-limit-requests",
    "requests_remaining": "x-ratelimit-remaining-requests",
    "requests_reset": "x-ratelimit-reset-requests",
    "tokens_limit": "x-ratelimit-limit-tokens",
    "tokens_remaining": "x-ratelimit-remaining-tokens",
    "tokens_reset": "x-ratelimit-reset-tokens",
}
MODEL_ROUTES = (
    ServerRoute(method="GET", pattern=re.compile(r".*/models"), kind="models", is_shared=True),
    ServerRoute(
        method="GET", pattern=re.compile(r".*/models/(?P<model>.+)"), kind="model", is_shared=True
    ),
)
_MISSING_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header "
    "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
)
_WRONG_KEY = (
    "Incorrect API key provided: simulated. You can find your API key at "
    "https://platform.openai.com/account/api-keys."
)
_NO_MODEL = "The model `{model}` does not exist or you do not have access to it."
_WRONG_COUNTRY = "Country, region, or territory not supported"
_RATE_LIMIT = "Rate limit reached for {model} on requests per min (RPM). Please try again later."
_INVALID = "invalid_request_error"
_FAILED = "The server had an error while processing your request. Sorry about that!"

# Type, code, message; those of 401 and 404 are recorded, that of 403 is documented:
# https://platform.openai.com/docs/guides/error-codes
_ERRORS: dict[int, tuple[str, str | None, str]] = {
    400: (_INVALID, "unsupported_value", "Unsupported value: this request cannot be processed."),
    401: (_INVALID, "invalid_api_key", _WRONG_KEY),
    402: ("insufficient_quota", "insufficient_quota", "Your account has no credit left."),
    403: (_INVALID, "unsupported_country_region_territory", _WRONG_COUNTRY),
    404: (_INVALID, "model_not_found", _NO_MODEL),
    408: ("timeout_error", None, "Request timed out."),
    409: (_INVALID, "conflict", "The resource is being changed by another request."),
    413: (_INVALID, None, "Request body is too large."),
    422: (_INVALID, None, "The request could not be processed."),
    429: ("rate_limit_error", "rate_limit_exceeded", _RATE_LIMIT),
    500: ("server_error", None, _FAILED),
    503: ("server_error", None, "The engine is currently overloaded, please try again later"),
    529: ("server_error", None, "Overloaded"),  # Anthropic's status, which proxies pass on
}

# Functions of the protocol `Serve`.


def error_body(failure: Failure, *, model: str, request_id: str) -> Json:  # noqa: ARG001
    """
    The body for a status; None for a status that a load balancer sends, without JSON.

    The request id is sent only in a header.
    """
    if failure.status not in _ERRORS and failure.message is None and failure.status > 500:
        return None
    usual = "server_error" if failure.status >= 500 else _INVALID
    kind, code, message = _ERRORS.get(failure.status, (usual, None, f"Error {failure.status}"))
    message = failure.message or message.replace("{model}", model)
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


_TOO_LONG = (
    "This model's maximum context length is {limit} tokens. However, your messages resulted in "
    "{used} tokens. Please reduce the length of the messages."
)


def openai_error_text(error: Exception) -> str:
    """The message of an error; for a prompt that is too long, in OpenAI's words."""
    if isinstance(error, ContextLengthError):
        return overflow_text(error, "maximum context length", _TOO_LONG)
    return error_text(error)


def wrong_key(*, is_missing: bool, message: str | None = None) -> Failure:
    """The failure for a request whose key is missing or wrong."""
    return Failure(status=401, message=message or (_MISSING_KEY if is_missing else None))


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


def without_none(**fields: Json) -> dict[str, Json]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def _listed(words: tuple[str, ...] | None) -> list[str] | None:
    return None if words is None else list(words)


def _price(price: float | None) -> str | None:
    return None if price is None else write_price(price)


def decode_models(_status: int, _headers: Mapping[str, str], body: bytes) -> list[ServedModel]:
    """The models of one page."""
    return read_models(body, MODEL_FIELDS, "openai", describe_model)


def model_operation() -> Operation:
    """The operation that asks for one model."""
    return retrieve_model("/v1/models", MODEL_FIELDS, "openai", describe_model)


def list_body(rows: Sequence[Mapping[str, Json]], *, has_more: bool) -> dict[str, Json]:
    """One page of a list with these rows, each of which has an `id`."""
    ids = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
    return {"object": "list", "data": list(rows), "has_more": has_more, **ids}
