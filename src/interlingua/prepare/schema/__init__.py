"""
Schemas as each target accepts them, and what comes back read by the original.

A dialect's facts say what it accepts (`SchemaRules`), `narrow` makes a schema so and does it for a
tool or a format, `restore` undoes it in the calls of an answer.
"""

from interlingua.prepare.schema.narrow import Narrowed, encode_parameters, encode_schema, narrow
from interlingua.prepare.schema.openapi import from_openapi
from interlingua.prepare.schema.restore import drop_added_nulls, restore_arguments, restore_event

__all__ = [
    "Narrowed",
    "drop_added_nulls",
    "encode_parameters",
    "encode_schema",
    "from_openapi",
    "narrow",
    "restore_arguments",
    "restore_event",
]
