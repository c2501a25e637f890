"""`generate_object` and `stream_object`."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Self,
    TypeAlias,
    TypeVar,
    Unpack,
    assert_never,
    cast,
    overload,
)

import msgspec
from msgspec.structs import replace

from interlingua.api.objects.options import ObjectOptions
from interlingua.api.objects.schema import VALUE, ObjectSchema, Reading, object_schema
from interlingua.api.objects.strategy import ObjectGoal, plan
from interlingua.api.run.clients import ACCESS, find_client, with_access
from interlingua.api.run.closed import ClosedByAsyncWith
from interlingua.api.run.help import list_options
from interlingua.api.run.options import (
    Prompt,
    check_options,
    make_messages,
    resumed_run,
)
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.run import Run
from interlingua.api.run.stream_run import StreamRun
from interlingua.api.run.validation import Goal
from interlingua.api.tools.tool import read_tools
from interlingua.runtime.cancel import CANCELLED
from interlingua.runtime.fold import close_reading
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.content import UncheckedJson
from interlingua.spec.errors import (
    AbortError,
    ConfigurationError,
    NoObjectGeneratedError,
    SDKError,
)
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    StreamEvent,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResultEvent,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, to_tool_choice
from interlingua.spec.response import Response
from interlingua.spec.warnings import make_warning

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")
RunT = TypeVar("RunT", bound=Run)
JsonSchema: TypeAlias = Mapping[str, Any]


@overload
async def generate_object(
    model: str | None,
    prompt: Prompt = None,
    *,
    schema: TypeForm[T],
    **options: Unpack[ObjectOptions],
) -> GenerateResult[T]: ...
@overload
async def generate_object(
    model: str | None,
    prompt: Prompt = None,
    *,
    schema: JsonSchema,
    **options: Unpack[ObjectOptions],
) -> GenerateResult[Any]: ...
@list_options
async def generate_object(
    model: str | None, prompt: Prompt = None, *, schema: Any, **options: Unpack[ObjectOptions]
) -> GenerateResult[Any]:
    """
    Ask a model for an object of a schema or type, and validate it.

        result = await generate_object("openai:gpt-5.2", "Alice is 30.", schema=Person)
        print(result.output.name)

    `schema` is a JSON Schema or a type: a dataclass, TypedDict, msgspec Struct or pydantic model,
    or a list, a union, a number. Raises `NoObjectGeneratedError` if the answer is not valid.
    Tools may be used. While calls wait for approval (`pending_approvals`), `output` is None.
    """
    return await finish_object(*start_object(model, prompt, schema, options, Run))


async def finish_object(run: Run, goal: ObjectGoal) -> GenerateResult[Any]:
    """The result of a run that must produce an object."""
    result = await run.generate()
    if result.pending_approvals:
        return result
    try:
        reading = goal.read(result.response)
        _tell_mistakes(run, reading)
        return _finished(run, goal, reading.output)
    except SDKError as error:
        run.account(error)
        raise


@overload
def stream_object(
    model: str | None,
    prompt: Prompt = None,
    *,
    schema: TypeForm[T],
    **options: Unpack[ObjectOptions],
) -> ObjectStream[T]: ...
@overload
def stream_object(
    model: str | None,
    prompt: Prompt = None,
    *,
    schema: JsonSchema,
    **options: Unpack[ObjectOptions],
) -> ObjectStream[Any]: ...
@list_options
def stream_object(
    model: str | None, prompt: Prompt = None, *, schema: Any, **options: Unpack[ObjectOptions]
) -> ObjectStream[Any]:
    """
    Do what `generate_object` does, and return partial objects, each with more than the last.

        stream = stream_object("anthropic:claude-haiku-4-5", "Five recipes.", schema=list[Recipe])
        async for partial in stream:
            print(f"{len(partial)} so far")
        recipes = stream.object()
    """
    return ObjectStream(*start_object(model, prompt, schema, options, StreamRun))


def start_object(
    model: str | None,
    prompt: Prompt,
    schema: object,
    options: Mapping[str, Any],
    make_run: Callable[[str | None, Prompt, Mapping[str, Any], Goal], RunT],
) -> tuple[RunT, ObjectGoal]:
    """A run that must produce an object, and its goal."""
    settings = dict(options)
    check_options(settings, ObjectOptions.__annotations__)
    retries = settings.get("max_validation_retries") or 0
    if settings.get("response_format") is not None:
        raise ConfigurationError("Pass schema= instead of response_format=.")
    tools = read_tools(settings.get("tools", ()))
    client = with_access(find_client(settings.get("client")), model, settings)
    if settings.get("request_id") is None:
        settings["request_id"] = new_ulid()
    request = Request(
        model=model or "",
        provider=settings.get("provider"),
        tools=tools,
        request_id=settings["request_id"],
    )
    if client.registry.tier(request.model)[0]:  # the messages count in the choice of a model
        request = replace(request, messages=_messages(prompt, settings))
    settings = {name: value for name, value in settings.items() if name not in ACCESS}
    answer = object_schema(schema)
    goal = plan(client, request, answer, tools=tools, max_validation_retries=retries)
    all_tools = tools if goal.tool is None else (*tools, goal.tool)
    if settings.get("tool_choice") is not None:
        settings["tool_choice"] = goal.allow_answer(to_tool_choice(settings["tool_choice"]))
    settings |= {"client": client, "tools": all_tools}
    return make_run(model, prompt, settings, goal), goal


def _messages(prompt: Prompt, settings: Mapping[str, Any]) -> tuple[Message, ...]:
    """The conversation that a run with these settings begins with."""
    resumed, system = settings.get("resume"), settings.get("system")
    resumed = None if resumed is None else resumed_run(resumed)
    text = None if callable(system) else system
    return make_messages(prompt, settings.get("messages"), text, resumed)


def _tell_mistakes(run: Run, reading: Reading) -> None:
    """Add a warning to an answer that was not quite JSON."""
    if reading.mistakes:
        response = run.loop.steps[-1].response
        target, mistakes = f"{response.provider}:{response.model}", ", ".join(reading.mistakes)
        run.add_warning(make_warning("json_repaired", target=target, mistakes=mistakes))


def _finished(run: Run, goal: ObjectGoal, output: T) -> GenerateResult[T]:
    """The result of a run that has produced its object."""
    result: GenerateResult[T] = run.result(output)
    messages = (*result.messages, *goal.closing(result.response))
    return msgspec.structs.replace(result, messages=messages)


class GrowingObject:
    """
    The object in a stream so far, from the text or from the arguments of a call.

    Reading it after each event takes linear time in total, because `PartialJSON` does.
    """

    def __init__(self, schema: ObjectSchema, tool: str | None = None) -> None:
        self._schema = schema
        self._tool = tool
        self._find_start = re.compile(r"[{\[]" if schema.is_wrapped else r"\{").search
        self.value: UncheckedJson = msgspec.UNSET
        self.begin()

    def begin(self) -> None:
        """Start over, because another answer replaces this one."""
        from interlingua.wire.partial_json import PartialJSON  # slow to import

        self._json = PartialJSON()
        self._seen: UncheckedJson = None
        self._began = False
        self._call: str | None = None

    def feed(self, event: StreamEvent) -> bool:
        """Add an event; return whether the object has changed."""
        match event:
            case TextDelta(delta=fragment):
                return self._call is None and self._grow(fragment)
            case ToolCallDelta(id=call_id, delta=fragment):
                return call_id == self._call and self._grow(fragment)
            case ToolCallStart(id=call_id, name=name):
                if name == self._tool and self._call is None:
                    self.begin()  # text before the call is not part of the object
                    self._call = call_id
            case StreamRestart():
                self.begin()
            case TextStart() | TextEnd() | ReasoningStart() | ReasoningDelta() | ReasoningEnd():
                pass
            case ToolCallEnd() | ToolResultEvent() | ProviderEvent():
                pass
            case StreamStart() | StepStart() | StepFinish() | ErrorEvent() | Finish():
                pass
            case _:
                assert_never(event)
        return False

    def show(self, value: UncheckedJson) -> bool:
        """Set the value; return whether it differs from the previous one."""
        if self.value is not msgspec.UNSET and value == self.value:
            return False
        self.value = value
        return True

    def _grow(self, fragment: str) -> bool:
        if not self._began:
            start = self._find_start(fragment)
            if start is None:
                return False
            self._began = True
            fragment = fragment[start.start() :]
        self._json.feed(fragment)
        value = self._json.value
        if value is self._seen:  # `PartialJSON` returns the same object if nothing changed
            return False
        self._seen = value
        if self._schema.is_wrapped and isinstance(value, dict) and VALUE not in value:
            return False
        # Looking at the text is far cheaper than searching each growing value for nulls.
        has_null = "null" in self._json.text
        return value is not None and self.show(self._schema.unwrap(value, has_null=has_null))


class ObjectStream(ClosedByAsyncWith, Generic[T]):
    """
    An async iterator over partial objects; it can be read once.

        people = stream_object("openai:gpt-5.2", "Invent five people.", schema=list[Person])
        async for partial in people:
            print(len(partial))
        print(people.object())

    Partials are plain JSON values, and each differs from the one before. If the model has to
    correct its answer, they start over. The last one is complete; if it is not valid,
    `NoObjectGeneratedError` is raised after it.
    """

    def __init__(self, run: StreamRun, goal: ObjectGoal) -> None:
        self._run = run
        self._goal = goal
        self._growing = GrowingObject(goal.schema, None if goal.tool is None else goal.tool.name)
        self._partials = self._read()
        self._output: Any = msgspec.UNSET
        self._error: Exception | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> UncheckedJson:
        return await anext(self._partials)

    async def aclose(self) -> None:
        """Stop reading and close the connection, also while another task is reading."""
        await close_reading(self._partials, self._run.stop)

    @property
    def partial(self) -> UncheckedJson:
        """The object so far; None before its first part has arrived."""
        value = self._growing.value
        return None if value is msgspec.UNSET else value

    def object(self) -> T:
        """Return the whole object, or raise why there is none; only after the end."""
        if self._error is not None:
            raise self._error
        if self._output is msgspec.UNSET:
            raise NoObjectGeneratedError(
                "There is no object yet: tool calls wait for approval.", response=self.response()
            )
        return cast(T, self._output)

    def response(self) -> Response:
        """Return the last answer, or raise why there is none; only after the end."""
        return self._run.response()

    def result(self) -> GenerateResult[T]:
        """Return the object with all steps and messages; only after the end."""
        if self._run.loop.pending_approvals:
            self.response()
            return self._run.result()
        return _finished(self._run, self._goal, self.object())

    async def _read(self) -> AsyncGenerator[UncheckedJson, None]:
        async with aclosing(self._run.stream()) as events:
            async for event in events:
                if isinstance(event, StepFinish):
                    if self._run.loop.has_answer(event.response):
                        self._growing.begin()
                elif self._growing.feed(event):
                    yield self._growing.value
        if self._run.loop.pending_approvals:
            return
        if self._run.is_cancelled:
            self._error = AbortError(CANCELLED, partial=self._run.response())
            return
        try:
            reading = self._goal.read(self._run.response())
        except Exception as error:
            if isinstance(error, SDKError):
                self._run.account(error)
            self._error = error
            raise
        _tell_mistakes(self._run, reading)
        self._output = self._run.result(reading.output).output
        if self._growing.show(reading.value):
            yield reading.value
