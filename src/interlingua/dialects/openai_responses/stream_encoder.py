"""
Events -> frames.

Items and their parts are numbered here, as they start. The last frame holds the whole
response, folded from the events.
"""

from __future__ import annotations

from typing import Any

from interlingua.dialects.openai_responses.content import OUTPUT_TEXT, encode_part
from interlingua.dialects.openai_responses.errors import error_fields
from interlingua.dialects.openai_responses.items import (
    CALLS,
    ItemEncoder,
    encode_call,
    encode_reasoning,
    item_id,
    message_item,
)
from interlingua.dialects.openai_responses.response import (
    close_envelope,
    encode_response,
    open_envelope,
)
from interlingua.dialects.openai_responses.wire import ITEM, NAME
from interlingua.spec.content import Json, Part, Refusal, Text
from interlingua.spec.contracts import Frame
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
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
from interlingua.wire.accumulate import StreamAccumulator
from interlingua.wire.carry import Losses
from interlingua.wire.frames import json_frame
from interlingua.wire.grammar import Grammar
from interlingua.wire.shape import extra_of

_ADDED = "response.output_item.added"
_DONE = "response.output_item.done"
_TERMINAL = {"incomplete": "response.incomplete", "failed": "response.failed"}
_CALL_EVENTS = {
    "function": ("response.function_call_arguments", "arguments"),
    "custom": ("response.custom_tool_call_input", "input"),
}


class _Place:
    """Where an item's events go: its number and id, and what is known of it."""

    __slots__ = ("at", "closing", "content", "kind", "made", "own", "pieces", "waiting")

    def __init__(self, index: int, kind: str, made: str | None, item: str) -> None:
        self.at = {"item_id": item, "output_index": index}
        self.kind = kind
        self.made = made  # the id we gave it, if it had none
        self.pieces = 0
        # of a message item
        self.own: dict[str, Any] | None = None
        self.content: list[Json] = []
        self.waiting = 0
        self.closing = False
'''
