"""Tools, by every dialect."""

import json
import subprocess
import sys
import threading

import pytest

from interlingua.api.tools.tool import Tool, tool
from interlingua.simulator import text, tool_call, usage
from support.patience import PATIENCE
from support.requests import ask, every_provider, get_weather, given, listen
from support.simulated import KEY, MODELS, simulated
from support.warning_codes import codes


@every_provider
def test_single_tool_call(provider):
    """Called, answered, and the conversation goes on."""

    def play(request):
        results = given(request)
        return text(results[0].content) if results else tool_call("get_weather", city="Oslo")

    with simulated(play) as peer:
        result = ask(peer, provider, tools=[get_weather])

    assert result.text == "Oslo: rain"
    assert len(result.steps) == 2


@every_provider
def test_parallel_tool_calls(provider):
    """All results come back in one request, in the order of the calls."""

    def play(request):
        results = given(request)
        if results:
            return text(" ".join(result.content for result in results))
        return tool_call("get_weather", city="Oslo") + tool_call("get_weather", city="Rome")

    with simulated(play) as peer:
        result = ask(peer, provider, tools=[get_weather])
        assert len(peer.app.script.received) == 2

    assert result.text == "Oslo: rain Rome: rain"


@every_provider
def test_nested_tool_calls(provider):
    """Three rounds: each call depends on the result before."""

    @tool
    def step(number: int) -> int:
        """The next number."""
        return number + 1

    def play(request):
        results = given(request)
        last = int(str(results[-1].content)) if results else 0
        return text(f"Reached {last}") if last == 3 else tool_call("step", number=last)

    with simulated(play) as peer:
        result = ask(peer, provider, tools=[step], max_tool_rounds=5)

    assert result.text == "Reached 3"
    assert len(result.steps) == 4
    assert result.total_usage.total_tokens == sum(s.usage.total_tokens for s in result.steps)


@every_provider
def test_streaming_with_tool_calls(provider):
    """Calls as they form, a step between, then the text."""

    def play(request):
        return text("Done.") if given(request) else tool_call("get_weather", city="Oslo")

    with simulated(play) as peer:
        events, result = listen(peer, provider, tools=[get_weather])

    kinds = [event.type for event in events]
    assert kinds.index("tool_call_end") < kinds.index("step_finish") < kinds.index("text_delta")
    assert result.response().text == "Done."


@every_provider
def test_tool_errors_go_to_the_model(provider):
    """An exception, an unknown tool, arguments that do not fit: the model is told, and recovers."""

    @tool
    def fail(times: int) -> str:
        """Fail."""
        raise RuntimeError(f"no power, {times} times")

    def play(request):
        results = given(request)
        if results:
            return text(" / ".join(str(result.content) for result in results))
        return tool_call("fail", times=3) + tool_call("fial") + tool_call("fail", times="x")

    with simulated(play) as peer:
        result = ask(peer, provider, tools=[fail])

    assert all(entry.is_error for entry in result.steps[0].tool_results)
    for words in ("no power, 3 times", "Unknown tool 'fial'", "times"):
        assert words in result.text


@every_provider
def test_passive_tools_are_the_callers(provider):
    """The calls come back, and nothing is run."""
    with simulated(tool_call("ask_user", question="Which?")) as peer:
        result = ask(peer, provider, tools=[Tool(name="ask_user")], max_tool_rounds=3)
        assert len(peer.app.script.received) == 1

    assert result.tool_calls[0].arguments == {"question": "Which?"}


@every_provider
@pytest.mark.parametrize("choice", ["auto", "none", "required", "get_weather"])
def test_tool_choices(provider, choice):
    """Each mode reaches the provider, without a warning; Converse has no `none`."""
    with simulated(text("ok")) as peer:
        result = ask(peer, provider, tools=[get_weather], tool_choice=choice)
        (request,) = peer.app.script.requests

    if (provider, choice) == ("bedrock_converse", "none"):  # then it gets no tools
        assert (request.tools, request.tool_choice) == ((), None)
        assert codes(result) == ["tools_withheld"]
        return
    assert request.tool_choice.mode == ("named" if choice == "get_weather" else choice)
    assert request.tool_choice.tool_name == ("get_weather" if choice == "get_weather" else None)
    assert [tool.name for tool in request.tools] == ["get_weather"]
    assert codes(result) == []


@every_provider
def test_steps_are_told(provider):
    """Each with its calls, their results and its tokens."""

    def play(request):
        if given(request):
            return text("Rain.") + usage(20, 2)
        return tool_call("get_weather", city="Oslo") + usage(10, 5)

    with simulated(play) as peer:
        result = ask(peer, provider, tools=[get_weather])
    first, last = result.steps

    assert [call.name for call in first.tool_calls] == ["get_weather"]
    assert [entry.content for entry in first.tool_results] == ["Oslo: rain"]
    assert (first.usage.total_tokens, last.usage.total_tokens) == (15, 22)
    assert (last.tool_calls, last.tool_results, last.text) == ((), (), "Rain.")
    assert result.total_usage.total_tokens == 37


@every_provider
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_rounds_are_counted(provider, rounds):
    """A model that always calls is stopped after so many; with 0 nothing is run."""
    ran = []

    @tool
    def again() -> str:
        """Once more."""
        ran.append(1)
        return "more"

    with simulated(tool_call("again")) as peer:
        result = ask(peer, provider, tools=[again], max_tool_rounds=rounds)
        events, streamed = listen(peer, provider, tools=[again], max_tool_rounds=rounds)

    assert len(result.steps) == len(streamed.result().steps) == rounds + 1
    assert len(ran) == 2 * rounds
    assert result.tool_calls[0].name == "again"
    assert [event.type for event in events].count("step_finish") == rounds


@every_provider
def test_parallel_calls_run_at_once(provider):
    """Each waits for the others, so that one after another would never end."""
    barrier = threading.Barrier(3)

    @tool(timeout=PATIENCE)
    def meet(number: int) -> int:
        """Wait for the others."""
        barrier.wait()
        return number

    def play(request):
        if given(request):
            return text(" ".join(str(result.content) for result in given(request)))
        return (
            tool_call("meet", number=1) + tool_call("meet", number=2) + tool_call("meet", number=3)
        )

    with simulated(play) as peer:
        assert ask(peer, provider, tools=[meet]).text == "1 2 3"


APPROVAL = """
import asyncio, json, sys
import msgspec
from interlingua import Client, Message, generate, tool
from interlingua.providers.adapter import HttpAdapter

@tool(needs_approval=True)
def remove(path: str) -> str:
    "Remove a file."
    print("removes", path, file=sys.stderr)
    return "removed " + path

async def main(provider, url, model, key):
    kept = json.loads(sys.stdin.read() or "null")
    given = {"messages": ["Remove a."]} if kept is None else {
        "messages": msgspec.convert(kept["messages"], list[Message]),
        "approvals": dict.fromkeys(kept["pending"], True),
    }
    async with Client({provider: HttpAdapter(provider, key, base_url=url)}) as client:
        result = await generate(provider + ":" + model, client=client, tools=[remove], **given)
    pending = [call.id for call in result.pending_approvals]
    said = {"messages": result.messages, "pending": pending, "text": result.text}
    print(msgspec.json.encode(said).decode())

asyncio.run(main(*sys.argv[1:]))
"""


@every_provider
def test_approval_in_another_process(provider):
    """The conversation is kept as JSON; a second program goes on with the decision."""

    def program(kept):
        url = peer.server.url + ("/v1" if provider == "openai_compatible" else "")
        done = subprocess.run(
            [sys.executable, "-c", APPROVAL, provider, url, MODELS[provider], KEY],
            input=kept,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout, done.stderr

    def play(request):
        results = given(request)
        return text(results[0].content) if results else tool_call("remove", path="a")

    with simulated(play) as peer:
        kept, ran = program("")
        assert (json.loads(kept)["text"], ran) == ("", "")
        after, ran = program(kept)

    assert ran == "removes a\n"
    assert json.loads(after)["text"] == "removed a"
    assert json.loads(after)["pending"] == []
