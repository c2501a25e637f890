"""Tools in a run: when they are run, and what they leave as it is."""

import msgspec
import pytest

from interlingua.api.objects.functions import generate_object
from interlingua.api.run.generate import generate, stream
from interlingua.api.tools.tool import Tool, tool
from interlingua.simulator import (
    finish,
    pieces,
    raw_tool_call,
    results,
    text,
    tool_call,
    tool_loop,
)
from interlingua.spec.content import Text
from interlingua.spec.messages import Message
from support.runs import collect, named
from support.simulated import DIALECTS, run, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
with_argument_text = pytest.mark.parametrize("provider", sorted({*DIALECTS} - {"gemini"}))


@tool
def look() -> str:
    """Look outside."""
    return "rain"


@with_argument_text
def test_a_call_is_run_when_the_answer_is_over(provider):
    """Though its arguments parse long before, and more of them may come (field bug 5)."""
    seen = []

    @tool
    def note(words: str = "") -> str:
        """Note."""
        seen.append(f"ran {words}")
        return "noted"

    async def work(client):
        async for event in stream(named(provider), "?", tools=[note], client=client):
            seen.append(event.type)  # noqa: PERF401 -- the tool adds to it meanwhile

    answer = raw_tool_call("note", '{"words": "a"}' + " " * 9) + tool_call("note") + pieces(1)
    with simulated(tool_loop(answer, text("x"))) as peer:
        run(peer, work)

    runs = [seen.index(said) for said in ("ran a", "ran ")]
    ends = [place for place, said in enumerate(seen) if said == "tool_call_end"]
    assert len(ends) == 2
    assert max(ends) < min(runs)
    assert max(runs) < seen.index("step_finish")
    assert sum(said.startswith("ran") for said in seen) == 2


@pytest.mark.parametrize(
    ("provider", "whole"),
    [  # the others have an object there, which cannot be broken
        ("openai", True),
        ("openai", False),
        ("openai_compatible", True),
        ("openai_compatible", False),
        ("anthropic", False),
    ],
)
def test_a_turn_survives_broken_arguments(provider, whole):
    """The text is kept, the model is told, and the other call is run (field bug 11)."""
    told = []

    class Observer:
        def on_tool_start(self, _):
            pass

        def on_tool_end(self, call, _):
            told.append((call.name, "ended"))

        def on_tool_error(self, call, error):
            told.append((call.name, type(error).__name__))

    answer = raw_tool_call("look", '{"far": tr') + tool_call("look")

    async def work(client):
        options = {"tools": [look], "client": client, "tool_observer": Observer()}
        if whole:
            return await generate(named(provider), "?", **options)
        events = stream(named(provider), "?", **options)
        await collect(events)
        return events.result()

    with simulated(tool_loop(answer, text("fine"))) as peer:
        result = run(peer, work)

    step = result.steps[0]
    assert result.text == "fine"
    assert step.tool_calls[0].raw_arguments == '{"far": tr'
    assert [entry.is_error for entry in step.tool_results] == [True, False]
    assert '{"far": tr' in step.tool_results[0].content
    assert sorted(told) == [("look", "InvalidToolCallError"), ("look", "ended")]


@every_provider
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_cut_answers_run_nothing(provider, reason):
    """Their calls are there to be seen (field bug 22)."""
    ran = []
    made = Tool(name="look", execute=lambda: ran.append(1))
    with simulated(tool_call("look") + finish(reason)) as peer:
        result = run(
            peer, lambda client: generate(named(provider), "?", tools=[made], client=client)
        )
        assert len(peer.app.script.received) == 1

    assert ran == []
    assert result.finish_reason.reason == reason
    assert [call.name for call in result.tool_calls] == ["look"]


# What is the caller's.


@every_provider
@pytest.mark.parametrize("asks", ["text", "object"])
def test_what_the_caller_owns_stays_as_it_is(provider, asks):
    """Lists, dicts and schemas, through two steps with tools, options and thinking.

    Field bug 79.
    """
    schema = {"type": "object", "properties": {"a": {"type": ["integer", "null"], "minimum": 0}}}

    def far(place):
        place["seen"] = True
        return place

    options = {
        "messages": [
            Message.user([Text(text="?", extra={"openai_chat": {"x": [1]}})]),
            Message.assistant("Well"),
            Message.user("Go on"),
        ],
        "tools": [Tool(name="far", parameters=schema, execute=far), look],
        "provider_options": {provider: {"deep": {"list": [1, {"b": 2}]}}, "other": {"c": 3}},
        "metadata": {"who": "me"},
        "stop_sequences": ["END"],
        "approvals": {"nobody": True},
        "reasoning_effort": "low",
    }
    before = msgspec.json.encode({**options, "tools": [schema]})

    def answer(request):
        has_result = results(request) or request.messages[-1].text.startswith("far returned: ")
        if not has_result:  # in words where the choice `none` has no form
            return tool_call("far", a=1)
        is_asked = any(made.name == "answer" for made in request.tools or ())
        return tool_call("answer", {"a": 1}) if is_asked else text('{"a": 1}')

    async def work(client):
        if asks == "text":
            return await generate(named(provider), client=client, **options)
        return await generate_object(named(provider), client=client, schema=schema, **options)

    with simulated(answer, strict=False) as peer:
        result = run(peer, work)

    assert len(result.steps) == 2
    assert result.steps[0].tool_calls[0].arguments == {"a": 1}
    assert msgspec.json.encode({**options, "tools": [schema]}) == before
    assert len(options["messages"]) == 3
    assert len(options["tools"]) == 2
