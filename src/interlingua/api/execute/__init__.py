"""`execute`: a run with callbacks, whose errors are returned instead of raised."""

from interlingua.api.execute.callbacks import Callbacks, Chunk, TextChunk, ToolChunk
from interlingua.api.execute.execution import (
    ExecuteError,
    ExecuteOptions,
    ExecuteResult,
    ExecuteUsage,
    Execution,
    execute,
)
from interlingua.spec.plain_dicts import AnyMessage

__all__ = [
    "AnyMessage",
    "Callbacks",
    "Chunk",
    "ExecuteError",
    "ExecuteOptions",
    "ExecuteResult",
    "ExecuteUsage",
    "Execution",
    "TextChunk",
    "ToolChunk",
    "execute",
]
