"""How a model is asked for an object, and how its answer is read: three ways of asking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from interlingua import dialects
from interlingua.api.objects.schema import ObjectSchema, Reading
from interlingua.api.objects.text import find_json
from interlingua.api.tools.tool import Tool
from interlingua.api.types.problems import list_problems
from interlingua.client.client import Client
from interlingua.prepare.schema.narrow import narrow
from interlingua.prepare.schema.narrowed import remembered
from interlingua.prepare.settings import adjust_settings, structured_output_mode
from interlingua.spec.content import Json, Refusal, Text, ToolCall, ToolResult
from interlingua.spec.contracts import Profile, StructuredOutput
from interlingua.spec.errors import (
    ConfigurationError,
    DecodeError,
    NoObjectGeneratedError,
    UnsupportedError,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolChoice
from interlingua.spec.response import Response
from interlingua.spec.warnings import Losses, is_loss
from interlingua.wire.json_text import dump_text

_TOOL = "answer"
_TOOL_DESCRIPTION = "Give the answer. Call it once, when the whole answer is known."
_CALL = "Give your answer by calling the tool {name}, not as text."
_WRITE = (
    "Answer with JSON alone: no words before or after it, no code fence. It must keep to this "
    "JSON Schema:\n\n{schema}"
)
_AGAIN = "The answer is not as it has to be: {problems}. Give the whole answer again, corrected."
_NOT_RUN = "It was not run, as the answer came with it."
_TAKEN = "The answer was taken."

_ENDS = {
    "length": "the answer was cut off; raise max_tokens",
    "content_filter": "the answer was filtered or refused",
    "cancelled": "the call was cancelled",
    "error": "the provider broke off with an error",
}


class ObjectGoal:
    """
    A run is to end with an object.

    `native` asks with a response format, `tool` with a tool that takes the object, `prompt`
    with words. An answer that does not fit is sent back up to `max_validation_retries` times.
    """

    def __init__(
        self,
        schema: ObjectSchema,
        mode: StructuredOutput,
        profile: Profile,
        *,
        tools: Sequence[Any] = (),
        max_validation_retries: int = 0,
    ) -> None:
        self.schema = schema
        self.mode = mode
        self._profile = profile
        self._has_tools = bool(tools)
        self._reasks_left = max_validation_retries
        self._read: tuple[Response, Reading | NoObjectGeneratedError] | None = None
        self.tool = self._make_tool(tools) if mode == "tool" else None

    # Asking.

    def ask(self, request: Request, *, is_last: bool) -> Request:
        """The request of a step, as it asks for the object."""
        if self.mode == "tool":
            return self._ask_by_tool(request, is_last=is_last)
        if is_last and self._has_tools:  # calls would come to nothing
            request = _first_accepted(request, [ToolChoice(mode="none")], self._profile) or request
        if self.mode == "native":
            return replace(request, response_format=format_of(self.schema))
        return _instruct(request, _WRITE.format(schema=dump_text(self.schema.wire_schema)))

    def _ask_by_tool(self, request: Request, *, is_last: bool) -> Request:
        given, name = request.tool_choice, self._tool_name
        if not self._has_tools or is_last or (given is not None and given.mode == "none"):
            only = (name,) if self._has_tools else None
            ways = [
                ToolChoice(mode="named", tool_name=name),
                ToolChoice(mode="required", allowed=only),
            ]
        elif given is not None and given.mode == "named":
            ways = [given]
        else:
            allowed = None if given is None or given.allowed is None else (*given.allowed, name)
            ways = [ToolChoice(mode="required", allowed=allowed)]
        forced = _first_accepted(request, ways, self._profile)
        if forced is not None:
            return forced
        choice = None if given is None or given.mode == "none" else given
        return _instruct(replace(request, tool_choice=choice), _CALL.format(name=name))

    @property
    def _tool_name(self) -> str:
        return _TOOL if self.tool is None else self.tool.name

    def _make_tool(self, tools: Sequence[Any]) -> Tool:
        taken = {getattr(tool, "name", None) for tool in tools}
        name, number = _TOOL, 1
        while name in taken:
            number += 1
            name = f"{_TOOL}_{number}"
        most = self._profile.max_strict_tools if self._profile.strict_tools else 0
        marked = sum(bool(getattr(tool, "strict", None)) for tool in tools)
        return Tool(
            name=name,
            description=_TOOL_DESCRIPTION,
            parameters=self.schema.wire_schema,
            strict=True if most is None or marked < most else None,
        )

    # Reading.

    def read(self, response: Response) -> Reading:
        """The object of a last answer; `NoObjectGeneratedError` says why there is none."""
        if self._read is None or self._read[0] is not response:
            try:
                self._read = (response, self._read_anew(response))
            except NoObjectGeneratedError as error:
                self._read = (response, error)
        found = self._read[1]
        if isinstance(found, NoObjectGeneratedError):
            raise found
        return found

    def review(self, response: Response) -> tuple[Message, ...]:
        """What to say to an answer that does not fit."""
        try:
            self.read(response)
        except NoObjectGeneratedError as error:
            if self._reasks_left > 0 and _why_none(response, self._call(response)) is None:
                self._reasks_left -= 1
                said = _AGAIN.format(problems=list_problems(error.problems))
                return self._reply(response, said, is_error=True) or (Message.user(said),)
        return ()

    def closing(self, response: Response) -> tuple[Message, ...]:
        """What makes the conversation whole after the object: no call stays unanswered."""
        return self._reply(response, _TAKEN, is_error=False)

    def _reply(self, response: Response, said: str, *, is_error: bool) -> tuple[Message, ...]:
        """The result of the call that gave the object; nothing if it was not given by a call."""
        answer = self._call(response)
        if answer is None:
            return ()
        results = tuple(
            ToolResult(tool_call_id=call.id, name=call.name, content=said, is_error=is_error)
            if call is answer
            else ToolResult(tool_call_id=call.id, name=call.name, content=_NOT_RUN, is_error=True)
            for call in response.tool_calls
        )
        return (Message(role="tool", content=results),)

    def _call(self, response: Response) -> ToolCall | None:
        if self.tool is None:
            return None
        calls = (call for call in response.tool_calls if call.name == self._tool_name)
        return next(calls, None)

    def _read_anew(self, response: Response) -> Reading:
        call = self._call(response)
        text = response.text if call is None else _text_of(call)
        try:
            said = self._find(text) if call is None else self._arguments(call)
            reading = self.schema.read(said)
        except DecodeError as error:
            reading = Reading(None, None, (error.message,))
        if call is not None and response.finish_reason.reason in _ENDS:
            # some hosts close the arguments of a call that was cut off, so that they look whole
            reading = Reading(None, None, reading.problems or ("it is not sure to be whole",))
        if not reading.problems:
            return reading
        why = _why_none(response, call)
        raise NoObjectGeneratedError(
            why or f"the answer does not fit the schema: {list_problems(reading.problems)}",
            text=text,
            response=response,
            problems=reading.problems,
            request_id=response.request_id,
            partial=response,
        )

    def _arguments(self, call: ToolCall) -> Json:
        return call.arguments if call.is_valid else self._find(call.raw_arguments or "")

    def _find(self, text: str) -> Json:
        return find_json(text, is_object=not self.schema.is_wrapped)


def plan(
    client: Client,
    request: Request,
    schema: ObjectSchema,
    *,
    tools: Sequence[Any] = (),
    max_validation_retries: int = 0,
) -> ObjectGoal:
    """The best way of asking that the model takes; `request` names it and has its tools."""
    profile = client.profile_for(request)
    request = replace(request, response_format=format_of(schema))
    ways = [
        way
        for way in profile.structured_output
        if (way != "tool" or profile.tools)
        and (way != "native" or _is_accepted(request, profile) or _is_sayable(client, request))
    ]
    mode = structured_output_mode(request, replace(profile, structured_output=tuple(ways)))
    if mode is None:
        raise UnsupportedError(
            f"the model {request.model!r} has no way to answer with an object of this schema"
            f"{' beside tools' if tools else ''}"
        )
    return ObjectGoal(
        schema, mode, profile, tools=tools, max_validation_retries=max_validation_retries
    )


def format_of(schema: ObjectSchema) -> ResponseFormat:
    """The schema as a response format."""
    return ResponseFormat(
        type="json_schema", name=schema.name, json_schema=schema.wire_schema, strict=True
    )


def _is_accepted(request: Request, profile: Profile) -> bool:
    """Whether the dialect's rules alone say that the schema can be sent without a loss."""
    form = request.response_format
    if profile.dialect not in dialects.names() or profile.structured_output[0] != "native":
        return False
    rules = dialects.get(profile.dialect).FACTS.schema
    if rules is None or form is None:
        return False
    narrowed = remembered(form.json_schema, rules, narrow)
    return narrowed.strict_possible and not narrowed.losses


def _is_sayable(client: Client, request: Request) -> bool:
    """Whether the target takes this schema natively, lossy as it is; the encoder knows."""
    bare = Request(
        model=request.model,
        provider=request.provider,
        messages=(Message.user("-"),),
        response_format=request.response_format,
    )
    try:
        warnings = client.explain(bare).warnings
    except UnsupportedError:  # of an adapter that is strict
        return False
    except ConfigurationError:  # an adapter of another kind, which cannot tell
        return True
    return not any(is_loss(found) and found.path == "response_format" for found in warnings)


def _first_accepted(
    request: Request, ways: Iterable[ToolChoice], profile: Profile
) -> Request | None:
    """The request with the first choice that this model takes, thinking as it is told to."""
    bare = replace(request, messages=())
    for choice in ways:
        if (
            adjust_settings(replace(bare, tool_choice=choice), profile, Losses()).tool_choice
            == choice
        ):
            return replace(request, tool_choice=choice)
    return None


def _instruct(request: Request, text: str) -> Request:
    """The request with one more instruction, after those it has."""
    first, *rest = request.messages
    if first.role not in ("system", "developer"):
        return replace(request, messages=(Message.system(text), *request.messages))
    last = first.content[-1] if first.content else None
    if type(last) is Text and not last.extra:
        content = (*first.content[:-1], Text(text=f"{last.text}\n\n{text}"))
    else:
        content = (*first.content, Text(text=text))
    return replace(request, messages=(replace(first, content=content), *rest))


def _text_of(call: ToolCall) -> str:
    return dump_text(call.arguments) if call.raw_arguments is None else call.raw_arguments


def _why_none(response: Response, answer: ToolCall | None) -> str | None:
    """What kept the model from answering, so that to tell it what is wrong would not help."""
    said = "".join(part.text for part in response.message.content if isinstance(part, Refusal))
    if said:
        return f"the model refused: {said}"
    reason = response.finish_reason.reason
    if reason in _ENDS:
        return _ENDS[reason]
    if answer is None and response.tool_calls:
        names = ", ".join(call.name for call in response.tool_calls)
        return f"the model called {names} instead of answering, and was not asked again"
    return None
