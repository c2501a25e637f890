"""Items as users of OpenAI's SDK have them: dicts for requests, and the output of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlingua.dialects.openai_responses.facts import INPUT_TEXT, OUTPUT_TEXT
from interlingua.dialects.openai_responses.messages import DEVELOPER_ITEMS, decode_messages
from interlingua.spec.content import Json
from interlingua.spec.messages import Message
from interlingua.wire.fields import Fields

# The types of the SDK's `ResponseInputItemParam`: tool calls, their results, and these.
_ITEMS = frozenset(
    (
        *("reasoning", "compaction", "mcp_list_tools", "mcp_approval_request", "item_reference"),
        "program",
        *DEVELOPER_ITEMS,
    )
)
_ENDINGS = ("_call", "_output", "_response")
_PARTS = frozenset((INPUT_TEXT, OUTPUT_TEXT, "input_image", "input_file"))


def is_sdk_message(item: Mapping[str, Json]) -> bool:
    """Return whether it is an item of this API, which has a type, or a message with its parts."""
    kind = item.get("type")
    if kind == "message":
        return "stop_reason" not in item  # an answer of another API is a `message` too
    if isinstance(kind, str):
        return kind in _ITEMS or kind.endswith(_ENDINGS)
    if "phase" in item:  # of the SDK's `EasyInputMessageParam`, which need not have a type
        return True
    content = item.get("content")
    return isinstance(content, Sequence) and any(
        isinstance(part, Mapping) and part.get("type") in _PARTS for part in content
    )


def decode_sdk_messages(items: Sequence[Mapping[str, Json]]) -> tuple[Message, ...]:
    """Return the messages; the items of one turn of the model become one message."""
    plain: list[Json] = [_present(item) for item in items]
    return decode_messages(Fields({"input": plain}))


def _present(item: Mapping[str, Json]) -> dict[str, Json]:
    """The item without fields that are None: the SDK writes those of an answer so."""
    return {name: _present_parts(value) for name, value in item.items() if value is not None}


def _present_parts(value: Json) -> Json:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return [
        {name: field for name, field in part.items() if field is not None}
        if isinstance(part, Mapping)
        else part
        for part in value
    ]
