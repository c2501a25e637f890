"""Validates JSON values against a JSON Schema, with messages for models and people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from interlingua.api.types.problems import format_path
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.json_text import dump_text

_MAX_MESSAGE = 300
_UNIONS = ("anyOf", "oneOf")


class Validator:
    """A compiled schema. It never fetches a remote schema: an external `$ref` is an error."""

    def __init__(self, schema: Json) -> None:
        import jsonschema_rs

        try:
            self._validator: Any = jsonschema_rs.validator_for(schema, retriever=_reject_reference)
        except ValueError as error:  # an invalid schema, or a value that is not JSON
            reason = getattr(error, "message", None) or str(error)
            raise ConfigurationError(f"the JSON Schema is invalid: {reason}") from error

    def __call__(self, value: Json) -> list[str]:
        """The problems of the value, each as `path: message`; empty if it is valid."""
        try:
            return self._problems(value)
        except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot encode
            return self._problems(replace_surrogates(value))

    def _problems(self, value: Json) -> list[str]:
        try:
            errors = self._validator.iter_errors(value)
            return [_line(format_path(path), message) for path, message in _explain(errors)]
        except UnicodeEncodeError:
            raise
        except ValueError as error:
            return [f"the value cannot be validated: {error}"]


def _explain(errors: Iterable[Any]) -> Iterator[tuple[list[str | int], str]]:
    """Path and message of each error; for a union, the errors of the closest member."""
    for error in errors:
        members = error.kind.context if error.kind.name in _UNIONS else []
        # A member without errors means that a `oneOf` has more than one match.
        if not members or not all(members):
            yield error.instance_path, error.message
            continue
        explanation = _wrong_type(error, members) or _wrong_tag(error, members)
        if explanation is not None:
            yield explanation
        else:
            yield from _explain(min(members, key=lambda member: _distance(error, member)))


def _distance(union: Any, member: list[Any]) -> tuple[bool, bool, int]:
    """How far a value is from a member: wrong type, then wrong tag, then the number of errors."""
    has_wrong_type = any(_is_type_error(union, error) for error in member)
    return has_wrong_type, any(_expected_tag(union, error) for error in member), len(member)


def _is_type_error(union: Any, error: Any) -> bool:
    """Whether the error is that the union's whole value has the wrong type."""
    is_whole_value: bool = error.instance_path == union.instance_path
    return is_whole_value and error.kind.name == "type"


def _expected_tag(union: Any, error: Any) -> list[Json]:
    """The only allowed value of a field, if the error is that the field has another value."""
    if len(error.instance_path) != len(union.instance_path) + 1:
        return []
    if error.kind.name == "const":
        return [error.kind.expected_value]
    options: list[Json] = error.kind.options if error.kind.name == "enum" else []
    return options if len(options) == 1 else []


def _wrong_type(union: Any, members: list[list[Any]]) -> tuple[list[str | int], str] | None:
    """The types of the members, if the value has none of them."""
    errors = [next((e for e in member if _is_type_error(union, e)), None) for member in members]
    types = [name for error in errors if error is not None for name in error.kind.types]
    if None in errors:
        return None
    listed = ", ".join(dump_text(name) for name in dict.fromkeys(types))
    return union.instance_path, f"{dump_text(union.instance)} is not of types {listed}"


def _wrong_tag(union: Any, members: list[list[Any]]) -> tuple[list[str | int], str] | None:
    """The tags of the members, if the value has a tag and it is none of them."""
    errors = [next((e for e in member if _expected_tag(union, e)), None) for member in members]
    tag_errors = [error for error in errors if error is not None]
    untagged = [member for member, error in zip(members, errors, strict=True) if error is None]
    if not tag_errors or not all(_is_type_error(union, e) for member in untagged for e in member):
        return None
    path, value = tag_errors[0].instance_path, tag_errors[0].instance
    if any(error.instance_path != path for error in tag_errors):
        return None
    tags = ", ".join(dump_text(tag) for e in tag_errors for tag in _expected_tag(union, e))
    return path, f"{dump_text(value)} is not one of {tags}"


def _line(path: str, message: str) -> str:
    if len(message) > _MAX_MESSAGE:  # it quotes the value, which may be long
        half = _MAX_MESSAGE // 2
        message = f"{message[:half]} … {message[-half:]}"
    return f"{path}: {message}" if path else message


def replace_surrogates(value: Json) -> Json:
    """A value that UTF-8 can encode: surrogate pairs are joined, a lone surrogate is U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {replace_surrogates(name): replace_surrogates(item) for name, item in value.items()}
    return [replace_surrogates(item) for item in value] if isinstance(value, list) else value


def _reject_reference(uri: str) -> NoReturn:
    raise ValueError(f"{uri[:100]} is not part of the schema")
