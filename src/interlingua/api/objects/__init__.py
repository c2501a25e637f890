"""Structured output: `generate_object` and `stream_object`."""
