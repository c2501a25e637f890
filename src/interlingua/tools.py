"""
What tools are made of, beyond `Tool` and the decorator `tool`, which are in `interlingua`.

Import from here to give a tool the context of its run, to describe a tool's effects, to observe
tool runs, to drive the loop of calls and results yourself, or to use the conversion between Python
types and JSON Schema alone.
"""

from interlingua.api.run.loop import ToolLoop
from interlingua.api.tools.context import ToolContext
from interlingua.api.tools.runner import ToolObserver
from interlingua.api.tools.tool import FunctionTool, ToolAnnotations
from interlingua.api.types.reading import convert, schema_of
from interlingua.spec.request import Grammar

__all__ = [
    "FunctionTool",
    "Grammar",
    "ToolAnnotations",
    "ToolContext",
    "ToolLoop",
    "ToolObserver",
    "convert",
    "schema_of",
]
