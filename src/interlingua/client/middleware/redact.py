"""`Redact`: keeps secrets and personal data from providers, and out of answers."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from pathlib import PurePath
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from interlingua.client.middleware.contract import (
    Call,
    CompleteNext,
    PerformNext,
    StreamNext,
)
from interlingua.client.middleware.redact_text import (
    Detector,
    Detectors,
    Marks,
    RemovingFilter,
    RestoringFilter,
    StreamFilter,
    edit_deep,
    own_marks,
    put_back,
)
from interlingua.lazy import Remade
from interlingua.prepare.history.scan import HistoryScan
from interlingua.providers.replies import LARGE
from interlingua.runtime.fold import close_stream
from interlingua.spec.content import (
    PART_TYPES,
    Document,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.events import (
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamRestart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.messages import Message
from interlingua.spec.modalities.batch import BatchInput, BatchResult
from interlingua.spec.modalities.speech import TranscriptDelta
from interlingua.spec.operations import OperationInput, OperationResult
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from interlingua.wire.json_text import dump_text

Kind: TypeAlias = Literal["email", "phone", "card", "iban", "ssn", "ip"]
"""The kinds of personal data that are known."""
Edit: TypeAlias = Callable[[str], str]


class Redact(Remade):
    """
    Replaces secrets and personal data in what is sent by marks such as `[EMAIL_1]`.

        client = Client.from_env(middleware=[Redact("email", "card", restore=True)])

    Keys, tokens, passwords and private keys are always replaced, unless `secrets` is false. The
    kinds name personal data: `email`, `phone`, `card`, `iban`, `ssn` (of the USA), `ip`.
    `patterns` adds own ones, by a name in capitals: a regular expression, or a function that
    returns the places in a text as pairs of start and end. With `restore`, marks in the answer are
    replaced by what they stand for. With `answers`, answers are searched too.
    """

    guard: ClassVar[bool] = True

    def __init__(
        self,
        *kinds: Kind,
        patterns: Mapping[str, Detector] | None = None,
        secrets: bool = True,
        restore: bool = False,
        answers: bool = False,
    ) -> None:
        self._detectors = Detectors(kinds, patterns or {}, secrets=secrets)
        self._restores = restore
        self._answers = answers

    async def complete(self, request: Request, call_next: CompleteNext) -> Response:
        """Return the answer to the redacted request."""
        marks, request = await self._redact(request)
        response = await call_next(request)
        edits = self._edits(marks)
        return _edit_response(response, edits) if edits else response

    async def stream(
        self, request: Request, call_next: StreamNext
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the answer to the redacted request."""
        marks, request = await self._redact(request)
        events = call_next(request)
        edits = self._edits(marks)
        segments: dict[str, _Segment] = {}
        try:
            async for event in events:
                if not edits:
                    yield event
                else:
                    for each in _edit_event(event, edits, segments):
                        yield each
        finally:
            await close_stream(events)

    async def perform(self, operation: Call, value: Any, call_next: PerformNext) -> Any:
        """Return the result of the operation with the redacted value."""
        if isinstance(value, BatchInput):  # its requests are read and encoded later
            return await call_next(replace(value, requests=value.requests.edited(self._cleaned)))
        if operation.name == "batch_results":
            results = await call_next(value)
            is_edited = self._restores or self._answers
            return self._edit_results(results, value.requests) if is_edited else results
        marks, value = await self._redact(value)
        result = await call_next(value)
        edits = self._edits(marks)
        if edits and isinstance(result, AsyncGenerator):
            return _edit_items(result, edits)
        return _edit_value(result, edits.edit) if edits else result

    async def _cleaned(self, request: Request) -> Request:
        cleaned: Request = (await self._redact(request))[1]
        return cleaned

    async def _edit_results(
        self, results: AsyncGenerator[BatchResult, None], requests: Mapping[str, Request]
    ) -> AsyncGenerator[BatchResult, None]:
        """The results of a batch; what marks stand for is known if the requests are at hand."""
        async with aclosing(results):
            async for result in results:
                marks, _ = await self._redact(requests.get(result.id) or Request())
                edits, response = self._edits(marks), result.response
                if response is None or not edits:
                    yield result
                    continue
                edited = _edit_response(response, edits)
                raw = result.raw if edited is response else None
                yield replace(result, response=edited, raw=raw)

    async def _redact(self, value: Any) -> tuple[Marks, Any]:
        """The value without what is removed, and the marks in it; in a thread if it is large."""

        def work() -> tuple[Marks, Any]:
            marks = self._marks_of(value)
            return marks, _edit_value(value, marks.remove)

        size = HistoryScan(value.messages).rough_size if isinstance(value, Request) else 0
        size = value.rough_size if isinstance(value, OperationInput) else size
        return await asyncio.to_thread(work) if size > LARGE else work()

    def _marks_of(self, value: Any) -> Marks:
        """The marks of a call; texts of the caller that look like marks are none."""
        taken: list[str] = []
        if self._restores:

            def collect(text: str) -> str:
                taken.extend(own_marks(text))
                return text

            _edit_value(value, collect)
        return Marks(self._detectors, taken)

    def _edits(self, marks: Marks) -> _Edits:
        values = dict(marks.values) if self._restores else {}
        return _Edits(self._detectors, marks if self._answers else None, values)


class _Edits:
    """What is done to the answer: things are removed from it, then marks are replaced."""

    def __init__(
        self, detectors: Detectors, marks: Marks | None, values: Mapping[str, str]
    ) -> None:
        self._detectors = detectors
        self._marks = marks
        self._values = values
        self._quoted = {mark: dump_text(value)[1:-1] for mark, value in values.items()}

    def __bool__(self) -> bool:
        return self._marks is not None or bool(self._values)

    def remove(self, text: str) -> str:
        return text if self._marks is None else self._marks.remove(text)

    def restore(self, text: str) -> str:
        return put_back(text, self._values)

    def edit(self, text: str) -> str:
        return self.restore(self.remove(text))

    def edit_part(self, part: Part) -> Part:
        cleaned = _edit_part(part, self.remove)
        if isinstance(cleaned, Thinking):  # its signature is valid for the text as it is
            return cleaned
        restored = _edit_part(cleaned, self.restore)
        if isinstance(restored, Text | Refusal) and restored is not cleaned:
            return replace(restored, extra=edit_deep(cleaned.extra, self.restore))
        return restored

    def filters(self, kind: type[StreamEvent]) -> list[StreamFilter]:
        """The filters of a new segment."""
        filters: list[StreamFilter] = []
        if self._marks is not None:
            filters.append(RemovingFilter(self._detectors, self._marks))
        if kind is not ReasoningStart and self._values:
            values = self._quoted if kind is ToolCallStart else self._values
            filters.append(RestoringFilter(values))
        return filters

    @property
    def holds_calls(self) -> bool:
        """Whether calls are withheld to their end: in JSON text, a secret may be escaped."""
        return self._marks is not None


def _edit_response(response: Response, edits: _Edits) -> Response:
    content = tuple(edits.edit_part(part) for part in response.message.content)
    if all(new is old for new, old in zip(content, response.message.content, strict=True)):
        return response
    message = replace(response.message, content=content, extra={})  # as after a stream
    return replace(response, message=message)


class _Segment:
    """A part of the answer that is arriving."""

    def __init__(self, filters: list[StreamFilter], *, is_held: bool) -> None:
        self._filters = filters
        self.is_held = is_held

    def feed(self, piece: str) -> str:
        for each in self._filters:
            piece = each.feed(piece)
        return piece

    def end(self) -> str:
        rest = ""
        for each in self._filters:
            rest = each.feed(rest) + each.end()
        return rest


async def _edit_items(items: AsyncGenerator[Any, None], edits: _Edits) -> AsyncGenerator[Any, None]:
    """The items of a streamed operation; the pieces of a transcript are one text."""
    pieces = _Segment(edits.filters(TextStart), is_held=False)
    async with aclosing(items):
        async for item in items:
            if isinstance(item, TranscriptDelta):
                text = pieces.feed(item.text)
            else:
                text = pieces.end() if isinstance(item, OperationResult) else ""
            if text:
                yield TranscriptDelta(text=text)
            if not isinstance(item, TranscriptDelta):
                yield _edit_value(item, edits.edit)


_DELTAS: Mapping[type, type[TextDelta | ReasoningDelta | ToolCallDelta]] = {
    TextEnd: TextDelta,
    ReasoningEnd: ReasoningDelta,
    ToolCallEnd: ToolCallDelta,
}


def _edit_event(
    event: StreamEvent, edits: _Edits, segments: dict[str, _Segment]
) -> Iterator[StreamEvent]:
    """The events that take the place of one event."""
    match event:
        case TextStart() | ReasoningStart() | ToolCallStart():
            is_held = edits.holds_calls and isinstance(event, ToolCallStart)
            segments[event.id] = _Segment(edits.filters(type(event)), is_held=is_held)
            yield event
        case TextDelta() | ReasoningDelta() | ToolCallDelta():
            segment = segments[event.id]
            delta = "" if segment.is_held else segment.feed(event.delta)
            if delta:
                yield replace(event, delta=delta)
        case TextEnd() | ReasoningEnd() | ToolCallEnd():
            yield from _edit_end(event, edits, segments.pop(event.id))
        case StreamRestart():
            segments.clear()
            yield event
        case ProviderEvent():
            part = None if event.part is None else edits.edit_part(event.part)
            yield replace(event, part=part, data=edit_deep(event.data, edits.remove))
        case _:
            yield event


def _edit_end(
    event: TextEnd | ReasoningEnd | ToolCallEnd, edits: _Edits, segment: _Segment
) -> Iterator[StreamEvent]:
    if isinstance(event, ToolCallEnd):
        part = edits.edit_part(event.tool_call)
        rest = _arguments_text(part) if segment.is_held else segment.end()
        event = replace(event, tool_call=part)
    else:
        event = replace(event, part=edits.edit_part(event.part))
        rest = segment.end()
    if rest:
        yield _DELTAS[type(event)](id=event.id, index=event.index, delta=rest)
    yield event


def _arguments_text(call: Any) -> str:
    raw: str | None = call.raw_arguments
    return dump_text(call.arguments) if raw is None else raw


# Requests, messages and parts.


_NOT_CONTENT = frozenset(
    (
        *("id", "model", "provider", "request_id", "provider_request_id", "after"),
        *("file_id", "input_file", "outputs", "source_id", "files", "job"),
    )
)
"""Fields of values and results that name things at the provider; changed, they name nothing."""


def _edit_value(value: Any, edit: Edit) -> Any:
    """A value of an operation; bytes and objects of other classes stay as they are."""
    if isinstance(value, Request):
        return _edit_request(value, edit)
    if isinstance(value, PART_TYPES):
        return _edit_part(value, edit)
    if type(value) is tuple:  # JSON has lists; a tuple may contain parts, or tuples of parts
        items = tuple([_edit_value(item, edit) for item in value])
        return value if all(map(operator.is_, items, value)) else items
    if isinstance(value, msgspec.Struct):
        names = (name for name in value.__struct_fields__ if name not in _NOT_CONTENT)
        fields = {name: getattr(value, name) for name in names}
        changed = {name: _edit_value(field, edit) for name, field in fields.items()}
        changed = {name: new for name, new in changed.items() if new is not fields[name]}
        return replace(value, **changed) if changed else value
    return edit_deep(value, edit)


def _edit_request(request: Request, edit: Edit) -> Request:
    messages = tuple(_edit_message(message, edit) for message in request.messages)
    if all(new is old for new, old in zip(messages, request.messages, strict=True)):
        messages = request.messages
    user = None if request.user is None else edit(request.user)
    metadata = None if request.metadata is None else edit_deep(request.metadata, edit)
    if messages is request.messages and user is request.user and metadata is request.metadata:
        return request
    return replace(request, messages=messages, user=user, metadata=metadata)


def _edit_message(message: Message, edit: Edit) -> Message:
    content = tuple(_edit_part(part, edit) for part in message.content)
    name = None if message.name is None else edit(message.name)
    is_same = all(new is old for new, old in zip(content, message.content, strict=True))
    if is_same and name == message.name:
        return message
    return replace(message, content=content, name=name)


def _edit_part(part: Part, edit: Edit) -> Part:
    match part:
        case Text() | Refusal() | Thinking():
            text = edit(part.text)
            if text is part.text or text == part.text:
                return part
            if isinstance(part, Thinking):  # the signature is that of the other text
                return Thinking(text=text)
            # annotations and tokens are those of the other text
            return replace(part, text=text, logprobs=(), extra={})
        case Document():
            return _edit_document(part, edit)
        case ToolCall():
            return _edit_call(part, edit)
        case ToolResult():
            return _edit_result(part, edit)
        case _:
            return part


def _edit_document(document: Document, edit: Edit) -> Document:
    given, text = document.file_name, document.text
    if given is None and document.path is not None:
        given = PurePath(document.path).name  # it is sent as the name
    name = None if given is None else _edit_name(given, edit)
    edited = None if text is None else edit(text)
    if name != given:
        document = replace(document, file_name=name)
    return document if edited == text else replace(document, text=edited)


def _edit_name(name: str, edit: Edit) -> str:
    """The name of a file; its ending stays if it can, because it tells the kind of the file."""
    stem, point, ending = name.rpartition(".")
    short = f"{edit(stem)}{point}{ending}"
    return short if edit(short) == short else edit(name)


def _edit_call(call: ToolCall, edit: Edit) -> ToolCall:
    arguments = edit_deep(call.arguments, edit)
    raw = call.raw_arguments
    if arguments is not call.arguments:  # the text is written anew
        return replace(call, arguments=arguments, raw_arguments=None)
    if raw is None or (call.type != "custom" and call.is_valid):
        return call
    text = edit(raw)
    return call if text == raw else replace(call, raw_arguments=text)


def _edit_result(result: ToolResult, edit: Edit) -> ToolResult:
    if result.parts is None:
        content: Any = edit_deep(result.content, edit)
    else:
        content = tuple(_edit_part(part, edit) for part in result.parts)
    return result if content == result.content else replace(result, content=content)
