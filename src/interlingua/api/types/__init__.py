"""Python types to JSON Schema, and JSON values to Python values of those types."""

from interlingua.api.types.reading import FunctionHints, convert, read_function, schema_of

__all__ = ["FunctionHints", "convert", "read_function", "schema_of"]
