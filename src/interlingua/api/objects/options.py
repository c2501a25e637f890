"""The options of `generate_object` and `stream_object`."""

from __future__ import annotations

from interlingua.api.run.options import GenerateOptions


class ObjectOptions(GenerateOptions, total=False):
    """The options of `generate`, except `response_format`."""
