"""A tool loop that a vendor's client goes through with any upstream, and what must hold of it."""

from interlingua.simulator import Simulator, text, thinking, tool_call, tool_loop
from interlingua.spec.content import Thinking, ToolResult
from support.vendor_clients import QUESTION

RESULTS = ["4 C, rain", "25 C, sun"]


def looping(**settings):
    """A simulator that thinks, calls two tools at once, and answers when it has their results."""
    calls = thinking("I must look.") + text("One moment. ")
    calls += tool_call("get_weather", city="Oslo") + tool_call("get_weather", city="Rome")
    return Simulator(tool_loop(calls, text("Rain and sun.")), **settings)


def check_loop(simulator, vendor, upstream, asked, answer):
    """Both calls, the answer, the results under their ids; the upstream's own thinking came back.

    `vendor` and `upstream` are dialects.
    """
    first, second = simulator.script.requests

    assert asked.calls == [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})]
    assert asked.text.strip() == "One moment."
    assert (answer.text, answer.calls) == ("Rain and sun.", [])
    assert first.messages[0].text == QUESTION
    parts = [part for message in second.messages for part in message.content]
    ids = [part.tool_call_id for part in parts if isinstance(part, ToolResult)]
    assert ids == [call.id for message in second.messages for call in message.tool_calls]
    if upstream != "openai_chat":  # whose thinking has no state
        thoughts = [part.text for part in parts if isinstance(part, Thinking)]
        # Google's client keeps the pieces of a stream. Chat Completions has no field that asks for
        # thoughts, so those of a provider that has to be asked stay hidden.
        is_hidden = vendor == "openai_chat" and upstream in ("openai_responses", "gemini_generate")
        assert "".join(thoughts) == ("" if is_hidden else "I must look.")
