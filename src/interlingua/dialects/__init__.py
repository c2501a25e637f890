"""
The dialects: one folder for each wire format. No dialect knows another.

Import from here to encode and decode without a client: `dialects.get("openai_chat")` is a dialect,
and the other names are what its functions take and return.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from interlingua.prepare.schema import drop_added_nulls, restore_arguments
from interlingua.spec.contracts import (
    DIALECT_NAMES,
    Dialect,
    Frame,
    StreamDecoder,
    StreamEncoder,
    WireCall,
)
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.warnings import raise_on_loss
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.wire.sse import SSEDecoder, encode_sse

__all__ = [
    "Dialect",
    "Frame",
    "SSEDecoder",
    "StreamAccumulator",
    "StreamDecoder",
    "StreamEncoder",
    "WireCall",
    "drop_added_nulls",
    "encode_sse",
    "events_from_response",
    "get",
    "names",
    "raise_on_loss",
    "restore_arguments",
]


def names() -> tuple[str, ...]:
    """The names `get` knows."""
    return DIALECT_NAMES


def get(name: str) -> Dialect:
    """The dialect of that name; it is loaded on first use."""
    if name not in DIALECT_NAMES:
        raise ConfigurationError(f"no dialect {name!r}; there are {', '.join(DIALECT_NAMES)}")
    return cast(Dialect, import_module(f"interlingua.dialects.{name}"))
