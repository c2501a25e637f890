"""
What a warning allows to change.

What must come back is what was asked, changed by each warning at its own path, in the one way
its code stands for. A code that is not known here excuses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from interlingua.conformance.transcript import Utterance, spoken
from interlingua.spec.content import Json
from interlingua.spec.request import BuiltinTool, Request, ToolSpec
from interlingua.spec.response import Warning

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

_note = re.compile(r"\[The tool returned media that this model cannot read: [^\]]*\.\]").sub
_SAYINGS = ("text", "refusal")
_SHOWINGS = ("image", "audio", "document")

_Change: TypeAlias = Callable[["Expected", Warning], None]


class _Anything:
    """Equal to all."""

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
    """What must come back: what was said, as the warnings change it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.utterances: list[Utterance] = spoken(request.messages)
        self.offered: dict[str, dict[str, Any]] = {
            f"tools[{i}]": tool for i, tool in enumerate(tools_of(request))
        }
        self.free = False
        """Where results stand does not matter, only what they answer."""

    def apply(self, warning: Warning) -> None:
        """Change what the warning names."""
        change = _CHANGES.get(warning.code, _drop if _is_drop(warning) else None)
        if change is not None:
            change(self, warning)

    def tools(self) -> list[Any]:
        return list(self.offered.values())

    def at(self, path: str | None, *kinds: str) -> list[Utterance]:
        """What stands at a path or below it, of these kinds."""
        every = (inner for one in self.utterances for inner in (one, *one.shown))
        found = [one for one in every if path is not None and _is_at(one.path, path)]
        return [one for one in found if one.kind in kinds] if kinds else found

    def drop(self, path: str) -> None:
        self.utterances = [one for one in self.utterances if not _is_at(one.path, path)]
        for one in self.utterances:
            one.shown = [inner for inner in one.shown if not _is_at(inner.path, path)]

    def insert(self, after: str, text: str) -> None:
        """The user says more, after what stands at a path."""
        places = [i for i, one in enumerate(self.utterances) if _is_at(one.path, after)]
        place = places[-1] + 1 if places else self._place_of(after)
        said = Utterance(path=after, kind="text", speaker="user", text=text)
        self.utterances.insert(place, said)

    def _place_of(self, path: str) -> int:
        """Where a message that says nothing stands."""
        return sum(_message(one.path) < _message(path) for one in self.utterances)


def _message(path: str) -> int:
    return int(path.removeprefix("messages[").partition("]")[0])


def _is_at(path: str, place: str) -> bool:
    return path == place or path.startswith((f"{place}.", f"{place}["))


def _is_drop(warning: Warning) -> bool:
    return warning.code.endswith("_dropped")


def _drop(expected: Expected, warning: Warning) -> None:
    """It is not there."""
    path = warning.path or ""
    if path.startswith("tools["):
        expected.offered.pop(path, None)
    elif path == "tools":
        expected.offered.clear()
    elif path.endswith(".name"):  # of who speaks
        for one in expected.at(path.removesuffix(".name"), *_SAYINGS):
            one.name = None
    elif ".content[" in path:
        expected.drop(path)


def _drop_thinking(expected: Expected, warning: Warning) -> None:
    """The message had thoughts, and nothing else."""
    for one in expected.at(warning.path, "thinking"):
        expected.drop(one.path)


def _keep(_: Expected, __: Warning) -> None:
    """Something beside what is compared, or a message without anything in it."""


def _drop_blanks(expected: Expected, warning: Warning) -> None:
    """A blank text is not there; of a result, the blank ones among its texts."""
    for one in expected.at(warning.path, "result"):
        lines = (one.text or "").split("\n")
        one.text = "\n".join(line for line in lines if line.strip())
    for one in expected.at(warning.path, *_SAYINGS):
        if not (one.text or "").strip():
            expected.drop(one.path)


def _add_placeholder(expected: Expected, warning: Warning) -> None:
    """A result that says nothing, or a message that does, says so."""
    results = expected.at(warning.path, "result")
    if [one.path for one in results] == [warning.path]:
        results[0].text = PLACEHOLDER
    elif warning.path is not None:
        expected.insert(warning.path, PLACEHOLDER)
    else:
        said = Utterance(path="", kind="text", speaker="user", text=PLACEHOLDER)
        expected.utterances.append(said)


def _add_result(expected: Expected, warning: Warning) -> None:
    """The call has a result that tells of none."""
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
    """The text tells of the failure."""
    made = [one for one in expected.utterances if one.text == NO_RESULT and not one.path]
    for one in made[:1] if warning.path is None else expected.at(warning.path, "result"):
        text = f"Error: {one.text}" if one.text else "Error"
        one.text = _WithNotes(text) if isinstance(one.text, _WithNotes) else text
        one.is_failure = False


def _say_as_text(expected: Expected, warning: Warning) -> None:
    """What was shown or refused is said."""
    for one in expected.at(warning.path, "refusal"):
        one.kind = "text"
    for one in expected.at(warning.path, "document"):
        one.kind, one.text, one.source = "text", one.said, None


def _note_media(expected: Expected, warning: Warning) -> None:
    """A result has a note in place of something it shows."""
    path = warning.path or ""
    for one in expected.utterances:
        if one.kind == "result" and any(inner.path == path for inner in one.shown):
            one.shown = [inner for inner in one.shown if inner.path != path]
            one.text = _WithNotes(one.text or "")


def _guess_type(expected: Expected, warning: Warning) -> None:
    """What an address shows is of the kind that the guess makes it."""
    for one in expected.at(warning.path, *_SHOWINGS):
        one.kind = ANYTHING


def _fold(expected: Expected, warning: Warning) -> None:
    """The user says it."""
    for one in expected.at(warning.path):
        one.speaker = "user"


def _as_system(expected: Expected, warning: Warning) -> None:
    for one in expected.at(warning.path):
        one.speaker = "system"


def _move_media(expected: Expected, warning: Warning) -> None:
    """What a result shows follows in a user message, after all results that stand together."""
    said = expected.utterances
    for one in expected.at(warning.path, "result"):
        moved = [inner for inner in one.shown if inner.kind in _SHOWINGS]
        one.shown = [inner for inner in one.shown if inner.kind not in _SHOWINGS]
        one.text = one.text or SEE_BELOW
        place = next(i for i, other in enumerate(said) if other is one)
        while place < len(said) and (said[place].kind == "result" or said[place].is_moved):
            place += 1
        text = ANYTHING if one.id is ANYTHING else f"Output of tool call {one.id}:"
        head = Utterance(path="", kind="text", speaker="user", text=text)
        for inner in (head, *moved):
            inner.speaker, inner.is_moved = "user", True
        said[place:place] = [head, *moved]


def _put_calls_last(expected: Expected, warning: Warning) -> None:
    """Of this message, the calls come after all else."""
    said = expected.utterances
    found = [one for one in said if _is_at(one.path, warning.path or "?")]
    if found:
        place = next(i for i, one in enumerate(said) if one is found[0])
        found.sort(key=lambda one: one.kind == "call")
        said[place : place + len(found)] = found


def _offer_function(expected: Expected, warning: Warning) -> None:
    """A free-text tool as a function of one text."""
    tool = expected.offered.get(warning.path or "")
    if tool is not None:
        tool["parameters"] = FREE_TEXT


def _narrow_tools(expected: Expected, _: Warning) -> None:
    """Only the tools that may be called are offered."""
    choice = expected.request.tool_choice
    allowed = choice.allowed if choice else None
    expected.offered = {
        path: tool for path, tool in expected.offered.items() if tool["name"] in (allowed or ())
    }


def _narrow_schema(expected: Expected, warning: Warning) -> None:
    """What the target does not check is told in the descriptions; how, is for other tests."""
    tool = expected.offered.get((warning.path or "").removesuffix(".parameters"))
    if tool is not None:
        tool["parameters"] = ANYTHING


def _instruct_json(expected: Expected, _: Warning) -> None:
    """The system prompt ends with an instruction."""
    said = expected.utterances
    place = 0
    while place < len(said) and said[place].speaker in ("system", "developer"):
        place += 1
    text = Utterance(path="", kind="text", speaker="system", text=JSON_INSTRUCTION)
    said.insert(place, text)


_CHANGES: dict[str, _Change] = {
    "blank_text_dropped": _drop_blanks,
    "placeholder_added": _add_placeholder,
    "missing_result_added": _add_result,
    "result_moved": _move_results,
    "results_reordered": _move_results,
    "results_put_first": _move_results,
    "result_media_moved": _move_media,
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
    "allowed_tools_narrowed": _narrow_tools,
    "json_mode_as_instruction": _instruct_json,
    "schema_narrowed": _narrow_schema,
    "schema_not_strict": _narrow_schema,
    "thinking_only_dropped": _drop_thinking,
    "empty_message_dropped": _keep,
    "emptied_message_dropped": _keep,
    "detail_dropped": _keep,
    "file_name_dropped": _keep,
    "stale_signatures_dropped": _keep,
}
"""What a warning changes; of others, the part or tool that is `…_dropped` is not there."""


def tools_of(request: Request) -> list[dict[str, Any]]:
    return [_tool(tool) for tool in request.tools or ()]


def _tool(tool: ToolSpec) -> dict[str, Any]:
    if isinstance(tool, BuiltinTool):
        return {"name": None, **msgspec.to_builtins(tool)}
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters or NO_INPUT,
    }
