"""
The events of a stream, and the events of a client's calls.

Import from here to tell one event from another while you read a stream (`TextDelta`, `Finish`, …),
or in a function that you pass to `client.subscribe` (`CallStarted`, `CallFailed`, …).
"""

from interlingua.client.call_events import CallCompleted, CallEvent, CallFailed, CallStarted
from interlingua.client.middleware.usage_reports import UsageCallback, UsageReport
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepStart,
    StreamEvent,
    StreamRestart,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolResultEvent,
)

__all__ = [
    "CallCompleted",
    "CallEvent",
    "CallFailed",
    "CallStarted",
    "ErrorEvent",
    "Finish",
    "ProviderEvent",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningStart",
    "StepFinish",
    "StepStart",
    "StreamEvent",
    "StreamRestart",
    "StreamStart",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolResultEvent",
    "UsageCallback",
    "UsageReport",
]
