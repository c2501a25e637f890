"""Whether a JSON value keeps to a JSON Schema, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from interlingua.api.types.problems import format_path
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.json_text import dump_text

_LONGEST = 300
_UNIONS = ("anyOf", "oneOf")


class Validator:
    """A compiled schema. It never fetches anything: a `$ref` to elsewhere is refused."""

    def __init__(self, schema: Json) -> None:
        import jsonschema_rs

        try:
            self._validator: Any = jsonschema_rs.validator_for(schema, retriever=_refuse)
        except ValueError as error:  # covers what is no schema and what is no JSON
            said = getattr(error, "message", None) or str(error)
            raise ConfigurationError(f"the JSON Schema cannot be used: {said}") from error

    def __call__(self, value: Json) -> list[str]:
        """What is wrong, as `path: what`; nothing if all is well."""
        try:
            return self._problems(value)
        except UnicodeEncodeError:  # a lone surrogate, which is not UTF-8
            return self._problems(speakable(value))

    def _problems(self, value: Json) -> list[str]:
        try:
            found = self._validator.iter_errors(value)
            return [_line(format_path(path), message) for path, message in _explain(found)]
        except UnicodeEncodeError:
            raise
        except ValueError as error:
            return [f"it cannot be checked: {error}"]


def _explain(errors: Iterable[Any]) -> Iterator[tuple[list[str | int], str]]:
    """Where and what; instead of "fits none of a union", what is wrong with the closest member."""
    for error in errors:
        members = error.kind.context if error.kind.name in _UNIONS else []
        if not members or not all(members):  # of a `oneOf`, more than one may have fitted
            yield error.instance_path, error.message
            continue
        said = _none_of_their_types(error, members) or _none_of_their_tags(error, members)
        if said is not None:
            yield said
        else:
            yield from _explain(min(members, key=lambda member: _distance(error, member)))


def _distance(union: Any, member: list[Any]) -> tuple[bool, bool, int]:
    """How far a value is from a member: of another type, of another tag, and how much is wrong."""
    is_other = any(_is_type_of(union, error) for error in member)
    return is_other, any(_tag_of(union, error) for error in member), len(member)


def _is_type_of(union: Any, error: Any) -> bool:
    """Whether it says that the whole value is of another type."""
    is_here: bool = error.instance_path == union.instance_path
    return is_here and error.kind.name == "type"


def _tag_of(union: Any, error: Any) -> list[Json]:
    """The only value a field may have in this member, if that is what is wrong."""
    if len(error.instance_path) != len(union.instance_path) + 1:
        return []
    if error.kind.name == "const":
        return [error.kind.expected_value]
    options: list[Json] = error.kind.options if error.kind.name == "enum" else []
    return options if len(options) == 1 else []


def _none_of_their_types(
    union: Any, members: list[list[Any]]
) -> tuple[list[str | int], str] | None:
    wrong = [next((e for e in member if _is_type_of(union, e)), None) for member in members]
    names = [name for error in wrong if error is not None for name in error.kind.types]
    if None in wrong:
        return None
    listed = ", ".join(dump_text(name) for name in dict.fromkeys(names))
    return union.instance_path, f"{dump_text(union.instance)} is not of types {listed}"


def _none_of_their_tags(union: Any, members: list[list[Any]]) -> tuple[list[str | int], str] | None:
    """What the tag may be, if the value has one and it is that of no member."""
    wrong = [next((e for e in member if _tag_of(union, e)), None) for member in members]
    tagged = [error for error in wrong if error is not None]
    others = [member for member, error in zip(members, wrong, strict=True) if error is None]
    if not tagged or not all(_is_type_of(union, e) for member in others for e in member):
        return None
    place, given = tagged[0].instance_path, tagged[0].instance
    if any(error.instance_path != place for error in tagged):
        return None
    known = ", ".join(dump_text(tag) for error in tagged for tag in _tag_of(union, error))
    return place, f"{dump_text(given)} is not one of {known}"


def _line(path: str, message: str) -> str:
    if len(message) > _LONGEST:  # it quotes the value, and that may be long
        half = _LONGEST // 2
        message = f"{message[:half]} … {message[-half:]}"
    return f"{path}: {message}" if path else message


def speakable(value: Json) -> Json:
    """The value in UTF-8: two halves of a surrogate pair are joined, a lone one is U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {speakable(name): speakable(item) for name, item in value.items()}
    return [speakable(item) for item in value] if isinstance(value, list) else value


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri[:100]} is not part of the schema")
