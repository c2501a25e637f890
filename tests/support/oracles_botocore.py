"""
Botocore as a judge of Converse: its service model knows every field of `bedrock-runtime`.

It validates parameters and writes the HTTP request that it would send, and it parses replies,
streams and errors. What it does not check itself (patterns, words of an enumeration, lengths) is
checked here by the same model.
"""

import base64
import binascii
import functools
import json
import re
from typing import Any
from urllib.parse import unquote

import botocore.session
from botocore.eventstream import EventStream
from botocore.model import Shape
from botocore.parsers import EventStreamJSONParser, create_parser
from botocore.serialize import create_serializer
from botocore.validate import ParamValidator

from interlingua.spec.contracts import WireCall

_match_path = re.compile(r".*?/model/(?P<model>[^/]+)/(?P<operation>[a-z-]+)").fullmatch
_OPERATIONS = {
    "converse": "Converse",
    "converse-stream": "ConverseStream",
    "count-tokens": "CountTokens",
}


@functools.cache
def operation(name: str) -> Any:
    """The model of an operation."""
    return botocore.session.get_session().get_service_model("bedrock-runtime").operation_model(name)


def request_problems(call: WireCall) -> list[str]:
    """What botocore has against a call; also if it would send another path or body."""
    match = _match_path(call.path)
    if match is None:
        return [f"no path of an operation: {call.path}"]
    model = operation(_OPERATIONS[match["operation"]])
    found: list[str] = []
    params = _read(call.body, model.input_shape, "body", found)
    if found:
        return found
    params["modelId"] = unquote(match["model"])
    report = ParamValidator().validate(params, model.input_shape)
    if report.has_errors():
        return [report.generate_report()]
    sent = create_serializer("rest-json", include_validation=False).serialize_to_request(
        params, model
    )
    written = json.loads(sent["body"])
    if written != call.body:
        found.append(f"botocore sends {written!r}, not {call.body!r}")
    # Botocore writes `:` as `%3A`; both are the same path.
    if unquote(sent["url_path"]) != unquote(call.path) or "/" in match["model"]:
        found.append(f"botocore sends to {sent['url_path']}, not to {call.path}")
    return found


def body_problems(body: Any) -> list[str]:
    """What botocore has against the body of a request."""
    path = "/model/amazon.nova-pro-v1:0/converse"
    return request_problems(WireCall(path=path, body=body))


def _read(value: Any, shape: Shape, path: str, found: list[str]) -> Any:
    """The value as botocore's users write it, with bytes; what breaks the model is in `found`."""
    kind = shape.type_name
    if getattr(shape, "is_document_type", False):
        return value
    if kind == "structure":
        return _read_structure(value, shape, path, found)
    if kind == "list" and isinstance(value, list):
        _check_size(len(value), shape, path, found)
        return [_read(item, shape.member, f"{path}[{i}]", found) for i, item in enumerate(value)]
    if kind == "map" and isinstance(value, dict):
        _check_size(len(value), shape, path, found)
        for key in value:
            _read(key, shape.key, path, found)
        return {
            key: _read(item, shape.value, f"{path}.{key}", found) for key, item in value.items()
        }
    if kind == "blob":
        try:
            data = base64.b64decode(value, validate=True)
        except (TypeError, ValueError, binascii.Error):
            found.append(f"{path}: no base64: {value!r:.60}")
            return b""
        _check_size(len(data), shape, path, found)
        return data
    if kind == "string" and isinstance(value, str):
        _check_text(value, shape, path, found)
    elif kind in ("integer", "float", "long") and isinstance(value, (int, float)):
        _check_size(value, shape, path, found)
    return value


def _read_structure(value: Any, shape: Any, path: str, found: list[str]) -> Any:
    if not isinstance(value, dict):
        found.append(f"{path}: no object: {value!r:.60}")
        return {}
    fields: dict[str, Any] = {}
    for key, item in value.items():
        if key not in shape.members:
            found.append(f"{path}.{key}: unknown")
        else:
            fields[key] = _read(item, shape.members[key], f"{path}.{key}", found)
    if getattr(shape, "is_tagged_union", False) and len(fields) != 1:
        found.append(f"{path}: a union with {len(fields)} fields")
    return fields


def _check_size(size: float, shape: Any, path: str, found: list[str]) -> None:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if (least is not None and size < least) or (most is not None and size > most):
        found.append(f"{path}: {size} is not within {least} and {most}")


def _check_text(text: str, shape: Any, path: str, found: list[str]) -> None:
    _check_size(len(text), shape, path, found)
    words, pattern = shape.metadata.get("enum"), shape.metadata.get("pattern")
    if words and text not in words:
        found.append(f"{path}: {text!r} is none of {words}")
    if pattern and re.fullmatch(pattern, text) is None:
        found.append(f"{path}: {text!r:.60} does not match {pattern:.60}")


def parse_reply(name: str, status: int, headers: dict[str, str], body: bytes) -> Any:
    """The reply of an operation as botocore's users get it."""
    reply = {"status_code": status, "headers": headers, "body": body}
    return create_parser("rest-json").parse(reply, operation(name).output_shape)


def response_problems(body: Any) -> list[str]:
    """What botocore's model has against the body of an answer, after the rules above."""
    found: list[str] = []
    shape = operation("Converse").output_shape
    _read(body, shape, "answer", found)
    found += [f"answer.{name}: missing" for name in shape.required_members if name not in body]
    return found


def event_problems(name: str | None, data: Any) -> list[str]:
    """What botocore's model has against an event of a stream."""
    events = operation("ConverseStream").output_shape.members["stream"].members
    if name not in events:
        return [f"{name}: unknown"]
    found: list[str] = []
    _read(data, events[name], name, found)
    found += [
        f"{name}.{each}: missing" for each in events[name].required_members if each not in data
    ]
    return found


class _Raw:
    """The bytes of a stream, as botocore reads them from a connection."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def stream(self) -> Any:
        yield self._data

    def close(self) -> None:
        """Nothing is open."""


def parse_stream(data: bytes) -> list[dict[str, Any]]:
    """The events of a stream; an exception in it is raised as botocore's `EventStreamError`."""
    shape = operation("ConverseStream").output_shape.members["stream"]
    return list(EventStream(_Raw(data), shape, EventStreamJSONParser(), "ConverseStream"))
