"""
The types of `interlingua.execute`, the function that reports through callbacks.

Import from here to annotate your callbacks and to read the result of an execution.
"""

from interlingua.api.execute.callbacks import Chunk
from interlingua.api.execute.execution import ExecuteError, ExecuteResult, ExecuteUsage, Execution

__all__ = ["Chunk", "ExecuteError", "ExecuteResult", "ExecuteUsage", "Execution"]
