"""The functions people call: an object of a schema or a type, whole, or as it comes."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, TypeVar, Unpack, overload

from interlingua.api.objects.schema import object_schema
from interlingua.api.objects.strategy import ObjectGoal, plan
from interlingua.api.objects.stream import ObjectStream, finished
from interlingua.api.run.default_client import get_default_client
from interlingua.api.run.options import GenerateOptions, check_options
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.run import Run
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request

T = TypeVar("T")


class ObjectOptions(GenerateOptions, total=False):
    """Those of `generate`, except `response_format`."""

    max_validation_retries: int
    """How often an answer that does not fit is sent back with what is wrong; 0 unless said."""


@overload
async def generate_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: type[T],
    **options: Unpack[ObjectOptions],
) -> GenerateResult[T]: ...
@overload
async def generate_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: Mapping[str, Any] | UnionType,
    **options: Unpack[ObjectOptions],
) -> GenerateResult[Any]: ...
async def generate_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: Any,
    **options: Unpack[ObjectOptions],
) -> GenerateResult[Any]:
    """
    Ask a model for an object, and check it.

        result = await generate_object("openai:gpt-5.2", "Alice is 30.", schema=Person)
        print(result.output.name)

    `schema` is a JSON Schema or a type: a dataclass, TypedDict, msgspec Struct or pydantic model,
    also a list of them, a union, a number. `NoObjectGeneratedError` if what comes does not fit.
    Tools may be used. While calls wait for approval (`pending_approvals`), `output` is None.
    """
    run, goal = _start(model, prompt, schema, options)
    result = await run.generate()
    if result.pending_approvals:
        return result
    with run.accounting():
        return finished(run, goal, goal.read(result.response).output)


@overload
def stream_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: type[T],
    **options: Unpack[ObjectOptions],
) -> ObjectStream[T]: ...
@overload
def stream_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: Mapping[str, Any] | UnionType,
    **options: Unpack[ObjectOptions],
) -> ObjectStream[Any]: ...
def stream_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: Any,
    **options: Unpack[ObjectOptions],
) -> ObjectStream[Any]:
    """
    The same as it comes: each partial has more of the object than the one before.

        stream = stream_object("anthropic:claude-haiku-4-5", "Five recipes.", schema=list[Recipe])
        async for partial in stream:
            print(f"{len(partial)} so far")
        recipes = stream.object()
    """
    return ObjectStream(*_start(model, prompt, schema, options))


def _start(
    model: str, prompt: str | Message | None, schema: Any, options: Mapping[str, Any]
) -> tuple[Run, ObjectGoal]:
    doing = {name: value for name, value in options.items() if name != "max_validation_retries"}
    check_options(doing)
    if doing.get("response_format") is not None:
        raise ConfigurationError("an object is asked for by its schema, not by response_format")
    max_validation_retries = options.get("max_validation_retries", 0)
    if type(max_validation_retries) is not int or max_validation_retries < 0:
        raise ConfigurationError(
            f"max_validation_retries is a number from 0 up, not {max_validation_retries!r}"
        )
    tools = tuple(doing.get("tools") or ())
    client = doing.get("client") or get_default_client()
    asked = Request(model=model, provider=doing.get("provider"), tools=tools or None)
    goal = plan(
        client,
        asked,
        object_schema(schema),
        tools=tools,
        max_validation_retries=max_validation_retries,
    )
    added = () if goal.tool is None else (goal.tool,)
    return Run(model, prompt, {**doing, "client": client, "tools": (*tools, *added)}, goal), goal
