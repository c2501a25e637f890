"""
The APIs of all vendors on your own machine, with scripted answers, marked as simulated.

Import from here to test a program that calls models, or to try it without keys.
"""

from interlingua.serving.server import Server, serve, serve_in_thread
from interlingua.simulator.app import SimulatedCutError, SimulatedResetError, Simulator
from interlingua.simulator.dsl import (
    Turn,
    cut,
    duplicate,
    error,
    error_event,
    finish,
    header,
    latency,
    malformed,
    pieces,
    rate_limit,
    raw_tool_call,
    refusal,
    reset,
    stall,
    text,
    thinking,
    tool_call,
    usage,
)
from interlingua.simulator.operations.videos import VideoScript
from interlingua.simulator.script import (
    SIMULATED,
    Answer,
    Exchange,
    Script,
    by_model,
    echo,
    results,
    tool_loop,
    use_tools,
)

__all__ = [
    "SIMULATED",
    "Answer",
    "Exchange",
    "Script",
    "Server",
    "SimulatedCutError",
    "SimulatedResetError",
    "Simulator",
    "Turn",
    "VideoScript",
    "by_model",
    "cut",
    "duplicate",
    "echo",
    "error",
    "error_event",
    "finish",
    "header",
    "latency",
    "malformed",
    "pieces",
    "rate_limit",
    "raw_tool_call",
    "refusal",
    "reset",
    "results",
    "serve",
    "serve_in_thread",
    "stall",
    "text",
    "thinking",
    "tool_call",
    "tool_loop",
    "usage",
    "use_tools",
]
