"""
What a user's type checker sees of the blocking functions and of `execute`.

Checked by mypy, never run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_type

from interlingua import Client, GenerateResult, Request, Response, execute, sync
from interlingua.events import StreamEvent
from interlingua.execution import Chunk, ExecuteError, ExecuteResult, ExecuteUsage, Execution


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
