"""
Schemas as each target accepts them, and what comes back read by the original.

`rules` says what a target accepts, `narrow` makes a schema so, `encode` does it for a tool or a
format, `restore` undoes it in the calls of an answer.
"""

from interlingua.wire.schema.encode import encode_parameters, encode_schema
from interlingua.wire.schema.narrow import Narrowed, narrow
from interlingua.wire.schema.nulls import drop_added_nulls
from interlingua.wire.schema.openapi import from_openapi
from interlingua.wire.schema.restore import restore_arguments, restore_event
from interlingua.wire.schema.rules import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT, Rules

__all__ = [
    "ANTHROPIC",
    "GEMINI_JSON_SCHEMA",
    "OPENAI_STRICT",
    "Narrowed",
    "Rules",
    "drop_added_nulls",
    "encode_parameters",
    "encode_schema",
    "from_openapi",
    "narrow",
    "restore_arguments",
    "restore_event",
]
