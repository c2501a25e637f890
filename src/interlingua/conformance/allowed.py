"""
Which changes a warning permits.

A history becomes a flat list of utterances: what is said, what is shown, which tool is called, and
which call a result answers. The expected list is what was asked, changed by each warning at its own
path, in the one way that its code stands for. An unknown code permits nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from interlingua.prepare.prepare import SCHEMA_INSTRUCTION
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Json,
    Opaque,
    Part,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import BuiltinTool, Request, ToolDefinition, ToolSpec
from interlingua.spec.response import Warning
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import parse_data_url
from interlingua.wire.tool_names import flat_name

UNLINKED = -1
"""The number of the call for a result without a call."""


class Utterance(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One item of a history. Not compared: `path`, `document_text`, `is_moved`."""

    path: str
    kind: str
    """`text`, `refusal`, `image`, `audio`, `document`, `call`, `result`, `thinking`, `opaque`."""
    speaker: str = ""
    """The role; empty for a result."""
    text: str | None = None
    """The text; for a result, its texts joined by line ends."""
    call: int | None = None
    """The number of the call, for a call and for its result. Ids may differ, numbers may not."""
    id: str | None = None
    """The id of that call."""
    name: str | None = None
    """The name of the tool, or of the speaker."""
    arguments: Any = None
    """An object, or invalid text; the free text of a custom tool is under `input`."""
    is_failure: bool = False
    source: str | None = None
    """For media: the URL, the file id, or a digest of the bytes."""
    shown: list[Utterance] = []
    """The media in a result."""
    document_text: str | None = None
    """The text of a text document."""
    is_moved: bool = False
    """It was moved out of a result."""


def spoken(messages: tuple[Message, ...]) -> list[Utterance]:
    """The utterances of these messages."""
    links = _Links()
    return [
        _utter(part, f"messages[{i}].content[{k}]", message, links)
        for i, message in enumerate(messages)
        for k, part in links.feed(message)
    ]


class _Links:
    """Numbers the calls, and finds the call of a result."""

    def __init__(self) -> None:
        self._turn = 0
        self._count = 0
        self._waiting: dict[str, list[tuple[int, int]]] = {}

    def feed(self, message: Message) -> Iterator[tuple[int, Part]]:
        self._turn += message.role != "assistant"
        return enumerate(message.content)

    def call(self, call_id: str) -> int:
        number, self._count = self._count, self._count + 1
        self._waiting.setdefault(call_id, []).append((self._turn, number))
        return number

    def answer(self, call_id: str) -> int:
        """The first unanswered call of the latest turn that used the id."""
        waiting = self._waiting.get(call_id)
        if not waiting:
            return UNLINKED
        nearest = max(turn for turn, _ in waiting)
        call = next(call for call in waiting if call[0] == nearest)
        waiting.remove(call)
        return call[1]


def _utter(part: Part, path: str, message: Message, links: _Links) -> Utterance:
    speaker = message.role
    match part:
        case Text() | Refusal():
            return Utterance(
                path=path, kind=part.kind, speaker=speaker, text=part.text, name=message.name
            )
        case Image() | Audio() | Document():
            return _show(part, path, speaker)
        case ToolCall():
            number = links.call(part.id)
            return Utterance(
                path=path,
                kind="call",
                speaker=speaker,
                call=number,
                id=part.id,
                name=part.name,
                arguments=_arguments(part),
            )
        case ToolResult():
            return _answer(part, path, links.answer(part.tool_call_id))
        case _:
            return Utterance(path=path, kind=part.kind, speaker=speaker)


def _arguments(call: ToolCall) -> Any:
    if call.type == "custom":
        return {"input": call.raw_arguments}
    return call.arguments if call.arguments or call.is_valid else call.raw_arguments


def _answer(result: ToolResult, path: str, number: int) -> Utterance:
    parts = result.parts
    content = result.content
    shown: list[Utterance] = []
    if parts is not None:
        texts = [part.text for part in parts if isinstance(part, (Text, Refusal))]
        content = "\n".join(texts)
        shown = [
            _show(part, f"{path}.content[{k}]", "")
            for k, part in enumerate(parts)
            if not isinstance(part, (Text, Refusal))
        ]
    text = content if isinstance(content, str) else dump_text(content)
    return Utterance(
        path=path,
        kind="result",
        call=number,
        id=result.tool_call_id,
        text=text,
        is_failure=result.is_error,
        shown=shown,
    )


def _show(part: Part, path: str, speaker: str) -> Utterance:
    document_text = part.text if isinstance(part, Document) else None
    kind: str = part.kind
    if isinstance(part, Document):  # some dialects send images and audio as files
        family = (part.media_type or "").partition("/")[0]
        kind = family if family in ("image", "audio") else kind
    return Utterance(
        path=path, kind=kind, speaker=speaker, source=_source(part), document_text=document_text
    )


def _source(part: Part) -> str | None:
    if not isinstance(part, (Image, Audio, Document)):
        return None
    data = part.data
    if isinstance(part, Document) and part.text is not None:
        data = part.text.encode("utf-8", "replace")
    if part.url is not None:
        inline = parse_data_url(part.url)
        if inline is None:
            return part.url
        data = inline[0]
    return part.file_id if data is None else hashlib.sha256(data).hexdigest()


NO_INPUT: dict[str, Json] = {"type": "object", "properties": {}}
FREE_TEXT: dict[str, Json] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
PLACEHOLDER = "(no content)"
NO_RESULT = "No result was recorded for this call."
JSON_INSTRUCTION = "Answer with one JSON object and nothing else: no other text, no code fence."
SEE_BELOW = "The output is in the next user message."

_note = re.compile(r"\[The tool returned media that this model cannot read: [^\[\]]*\.\]").sub
_SAYINGS = ("text", "refusal")
_SHOWINGS = ("image", "audio", "document")

_Change: TypeAlias = Callable[["Expected", Warning], None]


class _Anything:
    """Equal to every value."""

    def __eq__(self, _: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "anything"


ANYTHING: Any = _Anything()


class _WithNotes(str):
    """Equal to the same text with notes about media among its lines."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and _without_notes(self) == _without_notes(other)

    def __ne__(self, other: object) -> bool:
        return not self == other  # `str` has an inequality of its own

    __hash__ = None  # type: ignore[assignment]


def _without_notes(text: str) -> list[str]:
    return [line for line in _note("", text).split("\n") if line]


class Expected:
    """What must come back: the request, changed as the warnings permit."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.utterances: list[Utterance] = spoken(request.messages)
        self.offered: dict[str, dict[str, Any]] = {
            f"tools[{i}]": tool for i, tool in enumerate(tools_of(request))
        }
        self.free = False
        """Results may be anywhere; only their calls are compared."""

    def apply(self, warning: Warning) -> None:
        """Apply the change that the warning stands for."""
        change = _CHANGES.get(warning.code, _drop if _is_drop(warning) else None)
        if change is not None:
            change(self, warning)

    def tools(self) -> list[Any]:
        return list(self.offered.values())

    def at(self, path: str | None, *kinds: str) -> list[Utterance]:
        """The utterances at a path or below it, of these kinds."""
        every = (inner for one in self.utterances for inner in (one, *one.shown))
        here = [one for one in every if path is not None and _is_at(one.path, path)]
        return [one for one in here if one.kind in kinds] if kinds else here

    def drop(self, path: str) -> None:
        self.utterances = [one for one in self.utterances if not _is_at(one.path, path)]
        for one in self.utterances:
            one.shown = [inner for inner in one.shown if not _is_at(inner.path, path)]

    def insert(self, after: str, text: str) -> None:
        """Insert a user text after the utterances at a path."""
        places = [i for i, one in enumerate(self.utterances) if _is_at(one.path, after)]
        place = places[-1] + 1 if places else self._place_of(after)
        added = Utterance(path=after, kind="text", speaker="user", text=text)
        self.utterances.insert(place, added)

    def _place_of(self, path: str) -> int:
        """The position of a message without utterances."""
        return sum(_message(one.path) < _message(path) for one in self.utterances)


def _message(path: str) -> int:
    return int(path.removeprefix("messages[").partition("]")[0])


def _is_at(path: str, place: str) -> bool:
    return path == place or path.startswith((f"{place}.", f"{place}["))


def _is_drop(warning: Warning) -> bool:
    return warning.code.endswith("_dropped")


def _drop(expected: Expected, warning: Warning) -> None:
    """It is absent."""
    path = warning.path or ""
    if path.startswith("tools["):
        expected.offered.pop(path, None)
    elif path == "tools":
        expected.offered.clear()
    elif path.endswith(".name"):  # the name of the speaker
        for one in expected.at(path.removesuffix(".name"), *_SAYINGS):
            one.name = None
    elif ".content[" in path:
        expected.drop(path)


def _drop_thinking(expected: Expected, warning: Warning) -> None:
    """The message had only thinking."""
    for one in expected.at(warning.path, "thinking"):
        expected.drop(one.path)


def _keep(_: Expected, __: Warning) -> None:
    """The warning is about something that is not compared."""


def _drop_blanks(expected: Expected, warning: Warning) -> None:
    """Blank texts are absent, also in results."""
    for one in expected.at(warning.path, "result"):
        lines = (one.text or "").split("\n")
        one.text = "\n".join(line for line in lines if line.strip())
    for one in expected.at(warning.path, *_SAYINGS):
        if not (one.text or "").strip():
            expected.drop(one.path)


def _add_placeholder(expected: Expected, warning: Warning) -> None:
    """An empty result or message has a placeholder text."""
    results = expected.at(warning.path, "result")
    if [one.path for one in results] == [warning.path]:
        results[0].text = PLACEHOLDER
    elif warning.path is not None:
        expected.insert(warning.path, PLACEHOLDER)
    else:
        added = Utterance(path="", kind="text", speaker="user", text=PLACEHOLDER)
        expected.utterances.append(added)


def _add_result(expected: Expected, warning: Warning) -> None:
    """The call has a placeholder result."""
    for one in expected.at(warning.path, "call"):
        answer = Utterance(
            path="", kind="result", call=one.call, id=one.id, text=NO_RESULT, is_failure=True
        )
        expected.utterances.append(answer)
    expected.free = True


def _move_results(expected: Expected, _: Warning) -> None:
    expected.free = True


def _rename_call(expected: Expected, warning: Warning) -> None:
    for one in expected.at(warning.path, "call"):
        for other in expected.utterances:
            if other.call == one.call:
                other.id = ANYTHING


def _rename_tool(expected: Expected, warning: Warning) -> None:
    for one in expected.at(warning.path, "call"):
        one.name = ANYTHING


def _wrap_arguments(expected: Expected, warning: Warning) -> None:
    for one in expected.at(warning.path, "call"):
        one.arguments = {"input": one.arguments}


def _replace_surrogates(expected: Expected, warning: Warning) -> None:
    for one in expected.at(warning.path):
        one.text = one.arguments = ANYTHING


def _say_error(expected: Expected, warning: Warning) -> None:
    """The text of the result says that it is an error."""
    made = [one for one in expected.utterances if one.text == NO_RESULT and not one.path]
    for one in made[:1] if warning.path is None else expected.at(warning.path, "result"):
        text = f"Error: {one.text}" if one.text else "Error"
        one.text = _WithNotes(text) if isinstance(one.text, _WithNotes) else text
        one.is_failure = False


def _say_as_text(expected: Expected, warning: Warning) -> None:
    """A refusal or document is text."""
    for one in expected.at(warning.path, "refusal"):
        one.kind = "text"
    for one in expected.at(warning.path, "document"):
        one.kind, one.text, one.source = "text", one.document_text, None


def _note_media(expected: Expected, warning: Warning) -> None:
    """A result has a note in place of something it shows."""
    path = warning.path or ""
    for one in expected.utterances:
        if one.kind == "result" and any(inner.path == path for inner in one.shown):
            one.shown = [inner for inner in one.shown if inner.path != path]
            one.text = _WithNotes(one.text or "")


def _guess_type(expected: Expected, warning: Warning) -> None:
    """The kind of media at a URL was guessed."""
    for one in expected.at(warning.path, *_SHOWINGS):
        one.kind = ANYTHING


def _fold(expected: Expected, warning: Warning) -> None:
    """The role is `user`."""
    for one in expected.at(warning.path):
        one.speaker = "user"


def _as_system(expected: Expected, warning: Warning) -> None:
    for one in expected.at(warning.path):
        one.speaker = "system"


def _move_media(expected: Expected, warning: Warning) -> None:
    """The media of a result are in a user message after the last of the adjacent results."""
    every = expected.utterances
    for one in expected.at(warning.path, "result"):
        moved = [inner for inner in one.shown if inner.kind in _SHOWINGS]
        one.shown = [inner for inner in one.shown if inner.kind not in _SHOWINGS]
        one.text = one.text or SEE_BELOW
        place = next(i for i, other in enumerate(every) if other is one)
        while place < len(every) and (every[place].kind == "result" or every[place].is_moved):
            place += 1
        text = ANYTHING if one.id is ANYTHING else f"Output of tool call {one.id}:"
        head = Utterance(path="", kind="text", speaker="user", text=text)
        for inner in (head, *moved):
            inner.speaker, inner.is_moved = "user", True
        every[place:place] = [head, *moved]


def _move_to_user(expected: Expected, warning: Warning) -> None:
    """The media of another speaker are at the beginning of the next user message."""
    every = expected.utterances
    for one in expected.at(warning.path, *_SHOWINGS):
        place = next(i for i, other in enumerate(every) if other is one)
        every.remove(one)
        one.speaker, one.is_moved = "user", True
        while place < len(every) and (
            every[place].speaker != "user" or every[place].is_moved or every[place].kind == "result"
        ):
            place += 1
        every.insert(place, one)


def _put_calls_last(expected: Expected, warning: Warning) -> None:
    """The calls of the message come last."""
    every = expected.utterances
    message = [one for one in every if _is_at(one.path, warning.path or "?")]
    if message:
        place = next(i for i, one in enumerate(every) if one is message[0])
        message.sort(key=lambda one: one.kind == "call")
        every[place : place + len(message)] = message


def _offer_function(expected: Expected, warning: Warning) -> None:
    """A custom tool is a function with one string parameter."""
    tool = expected.offered.get(warning.path or "")
    if tool is not None:
        tool["parameters"] = FREE_TEXT
        if tool.pop("grammar", None) is not None:
            tool["description"] = ANYTHING


def _rename_namespaced(expected: Expected, warning: Warning) -> None:
    """A tool of a namespace has another name, in its definition and in calls."""
    tool = expected.offered.get(warning.path or "")
    if tool is not None:
        tool["name"] = ANYTHING
    for one in expected.at(warning.path, "call"):
        one.name = ANYTHING


def _withhold(expected: Expected, _: Warning) -> None:
    """Deferred tools that no result has named, and that were not called, are absent."""
    parts = [part for message in expected.request.messages for part in message.content]
    inner = [each for part in parts if isinstance(part, ToolResult) for each in part.parts or ()]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    loaded = {flat_name(call.namespace, call.name) for call in calls}
    for part in (*parts, *inner):
        loaded.update(part.loaded_tools if isinstance(part, Opaque) else ())
    for i, tool in enumerate(expected.request.tools):
        if not isinstance(tool, ToolDefinition) or tool.deferred != "client":
            continue
        if flat_name(tool.namespace, tool.name) not in loaded:
            expected.offered.pop(f"tools[{i}]", None)


def _name_tools(expected: Expected, warning: Warning) -> None:
    """A text in a result names the tools, in place of a reference."""
    place = (warning.path or "").rpartition(".content[")[0]
    for one in expected.at(place, "result"):
        one.shown = [inner for inner in one.shown if inner.path != warning.path]
        one.text = ANYTHING


def _narrow_tools(expected: Expected, _: Warning) -> None:
    """Of the tools of the caller, only the allowed ones are present."""
    choice = expected.request.tool_choice
    allowed = choice.allowed if choice else None
    expected.offered = {
        path: tool
        for path, tool in expected.offered.items()
        if tool["name"] in (allowed or ()) or "is_hosted" in tool
    }


def _narrow_schema(expected: Expected, warning: Warning) -> None:
    """The schema may differ; other tests check how."""
    tool = expected.offered.get((warning.path or "").removesuffix(".parameters"))
    if tool is not None:
        tool["parameters"] = ANYTHING


def _instruct_json(expected: Expected, _: Warning) -> None:
    _instruct(expected, JSON_INSTRUCTION)


def _instruct_schema(expected: Expected, _: Warning) -> None:
    form = expected.request.response_format
    schema = None if form is None else form.json_schema
    _instruct(expected, SCHEMA_INSTRUCTION.format(schema=dump_text(schema)))


def _instruct(expected: Expected, text: str) -> None:
    """The system prompt ends with an instruction."""
    utterances = expected.utterances
    place = 0
    while place < len(utterances) and utterances[place].speaker in ("system", "developer"):
        place += 1
    utterances.insert(place, Utterance(path="", kind="text", speaker="system", text=text))


_CHANGES: dict[str, _Change] = {
    "blank_text_dropped": _drop_blanks,
    "placeholder_added": _add_placeholder,
    "missing_result_added": _add_result,
    "result_moved": _move_results,
    "results_reordered": _move_results,
    "results_put_first": _move_results,
    "result_media_moved": _move_media,
    "media_moved": _move_to_user,
    "result_media_as_text": _note_media,
    "calls_put_last": _put_calls_last,
    "call_id_mapped": _rename_call,
    "call_id_made": _rename_call,
    "tool_name_mapped": _rename_tool,
    "arguments_wrapped": _wrap_arguments,
    "surrogates_replaced": _replace_surrogates,
    "tool_error_as_text": _say_error,
    "refusal_as_text": _say_as_text,
    "document_as_text": _say_as_text,
    "media_type_guessed": _guess_type,
    "system_folded": _fold,
    "tool_text_as_user": _fold,
    "developer_as_system": _as_system,
    "custom_tool_as_function": _offer_function,
    "deferred_tools_withheld": _withhold,
    "namespace_as_name": _rename_namespaced,
    "tool_reference_as_text": _name_tools,
    "allowed_tools_narrowed": _narrow_tools,
    "json_mode_as_instruction": _instruct_json,
    "structured_output_fallback": _instruct_schema,
    "schema_narrowed": _narrow_schema,
    "schema_not_strict": _narrow_schema,
    "thinking_only_dropped": _drop_thinking,
    "empty_message_dropped": _drop_blanks,
    "emptied_message_dropped": _keep,
    "detail_dropped": _keep,
    "document_as_plain_text": _keep,
    "file_name_dropped": _keep,
    "hosted_option_dropped": _keep,
    "stale_signatures_dropped": _keep,
}
"""The change for each code; a part or tool with any other `…_dropped` code is absent."""


def tools_of(request: Request) -> list[dict[str, Any]]:
    return [_tool(tool) for tool in request.tools]


def _tool(tool: ToolSpec) -> dict[str, Any]:
    if isinstance(tool, BuiltinTool):
        hosted = {"name": tool.name, "parameters": None, "is_hosted": True}
        return hosted if tool.name else {**msgspec.to_builtins(tool), "name": None}
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters or NO_INPUT,
        **({} if tool.grammar is None else {"grammar": msgspec.to_builtins(tool.grammar)}),
    }
