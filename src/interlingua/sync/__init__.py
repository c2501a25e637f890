"""
The same functions, blocking.

    from interlingua import sync

    print(sync.generate("openai:gpt-5.2", "Hello").text)

They wait in the thread that calls for one event loop in a thread of its own. So they may be called
from any thread, with or without a running loop (as in a notebook), after a fork, and again and
again; connections are kept between calls. Ctrl-C closes the connection and is raised at once.
Tools that are plain functions run in threads, and may call these functions in turn; async tools
and hooks run in the loop's thread, where only the async functions work.
"""

from interlingua.sync.blocking_iterator import BlockingIterator
from interlingua.sync.client import Client, GenerateOptions
from interlingua.sync.execute import ExecuteOptions, execute
from interlingua.sync.generate import (
    StreamResult,
    generate,
    get_default_client,
    set_default_client,
    stream,
)
from interlingua.sync.mcp import mcp_tools
from interlingua.sync.objects import ObjectOptions, ObjectStream, generate_object, stream_object

__all__ = [
    "BlockingIterator",
    "Client",
    "ExecuteOptions",
    "GenerateOptions",
    "ObjectOptions",
    "ObjectStream",
    "StreamResult",
    "execute",
    "generate",
    "generate_object",
    "get_default_client",
    "mcp_tools",
    "set_default_client",
    "stream",
    "stream_object",
]
