"""Python types to JSON Schema, and JSON values to Python values of those types."""

from interlingua.api.types.functions import FunctionHints, read_function
from interlingua.api.types.reading import convert, schema_of

__all__ = ["FunctionHints", "convert", "read_function", "schema_of"]
