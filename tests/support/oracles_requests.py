"""
The vendors' own types as judges of the requests we write.

A body is read as JSON, strictly: no field that the type does not have, no text for a number,
every item of every list. The SDKs type requests as TypedDicts (google-genai as models);
answers that they let pass for requests as well are not let pass here, since those take any
field.
"""

import functools
import json
import warnings
from collections.abc import Callable
from typing import Any, Literal

import pydantic
from anthropic.types import message_count_tokens_params, message_create_params
from google.genai import _common, types
from openai.types.chat import completion_create_params
from openai.types.responses import input_token_count_params, response_create_params
from pydantic_core import SchemaValidator

from support.oracles_botocore import body_problems

MOST = 5


class _Nothing:
    """No JSON value is one of these."""


def problems(dialect: str, body: Any, path: str = "") -> list[str]:
    """What the vendor's type has against a body, most telling first; empty if nothing."""
    if dialect == "bedrock_converse":
        return body_problems(body)[:MOST]
    with warnings.catch_warnings(record=True) as caught:  # google-genai warns of unknown words
        warnings.simplefilter("always")
        try:
            _judge(dialect, path)(json.dumps(body))
        except pydantic.ValidationError as error:
            return _tell(error)
        except AttributeError as error:  # google-genai looks for a word in what is none
            return [str(error)]
    return [str(warning.message) for warning in caught]


def _judge(dialect: str, path: str) -> Callable[[str], Any]:
    if dialect == "gemini_generate":
        return functools.partial(_Body.model_validate_json, strict=True)
    counts = path.endswith(("/count_tokens", "/input_tokens"))
    return functools.partial(_validator(_TYPES[dialect][counts]).validate_json, strict=True)


_TYPES = {
    "openai_chat": (completion_create_params.CompletionCreateParams,) * 2,
    "openai_responses": (
        response_create_params.ResponseCreateParams,
        input_token_count_params.InputTokenCountParams,
    ),
    "anthropic_messages": (
        message_create_params.MessageCreateParams,
        message_count_tokens_params.MessageCountTokensParams,
    ),
}


@functools.cache
def _validator(kind: Any) -> SchemaValidator:
    return SchemaValidator(_sharpen(pydantic.TypeAdapter(kind).core_schema))


def _sharpen(node: Any) -> Any:
    """The same schema, closed: no unknown fields, no lazy lists, no answers."""
    if isinstance(node, list):
        return [_sharpen(item) for item in node]
    if isinstance(node, tuple):
        return tuple(_sharpen(item) for item in node)
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if kind == "model":
        return {"type": "is-instance", "cls": _Nothing, **_reference(node)}
    sharp = {key: _sharpen(value) for key, value in node.items()}
    if kind == "typed-dict" and "extras_schema" not in node:
        sharp["extra_behavior"] = "forbid"
    if kind == "generator":  # read only when it is run through
        return {"type": "list", "items_schema": sharp["items_schema"], **_reference(node)}
    return sharp


def _reference(node: dict[str, Any]) -> dict[str, Any]:
    return {"ref": node["ref"]} if "ref" in node else {}


class _Content(types.Content):
    role: Literal["user", "model"] | None = None


class _Body(_common.BaseModel):
    """The body of `generateContent`, which the SDK has no one type for."""

    contents: list[_Content] | None = None
    system_instruction: types.Content | None = None
    tools: list[types.Tool] | None = None
    tool_config: types.ToolConfig | None = None
    generation_config: types.GenerationConfig | None = None
    safety_settings: list[types.SafetySetting] | None = None
    cached_content: str | None = None


def _tell(error: pydantic.ValidationError) -> list[str]:
    """Of the many ways in which no member of a union fits, those that came furthest."""
    found = sorted(error.errors(include_url=False), key=lambda one: -len(one["loc"]))
    return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found[:MOST]]
