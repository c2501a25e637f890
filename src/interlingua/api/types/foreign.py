"""Types that pydantic knows, read by pydantic. It is never imported here, only met."""

from __future__ import annotations

import sys
from typing import Any

from interlingua.api.types.problems import Findings, Path
from interlingua.api.types.shapes import Definitions
from interlingua.spec.content import Json
from interlingua.spec.errors import ConfigurationError
from interlingua.wire.json_text import dumps

_OTHER_KIND = ("_type", "_parsing", "none_required")
_MARKS = ("__pydantic_core_schema__", "__get_pydantic_core_schema__")


def is_pydantic(type_: Any) -> bool:
    """Whether it is a model, a dataclass or a type of pydantic's own."""
    return (
        "pydantic" in sys.modules
        and isinstance(type_, type)
        and any(hasattr(type_, mark) for mark in _MARKS)
    )


def is_field(note: Any) -> bool:
    """Whether it is what `pydantic.Field(...)` gives."""
    fields = sys.modules.get("pydantic.fields")
    return fields is not None and isinstance(note, fields.FieldInfo)


def is_constraint(note: Any) -> bool:
    """Whether a note of `Annotated` restricts the value in pydantic's way."""
    if "pydantic" not in sys.modules:
        return False
    if is_field(note):
        return bool(note.metadata)
    return type(note).__module__.partition(".")[0] in {"annotated_types", "pydantic"}


class Foreign:
    """A form that pydantic describes and reads."""

    def __init__(self, type_: Any, where: str) -> None:
        pydantic = sys.modules["pydantic"]
        self._mismatch: type[Exception] = pydantic.ValidationError
        try:
            self._adapter = pydantic.TypeAdapter(type_)
            schema = self._adapter.json_schema()
        except (pydantic.PydanticUserError, NameError) as error:
            raise ConfigurationError(f"{where}: pydantic cannot say {type_!r}: {error}") from error
        self.label = type_.__name__ if isinstance(type_, type) else str(schema.get("type", "value"))

    def schema(self, definitions: Definitions) -> dict[str, Json]:
        """As pydantic has it."""
        return definitions.adopt(lambda template: self._adapter.json_schema(ref_template=template))

    def decode(self, value: Json, path: Path, findings: Findings) -> Any:
        """From text, because a strict model takes a date as text only from JSON."""
        try:
            return self._adapter.validate_json(dumps(value))
        except self._mismatch as error:
            for problem in error.errors(include_url=False):  # type: ignore[attr-defined]
                at = path
                for step in problem["loc"]:
                    at = (at, step)
                is_of_kind = not problem["type"].endswith(_OTHER_KIND)
                findings.add(at, problem["msg"], is_of_kind=is_of_kind)
            return None
