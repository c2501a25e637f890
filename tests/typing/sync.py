"""
What a user's type checker sees of the blocking functions and of `execute`.

Checked by mypy, never run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_type

from interlingua import Client, GenerateResult, Request, Response, execute, generate, sync
from interlingua.batch import Batch, BatchResult
from interlingua.catalog import ServedModel
from interlingua.events import StreamEvent
from interlingua.execution import Chunk, ExecuteError, ExecuteResult, ExecuteUsage, Execution
from interlingua.media import EmbedResult
from interlingua.sync.media import served_model, stream_speech


@dataclass
class Person:
    """Somebody."""

    name: str


client = sync.Client.from_env()
request = Request(model="m", messages=())

assert_type(client.complete(request), Response)
assert_type(next(client.stream(request)), StreamEvent)
assert_type(client.asynchronous, Client)

assert_type(sync.generate("m", "Hi", temperature=0.5, client=client), GenerateResult[None])
sync.generate("m", "Hi", temprature=0.5)  # type: ignore[call-arg] # misspelt
sync.generate("m", "Hi", client=Client.from_env())
with sync.stream("m", "Hi", client=client) as events:
    for event in events:
        assert_type(event, StreamEvent)
    assert_type(events.text_stream, Iterator[str])
    assert_type(events.partial_response, Response | None)
assert_type(events.response(), Response)
assert_type(events.result(), GenerateResult[None])

assert_type(sync.generate_object("m", "Hi", schema=Person).output, Person)
assert_type(sync.generate_object("m", "Hi", schema=list[Person]).output, list[Person])
growing = sync.stream_object("m", "Hi", schema=Person)
for partial in growing:
    assert_type(partial, Any)
assert_type(growing.object(), Person)
assert_type(growing.result(), GenerateResult[Person])
assert_type(sync.generate_object("m", "Hi", schema={"type": "object"}).output, Any)


async def show(chunk: Chunk) -> None:
    """A callback may be async."""
    if chunk["type"] == "text-delta":
        assert_type(chunk["text"], str)


async def run() -> None:
    """Executions."""
    execution = execute("m", [{"role": "user", "content": "Hi"}], on_chunk=show)
    assert_type(execution, Execution)
    execution.cancel()
    assert_type(await execution, ExecuteResult)


result = sync.execute("m", "Hi", on_chunk=show, on_reasoning=print, client=client)
assert_type(result.usage, ExecuteUsage)
assert_type(result.error, ExecuteError | None)

sync.embed("m", "Hi", dimensions="3")  # type: ignore[arg-type]
assert_type(sync.embed("m", "Hi", dimensions=3, client=client), EmbedResult)
assert_type(served_model("m", client=client, timeout=3), ServedModel)
assert_type(client.retrieve_model("m"), ServedModel)
assert_type(sync.batch.list("openai", client=Client.from_env()), list[Batch])
assert_type(next(sync.batch.results("openai:b")), BatchResult)
assert_type(next(sync.generate_many(["Hi"], "m", client=client)).error, Exception | None)
assert_type(next(sync.generate_many(["1"], "m", schema=int)).unwrap().output, int)
for piece in stream_speech("m", "Hi", client=client):
    assert_type(piece, bytes)
with sync.mcp_tools("https://example.com/mcp") as tools:
    sync.generate("m", "Hi", tools=tools)


async def both(name: str) -> None:
    """The async functions take a blocking client as well."""
    assert_type(await generate(name, "Hi", client=client), GenerateResult[None])
    await generate(name, "Hi", client="openai")  # type: ignore[arg-type]
