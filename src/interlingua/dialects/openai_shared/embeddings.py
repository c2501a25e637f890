"""`POST /v1/embeddings`: both sides; also as Mistral, Voyage, Jina and others have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

import msgspec

from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Image, Json, Part, Text
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError, UnsupportedError
from interlingua.spec.modalities.embeddings import (
    EmbedContent,
    EmbedInput,
    EmbedResult,
    TaskType,
    Vector,
    VectorEncoding,
    decode_int8,
    decode_vector,
    encode_vector,
)
from interlingua.spec.operations import InputLimits, Operation, ServedReply
from interlingua.spec.response import Usage, Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import Fields, count, extra_of, restore
from interlingua.wire.json_text import loads
from interlingua.wire.media import encode_base64, make_data_url, parse_data_url
from interlingua.wire.resources import serve
from interlingua.wire.usage import own_cost

PATH = "/v1/embeddings"
OWNER = "openai"
"""The key of other fields in `extra`."""
_MULTIMODAL_PATH = "/v1/multimodalembeddings"
_MAX_DIMENSIONS = 65_536  # far above any model's, so that a server cannot be made to fill memory
WHO_TAKES_IMAGES = "These providers have models for images: cohere, gemini, jina, voyage."


class EmbedForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a host's `/v1/embeddings` differs from OpenAI's."""

    dimensions: str = "dimensions"
    encoding: str = "encoding_format"
    default_encoding: VectorEncoding = "base64"
    """
    What is asked for if the caller does not say: base64 has less than half the size.

    OpenAI's own SDK asks every server for it. `float` is sent as no field at all.
    """
    task: str = ""
    """The field of the task; empty if the host has none."""
    tasks: Mapping[TaskType, str] = {}
    takes_user: bool = False
    takes_tokens: bool = False
    takes_images: bool = False
    is_int8: bool = False
    """Whether the host sends only base64 of 8-bit integers; no encoding is asked for."""
    # The SDK's `EmbeddingCreateParams.input`: «any array must be 2048 dimensions or less», «a
    # maximum of 300,000 tokens summed across all inputs».
    limits: InputLimits = InputLimits(items=2048, tokens=300_000)


# The SDK: `input` may be tokens, and `user` «can help OpenAI to monitor and detect abuse».
OPENAI = EmbedForm(takes_user=True, takes_tokens=True)
# For servers that refuse `encoding_format`.
FLOAT = EmbedForm(default_encoding="float", takes_user=True, takes_tokens=True)
# 257 inputs were refused in a recording: «Too many inputs in request, split into more batches». The
# limit of tokens is from the documentation, https://docs.mistral.ai/api
MISTRAL = EmbedForm(dimensions="output_dimension", limits=InputLimits(items=256, tokens=16_000))
# https://docs.voyageai.com/reference/embeddings-api: from 120,000 to 1,000,000 tokens by model.
VOYAGE = EmbedForm(
    dimensions="output_dimension",
    task="input_type",
    tasks={"query": "query", "document": "document"},
    takes_images=True,
    limits=InputLimits(items=1000, tokens=120_000, bytes=15_000_000),
)
# https://jina.ai/embeddings/
JINA = EmbedForm(
    encoding="embedding_type",
    task="task",
    tasks={
        "query": "retrieval.query",
        "document": "retrieval.passage",
        "similarity": "text-matching",
        "classification": "classification",
        "clustering": "separation",
        "code_query": "code.query",
    },
    takes_images=True,
    limits=InputLimits(items=512, bytes=15_000_000),
)
# Recorded: base64, although no `encoding_format` was asked for, of one byte for each dimension.
PERPLEXITY = EmbedForm(
    is_int8=True,
    limits=InputLimits(items=512, tokens=120_000),
)
_FORMS = {"": OPENAI, "float": FLOAT, "jina": JINA, "mistral": MISTRAL, "perplexity": PERPLEXITY}
_TASKS: Mapping[str, TaskType] = {
    name: task for form in (VOYAGE, JINA) for task, name in form.tasks.items()
}


# Client side.


def embed_operations(name: str) -> dict[str, Operation]:
    """The operation for a dialect of this name, in all its variants."""
    operations = {
        f"embed.{variant}".rstrip("."): _operation(name, form) for variant, form in _FORMS.items()
    }
    return {**operations, "embed.voyage": _voyage(name)}


def _operation(name: str, form: EmbedForm) -> Operation:
    def encode(value: EmbedInput, _profile: Profile) -> WireCall:
        inputs = [_encode_input(content, value, form) for content in value.inputs]
        fields, warnings = settings_of(value, form)
        body = restore({"model": value.model, "input": inputs, **fields}, value, OWNER)
        return WireCall(path=PATH, body=body_with_options(body, value, name), warnings=warnings)

    decode = decode_integers if form.is_int8 else decode_embeddings
    return Operation(name="embed", encode=encode, decode=decode, limits=lambda _value: form.limits)


def _voyage(name: str) -> Operation:
    """Models for images have an endpoint of their own, also for text."""
    plain = _operation(name, VOYAGE)

    def encode(value: EmbedInput, profile: Profile) -> WireCall:
        is_media = any(isinstance(content, tuple) for content in value.inputs)
        if plain.encode is not None and not is_media and "multimodal" not in value.model:
            return plain.encode(value, profile)
        inputs = [{"content": _voyage_content(content, value)} for content in value.inputs]
        fields, warnings = settings_of(value, VOYAGE)
        # The field has another name at this endpoint.
        if "encoding_format" in fields:
            fields["output_encoding"] = fields.pop("encoding_format")
        body = restore({"model": value.model, "inputs": inputs, **fields}, value, OWNER)
        body = body_with_options(body, value, name)
        return WireCall(path=_MULTIMODAL_PATH, body=body, warnings=warnings)

    return msgspec.structs.replace(plain, encode=encode)


def settings_of(value: EmbedInput, form: EmbedForm) -> tuple[dict[str, Json], tuple[Warning, ...]]:
    """The fields of the settings, and warnings about settings that the host does not have."""
    fields: dict[str, Json] = {}
    warnings: list[Warning] = []
    if value.dimensions is not None:
        fields[form.dimensions] = value.dimensions
    if (value.encoding or form.default_encoding) == "base64" and not form.is_int8:
        fields[form.encoding] = "base64"
    if value.task is not None and value.task in form.tasks:
        fields[form.task] = form.tasks[value.task]
    elif value.task is not None:
        warnings.append(dropped(value, "task", f" {value.task!r}"))
    if value.user is not None and form.takes_user:
        fields["user"] = value.user
    elif value.user is not None:
        warnings.append(dropped(value, "user"))
    return fields, tuple(warnings)


def dropped(value: EmbedInput, setting: str, when: str = "") -> Warning:
    """The warning about a setting that the host does not have."""
    target = f"{value.provider}:{value.model}" if value.provider else value.model
    return make_warning("setting_dropped", path=setting, target=target, setting=setting, when=when)


def _encode_input(content: EmbedContent, value: EmbedInput, form: EmbedForm) -> Json:
    if isinstance(content, str):
        return content
    if is_tokens(content):
        if not form.takes_tokens:
            raise no_tokens(value)
        return list(content)
    if len(content) == 1 and isinstance(content[0], Text):
        return content[0].text
    image = content[0]
    if not form.takes_images or len(content) != 1 or not isinstance(image, Image):
        raise no_media(value, content)
    return {"image": image.url or encode_base64(_data(image, value))}


def _voyage_content(content: EmbedContent, value: EmbedInput) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if is_tokens(content):
        raise no_tokens(value)
    return [_voyage_part(part, value) for part in content]


def _voyage_part(part: Part | int, value: EmbedInput) -> Json:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if not isinstance(part, Image):
        raise no_media(value, (part,))
    if part.url:
        return {"type": "image_url", "image_url": part.url}
    return {"type": "image_base64", "image_base64": image_url(part, value)}


def is_tokens(content: Sequence[object]) -> TypeGuard[Sequence[int]]:
    """Whether the content is the ids of tokens."""
    return all(type(item) is int for item in content)


def image_url(image: Image, value: EmbedInput) -> str:
    """The image as a URL; its bytes as a data URL."""
    return image.url or make_data_url(_data(image, value), image.media_type)


def _data(image: Image, value: EmbedInput) -> bytes:
    if image.data is None:
        raise UnsupportedError(f"{value.model} takes images as bytes or by URL, not by file id.")
    return image.data


def no_tokens(value: EmbedInput) -> UnsupportedError:
    """The error for token ids that the host does not take."""
    return UnsupportedError(f"{value.model} takes texts, not the ids of tokens. Pass the text.")


def no_media(value: EmbedInput, content: Sequence[Part | int]) -> UnsupportedError:
    """The error for parts that the host does not take."""
    parts = [part for part in content if not isinstance(part, int)]
    kinds = " and ".join(dict.fromkeys(part.kind for part in parts))
    return UnsupportedError(
        f"{value.model} cannot make one embedding of {kinds}. {WHO_TAKES_IMAGES}"
    )


def decode_embeddings(_status: int, _headers: Mapping[str, str], body: bytes) -> EmbedResult:
    """The vectors of a reply, in the order of their indexes."""
    return _read(body, decode_vector)


def decode_integers(_status: int, _headers: Mapping[str, str], body: bytes) -> EmbedResult:
    """The vectors of a reply of a host that sends 8-bit integers."""
    return _read(body, decode_int8)


def _read(body: bytes, decode: Callable[[Json], Vector]) -> EmbedResult:
    fields = reply_fields(loads(body))
    rows = fields.array("data")
    if rows is None:
        raise DecodeError("The reply has no embeddings.")
    if not all(isinstance(row, dict) for row in rows):
        raise DecodeError("An embedding in the reply is not an object.")
    indexes = [row.get("index") for row in rows]
    # The order of the rows is not promised; the index is. Servers without indexes keep the order.
    if indexes != [*range(len(rows))] and all(type(index) is int for index in indexes):
        rows = sorted(rows, key=lambda row: row["index"])
    vectors = tuple(decode(row.get("embedding")) for row in rows)
    raw = dict(fields.left)
    usage = read_usage(fields.object("usage") or {})
    model = fields.text("model") or ""
    others = [_rest(row) for row in rows]
    extra = {**fields.left, **({"items": others} if any(others) else {})}
    return EmbedResult(
        model=model, embeddings=vectors, usage=usage, extra={OWNER: extra} if extra else {}, raw=raw
    )


def reply_fields(value: Json) -> Fields:
    """The fields of a reply; `object` says nothing that the path did not say."""
    fields = Fields(value, strict=False)
    fields.text("object")
    return fields


def _rest(row: Mapping[str, Json]) -> dict[str, Json]:
    return {name: row[name] for name in row.keys() - {"object", "index", "embedding"}}


def read_usage(usage: dict[str, Json]) -> Usage:
    """The tokens and the cost that a host reports."""
    tokens = count(usage.get("prompt_tokens"))
    # Voyage reports only the total (recorded).
    tokens = count(usage.get("total_tokens")) if tokens is None else tokens
    cost = usage.get("cost")
    if isinstance(cost, dict):  # Perplexity
        cost = cost.get("total_cost")
    return Usage(
        input_tokens=tokens or 0,
        input_image_tokens=count(usage.get("image_tokens")) or None,
        reported_cost=own_cost({**usage, "cost": cost}),
        raw=usage or None,
    )


# Server side.


def _decode_served(call: WireCall, _params: Mapping[str, str]) -> EmbedInput:
    fields = served_fields(call)
    given = fields.take("input")
    if not isinstance(given, (str, list)) or given == []:
        message = "'input' must be a text or a list that is not empty."
        raise InvalidRequestError(message, error_code="invalid_type", status_code=400)
    # A list of integers is one text as tokens; a list of texts or of such lists is several.
    is_one = isinstance(given, str) or all(type(item) is int for item in given)
    contents = [given] if is_one else given
    return served_input(fields, tuple(_decode_content(content) for content in contents))


def _decode_multimodal(call: WireCall, _params: Mapping[str, str]) -> EmbedInput:
    fields = served_fields(call)
    inputs = fields.array("inputs")
    if not inputs or not all(isinstance(each, dict) for each in inputs):
        raise InvalidRequestError("'inputs' must be a list of objects.", status_code=400)
    return served_input(fields, tuple(decode_parts(each.get("content")) for each in inputs))


def served_fields(call: WireCall) -> Fields:
    """The fields of a request."""
    return Fields(call.body if isinstance(call.body, dict) else {}, strict=False)


def served_input(fields: Fields, inputs: tuple[EmbedContent, ...]) -> EmbedInput:
    """The value of a request, whichever host's names its settings have."""
    encodings = [fields.take(name) for name in ("encoding_format", "embedding_type")]
    encodings.append(fields.take("output_encoding"))
    task_field = "input_type" if "input_type" in fields.left else "task"
    task = _TASKS.get(str(fields.left.get(task_field)))
    if task is not None:
        fields.take(task_field)
    return EmbedInput(
        model=fields.text("model") or "",
        inputs=inputs,
        dimensions=served_dimensions(fields),
        encoding="base64" if "base64" in encodings else "float",
        task=task,
        user=fields.text("user"),
        extra={OWNER: fields.left} if fields.left else {},
    )


def served_dimensions(fields: Fields) -> int | None:
    """The number of dimensions that a request asks for, by either of its names."""
    dimensions = fields.integer("dimensions") or fields.integer("output_dimension")
    if dimensions is not None and not 0 < dimensions <= _MAX_DIMENSIONS:
        message = f"'dimensions' must be between 1 and {_MAX_DIMENSIONS}."
        raise InvalidRequestError(message, status_code=400)
    return dimensions


def _decode_content(content: Json) -> EmbedContent:
    if isinstance(content, str):
        return content
    if isinstance(content, list) and is_tokens(content):
        return tuple(content)
    block = content if isinstance(content, dict) else {}
    text, image = block.get("text"), block.get("image")
    if isinstance(text, str):
        return text
    if isinstance(image, str):
        return (decode_image(image),)
    raise InvalidRequestError("An input is neither text nor an image.", status_code=400)


def decode_parts(content: Json) -> tuple[Part, ...]:
    """The parts of one multimodal input."""
    parts: list[Part] = []
    for block in content if isinstance(content, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            parts.append(Text(text=str(block.get("text", ""))))
        elif kind in ("image_url", "image_base64"):
            link = block.get(kind)
            link = link.get("url") if isinstance(link, dict) else link
            parts.append(decode_image(str(link)))
    if not parts:
        raise InvalidRequestError("An input has no content.", status_code=400)
    return tuple(parts)


def decode_image(link: str) -> Image:
    """The image of a URL, a data URL, or base64."""
    if link.startswith(("http://", "https://")):
        return Image(url=link)
    content = parse_data_url(link if link.startswith("data:") else f"data:;base64,{link}")
    if content is None or not content[0]:
        raise InvalidRequestError("An image is neither a URL nor base64.", status_code=400)
    data, media_type = content
    return Image(data=data, media_type=media_type)


def write_vector(vector: Vector, encoding: VectorEncoding) -> str | list[float]:
    """A vector in the encoding that a request asked for."""
    return encode_vector(vector) if encoding == "base64" else vector.tolist()


def _encode_served(result: EmbedResult, value: EmbedInput) -> ServedReply:
    extra = dict(extra_of(result, OWNER))
    others = extra.pop("items", None) or [{}] * len(result.embeddings)
    encoding = value.encoding or "float"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": write_vector(vector, encoding),
            **others[index],
        }
        for index, vector in enumerate(result.embeddings)
    ]
    tokens = result.usage.input_tokens
    usage = result.usage.raw or {"prompt_tokens": tokens, "total_tokens": tokens}
    body = {"object": "list", "data": data, "model": result.model, "usage": usage, **extra}
    return ServedReply(body=body)


SERVED = (
    serve("embed", "POST", r".*/embeddings", _decode_served, _encode_served),
    serve("embed", "POST", r".*/multimodalembeddings", _decode_multimodal, _encode_served),
)
