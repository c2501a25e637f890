"""`generate_object` and `stream_object`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

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

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")


class ObjectOptions(GenerateOptions, total=False):
    """The options of `generate`, except `response_format`."""

    max_validation_retries: int
    """How often an invalid answer is sent back with its problems. Defaults to 0."""


@overload
async def generate_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: TypeForm[T],
    **options: Unpack[ObjectOptions],
) -> GenerateResult[T]: ...
@overload
async def generate_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: Mapping[str, Any],
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
    Ask a model for an object of a schema or type, and validate it.

        result = await generate_object("openai:gpt-5.2", "Alice is 30.", schema=Person)
        print(result.output.name)

    `schema` is a JSON Schema or a type: a dataclass, TypedDict, msgspec Struct or pydantic model,
    or a list, a union, a number. Raises `NoObjectGeneratedError` if the answer is not valid.
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
    schema: TypeForm[T],
    **options: Unpack[ObjectOptions],
) -> ObjectStream[T]: ...
@overload
def stream_object(
    model: str,
    prompt: str | Message | None = None,
    *,
    schema: Mapping[str, Any],
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
    Like `generate_object`, but streams partial objects, each with more than the one before.

        stream = stream_object("anthropic:claude-haiku-4-5", "Five recipes.", schema=list[Recipe])
        async for partial in stream:
            print(f"{len(partial)} so far")
        recipes = stream.object()
    """
    return ObjectStream(*_start(model, prompt, schema, options))


def _start(
    model: str, prompt: str | Message | None, schema: Any, options: Mapping[str, Any]
) -> tuple[Run, ObjectGoal]:
    settings = {name: value for name, value in options.items() if name != "max_validation_retries"}
    check_options(settings)
    if settings.get("response_format") is not None:
        raise ConfigurationError("pass schema= instead of response_format=")
    max_validation_retries = options.get("max_validation_retries", 0)
    if type(max_validation_retries) is not int or max_validation_retries < 0:
        raise ConfigurationError(
            f"max_validation_retries must be an integer of at least 0, not "
            f"{max_validation_retries!r}"
        )
    tools = tuple(settings.get("tools") or ())
    client = settings.get("client") or get_default_client()
    request = Request(model=model, provider=settings.get("provider"), tools=tools or None)
    goal = plan(
        client,
        request,
        object_schema(schema),
        tools=tools,
        max_validation_retries=max_validation_retries,
    )
    all_tools = tools if goal.tool is None else (*tools, goal.tool)
    return Run(model, prompt, {**settings, "client": client, "tools": all_tools}, goal), goal
