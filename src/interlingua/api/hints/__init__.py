"""Python types as JSON Schema, and JSON as values of those types."""

from interlingua.api.hints.functions import FunctionHints, read_function
from interlingua.api.hints.problems import MismatchError, Problem
from interlingua.api.hints.reading import convert, schema_of

__all__ = ["FunctionHints", "MismatchError", "Problem", "convert", "read_function", "schema_of"]
