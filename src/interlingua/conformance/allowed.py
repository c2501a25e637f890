"""
Which changes of a request a warning permits.

This is an independent second statement of the history rules: an oracle for `prepare/history`. It
shares no code with the rules (only the text of one instruction), and knows only the codes of their
warnings. So do not derive one from the other: where the two disagree, one of them is wrong.

A history becomes a flat list of items: texts, media, tool calls, and results with the number of the
tool call that they answer. The expected list is the history of the request, changed by each warning
at its own path, in the one way that its code stands for. An unknown code permits nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, assert_never

import msgspec

from interlingua.prepare.instructions import SCHEMA_INSTRUCTION
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
from interlingua.spec.messages import Message
from interlingua.spec.request import BuiltinTool, Request, ToolDefinition, ToolSpec
from interlingua.spec.response import Warning
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import parse_data_url
from interlingua.wire.tool_names import flat_name

UNLINKED = -1
"""The number of the call for a result without a call."""


class HistoryItem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One item of a history. Not compared: `path`, `document_text`, `is_moved`."""

    path: str
    kind: str
    """`text`, `refusal`, `image`, `audio`, `document`, `call`, `result`, `thinking`, `opaque`."""
    role: str = ""
    """The role; empty for a result."""
    text: str | None = None
    """The text; for a result, its texts joined by line ends."""
    call: int | None = None
    """The number of the call, for a call and for its result. Ids may differ, numbers may not."""
    id: str | None = None
    """The id of that call."""
    name: str | None = None
    """The name of the tool, or of the author of a message."""
    arguments: Json = None
    """An object, or invalid text; the free text of a custom tool is under `input`."""
    is_error: bool = False
    source: str | None = None
    """For media: the URL, the file id, or a digest of the bytes."""
    media: list[HistoryItem] = []
    """The media in a result."""
    document_text: str | None = None
    """The text of a text document."""
    is_moved: bool = False
    """It was moved out of a result."""


def items_of(messages: tuple[Message, ...]) -> list[HistoryItem]:
    """The items of these messages."""
    links = _Links()
    return [
        _make_item(part, f"messages[{i}].content[{k}]", message, links)
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


def _make_item(part: Part, path: str, message: Message, links: _Links) -> HistoryItem:
    role = message.role
    match part:
        case Text() | Refusal():
            return HistoryItem(
                path=path, kind=part.kind, role=role, text=part.text, name=message.name
            )
        case Image() | Audio() | Document():
            return _make_media(part, path, role)
        case ToolCall():
            number = links.call(part.id)
            return HistoryItem(
                path=path,
                kind="call",
                role=role,
                call=number,
                id=part.id,
                name=part.name,
                arguments=_arguments(part),
            )
        case ToolResult():
            return _make_result(part, path, links.answer(part.tool_call_id))
        case Thinking() | Opaque():
            return HistoryItem(path=path, kind=part.kind, role=role)
    assert_never(part)


def _arguments(call: ToolCall) -> Json:
    if call.type == "custom":
        return {"input": call.raw_arguments}
    return call.arguments if call.arguments or call.is_valid else call.raw_arguments


def _make_result(result: ToolResult, path: str, number: int) -> HistoryItem:
    parts = result.parts
    content = result.content
    media: list[HistoryItem] = []
    if parts is not None:
        texts = [part.text for part in parts if isinstance(part, (Text, Refusal))]
        content = "\n".join(texts)
        media = [
            _make_media(part, f"{path}.content[{k}]", "")
            for k, part in enumerate(parts)
            if not isinstance(part, (Text, Refusal))
        ]
    text = content if isinstance(content, str) else dump_text(content)
    return HistoryItem(
        path=path,
        kind="result",
        call=number,
        id=result.tool_call_id,
        text=text,
        is_error=result.is_error,
        media=media,
    )


def _make_media(part: Part, path: str, role: str) -> HistoryItem:
    document_text = part.text if isinstance(part, Document) else None
    kind: str = part.kind
    if isinstance(part, Document):  # some dialects send images and audio as files
        family = (part.media_type or "").partition("/")[0]
        kind = family if family in ("image", "audio") else kind
    return HistoryItem(
        path=path, kind=kind, role=role, source=_source(part), document_text=document_text
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
_TEXT_KINDS = ("text", "refusal")
_MEDIA_KINDS = ("image", "audio", "document")

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
        self.items: list[HistoryItem] = items_of(request.messages)
        self.offered: dict[str, dict[str, Json]] = {
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

    def at(self, path: str | None, *kinds: str) -> list[HistoryItem]:
        """The items at a path or below it, of these kinds."""
        every = (inner for item in self.items for inner in (item, *item.media))
        here = [item for item in every if path is not None and _is_at(item.path, path)]
        return [item for item in here if item.kind in kinds] if kinds else here

    def drop(self, path: str) -> None:
        self.items = [item for item in self.items if not _is_at(item.path, path)]
        for item in self.items:
            item.media = [inner for inner in item.media if not _is_at(inner.path, path)]

    def insert(self, after: str, text: str) -> None:
        """Insert a user text after the items at a path."""
        places = [i for i, item in enumerate(self.items) if _is_at(item.path, after)]
        place = places[-1] + 1 if places else self.place_of(after)
        added = HistoryItem(path=after, kind="text", role="user", text=text)
        self.items.insert(place, added)

    def place_of(self, path: str) -> int:
        """The position at which the items of a message begin, or would."""
        number = _message(path)
        return sum(bool(item.path) and _message(item.path) < number for item in self.items)


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
    elif path.endswith(".name"):  # the name of the author
        for item in expected.at(path.removesuffix(".name"), *_TEXT_KINDS):
            item.name = None
    elif ".content[" in path:
        expected.drop(path)


def _drop_thinking(expected: Expected, warning: Warning) -> None:
    """The message had only thinking."""
    for item in expected.at(warning.path, "thinking"):
        expected.drop(item.path)


def _keep(_: Expected, __: Warning) -> None:
    """The warning is about something that is not compared."""


def _drop_blanks(expected: Expected, warning: Warning) -> None:
    """Blank texts are absent, also in results."""
    for item in expected.at(warning.path, "result"):
        lines = (item.text or "").split("\n")
        item.text = "\n".join(line for line in lines if line.strip())
    for item in expected.at(warning.path, *_TEXT_KINDS):
        if not (item.text or "").strip():
            expected.drop(item.path)


def _add_placeholder(expected: Expected, warning: Warning) -> None:
    """An empty result or message has a placeholder text."""
    results = expected.at(warning.path, "result")
    if [item.path for item in results] == [warning.path]:
        results[0].text = PLACEHOLDER
    elif warning.path is not None:
        expected.insert(warning.path, PLACEHOLDER)
    else:
        added = HistoryItem(path="", kind="text", role="user", text=PLACEHOLDER)
        expected.items.append(added)


def _open_conversation(expected: Expected, warning: Warning) -> None:
    """A user message with a placeholder stands before the message."""
    place = 0 if warning.path is None else expected.place_of(warning.path)
    added = HistoryItem(path="", kind="text", role="user", text=PLACEHOLDER)
    expected.items.insert(place, added)


def _write_calls(expected: Expected, warning: Warning) -> None:
    """A call is a text of the model, and its result a text of the user."""
    for call in expected.at(warning.path, "call"):
        number = call.call
        for item in [each for each in expected.items if each.call == number]:
            role = "user" if item.kind == "result" else item.role
            text = HistoryItem(path=item.path, kind="text", role=role, text=ANYTHING)
            place = expected.items.index(item)
            media = [msgspec.structs.replace(each, role=role) for each in item.media]
            expected.items[place : place + 1] = [text, *media]


def _withhold_all(expected: Expected, _: Warning) -> None:
    """No tool is declared."""
    expected.offered.clear()


def _add_result(expected: Expected, warning: Warning) -> None:
    """The call has a placeholder result."""
    for item in expected.at(warning.path, "call"):
        answer = HistoryItem(
            path="", kind="result", call=item.call, id=item.id, text=NO_RESULT, is_error=True
        )
        expected.items.append(answer)
    expected.free = True


def _move_results(expected: Expected, _: Warning) -> None:
    expected.free = True


def _rename_call(expected: Expected, warning: Warning) -> None:
    for item in expected.at(warning.path, "call"):
        for other in expected.items:
            if other.call == item.call:
                other.id = ANYTHING


def _rename_tool(expected: Expected, warning: Warning) -> None:
    for item in expected.at(warning.path, "call"):
        item.name = ANYTHING


def _wrap_arguments(expected: Expected, warning: Warning) -> None:
    for item in expected.at(warning.path, "call"):
        item.arguments = {"input": item.arguments}


def _replace_surrogates(expected: Expected, warning: Warning) -> None:
    for item in expected.at(warning.path):
        item.text = item.arguments = ANYTHING


def _write_error(expected: Expected, warning: Warning) -> None:
    """The text of the result says that it is an error."""
    made = [item for item in expected.items if item.text == NO_RESULT and not item.path]
    for item in made[:1] if warning.path is None else expected.at(warning.path, "result"):
        if not isinstance(item.text, str) or item.text[:5].lower() != "error":
            text = f"Error: {item.text}" if item.text else "Error"
            item.text = _WithNotes(text) if isinstance(item.text, _WithNotes) else text
        item.is_error = False


def _write_as_text(expected: Expected, warning: Warning) -> None:
    """A refusal or document is text."""
    for item in expected.at(warning.path, "refusal"):
        item.kind = "text"
    for item in expected.at(warning.path, "document"):
        item.kind, item.text, item.source = "text", item.document_text, None


def _note_media(expected: Expected, warning: Warning) -> None:
    """A result has a note in place of something it shows."""
    path = warning.path or ""
    for item in expected.items:
        if item.kind == "result" and any(inner.path == path for inner in item.media):
            item.media = [inner for inner in item.media if inner.path != path]
            item.text = _WithNotes(item.text or "")


def _guess_type(expected: Expected, warning: Warning) -> None:
    """The kind of media at a URL was guessed."""
    for item in expected.at(warning.path, *_MEDIA_KINDS):
        item.kind = ANYTHING


def _make_user(expected: Expected, warning: Warning) -> None:
    """The role is `user`."""
    for item in expected.at(warning.path):
        item.role = "user"


def _make_system(expected: Expected, warning: Warning) -> None:
    for item in expected.at(warning.path):
        item.role = "system"


def _move_media(expected: Expected, warning: Warning) -> None:
    """The media of a result are in a user message after the last of the adjacent results."""
    every = expected.items
    for item in expected.at(warning.path, "result"):
        moved = [inner for inner in item.media if inner.kind in _MEDIA_KINDS]
        item.media = [inner for inner in item.media if inner.kind not in _MEDIA_KINDS]
        item.text = item.text or SEE_BELOW
        place = next(i for i, other in enumerate(every) if other is item)
        while place < len(every) and (every[place].kind == "result" or every[place].is_moved):
            place += 1
        text = ANYTHING if item.id is ANYTHING else f"Output of tool call {item.id}:"
        head = HistoryItem(path="", kind="text", role="user", text=text)
        for inner in (head, *moved):
            inner.role, inner.is_moved = "user", True
        every[place:place] = [head, *moved]


def _move_to_user(expected: Expected, warning: Warning) -> None:
    """Media of other roles are at the beginning of the next user message."""
    every = expected.items
    for item in expected.at(warning.path, *_MEDIA_KINDS):
        place = next(i for i, other in enumerate(every) if other is item)
        every.remove(item)
        item.role, item.is_moved = "user", True
        while place < len(every) and (
            every[place].role != "user" or every[place].is_moved or every[place].kind == "result"
        ):
            place += 1
        every.insert(place, item)


def _put_calls_last(expected: Expected, warning: Warning) -> None:
    """The calls of the message come last, before nothing but their own results."""
    every = expected.items
    message = [item for item in every if _is_at(item.path, warning.path or "?")]
    if message:
        place = next(i for i, item in enumerate(every) if item is message[0])
        calls = {item.call for item in message if item.kind == "call"}
        own = {item.path for item in message if item.kind == "result" and item.call in calls}
        message.sort(key=lambda item: 2 if item.path in own else item.kind == "call")
        every[place : place + len(message)] = message


def _make_function(expected: Expected, warning: Warning) -> None:
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
    for item in expected.at(warning.path, "call"):
        item.name = ANYTHING


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
    for item in expected.at(place, "result"):
        item.media = [inner for inner in item.media if inner.path != warning.path]
        item.text = ANYTHING


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
    """The system prompt ends with an instruction, in place of blank text at its end."""
    items = expected.items
    place = 0
    while place < len(items) and items[place].role in ("system", "developer"):
        place += 1
    last = _message(items[place - 1].path) if place and items[place - 1].path else None
    blank = [
        item
        for item in items[:place]
        if item.path and _message(item.path) == last
        if item.kind in _TEXT_KINDS and not (item.text or "").strip()
    ]
    items.insert(place, HistoryItem(path="", kind="text", role="system", text=text))
    for item in blank:
        expected.drop(item.path)


_CHANGES: dict[str, _Change] = {
    "blank_text_dropped": _drop_blanks,
    "placeholder_added": _add_placeholder,
    "user_turn_added": _open_conversation,
    "call_as_text": _write_calls,
    "tools_withheld": _withhold_all,
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
    "tool_error_as_text": _write_error,
    "refusal_as_text": _write_as_text,
    "document_as_text": _write_as_text,
    "media_type_guessed": _guess_type,
    "system_folded": _make_user,
    "tool_text_as_user": _make_user,
    "developer_as_system": _make_system,
    "custom_tool_as_function": _make_function,
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
    "document_renamed": _keep,
    "file_name_dropped": _keep,
    "hosted_option_dropped": _keep,
    "stale_signatures_dropped": _keep,
}
"""The change for each code; a part or tool with any other `…_dropped` code is absent."""


def tools_of(request: Request) -> list[dict[str, Json]]:
    return [_tool(tool) for tool in request.tools]


def _tool(tool: ToolSpec) -> dict[str, Json]:
    if isinstance(tool, BuiltinTool):
        if tool.name:
            return {"name": tool.name, "parameters": None, "is_hosted": True}
        return {**msgspec.to_builtins(tool), "name": None}
    return {
        "name": tool.name,
        "description": tool.description or None,  # an empty one says nothing
        "parameters": tool.parameters or NO_INPUT,
        **({} if tool.grammar is None else {"grammar": msgspec.to_builtins(tool.grammar)}),
    }
