"""
Schemas as each target accepts them, and what comes back read by the original.

A dialect's facts say what it accepts (`SchemaRules`), `narrow` makes a schema so and does it for a
tool or a format, `restore` undoes it in the calls of an answer.
"""
