"""Nothing but errors of ours comes out, whatever tools and programs do."""

import asyncio

import pytest

from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.mcp.tools import mcp_tools
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.dialects import get, names
from interlingua.spec.content import ToolCall
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response
from interlingua.streams.accumulate import events_from_response

CALL = Response(
    message=Message.assistant([ToolCall(id="c", name="fail", arguments={})]),
    finish_reason=FinishReason(reason="tool_calls"),
)


class Adapter:
    name = "here"

    async def complete(self, request):
        is_answered = request.messages[-1].role == "tool"
        return Response(message=Message.assistant("done")) if is_answered else CALL

    async def stream(self, request):
        for event in events_from_response(await self.complete(request)):
            yield event

    async def close(self):
        pass


class OwnError(BaseException):
    """A program's exception that is no `Exception`."""


KINDS = [OwnError, SystemExit, GeneratorExit, asyncio.CancelledError, StopIteration, MemoryError]


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("kind", "where"),
    [
        *((kind, where) for kind in KINDS for where in ("thread", "loop", "inline")),
        (KeyboardInterrupt, "thread"),  # on the loop it may be Ctrl-C, which is not swallowed
    ],
)
def test_a_base_exception_of_a_tool_is_told_to_the_model(kind, whole, where):
    """The model is told, and the run goes on."""

    def fail():
        raise kind("boom")

    async def fail_later():
        raise kind("boom")

    async def work():
        tool = Tool(
            name="fail", execute=fail_later if where == "loop" else fail, inline=where == "inline"
        )
        options = {"client": Client({"here": Adapter()}), "tools": [tool]}
        if whole:
            return await generate("here:m", "?", **options)
        events = stream("here:m", "?", **options)
        async for _ in events:
            pass
        return events.result()

    result = asyncio.run(work())

    assert result.text == "done"
    assert result.steps[0].tool_results[0].is_error


@pytest.mark.parametrize(
    "make",
    [
        lambda client: generate("here:m", "?", client=client),
        lambda client: anext(aiter(stream("here:m", "?", client=client))),
        lambda client: client.complete(Request(model="here:m", messages="?")),
        lambda client: anext(client.stream(Request(model="here:m", messages="?"))),
        lambda client: client.list_models(),
        lambda client: client.close(),
        lambda _: mcp_tools("http://127.0.0.1:1/").__aenter__(),
    ],
    ids=["generate", "stream", "complete", "client.stream", "list_models", "close", "mcp_tools"],
)
def test_another_event_loop_than_asyncio_is_refused(make):
    """Under trio, which runs coroutines without asyncio's loop, the error says so."""
    awaitable = make(Client({"here": Adapter()})).__await__()
    with pytest.raises(
        ConfigurationError, match=r"no running asyncio event loop.*interlingua\.sync"
    ):
        next(awaitable)


@pytest.mark.parametrize("servers", [["http://h/"], ("http://h/",), None, 3, b"http://h/"])
def test_what_is_no_mcp_server_is_refused_with_the_right_form(servers):
    """A list is a common mistake; the message shows the mapping."""

    async def work():
        async with mcp_tools(servers):
            pass

    with pytest.raises(ConfigurationError, match=r"is not an MCP server.*mapping"):
        asyncio.run(work())


BODIES = {
    "gemini_generate": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"functionCall": {"name": "f", "args": {}}}] * 3,
                },
                "finishReason": "STOP",
            }
        ]
    },
    "openai_chat": {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}] * 3,
                },
                "finish_reason": "tool_calls",
            }
        ]
    },
    "openai_responses": {
        "status": "completed",
        "output": [{"type": "function_call", "name": "f", "arguments": "{}"}] * 3,
    },
}


@pytest.mark.parametrize("dialect", sorted(BODIES.keys() & set(names())))
def test_decoding_ends_though_the_source_of_ids_repeats_itself(dialect):
    """Decoding ends, and all calls are there."""
    for new_id in (lambda: "x", lambda: ""):
        response = get(dialect).decode_response(BODIES[dialect], new_id=new_id)
        assert len(response.tool_calls) == 3
