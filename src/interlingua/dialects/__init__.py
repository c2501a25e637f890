"""
The dialects: one folder for each wire format, and a registry that other packages add to.

Import from here to encode and decode without a client: `dialects.get("openai_chat")` is a dialect,
and the other names are what its functions take and return. No dialect knows another.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from interlingua.lazy import names_of
from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    from interlingua.prepare.prepare import start_encoding
    from interlingua.prepare.schema.restore import drop_added_nulls, restore_arguments
    from interlingua.spec.contracts import (
        Dialect,
        FormPart,
        Frame,
        NewId,
        Prepared,
        StreamDecoder,
        StreamEncoder,
        WireCall,
    )
    from interlingua.spec.facts import Facts
    from interlingua.spec.operations import ItemDecoder, Operation
    from interlingua.spec.warnings import check_losses
    from interlingua.streams.accumulate import StreamAccumulator, events_from_response
    from interlingua.streams.frames import json_frame, read_frame
    from interlingua.streams.segments import ReasoningSegment, TextSegment, ToolCallSegment
    from interlingua.wire.classify import error_text, make_error, read_body, read_fault, status_of
    from interlingua.wire.fields import Fields, extra_of, request_errors
    from interlingua.wire.sse import SSEDecoder, encode_sse

__all__ = [
    "Dialect",
    "Facts",
    "Fields",
    "FormPart",
    "Frame",
    "ItemDecoder",
    "NewId",
    "Operation",
    "Prepared",
    "ReasoningSegment",
    "SSEDecoder",
    "StreamAccumulator",
    "StreamDecoder",
    "StreamEncoder",
    "TextSegment",
    "ToolCallSegment",
    "WireCall",
    "check_losses",
    "drop_added_nulls",
    "encode_sse",
    "error_text",
    "events_from_response",
    "extra_of",
    "get",
    "json_frame",
    "make_error",
    "names",
    "read_body",
    "read_fault",
    "read_frame",
    "register",
    "request_errors",
    "restore_arguments",
    "start_encoding",
    "status_of",
]

_SHIPPED = (
    *("openai_responses", "openai_chat", "anthropic_messages", "gemini_generate"),
    "bedrock_converse",
)
_FUNCTIONS = (
    "encode_request",
    "decode_request",
    "encode_response",
    "decode_response",
    "stream_encoder",
    "stream_decoder",
    "encode_error",
    "decode_error",
)
_MOVED = frozenset(("SealedState",))
"""Names that were here once."""
_registered: dict[str, Dialect] = {}


def names() -> tuple[str, ...]:
    """Return the names that `get` knows: the shipped dialects, then the registered ones."""
    return (*_SHIPPED, *_registered)


def get(name: str) -> Dialect:
    """Return the dialect of that name; a shipped one is loaded on first use."""
    if name in _SHIPPED:
        return _load(name)
    dialect = _registered.get(name)
    if dialect is None:
        raise ConfigurationError(f"There is no dialect {name!r}. Use one of {', '.join(names())}.")
    return dialect


@cache
def _load(name: str) -> Dialect:
    return cast("Dialect", import_module(f"interlingua.dialects.{name}"))


def register(dialect: Dialect) -> None:
    """
    Add a dialect: a module, or any object, that satisfies `Dialect`.

    Its name is then accepted wherever a dialect is named. Registering the same object again
    changes nothing; another one of the same name is an error.
    """
    name = _check(dialect)
    known = get(name) if name in names() else dialect
    if known is not dialect:
        raise ConfigurationError(f"A dialect {name!r} is registered already.")
    if name not in _SHIPPED:
        _registered[name] = dialect


def _check(dialect: Dialect) -> str:
    """The name of an object that has everything a dialect needs."""
    missing = [name for name in _FUNCTIONS if not callable(getattr(dialect, name, None))]
    missing += [name for name in ("NAME", "FACTS") if not hasattr(dialect, name)]
    if missing:
        raise ConfigurationError(f"{dialect!r} is no dialect: it lacks {', '.join(missing)}.")
    if not dialect.NAME == dialect.FACTS.name == dialect.FACTS.history.dialect:
        raise ConfigurationError(
            f"The dialect {dialect.NAME!r} must have the same name in NAME, FACTS.name and "
            "FACTS.history.dialect."
        )
    return dialect.NAME


if not TYPE_CHECKING:  # a type checker would accept any name if it saw `__getattr__`
    _load_name = names_of(
        __name__,
        {
            "interlingua.prepare.prepare": ("start_encoding",),
            "interlingua.prepare.schema.restore": ("drop_added_nulls", "restore_arguments"),
            "interlingua.spec.contracts": (
                *("Dialect", "FormPart", "Frame", "NewId", "Prepared"),
                *("StreamDecoder", "StreamEncoder", "WireCall"),
            ),
            "interlingua.spec.facts": ("Facts",),
            "interlingua.spec.operations": ("ItemDecoder", "Operation"),
            "interlingua.spec.warnings": ("check_losses",),
            "interlingua.streams.accumulate": ("StreamAccumulator", "events_from_response"),
            "interlingua.streams.frames": ("json_frame", "read_frame"),
            "interlingua.streams.segments": (
                *("ReasoningSegment", "TextSegment", "ToolCallSegment"),
            ),
            "interlingua.wire.classify": (
                *("error_text", "make_error", "read_body", "read_fault", "status_of"),
            ),
            "interlingua.wire.fields": ("Fields", "extra_of", "request_errors"),
            "interlingua.wire.sse": ("SSEDecoder", "encode_sse"),
        },
    )

    def __getattr__(name: str) -> object:
        if name in _MOVED:
            where = "It has moved: import it from `interlingua.serving`."
            raise AttributeError(f"Module {__name__!r} has no attribute {name!r}. {where}")
        return _load_name(name)
