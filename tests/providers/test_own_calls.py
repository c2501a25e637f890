"""A tool call that the provider has run itself, through an adapter and a run."""

import asyncio
import json

import pytest

from interlingua import BuiltinTool, Client, HttpAdapter, generate, stream, tool
from interlingua.transport import CannedReply, CannedTransport

SEARCH = {
    "type": "custom_tool_call",
    "id": "ctc_1",
    "call_id": "xs_1",
    "name": "x_keyword_search",
    "input": '{"query":"grok"}',
    "status": "completed",
}
TEXT = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Found.", "annotations": []}],
}
BODY = {
    "id": "r",
    "object": "response",
    "model": "grok-4.7",
    "status": "completed",
    "output": [SEARCH, TEXT],
    "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
}
X_SEARCH = BuiltinTool(dialect="openai_responses", data={"type": "x_search"})


def reply(*, is_stream):
    if not is_stream:
        return CannedReply(
            headers={"content-type": "application/json"}, body=json.dumps(BODY).encode()
        )
    frames = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**SEARCH, "input": ""}},
        {"type": "response.output_item.done", "output_index": 0, "item": SEARCH},
        {"type": "response.output_item.done", "output_index": 1, "item": TEXT},
        {"type": "response.completed", "response": BODY},
    ]
    data = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames)
    return CannedReply(headers={"content-type": "text/event-stream"}, body=data.encode())


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"Rain in {city}."


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_a_search_that_xai_has_run_is_not_handed_to_the_program(is_stream):
    """The run ends with the answer: nobody is asked to run the search again."""

    async def work():
        transport = CannedTransport([reply(is_stream=is_stream)])
        adapter = HttpAdapter("xai", "k", dialect="openai_responses", transport=transport)
        client = Client({"xai": adapter}, default_provider="xai")
        options = {"tools": [weather, X_SEARCH], "max_tool_rounds": 3, "client": client}
        if not is_stream:
            return await generate("grok-4.7", "Search X.", **options)
        events = stream("grok-4.7", "Search X.", **options)
        async for _ in events:
            pass
        return events.result()

    result = asyncio.run(work())

    assert (result.text, len(result.steps), result.tool_calls) == ("Found.", 1, ())
    assert [part.kind for part in result.response.message.content] == ["opaque", "text"]
    assert result.response.message.content[0].tool == "x_keyword_search"
