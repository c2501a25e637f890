"""The callback front door."""

from interlingua.api.execute.execution import (
    ExecuteOptions,
    ExecuteSettings,
    Execution,
    execute,
)
from interlingua.api.execute.messages import AnyMessage
from interlingua.api.execute.results import ExecuteError, ExecuteResult, ExecuteUsage
from interlingua.api.execute.telling import Callbacks, Chunk, TextChunk, ToolChunk

__all__ = [
    "AnyMessage",
    "Callbacks",
    "Chunk",
    "ExecuteError",
    "ExecuteOptions",
    "ExecuteResult",
    "ExecuteSettings",
    "ExecuteUsage",
    "Execution",
    "TextChunk",
    "ToolChunk",
    "execute",
]
