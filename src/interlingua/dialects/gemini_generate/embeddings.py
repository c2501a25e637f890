"""Embeddings: `embedContent`, `batchEmbedContents`, and Vertex AI's `predict`; both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec.structs import replace

from interlingua.dialects.gemini_generate.facts import MODEL_PATH, NAME
from interlingua.dialects.gemini_generate.request import decode_request, encode_request
from interlingua.dialects.gemini_generate.response import decode_usage
from interlingua.prepare.options import merge_options
from interlingua.spec.content import Json, Text
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError, UnsupportedError
from interlingua.spec.messages import Message
from interlingua.spec.modalities.embeddings import (
    EmbedContent,
    EmbedInput,
    EmbedResult,
    TaskType,
    decode_vector,
)
from interlingua.spec.operations import InputLimits, Operation, ServedReply
from interlingua.spec.request import Request
from interlingua.spec.response import Usage, Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import Fields, count, extra_of
from interlingua.wire.json_text import loads
from interlingua.wire.resources import serve

_PATH = "/v1beta/models/{model}:{method}"
_VERTEX_PATH = "/models/{model}:{method}"  # its base URL has the version and the project
_TASKS: Mapping[TaskType, str] = {
    "query": "RETRIEVAL_QUERY",
    "document": "RETRIEVAL_DOCUMENT",
    "similarity": "SEMANTIC_SIMILARITY",
    "classification": "CLASSIFICATION",
    "clustering": "CLUSTERING",
    "question_answering": "QUESTION_ANSWERING",
    "fact_verification": "FACT_VERIFICATION",
    "code_query": "CODE_RETRIEVAL_QUERY",
}
_TASK_NAMES = {name: task for task, name in _TASKS.items()}
# https://ai.google.dev/gemini-api/docs/embeddings: these models ignore `taskType` (recordings with
# different types have equal vectors) and read the task from the text.
_PREFIXED = ("gemini-embedding-2",)
_PREFIXES: Mapping[TaskType, str] = {
    "query": "task: search result | query: ",
    "document": "title: none | text: ",
    "similarity": "task: sentence similarity | query: ",
    "classification": "task: classification | query: ",
    "clustering": "task: clustering | query: ",
    "question_answering": "task: question answering | query: ",
    "fact_verification": "task: fact checking | query: ",
    "code_query": "task: code retrieval | query: ",
}
# The models before gemini-embedding-2 embed only text.
_TEXT_ONLY = ("gemini-embedding-001", "text-embedding-", "text-multilingual-", "embedding-001")
_ITEMS = "items"
_MAX_DIMENSIONS = 65_536
_LIMITS = InputLimits(items=100, bytes=14_000_000)  # a request has at most 20 MB, as base64
# https://cloud.google.com/vertex-ai/generative-ai/docs/embeddings/get-text-embeddings
_PREDICT_LIMITS = InputLimits(items=250, tokens=20_000)
_ONE = InputLimits(items=1)


# Client side.


class _Contents(NamedTuple):
    """The contents of a value, each with its other fields, and warnings."""

    contents: list[dict[str, Json]]
    others: Sequence[Mapping[str, Json]]
    warnings: tuple[Warning, ...]


def _encode(value: EmbedInput, profile: Profile) -> WireCall:
    contents, others, warnings = _contents(value, profile)
    settings = _settings(value, "taskType", "outputDimensionality")
    options = value.provider_options.get(NAME, {})
    if len(contents) == 1:  # `batchEmbedContents` repeats model and settings in each request
        body = merge_options({"content": contents[0], **settings, **others[0]}, options)
        return WireCall(path=_path(value, "embedContent"), body=body, warnings=warnings)
    model = f"models/{value.model.removeprefix('models/')}"
    requests = [
        merge_options({"model": model, "content": content, **settings, **other}, options)
        for content, other in zip(contents, others, strict=True)
    ]
    path = _path(value, "batchEmbedContents")
    return WireCall(path=path, body={"requests": requests}, warnings=warnings)


def _encode_vertex(value: EmbedInput, profile: Profile) -> WireCall:
    """Vertex AI has `embedContent` for the newer models, and `predict` for the others."""
    if not _is_prefixed(value):
        return _encode_predict(value)
    contents, others, warnings = _contents(value, profile)
    if len(contents) != 1:
        raise UnsupportedError(f"{value.model} on Vertex AI embeds one content in each call.")
    config = _settings(value, "taskType", "outputDimensionality")
    body: dict[str, Json] = {"content": contents[0], **others[0]}
    if config:
        body["embedContentConfig"] = config
    body = merge_options(body, value.provider_options.get(NAME, {}))
    path = _path(value, "embedContent", _VERTEX_PATH)
    return WireCall(path=path, body=body, warnings=warnings)


def _encode_predict(value: EmbedInput) -> WireCall:
    settings = _settings(value, "task_type")
    others = _others(value)
    instances = [
        {"content": _only_text(content, value), **settings, **other}
        for content, other in zip(value.inputs, others, strict=True)
    ]
    body: dict[str, Json] = {"instances": instances}
    own = {} if value.dimensions is None else {"outputDimensionality": value.dimensions}
    unread = extra_of(value, NAME).get("parameters")
    if own or isinstance(unread, dict):
        body["parameters"] = {**own, **(unread if isinstance(unread, dict) else {})}
    body = merge_options(body, value.provider_options.get(NAME, {}))
    path = _path(value, "predict", _VERTEX_PATH)
    return WireCall(path=path, body=body, warnings=_user_warning(value))


def _path(value: EmbedInput, method: str, template: str = _PATH) -> str:
    model = quote(value.model.removeprefix("models/"), "@", errors="replace")
    return template.format(model=model, method=method)


def _settings(value: EmbedInput, task: str, dimensions: str = "") -> dict[str, Json]:
    fields: dict[str, Json] = {}
    if value.task is not None and not _is_prefixed(value):
        fields[task] = _TASKS[value.task]
    if value.dimensions is not None and dimensions:
        fields[dimensions] = value.dimensions
    return fields


def _is_prefixed(value: EmbedInput) -> bool:
    return value.model.removeprefix("models/").startswith(_PREFIXED)


def _others(value: EmbedInput) -> Sequence[Mapping[str, Json]]:
    others = extra_of(value, NAME).get(_ITEMS)
    return others if isinstance(others, list) else [{}] * len(value.inputs)


def _user_warning(value: EmbedInput) -> tuple[Warning, ...]:
    if value.user is None:
        return ()
    fields = {"target": value.model, "setting": "user", "when": ""}
    return (make_warning("user_dropped", path="user", **fields),)


def _contents(value: EmbedInput, profile: Profile) -> _Contents:
    contents: list[dict[str, Json]] = []
    warnings = [*_user_warning(value)]
    for content in value.inputs:
        if value.task is not None and _is_prefixed(value):
            content = _with_prefix(content, _PREFIXES[value.task])  # noqa: PLW2901
        if isinstance(content, str):
            contents.append({"parts": [{"text": content}]})
            continue
        parts, losses = _encode_parts(content, value, profile)
        contents.append({"parts": parts})
        warnings += losses
    return _Contents(contents, _others(value), tuple(warnings))


def _with_prefix(content: EmbedContent, prefix: str) -> EmbedContent:
    if isinstance(content, str):
        return prefix + content
    parts: list[Any] = [*content]
    for index, part in enumerate(parts):
        if isinstance(part, Text):
            parts[index] = replace(part, text=prefix + part.text)
            break
    return tuple(parts)


def _encode_parts(
    content: tuple[Any, ...], value: EmbedInput, profile: Profile
) -> tuple[Json, tuple[Warning, ...]]:
    if all(type(item) is int for item in content):
        raise UnsupportedError(f"{value.model} takes texts, not the ids of tokens. Pass the text.")
    is_text = all(isinstance(part, Text) for part in content)
    if not is_text and value.model.removeprefix("models/").startswith(_TEXT_ONLY):
        kinds = " and ".join(dict.fromkeys(part.kind for part in content))
        raise UnsupportedError(
            f"{value.model} cannot make one embedding of {kinds}. Use gemini-embedding-2."
        )
    request = Request(model=value.model, messages=(Message.user(content),), on_loss=value.on_loss)
    call = encode_request(request, profile)
    return call.body["contents"][0]["parts"], call.warnings


def _only_text(content: EmbedContent, value: EmbedInput) -> str:
    if isinstance(content, str):
        return content
    texts = [part.text for part in content if isinstance(part, Text)]
    if len(texts) != 1 or len(content) != 1:
        raise UnsupportedError(
            f"{value.model} on Vertex AI takes one text for each embedding. Use gemini-embedding-2."
        )
    return texts[0]


def _decode(_status: int, _headers: Mapping[str, str], body: bytes) -> EmbedResult:
    """The vectors of a reply of any of the methods."""
    fields = Fields(loads(body), strict=False)
    single, several = fields.object("embedding"), fields.array("embeddings")
    rows = several if single is None else [single]
    if rows is None:
        predictions = fields.array("predictions")
        rows = None if predictions is None else [_prediction(each) for each in predictions]
    if rows is None or not all(isinstance(row, dict) for row in rows):
        raise DecodeError("The reply has no embeddings.")
    raw = dict(fields.left)
    usage = _read_usage(fields.object("usageMetadata"), rows)
    others = [{name: row[name] for name in row.keys() - {"values"}} for row in rows]
    extra = {**fields.left, **({_ITEMS: others} if any(others) else {})}
    return EmbedResult(
        embeddings=tuple(decode_vector(row.get("values")) for row in rows),
        usage=usage,
        extra={NAME: extra} if extra else {},
        warnings=_truncated(others),
        raw=raw,
    )


def _prediction(prediction: Any) -> Any:
    return prediction.get("embeddings") if isinstance(prediction, dict) else None


def _read_usage(metadata: dict[str, Json] | None, rows: list[dict[str, Json]]) -> Usage:
    if metadata is not None:
        details = metadata.get("promptTokenDetails")  # in a batch it has this name
        known = metadata if details is None else {**metadata, "promptTokensDetails": details}
        return replace(decode_usage(known), raw=metadata)
    statistics = [row.get("statistics") for row in rows]
    tokens = [count(each.get("token_count")) for each in statistics if isinstance(each, dict)]
    return Usage(input_tokens=sum(each or 0 for each in tokens)) if tokens else Usage()


def _truncated(others: list[dict[str, Json]]) -> tuple[Warning, ...]:
    statistics = (other.get("statistics") for other in others)
    return tuple(
        make_warning("input_truncated", path=f"inputs[{index}]")
        for index, each in enumerate(statistics)
        if isinstance(each, dict) and each.get("truncated") is True
    )


def _vertex_limits(value: EmbedInput) -> InputLimits:
    # https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api
    is_single = _is_prefixed(value) or value.model.startswith("gemini-embedding-001")
    return _ONE if is_single else _PREDICT_LIMITS


OPERATIONS: Mapping[str, Operation] = {
    "embed": Operation(name="embed", encode=_encode, decode=_decode, limits=lambda _value: _LIMITS),
    "embed.vertex": Operation(
        name="embed", encode=_encode_vertex, decode=_decode, limits=_vertex_limits
    ),
}


# Server side.


def _decode_single(call: WireCall, params: Mapping[str, str]) -> EmbedInput:
    body = _object(call.body)
    config = body.pop("embedContentConfig", None)
    return _decode_items([{**body, **(config if isinstance(config, dict) else {})}], params)


def _decode_batch(call: WireCall, params: Mapping[str, str]) -> EmbedInput:
    return _decode_items(_list(_object(call.body).get("requests"), "requests"), params)


def _decode_predict(call: WireCall, params: Mapping[str, str]) -> EmbedInput:
    body = _object(call.body)
    parameters = dict(_object(body.get("parameters") or {}))
    dimensions = _shared([parameters], ("outputDimensionality",))
    items = [dict(_object(item)) for item in _list(body.get("instances"), "instances")]
    for item in items:
        item["content"] = {"parts": [{"text": item.get("content")}]}
    value = _decode_items(items, params)
    extra = {**extra_of(value, NAME), **({"parameters": parameters} if parameters else {})}
    extra = {NAME: extra} if extra else {}
    return replace(value, dimensions=value.dimensions or dimensions, extra=extra)


def _decode_items(items: list[Any], params: Mapping[str, str]) -> EmbedInput:
    others = [dict(_object(item)) for item in items]
    inputs = tuple(_decode_content(other.pop("content", None)) for other in others)
    for other in others:
        other.pop("model", None)
    # A model that ignores the task type gets it back unchanged, and not as a prefix.
    is_ignored = _is_prefixed(EmbedInput(model=params.get("model", "")))
    task = None if is_ignored else _shared(others, ("taskType", "task_type"))
    dimensions = _shared(others, ("outputDimensionality", "output_dimensionality"))
    return EmbedInput(
        model=params.get("model", ""),
        inputs=inputs,
        task=None if task is None else _TASK_NAMES[task],
        dimensions=dimensions,
        extra={NAME: {_ITEMS: others}} if any(others) else {},
    )


def _shared(others: list[dict[str, Json]], names: tuple[str, ...]) -> Any:
    """The value of a field that all items have, which is removed from them; else None."""
    for name in names:
        values = [other.get(name) for other in others]
        first = values[0]
        is_known = isinstance(first, str) and first in _TASK_NAMES
        is_size = type(first) is int and 0 < first <= _MAX_DIMENSIONS
        if (is_known or is_size) and values.count(first) == len(values):
            for other in others:
                del other[name]
            return first
    return None


def _decode_content(content: Json) -> EmbedContent:
    parts = _list(_object(content).get("parts"), "parts")
    if len(parts) == 1 and isinstance(parts[0], dict) and parts[0].keys() == {"text"}:
        text = parts[0]["text"]
        if isinstance(text, str) and text:
            return text
        raise InvalidRequestError("The content is empty.", status_code=400)
    body = {"contents": [{"role": "user", "parts": parts}]}
    request = decode_request(WireCall(path=_PATH, body=body))
    return request.messages[0].content


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise InvalidRequestError("Request contains an invalid argument.", status_code=400)
    return value


def _list(value: Json, name: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise InvalidRequestError(f"`{name}` must be a list that is not empty.", status_code=400)
    return value


def _rows(result: EmbedResult) -> tuple[list[dict[str, Json]], dict[str, Json]]:
    """The vectors with their other fields, and the other fields of the reply."""
    extra = dict(extra_of(result, NAME))
    others = extra.pop(_ITEMS, None) or [{}] * len(result.embeddings)
    rows = [
        {"values": vector.tolist(), **other}
        for vector, other in zip(result.embeddings, others, strict=True)
    ]
    return rows, extra


def _usage(result: EmbedResult) -> dict[str, Json]:
    if result.usage.raw is not None:
        return {"usageMetadata": result.usage.raw}
    tokens = result.usage.input_tokens
    return {"usageMetadata": {"promptTokenCount": tokens}} if tokens else {}


def _encode_single(result: EmbedResult, _value: EmbedInput) -> ServedReply:
    rows, extra = _rows(result)
    return ServedReply(body={"embedding": rows[0], **_usage(result), **extra})


def _encode_batch(result: EmbedResult, _value: EmbedInput) -> ServedReply:
    rows, extra = _rows(result)
    return ServedReply(body={"embeddings": rows, **_usage(result), **extra})


def _encode_predictions(result: EmbedResult, _value: EmbedInput) -> ServedReply:
    rows, extra = _rows(result)
    tokens = result.usage.input_tokens
    if rows and "statistics" not in rows[0]:  # those of all inputs are told with the first
        rows[0]["statistics"] = {"token_count": tokens, "truncated": False}
    predictions = [{"embeddings": row} for row in rows]
    return ServedReply(body={"predictions": predictions, **extra})


SERVED = (
    serve("embed", "POST", f"{MODEL_PATH}:embedContent", _decode_single, _encode_single),
    serve("embed", "POST", f"{MODEL_PATH}:batchEmbedContents", _decode_batch, _encode_batch),
    serve(
        "embed",
        "POST",
        r"(?:(?!/models/).)*/models/(?=.*embedding)(?P<model>.+):predict",
        _decode_predict,
        _encode_predictions,
    ),
)
