"""Whether a JSON value keeps to a JSON Schema, in words."""

from __future__ import annotations

from typing import Any, NoReturn

from interlingua.api.hints.problems import spell
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError

_LONGEST = 300


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
            return self._problems(_speakable(value))

    def _problems(self, value: Json) -> list[str]:
        try:
            return [
                _line(spell(error.instance_path), error.message)
                for error in self._validator.iter_errors(value)
            ]
        except UnicodeEncodeError:
            raise
        except ValueError as error:
            return [f"it cannot be checked: {error}"]


def _line(path: str, message: str) -> str:
    if len(message) > _LONGEST:  # it quotes the value, and that may be long
        half = _LONGEST // 2
        message = f"{message[:half]} … {message[-half:]}"
    return f"{path}: {message}" if path else message


def _speakable(value: Json) -> Json:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_speakable(name): _speakable(item) for name, item in value.items()}
    return [_speakable(item) for item in value] if isinstance(value, list) else value


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri[:100]} is not part of the schema")
