"""The three ways to ask a model for an object, and the decoding of its answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, count
from typing import Any

from msgspec.structs import replace

from interlingua import dialects
from interlingua.api.objects.schema import ObjectSchema, Reading, read_json
from interlingua.api.tools.tool import Tool
from interlingua.api.types.schema import list_problems
from interlingua.client.client import Client
from interlingua.prepare.instructions import SCHEMA_INSTRUCTION
from interlingua.prepare.settings import (
    adjust_settings,
    structured_output_modes,
)
from interlingua.spec.content import Refusal, Text, ToolCall, ToolResult
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
from interlingua.spec.warnings import WarningList, is_loss
from interlingua.wire.json_text import dump_text

_TOOL = "answer"
_TOOL_DESCRIPTION = "Give the answer. Call it once, when the whole answer is known."
_CALL = "Give your answer by calling the tool {name}, not as text."
_AGAIN = "The answer is not valid: {problems}. Give the whole answer again, corrected."
_NOT_RUN = "This tool was not run, because the same message contains the answer."
_ACCEPTED = "The answer was accepted."

_INCOMPLETE = {
    "length": "The answer was cut off. Raise max_tokens.",
    "content_filter": "The answer was filtered or refused.",
    "cancelled": "The call was cancelled.",
    "error": "The provider ended the answer with an error.",
}


class ObjectGoal:
    """
    Makes a run end with an object.

    The mode `native` asks with a response format, `tool` with a tool that takes the object, and
    `prompt` with an instruction. An invalid answer is sent back up to `max_validation_retries`
    times.
    """

    def __init__(
        self,
        schema: ObjectSchema,
        mode: StructuredOutput,
        profile: Profile,
        *,
        tools: Sequence[object] = (),
        max_validation_retries: int = 0,
    ) -> None:
        self.schema = schema
        self.mode = mode
        self._profile = profile
        self._has_tools = bool(tools)
        self._reasks_left = max_validation_retries
        self._read: tuple[Response, Reading | NoObjectGeneratedError] | None = None
        self.tool: Tool | None = self._make_tool(tools) if mode == "tool" else None

    # Asking.

    def ask(self, request: Request, *, is_last: bool) -> Request:
        """The request of a step, changed to ask for the object."""
        if self.tool is not None:
            return self._ask_by_tool(request, self.tool.name, is_last=is_last)
        if is_last and self._has_tools:  # tool calls would not be run any more
            request = _first_accepted(request, [ToolChoice(mode="none")], self._profile) or request
        if self.mode == "native":
            return replace(request, response_format=format_of(self.schema))
        return _instruct(
            request, SCHEMA_INSTRUCTION.format(schema=dump_text(self.schema.wire_schema))
        )

    def allow_answer(self, choice: ToolChoice | None) -> ToolChoice | None:
        """The caller's tool choice, with the tool of the answer among the allowed ones."""
        if self.tool is None or choice is None:
            return choice
        if choice.mode == "none":
            return ToolChoice(allowed=(self.tool.name,))
        if choice.allowed is None:
            return choice
        return replace(choice, allowed=(*choice.allowed, self.tool.name))

    def _ask_by_tool(self, request: Request, name: str, *, is_last: bool) -> Request:
        original = request.tool_choice
        # Kept in each step: some dialects send only the allowed tools, and a list that changes
        # is not read from the provider's cache.
        allowed = None if original is None else original.allowed
        if not self._has_tools or is_last or allowed == (name,):
            only = (name,) if self._has_tools else None
            choices = [
                ToolChoice(mode="named", tool_name=name, allowed=allowed),
                ToolChoice(mode="required", allowed=only),
            ]
        elif original is not None and original.mode == "named":
            choices = [original]
        else:
            choices = [ToolChoice(mode="required", allowed=allowed)]
        forced = _first_accepted(request, choices, self._profile)
        return forced or _instruct(request, _CALL.format(name=name))

    def _make_tool(self, tools: Sequence[object]) -> Tool:
        taken = {getattr(tool, "name", None) for tool in tools}
        numbered = (f"{_TOOL}_{number}" for number in count(2))
        name = next(name for name in chain([_TOOL], numbered) if name not in taken)
        is_strict = self._profile.strict_tools is not False
        limit = self._profile.max_strict_tools if is_strict else 0
        strict_count = sum(bool(getattr(tool, "strict", None)) for tool in tools)
        return Tool(
            name=name,
            description=_TOOL_DESCRIPTION,
            parameters=self.schema.wire_schema,
            strict=True if limit is None or strict_count < limit else None,
        )

    # Reading.

    def read(self, response: Response) -> Reading:
        """The object of the last answer; `NoObjectGeneratedError` if there is none."""
        if self._read is None or self._read[0] is not response:
            self._read = (response, self._decode(response))
        if isinstance(self._read[1], NoObjectGeneratedError):
            raise self._read[1]
        return self._read[1]

    def review(self, response: Response) -> tuple[Message, ...]:
        """The messages that ask for a correction; none if the answer is final."""
        try:
            self.read(response)
        except NoObjectGeneratedError as error:
            if self._reasks_left > 0 and _no_answer_reason(response, self._call(response)) is None:
                self._reasks_left -= 1
                text = _AGAIN.format(problems=list_problems(error.problems))
                return self._reply(response, text, is_error=True) or (Message.user(text),)
        return ()

    def output(self, response: Response) -> Any:
        """The object of the last answer; `NoObjectGeneratedError` if there is none."""
        return self.read(response).output

    def reject(self, response: Response, reason: str) -> tuple[Message, ...]:
        """The messages that send a valid object back with a reason."""
        return self._reply(response, reason, is_error=True) or (Message.user(reason),)

    def closing(self, response: Response) -> tuple[Message, ...]:
        """The messages that answer the open calls, so that the history can be continued."""
        return self._reply(response, _ACCEPTED, is_error=False)

    def _reply(self, response: Response, text: str, *, is_error: bool) -> tuple[Message, ...]:
        """The results of the answer's calls; none if the answer is not a call."""
        answer = self._call(response)
        if answer is None:
            return ()
        results = tuple(
            ToolResult(tool_call_id=call.id, name=call.name, content=text, is_error=is_error)
            if call is answer
            else ToolResult(tool_call_id=call.id, name=call.name, content=_NOT_RUN, is_error=True)
            for call in response.tool_calls
        )
        return (Message(role="tool", content=results),)

    def _call(self, response: Response) -> ToolCall | None:
        """The call that is the answer."""
        name = None if self.tool is None else self.tool.name
        return next((call for call in response.tool_calls if call.name == name), None)

    def _decode(self, response: Response) -> Reading | NoObjectGeneratedError:
        call = self._call(response)
        raw = response.text if call is None else call.raw_arguments
        text = dump_text(call.arguments) if call is not None and raw is None else raw or ""
        mistakes: tuple[str, ...] = ()
        try:
            if call is not None and call.is_valid:
                answer = call.arguments
            else:
                answer, mistakes = read_json(text, is_object=not self.schema.is_wrapped)
            reading = replace(self.schema.read(answer), mistakes=mistakes)
        except DecodeError as error:
            reading = Reading(None, None, (error.message,))
        if call is not None and response.finish_reason.reason in _INCOMPLETE:
            # Some hosts close the arguments of a call that was cut off, so that they look complete.
            reading = Reading(None, None, reading.problems or ("the answer may be incomplete",))
        if not reading.problems:
            return reading
        reason = _no_answer_reason(response, call)
        return NoObjectGeneratedError(
            reason or f"The answer does not match the schema: {list_problems(reading.problems)}.",
            text=text,
            response=response,
            problems=reading.problems,
            request_id=response.request_id,
            partial=response,
        )


def plan(
    client: Client,
    request: Request,
    schema: ObjectSchema,
    *,
    tools: Sequence[object] = (),
    max_validation_retries: int = 0,
) -> ObjectGoal:
    """Choose the best mode for the model of the request, given the tools of the request."""
    profile = client.profile_for(request)
    for mode in structured_output_modes(profile, has_tools=bool(request.tools)):
        if mode == "tool" and profile.tools is False:
            continue
        is_doubtful = mode == "native" and not _is_lossless(schema, profile)
        if is_doubtful and not _supports_schema(client, request, schema):
            continue
        return ObjectGoal(
            schema, mode, profile, tools=tools, max_validation_retries=max_validation_retries
        )
    raise UnsupportedError(
        f"The model {request.model!r} does not support objects of this schema"
        f"{' together with tools' if tools else ''}."
    )


def format_of(schema: ObjectSchema) -> ResponseFormat:
    """The schema as a response format."""
    return ResponseFormat(
        type="json_schema", name=schema.name, json_schema=schema.wire_schema, strict=True
    )


def _is_lossless(schema: ObjectSchema, profile: Profile) -> bool:
    """Whether the dialect's schema rules alone show that the schema is sent without a loss."""
    preferred = structured_output_modes(profile, has_tools=False)[:1]
    if profile.dialect not in dialects.names() or "native" not in preferred:
        return False
    rules = dialects.get(profile.dialect).FACTS.schema
    return rules is not None and schema.is_lossless(rules)


def _supports_schema(client: Client, request: Request, schema: ObjectSchema) -> bool:
    """Whether the encoder sends this schema as a response format without a warning of a loss."""
    bare = Request(
        model=request.model,
        provider=request.provider,
        messages=(Message.user("-"),),
        response_format=format_of(schema),
    )
    try:
        explanation = client.explain(bare)
    except ConfigurationError:  # a custom adapter without `explain`
        return True
    if explanation.refused:
        return False
    warnings = explanation.warnings
    return not any(is_loss(item) and item.path == "response_format" for item in warnings)


def _first_accepted(
    request: Request, choices: Iterable[ToolChoice], profile: Profile
) -> Request | None:
    """The request with the first tool choice that the model supports; None if there is none."""
    # With all settings of the request: some models cannot be forced while thinking is on.
    bare = replace(request, messages=())
    for choice in choices:
        adjusted = adjust_settings(replace(bare, tool_choice=choice), profile, WarningList())
        if adjusted.tool_choice == choice:
            return replace(request, tool_choice=choice)
    return None


def _instruct(request: Request, text: str) -> Request:
    """The request with one more instruction, after its other system instructions."""
    first, *rest = request.messages
    if first.role not in ("system", "developer"):
        return replace(request, messages=(Message.system(text), *request.messages))
    last = first.content[-1] if first.content else None
    if type(last) is Text and not last.extra:
        content = (*first.content[:-1], Text(text=f"{last.text}\n\n{text}"))
    else:
        content = (*first.content, Text(text=text))
    return replace(request, messages=(replace(first, content=content), *rest))


def _no_answer_reason(response: Response, answer: ToolCall | None) -> str | None:
    """Why the model gave no complete answer; None if a correction is worth asking for."""
    refusal = "".join(part.text for part in response.message.content if isinstance(part, Refusal))
    if refusal:
        return f"The model refused: {refusal}"
    reason = response.finish_reason.reason
    if reason in _INCOMPLETE:
        return _INCOMPLETE[reason]
    if answer is None and response.tool_calls:
        names = ", ".join(call.name for call in response.tool_calls)
        return f"The model called {names} instead of answering, and the run has ended."
    return None
