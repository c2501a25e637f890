"""Repairs of results: where they stand, in which order, and what they hold."""

from __future__ import annotations

from interlingua.prepare.history.edit import (
    Edits,
    Messages,
    Spot,
    edit,
    is_unchanged,
    with_fields,
    with_parts,
)
from interlingua.prepare.history.pairs import (
    HOLDERS,
    end_of_results,
    holds_only_results,
    pairs_of,
)
from interlingua.prepare.history.target import RepairPolicy
from interlingua.prepare.media import media_note
from interlingua.spec.content import MEDIA_TYPES, Audio, Document, Image, Part, Text, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message
from interlingua.spec.warnings import MEDIA_DROPPED

_SEE_BELOW = "The output is in the next user message."


def place_results(
    messages: Messages, target: HistoryRules, _: RepairPolicy, trail: Edits
) -> Messages:
    """The results of a turn stand together right after it."""
    if target.results == "anywhere":
        return messages
    pairs = pairs_of(messages, target, trail)
    moved: dict[int, list[ToolResult]] = {}  # by the message they come before
    gone: set[Spot] = set()
    for end, spots in pairs.results_by_turn().items():
        place = end_of_results(messages, end, spots)
        near = place if place < len(messages) and messages[place].role in HOLDERS else -1
        for spot in spots:
            i, k = spot
            part = messages[i].content[k]
            if not end < i < place and i != near and isinstance(part, ToolResult):
                gone.add(spot)
                moved.setdefault(place, []).append(part)
                trail.change("result_moved", part)
    if not gone:
        return messages
    return _move(messages, gone, moved, trail)


def _move(
    messages: Messages, gone: set[Spot], moved: dict[int, list[ToolResult]], trail: Edits
) -> Messages:
    touched = {i for i, _ in gone}
    edited: list[Message] = []
    for i in range(len(messages) + 1):
        if i in moved:
            edited.append(Message(role="tool", content=tuple(moved[i])))
        if i in touched:
            message = messages[i]
            parts = [part for k, part in enumerate(message.content) if (i, k) not in gone]
            edited += [with_parts(message, parts, trail)] if parts else []
        else:
            edited += messages[i : i + 1]
    return tuple(edited)


def order_results(
    messages: Messages, target: HistoryRules, _: RepairPolicy, trail: Edits
) -> Messages:
    """
    The results of a turn stand in the order of its calls, in whichever order they came.

    Results that all came from the target's own dialect keep the order it saw.
    """
    if not target.ordered_results:
        return messages
    swapped: dict[Spot, Part] = {}
    for spots in pairs_of(messages, target, trail).results_by_turn().values():
        wanted = [(i, k) for i, k in spots if isinstance(messages[i].content[k], ToolResult)]
        places = sorted(wanted)
        parts = [messages[i].content[k] for i, k in wanted]
        if places == wanted or all(target.dialect in part.extra for part in parts):
            continue
        swapped |= dict(zip(places, parts, strict=True))
        first = next(there for here, there in zip(wanted, places, strict=True) if here != there)
        trail.change("results_reordered", messages[first[0]].content[first[1]])
    if not swapped:
        return messages
    touched = {i for i, _ in swapped}
    return tuple(
        with_parts(
            message,
            [swapped.get((i, k), part) for k, part in enumerate(message.content)],
            trail,
        )
        if i in touched
        else message
        for i, message in enumerate(messages)
    )


def put_results_first(
    messages: Messages, target: HistoryRules, _: RepairPolicy, trail: Edits
) -> Messages:
    """Results stand before what else their message holds."""
    if not target.results_first:
        return messages

    def put_first(message: Message) -> Message:
        if message.role == "assistant" or len(message.content) < 2:
            return message
        results = [part for part in message.content if isinstance(part, ToolResult)]
        if all(part is result for part, result in zip(message.content, results, strict=False)):
            return message
        others = [part for part in message.content if not isinstance(part, ToolResult)]
        trail.change("results_put_first", message)
        return with_parts(message, [*results, *others], trail)

    return edit(messages, put_first)


def gather_results(
    messages: Messages, target: HistoryRules, _: RepairPolicy, trail: Edits
) -> Messages:
    """
    Results that stand together are in one message.

    Those that all came from the target's own dialect stay in the messages it saw.
    """
    if not (target.gather_results and _have_neighbours(messages)):
        return messages
    edited: list[Message] = []
    run: list[Message] = []

    def close() -> None:
        parts = [part for message in run for part in message.content]
        if len(run) > 1 and not all(target.dialect in part.extra for part in parts):
            trail.change("results_gathered", run[1])
            edited.append(join(run, trail))
        else:
            edited.extend(run)
        run.clear()

    for message in messages:
        if holds_only_results(message):
            run.append(message)
        else:
            close()
            edited.append(message)
    close()
    return messages if len(edited) == len(messages) else tuple(edited)


def _have_neighbours(messages: Messages) -> bool:
    """Whether two messages in a row begin with a result."""
    was_result = False
    for message in messages:
        is_result = bool(message.content) and type(message.content[0]) is ToolResult
        if is_result and was_result:
            return True
        was_result = is_result
    return False


def join(messages: list[Message], trail: Edits) -> Message:
    """
    One message of several: results first, unless it is the model's.

    Of what is said about the messages, only what is said of all stays.
    """
    first, *others = messages
    parts = [part for message in messages for part in message.content]
    if first.role != "assistant":
        parts.sort(key=lambda part: not isinstance(part, ToolResult))
    return trail.place_like(
        Message(
            role="user" if any(message.role == "user" for message in messages) else first.role,
            content=tuple(parts),
            name=first.name if all(other.name == first.name for other in others) else None,
            id=first.id,
            metadata={
                key: value
                for key, value in first.metadata.items()
                if all(key in other.metadata and other.metadata[key] == value for other in others)
            },
            extra=first.extra if all(other.extra == first.extra for other in others) else {},
        ),
        first,
    )


def move_media(messages: Messages, target: HistoryRules, _: RepairPolicy, trail: Edits) -> Messages:
    """Media of results follow in a user message, after all the results of a turn."""
    if target.result_media:
        return messages
    edited: list[Message] = []
    moved: list[Part] = []
    for message in messages:
        results = [part for part in message.content if isinstance(part, ToolResult)]
        if moved and (not results or message.role == "assistant"):
            edited.append(Message(role="user", content=tuple(moved)))
            moved = []
        if any(_moves(part, target) for result in results for part in result.parts or ()):
            parts = [_without_media(part, moved, target, trail) for part in message.content]
            edited.append(with_parts(message, parts, trail))
        else:
            edited.append(message)
    if moved:
        edited.append(Message(role="user", content=tuple(moved)))
    return messages if len(edited) == len(messages) else tuple(edited)


def _moves(part: Part, target: HistoryRules) -> bool:
    """Media move; those that came in this place from the target itself may stay."""
    return isinstance(part, MEDIA_TYPES) and target.dialect not in part.extra


def _without_media(part: Part, moved: list[Part], target: HistoryRules, trail: Edits) -> Part:
    inside = part.parts or () if isinstance(part, ToolResult) else ()
    media = [inner for inner in inside if _moves(inner, target)]
    if not (media and isinstance(part, ToolResult)):
        return part
    stays = [inner for inner in inside if not _moves(inner, target)]
    moved += [Text(text=f"Output of tool call {part.tool_call_id}:"), *media]
    kinds = ", ".join(inner.kind for inner in media)
    trail.change("result_media_moved", part, kinds=kinds)
    return with_fields(part, trail, content=tuple(stays) or (Text(text=_SEE_BELOW),))


# Repairs of media: what the target has no form for is left out, before others are moved.


_SOURCES = ("url", "data", "file_id", "text")
_WORDS = {"url": "by URL", "data": "as bytes", "file_id": "by file id", "text": "as text"}


def drop_unsayable_media(
    messages: Messages, target: HistoryRules, _: RepairPolicy, trail: Edits
) -> Messages:
    """
    Media in a form that the target does not take; what came from itself stays.

    Their message stays too, though it be empty then: other rules see to that.
    """
    if not target.media:
        return messages

    def drop(message: Message) -> Message:
        kept = [
            _drop_inside(part, target, trail)
            for part in message.content
            if not _is_lost(part, target, trail)
        ]
        return message if is_unchanged(kept, message.content) else with_parts(message, kept, trail)

    return edit(messages, drop)


def _drop_inside(part: Part, target: HistoryRules, trail: Edits) -> Part:
    if not isinstance(part, ToolResult) or not part.parts:
        return part
    content: list[Part] = []
    for inner in part.parts:
        media = _unsupported_media(inner, target)
        if media and isinstance(inner, MEDIA_TYPES):
            trail.change("result_media_as_text", inner, media=media)
            content.append(media_note(inner))
        else:
            content.append(inner)
    same = is_unchanged(content, part.parts)
    return part if same else with_fields(part, trail, content=tuple(content))


def _is_lost(part: Part, target: HistoryRules, trail: Edits) -> bool:
    media = _unsupported_media(part, target)
    if media:
        trail.change(MEDIA_DROPPED[part.kind], part, part=part.kind, media=media)
    return bool(media)


def _unsupported_media(part: Part, target: HistoryRules) -> str:
    """What the target does not support about a part; empty if it supports it."""
    forms = target.media.get(part.kind)
    if forms is None or not isinstance(part, MEDIA_TYPES) or target.dialect in part.extra:
        return ""
    source = _source(part)
    return "" if source is None or source in forms else f"{part.kind} {_WORDS[source]}"


def _source(part: Image | Audio | Document) -> str | None:
    """The form in which it is given; a data URL is bytes, wherever it stands."""
    found = next((name for name in _SOURCES if getattr(part, name, None) is not None), None)
    if found == "url" and part.url is not None and part.url[:5].lower() == "data:":
        return "data"
    return found
