"""
A turn as a vendor would send it: the response or the frames of its stream, the usage, the headers.

Tokens are four characters each. Those of a prompt that was sent before count as cached; a vendor
that caches only what stands before a mark reads and writes nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from threading import Lock
from typing import NamedTuple, assert_never

import msgspec

from interlingua import dialects
from interlingua.providers.catalog.profiles import profile_for
from interlingua.serving.application import as_error, serve_of
from interlingua.simulator.dsl import ANY_DIALECT, Turn
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Json,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.contracts import Frame
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.messages import Message
from interlingua.spec.operations import ServedModel, ServerFacts
from interlingua.spec.request import BuiltinTool, Request, ToolDefinition
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.wire.json_text import dump_text

CHARACTERS = 4
"""Per token."""
_MAX_PREFIXES = 1_000_000
_LOOK_BACK = 20  # blocks before a mark, as Anthropic documents
_words = re.compile(r"\S+\s*|\s+").findall


class Block(NamedTuple):
    """A piece of a prompt, and whether a cache mark is on it."""

    text: str
    is_marked: bool = False


class PrefixCache:
    """A simulated prompt cache; safe to use from several threads."""

    def __init__(self) -> None:
        self._seen: dict[int, None] = {}
        self._lock = Lock()

    def read(self, prompt: str) -> int:
        """The cached tokens of a prompt: its longest prefix that an earlier prompt had too."""
        prefixes = list(_prefixes(prompt))
        with self._lock:
            known = sum(1 for _ in takewhile(self._seen.__contains__, prefixes))
            self._store(prefixes)
        return known

    def read_marked(self, blocks: Sequence[Block]) -> tuple[int, int]:
        """
        The tokens that are read and written where only marked prefixes are cached.

        A mark writes the prefix that ends with its block, and reads the longest prefix that
        was written before and ends at most `_LOOK_BACK` blocks earlier.
        """
        marks = [index for index, block in enumerate(blocks) if block.is_marked]
        if not marks:
            return 0, 0
        prefixes, tokens, prefix, size = [], [], 0, 0
        for block in blocks[: marks[-1] + 1]:
            prefix = hash((prefix, block.text))
            size += len(block.text) + 1
            prefixes.append(prefix)
            tokens.append(size // CHARACTERS)
        with self._lock:
            reached = {i for mark in marks for i in range(max(0, mark - _LOOK_BACK), mark + 1)}
            read = max((tokens[i] for i in reached if prefixes[i] in self._seen), default=0)
            self._store(prefixes[mark] for mark in marks)
        return read, tokens[-1] - read

    def _store(self, prefixes: Iterable[int]) -> None:
        if len(self._seen) > _MAX_PREFIXES:
            self._seen.clear()  # bounds the memory
        self._seen.update(dict.fromkeys(prefixes))


def prompt_text(request: Request) -> str:
    """The prompt in the order of real prompt caches: tools, then messages."""
    return "\n".join(block.text for block in prompt_blocks(request))


def prompt_blocks(request: Request, dialect: str = "", mark: str = "") -> list[Block]:
    """The blocks of the prompt; `mark` is the key in `extra` of what has a cache mark."""

    def is_marked(fields: Json) -> bool:
        return isinstance(fields, Mapping) and bool(fields.get(mark))

    blocks = [Block(request.model)]
    for tool in request.tools:
        fields = msgspec.to_builtins(tool)
        extra = fields.pop("extra", {})
        own = fields.get("data") if isinstance(tool, BuiltinTool) else extra.get(dialect)
        blocks.append(Block(dump_text(fields), is_marked(own)))
    for message in request.messages:
        texts = [_part_text(part) for part in message.content] or [""]
        marks = [is_marked(part.extra.get(dialect)) for part in message.content] or [False]
        texts[0] = f"{message.role}\n{texts[0]}"
        blocks += map(Block, texts, marks)
    if is_marked(request.provider_options.get(dialect)):
        blocks[-1] = blocks[-1]._replace(is_marked=True)
    return blocks


def count_text(text: str) -> int:
    """The number of tokens of a text."""
    return -(-len(text) // CHARACTERS)


def count_usage(
    request: Request, parts: tuple[Part, ...], cache: PrefixCache, dialect: str = ""
) -> Usage:
    """The usage of a response with these parts."""
    prompt = prompt_text(request)
    rules = dialects.get(dialect).FACTS.cache if dialect else None
    if rules is not None and rules.mark:
        mark = rules.carried_mark or rules.mark
        read, written = cache.read_marked(prompt_blocks(request, dialect, mark))
    else:
        read, written = cache.read(prompt), None
    thinking = sum(count_text(part.text) for part in parts if isinstance(part, Thinking))
    other = sum(count_text(_part_text(part)) for part in parts if not isinstance(part, Thinking))
    return Usage(
        input_tokens=count_text(prompt),
        output_tokens=thinking + other,
        reasoning_tokens=thinking or None,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _part_text(part: Part) -> str:
    match part:
        case Text() | Thinking() | Refusal():
            return part.text
        case ToolCall():
            raw = part.raw_arguments
            return f"{part.name}({dump_text(part.arguments) if raw is None else raw})"
        case Image() | Audio() | Document() | ToolResult() | Opaque():
            fields = msgspec.to_builtins(part)
            fields.pop("extra", None)  # cache marks move from turn to turn; the prompt stays
            return dump_text(fields)
    assert_never(part)


def _prefixes(prompt: str) -> Iterator[int]:
    """A hash of each prefix of whole tokens, shortest first."""
    prefix = 0
    for start in range(0, len(prompt) - CHARACTERS + 1, CHARACTERS):
        prefix = hash((prefix, prompt[start : start + CHARACTERS]))
        yield prefix


def request_id(number: int) -> str:
    """The id of a request."""
    return f"req_simulated{number:06d}"


def simulated_model(model: str) -> ServedModel:
    """The description of any model."""
    return ServedModel(
        id=model,
        provider="simulated",
        name=f"{model} (simulated)",
        context_window=1_048_576,
        max_output_tokens=65_536,
    )


def make_response(
    turn: Turn, request: Request, dialect: str, number: int, cache: PrefixCache
) -> Response:
    """The turn as a response of this vendor; `number` is the number of the request."""
    facts = serve_of(dialect).SERVER
    turn = _with_definitions(turn, request)
    parts = tuple(
        each
        for index, part in enumerate(turn.parts)
        for each in _with_vendor_fields(
            _with_asked_tokens(part, request), dialect, facts, f"{number:04d}{index:02d}"
        )
    )
    usage = turn.usage
    if usage is None:
        usage = count_usage(request, parts, cache, dialect)  # hidden thoughts count too
    parts = _shown_parts(parts, request, dialect, facts)
    return Response(
        id=f"{facts.response_prefix}simulated{number:06d}",
        model=request.model,
        message=Message(role="assistant", content=parts),
        finish_reason=turn.finish_reason or _finish_reason(parts, facts),
        usage=usage,
    )


def _shown_parts(
    parts: tuple[Part, ...], request: Request, dialect: str, facts: ServerFacts
) -> tuple[Part, ...]:
    """The parts without the thoughts, or the texts of thoughts, that the vendor does not show."""
    if facts.shown_thinking is None:
        return parts
    profile = profile_for(dialect, request.model)
    shown = (
        facts.shown_thinking(part, request, profile) if isinstance(part, Thinking) else part
        for part in parts
    )
    return tuple(part for part in shown if part is not None)


def _with_definitions(turn: Turn, request: Request) -> Turn:
    """The turn with the definitions of the tools that a search in it found by their names."""
    known = {
        tool.name: {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        }
        for tool in request.tools
        if isinstance(tool, ToolDefinition)
    }

    def defined(part: Part) -> Part:
        if (
            not isinstance(part, Opaque)
            or part.dialect != ANY_DIALECT
            or part.tool != "tool_search"
        ):
            return part
        found = part.output if isinstance(part.output, list) else []
        tools = [
            known.get(each, {"name": each}) if isinstance(each, str) else each for each in found
        ]
        return msgspec.structs.replace(part, output=tools)

    return msgspec.structs.replace(turn, parts=tuple(map(defined, turn.parts)))


def _with_asked_tokens(part: Part, request: Request) -> Part:
    """A text with the tokens and alternatives that the request asks for, as vendors send them."""
    if not isinstance(part, Text) or not part.logprobs:
        return part
    number = request.logprobs
    if number is None:
        return msgspec.structs.replace(part, logprobs=())
    tokens = [msgspec.structs.replace(each, top=each.top[:number]) for each in part.logprobs]
    return msgspec.structs.replace(part, logprobs=tuple(tokens))


def make_frames(
    turn: Turn, response: Response, request: Request, dialect: str, number: int
) -> list[Frame]:
    """The frames of the stream, with the faults of the turn."""
    encoder = dialects.get(dialect).stream_encoder(request)
    failure = turn.late_failure
    groups: list[list[Frame]] = []
    last_end = -1
    for event in _events(response, turn.pieces, serve_of(dialect).SERVER.ping):
        if failure is not None and isinstance(event, Finish):
            break
        if isinstance(event, (TextEnd, ReasoningEnd, ToolCallEnd)):
            last_end = len(groups)
        groups.append(encoder.feed(event))
    if failure is not None:
        if last_end >= 0:
            groups[last_end] = []  # a stream fails in the middle of a part, not after one
        error = as_error(dialect, failure, model=response.model, request_id=request_id(number))
        groups.append(encoder.feed(ErrorEvent(error=error)))
    groups.append(encoder.finish())
    frames = [frame for group in groups for frame in group]
    for fault in turn.faults:
        index = fault.at or 0
        if fault.kind not in {"malformed", "duplicate"} or not -len(frames) <= index < len(frames):
            continue
        index %= len(frames)
        frame = frames[index]
        if fault.kind == "malformed":
            half = frame.data[: len(frame.data) // 2]
            frames[index] = msgspec.structs.replace(frame, data=half)
        else:
            frames.insert(index, frame)
    return frames


def _with_vendor_fields(
    part: Part, dialect: str, facts: ServerFacts, tail: str
) -> tuple[Part, ...]:
    """The part with the ids and data that this vendor adds; a hosted call may be two parts."""
    if isinstance(part, Opaque) and part.dialect == ANY_DIALECT:
        call = msgspec.structs.replace(part, tool_call_id=f"simulated{tail}")
        return () if facts.hosted_parts is None else facts.hosted_parts(call)
    return (_with_ids(_with_signature(part, dialect), dialect, facts, tail),)


def _with_signature(part: Part, dialect: str) -> Part:
    """The part with its signature in the field of this dialect; without it if there is no field."""
    fields = part.extra.get(ANY_DIALECT)
    if fields is None:
        return part
    place = dialects.get(dialect).FACTS.sealed_field
    extra = {}
    if place is not None and place.on_parts:
        extra = {dialect: {place.name: fields["signature"]}}
    return msgspec.structs.replace(part, extra=extra)


def _with_ids(part: Part, dialect: str, facts: ServerFacts, tail: str) -> Part:
    if isinstance(part, ToolCall) and not part.id:
        return msgspec.structs.replace(part, id=f"{facts.call_prefix}simulated{tail}")
    if isinstance(part, Thinking) and not part.extra:
        if facts.thinking_prefix is None:
            return msgspec.structs.replace(part, extra={dialect: {}})
        mark = {dialect: {"id": f"{facts.thinking_prefix}simulated{tail}"}}
        return msgspec.structs.replace(
            part, signature=None, data=part.signature or part.data, extra=mark
        )
    return part


def _finish_reason(parts: tuple[Part, ...], facts: ServerFacts) -> FinishReason:
    if any(isinstance(part, ToolCall) for part in parts):
        return FinishReason(reason="tool_calls")
    if any(isinstance(part, Refusal) for part in parts):
        return FinishReason(reason=facts.refusal)
    return FinishReason(reason="stop")


def _events(
    response: Response, size: int | None, ping: StreamEvent | None
) -> Iterator[StreamEvent]:
    for event in events_from_response(response):
        if isinstance(event, StreamStart):
            usage = response.usage
            known = Usage(
                input_tokens=usage.input_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
            )
            yield msgspec.structs.replace(event, usage=known)
        elif isinstance(event, (TextDelta, ReasoningDelta, ToolCallDelta)):
            for piece in _split(event.delta, size):
                yield msgspec.structs.replace(event, delta=piece)
        else:
            yield event
        if ping is not None and isinstance(event, (TextStart, ReasoningStart, ToolCallStart)):
            yield ping
            ping = None


def _split(delta: str, size: int | None) -> list[str]:
    if size is None:
        return _words(delta)
    return [delta[start : start + size] for start in range(0, len(delta), size)]
