"""
The same functions, blocking.

    from interlingua import sync

    print(sync.generate("openai:gpt-5.2", "Hello").text)

The calling thread waits while one event loop in a background thread does the work. So these
functions can be called from any thread, with or without a running loop (as in a notebook), and
after a fork; connections are kept between calls. Ctrl-C closes the connection and is raised at
once. Tools that are plain functions run in worker threads and may call these functions. Async tools
and hooks run in the background thread, where only the async functions work.
"""

from typing import TYPE_CHECKING

from interlingua.lazy import names_of

if TYPE_CHECKING:
    from interlingua.api.execute.execution import ExecuteOptions
    from interlingua.api.objects.options import ObjectOptions
    from interlingua.api.run.clients import set_default_client
    from interlingua.api.run.options import GenerateOptions
    from interlingua.sync import batch as batch
    from interlingua.sync import files as files
    from interlingua.sync import media as media
    from interlingua.sync import video as video
    from interlingua.sync.blocking_iterator import BlockingIterator
    from interlingua.sync.client import Client
    from interlingua.sync.execution import execute
    from interlingua.sync.functions import generate, get_default_client, retry
    from interlingua.sync.many import generate_many
    from interlingua.sync.mcp import mcp_tools
    from interlingua.sync.media import (
        edit_image,
        embed,
        embed_many,
        generate_image,
        generate_video,
        speak,
        transcribe,
    )
    from interlingua.sync.objects import ObjectStream, generate_object, stream_object
    from interlingua.sync.session import Session
    from interlingua.sync.streams import StreamResult, stream

__all__ = [
    "BlockingIterator",
    "Client",
    "ExecuteOptions",
    "GenerateOptions",
    "ObjectOptions",
    "ObjectStream",
    "Session",
    "StreamResult",
    "edit_image",
    "embed",
    "embed_many",
    "execute",
    "generate",
    "generate_image",
    "generate_many",
    "generate_object",
    "generate_video",
    "get_default_client",
    "mcp_tools",
    "retry",
    "set_default_client",
    "speak",
    "stream",
    "stream_object",
    "transcribe",
]

if not TYPE_CHECKING:  # a type checker would accept any name if it saw `__getattr__`
    __getattr__ = names_of(
        __name__,
        {
            "interlingua.api.execute.execution": ("ExecuteOptions",),
            "interlingua.api.objects.functions": ("ObjectOptions",),
            "interlingua.api.run.clients": ("set_default_client",),
            "interlingua.api.run.options": ("GenerateOptions",),
            ".blocking_iterator": ("BlockingIterator",),
            ".client": ("Client",),
            ".execution": ("execute",),
            ".functions": ("generate", "get_default_client", "retry"),
            ".many": ("generate_many",),
            ".mcp": ("mcp_tools",),
            ".media": (
                *("edit_image", "embed", "embed_many", "generate_image", "generate_video"),
                *("speak", "transcribe"),
            ),
            ".objects": ("ObjectStream", "generate_object", "stream_object"),
            ".session": ("Session",),
            ".streams": ("StreamResult", "stream"),
        },
        modules=("batch", "files", "media", "video"),
    )
