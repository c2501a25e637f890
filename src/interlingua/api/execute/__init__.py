"""The callback front door."""

from interlingua.api.execute.callbacks import Callbacks, Chunk, TextChunk, ToolChunk
from interlingua.api.execute.execution import (
    ExecuteOptions,
    ExecuteSettings,
    Execution,
    execute,
)
from interlingua.api.execute.messages import AnyMessage
from interlingua.api.execute.results import ExecuteError, ExecuteResult, ExecuteUsage

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
