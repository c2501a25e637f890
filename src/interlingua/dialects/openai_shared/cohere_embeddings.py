"""
Cohere's `POST /v2/embed`: both sides.

Its address for clients of OpenAI also has embeddings, but without task types and dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.dialects.openai_shared.embeddings import (
    OWNER,
    decode_image,
    decode_parts,
    dropped,
    image_url,
    is_tokens,
    no_media,
    no_tokens,
    served_dimensions,
    served_fields,
    write_vector,
)
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Image, Json, Part, Text
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError
from interlingua.spec.modalities.embeddings import (
    EmbedContent,
    EmbedInput,
    EmbedResult,
    TaskType,
    decode_vector,
)
from interlingua.spec.operations import InputLimits, Operation, ServedReply
from interlingua.spec.response import Usage, Warning
from interlingua.wire.fields import Fields, count, extra_of, restore
from interlingua.wire.json_text import loads
from interlingua.wire.resources import serve

# The base URL ends with `/compatibility/v1`; the endpoint is beside it, not below it.
_PATH = "../../v2/embed"
_TASKS: Mapping[TaskType, str] = {
    "query": "search_query",
    "document": "search_document",
    "classification": "classification",
    "clustering": "clustering",
}
_TASK_NAMES = {name: task for task, name in _TASKS.items()}
_DEFAULT_TASK = "search_document"  # `input_type` is required for all models since version 3
# https://docs.cohere.com/reference/embed: at most 96 texts in a call. The limit of bytes is ours: a
# body with images stays below what load balancers accept.
_LIMITS = InputLimits(items=96, bytes=15_000_000)


def cohere_embed(name: str) -> Operation:
    """The operation for a dialect of this name."""

    def encode(value: EmbedInput, _profile: Profile) -> WireCall:
        warnings: list[Warning] = []
        if value.task is not None and value.task not in _TASKS:
            warnings.append(dropped(value, "task", f" {value.task!r}"))
        if value.user is not None:
            warnings.append(dropped(value, "user"))
        body: dict[str, Json] = {
            "model": value.model,
            **_inputs(value),
            "input_type": _TASKS.get(value.task or "document", _DEFAULT_TASK),
            # Without it, only floats are returned; base64 has less than half the size.
            "embedding_types": [value.encoding or "base64"],
        }
        if value.dimensions is not None:
            body["output_dimension"] = value.dimensions
        body = body_with_options(restore(body, value, OWNER), value, name)
        return WireCall(path=_PATH, body=body, warnings=tuple(warnings))

    return Operation(name="embed", encode=encode, decode=_decode, limits=lambda _value: _LIMITS)


def _inputs(value: EmbedInput) -> dict[str, Json]:
    texts = [content for content in value.inputs if isinstance(content, str)]
    if len(texts) == len(value.inputs):
        return {"texts": texts}
    return {"inputs": [{"content": _blocks(content, value)} for content in value.inputs]}


def _blocks(content: EmbedContent, value: EmbedInput) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if is_tokens(content):
        raise no_tokens(value)
    return [_block(part, value) for part in content]


def _block(part: Part | int, value: EmbedInput) -> Json:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if not isinstance(part, Image):
        raise no_media(value, (part,))
    return {"type": "image_url", "image_url": {"url": image_url(part, value)}}


def _decode(_status: int, _headers: Mapping[str, str], body: bytes) -> EmbedResult:
    fields = Fields(loads(body), strict=False)
    given = fields.object("embeddings") or {}
    rows = given.get("base64") or given.get("float")
    if not isinstance(rows, list):
        raise DecodeError("The reply has no embeddings of 32-bit numbers.")
    fields.take("texts")  # the inputs again
    meta = fields.left.get("meta")
    # There is no `usage`: what is billed is in `meta`, text and images apart.
    billed = meta.get("billed_units") if isinstance(meta, dict) else None
    billed = billed if isinstance(billed, dict) else {}
    text, images = count(billed.get("input_tokens")), count(billed.get("image_tokens"))
    return EmbedResult(
        embeddings=tuple(map(decode_vector, rows)),
        usage=Usage(
            input_tokens=(text or 0) + (images or 0),
            input_image_tokens=images or None,
            raw=billed or None,
        ),
        extra={OWNER: fields.left} if fields.left else {},
        raw=dict(fields.left),
    )


def _decode_served(call: WireCall, _params: Mapping[str, str]) -> EmbedInput:
    fields = served_fields(call)
    given: tuple[EmbedContent, ...]
    texts, inputs = fields.array("texts"), fields.array("inputs")
    images = fields.array("images")
    if texts and all(isinstance(text, str) for text in texts):
        given = tuple(texts)
    elif inputs and all(isinstance(each, dict) for each in inputs):
        given = tuple(decode_parts(each.get("content")) for each in inputs)
    elif images:
        given = tuple((decode_image(str(image)),) for image in images)
    else:
        raise InvalidRequestError("Valid texts, images or inputs are required.", status_code=400)
    task = fields.text("input_type")
    if task is None:
        raise InvalidRequestError("'input_type' is required.", status_code=400)
    types = fields.take("embedding_types")
    return EmbedInput(
        model=fields.text("model") or "",
        inputs=given,
        task=_TASK_NAMES.get(task),
        dimensions=served_dimensions(fields),
        encoding="base64" if isinstance(types, list) and "base64" in types else "float",
        extra={OWNER: fields.left} if fields.left else {},
    )


def _encode_served(result: EmbedResult, value: EmbedInput) -> ServedReply:
    name = value.encoding or "float"
    units = result.usage.raw or {"input_tokens": result.usage.input_tokens}
    body = {
        "id": "simulated",
        "embeddings": {name: [write_vector(vector, name) for vector in result.embeddings]},
        "texts": [content for content in value.inputs if isinstance(content, str)],
        "meta": {"api_version": {"version": "2"}, "billed_units": units},
        "response_type": "embeddings_by_type",
    }
    return ServedReply(body={**body, **extra_of(result, OWNER)})


SERVED = (serve("embed", "POST", r".*/v2/embed", _decode_served, _encode_served),)
