"""
Support for pydantic types: pydantic writes their schemas and validates their values.

Pydantic is never imported here. A program that uses pydantic types has imported it already, so it
is looked up in `sys.modules`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from interlingua.api.types.problems import Findings, Path
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.json_text import dumps

if TYPE_CHECKING:
    from interlingua.api.types.shapes import Definitions

_WRONG_TYPE_SUFFIXES = ("_type", "_parsing", "none_required")
_PYDANTIC_ATTRIBUTES = ("__pydantic_core_schema__", "__get_pydantic_core_schema__")


def is_pydantic(type_: Any) -> bool:
    """Whether the type is a pydantic model, dataclass or custom type."""
    return (
        "pydantic" in sys.modules
        and isinstance(type_, type)
        and any(hasattr(type_, name) for name in _PYDANTIC_ATTRIBUTES)
    )


def is_field(metadata: Any) -> bool:
    """Whether the object was made by `pydantic.Field(...)`."""
    fields = sys.modules.get("pydantic.fields")
    return fields is not None and isinstance(metadata, fields.FieldInfo)


def is_constraint(metadata: Any) -> bool:
    """Whether an item of `Annotated` is a constraint that pydantic enforces."""
    if "pydantic" not in sys.modules:
        return False
    if is_field(metadata):
        return bool(metadata.metadata)
    return type(metadata).__module__.partition(".")[0] in {"annotated_types", "pydantic"}


class PydanticShape:
    """A type whose schema and validation come from pydantic."""

    def __init__(self, type_: Any, where: str) -> None:
        pydantic = sys.modules["pydantic"]
        self._validation_error: type[Exception] = pydantic.ValidationError
        try:
            self._adapter = pydantic.TypeAdapter(type_)
            schema = self._adapter.json_schema()
        except (pydantic.PydanticUserError, NameError) as error:
            raise ConfigurationError(
                f"{where}: pydantic cannot make a JSON Schema of {type_!r}: {error}"
            ) from error
        self.label: str = (
            type_.__name__ if isinstance(type_, type) else str(schema.get("type", "value"))
        )

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """The schema that pydantic writes."""
        return definitions.adopt(lambda template: self._adapter.json_schema(ref_template=template))

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """The value that pydantic makes of the JSON value."""
        try:
            # JSON text, because a strict model accepts a date as a string only from JSON.
            return self._adapter.validate_json(dumps(value))
        except self._validation_error as error:
            for problem in error.errors(include_url=False):  # type: ignore[attr-defined]
                problem_path = path
                for step in problem["loc"]:
                    problem_path = (problem_path, step)
                is_right_type = not problem["type"].endswith(_WRONG_TYPE_SUFFIXES)
                findings.add(problem_path, problem["msg"], is_right_type=is_right_type)
            return None


def dump_foreign(value: Any) -> Json:
    """The JSON form of a value that msgspec cannot encode; `TypeError` if it has none."""
    if hasattr(value, "model_dump"):  # pydantic
        return value.model_dump(mode="json")
    if hasattr(value, "tolist"):  # numpy and similar
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")
