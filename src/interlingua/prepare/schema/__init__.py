"""
Schemas as each target accepts them, and what comes back read by the original.

`rules` says what a target accepts, `narrow` makes a schema so, `encode` does it for a tool or a
format, `restore` undoes it in the calls of an answer.
"""

from interlingua.prepare.schema.narrow import encode_parameters, encode_schema, narrow
from interlingua.prepare.schema.narrowed import Narrowed
from interlingua.prepare.schema.openapi import from_openapi
from interlingua.prepare.schema.restore import drop_added_nulls, restore_arguments, restore_event
from interlingua.prepare.schema.rules import ANTHROPIC, GEMINI_JSON_SCHEMA, OPENAI_STRICT, Rules

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
