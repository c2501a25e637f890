"""Python types as JSON Schema, and JSON as values of those types."""

from interlingua.api.types.functions import FunctionHints, read_function
from interlingua.api.types.reading import convert, schema_of

__all__ = ["FunctionHints", "convert", "read_function", "schema_of"]
