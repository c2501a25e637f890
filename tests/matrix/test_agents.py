"""Tasks of an agent, by every dialect."""

import json
from dataclasses import dataclass

import pytest

from interlingua.api.tools.tool import Tool, tool
from interlingua.simulator import error, latency, text, tool_call
from interlingua.spec.content import Document
from interlingua.spec.errors import ContextLengthError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from support.requests import ask, every_provider, given, listen, named
from support.simulated import run, simulated
from support.warning_codes import codes


@every_provider
def test_todo_list(provider):
    """A list that the model writes and then changes, in several steps."""
    lists = []

    @tool
    def write_todos(todos: list[dict[str, str]]) -> str:
        """Replace the todo list."""
        lists.append(todos)
        return "saved"

    plan = [{"task": "read", "state": "open"}, {"task": "write", "state": "open"}]

    def play(request):
        done = len(given(request))
        states = [
            {**item, "state": "done" if at < done else "open"} for at, item in enumerate(plan)
        ]
        return text("All done.") if done > len(plan) else tool_call("write_todos", todos=states)

    with simulated(play) as peer:
        result = ask(peer, provider, tools=[write_todos], max_tool_rounds=9)

    assert result.text == "All done."
    assert [sum(item["state"] == "done" for item in todos) for todos in lists] == [0, 1, 2]


@every_provider
def test_file_creation(provider, tmp_path):
    """A tool writes a file, and its bytes come back as a document."""

    @tool
    def write(name: str, content: str) -> Document:
        """Write a file."""
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return Document(text=content, file_name=name, media_type="text/plain")

    def play(request):
        if given(request):
            return text("Written.")
        return tool_call("write", name="a.txt", content="Hello, Köln")

    with simulated(play) as peer:
        result = ask(peer, provider, tools=[write])

    assert result.text == "Written."
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "Hello, Köln"
    (made,) = result.steps[0].tool_results[0].parts
    assert made.file_name == "a.txt"


@every_provider
def test_many_tools(provider):
    """Thirty, and the right one is run."""

    def make(number):
        return Tool(name=f"tool_{number}", execute=lambda: f"this is {number}")

    def play(request):
        return text(given(request)[0].content) if given(request) else tool_call("tool_17")

    with simulated(play) as peer:
        result = ask(peer, provider, tools=[make(number) for number in range(30)])
        assert len(peer.app.script.requests[0].tools) == 30

    assert result.text == "this is 17"


@dataclass
class Guest:
    """Somebody who stays."""

    name: str
    age: int | None = None


@every_provider
def test_strict_schemas(provider):
    """
    Optional parameters, nested objects, arrays of objects; what was not given stays absent.

    OpenAI's strict mode has no optional properties: they are required and may be null. A null on
    the wire is the default in the tool, and goes back as a null.
    """
    seen = []

    @tool(strict=True)
    def book(city: str, nights: int = 1, guests: list[Guest] | None = None) -> str:
        """Book a room."""
        seen.append((city, nights, guests))
        return "booked"

    def play(request):
        guests = [{"name": "Ann", "age": None}]
        return (
            text("ok")
            if given(request)
            else tool_call("book", city="Oslo", nights=None, guests=guests)
        )

    with simulated(play) as peer:
        result = ask(peer, provider, tools=[book])
        first, second = (exchange.call.body for exchange in peer.app.script.received)

    assert result.text == "ok"
    assert seen == [("Oslo", 1, [Guest("Ann")])]
    sent = first["toolConfig" if provider == "bedrock_converse" else "tools"]
    sent = sent["tools"][0]["toolSpec"] if provider == "bedrock_converse" else sent[0]
    if provider == "gemini":  # it has no strict tools
        assert "strict" not in json.dumps(sent)
        assert {*codes(result)} == {"strict_dropped"}
        return
    sent = sent.get("function", sent)
    assert (sent["strict"], codes(result)) == (True, [])
    schema = sent.get("parameters") or sent.get("input_schema") or sent["inputSchema"]["json"]
    if provider == "openai_compatible":  # an unknown host gets the schema as it is, and decides
        assert schema["required"] == ["city"]
        return
    guest = schema["properties"]["guests"]["anyOf"][0]["items"]
    assert schema["additionalProperties"] is guest["additionalProperties"] is False
    if provider in ("anthropic", "bedrock_converse"):  # optional properties stay optional
        assert (schema["required"], guest["required"]) == (["city"], ["name"])
        return
    assert schema["properties"]["nights"]["type"] == ["integer", "null"]
    assert schema["required"] == ["city", "nights", "guests"]
    assert guest["required"] == ["name", "age"]
    assert r'"nights\":null' in json.dumps(second, separators=(",", ":"))


@every_provider
def test_interruption_keeps_what_had_come(provider):
    """The stop button: the partial answer is there, and can go on as history."""
    slow = text("word " * 100) + latency(between=0.005, write_bytes=30)

    async def work(client):
        request = Request(model=named(provider), messages="hi", request_id="r")
        async for event in client.stream(request):
            if event.type == "text_delta":
                await client.cancel("r")
        partial = event.response
        again = [Message.user("hi"), partial.message, Message.user("Go on.")]
        return partial, await client.complete(Request(model=named(provider), messages=again))

    with simulated(slow, text("more")) as peer:
        partial, after = run(peer, work)

    assert partial.finish_reason.reason == "cancelled"
    assert partial.text
    assert ("word " * 100).startswith(partial.text)
    assert after.text == "more"


@every_provider
def test_a_history_that_is_too_long(provider):
    """It is cut at the oldest turns, without orphans, and asked again once."""
    too_long = error(400, "prompt is too long: 250000 tokens > 200000 maximum")

    def play(request):
        return too_long if len(request.messages) > 5 else text(f"{len(request.messages)} left")

    history = [Message.system("Be brief.")]
    for number in range(6):
        history += [Message.user(f"q{number}"), Message.assistant(f"a{number}")]
    history.append(Message.user("last"))
    with simulated(play) as peer:
        with pytest.raises(ContextLengthError):
            ask(peer, provider, None, messages=history)
        for reply in (ask, listen):
            answer = reply(peer, provider, None, messages=history[:9], on_overflow="truncate")
            result = answer if reply is ask else answer[1].result()
            assert result.text.endswith("left")
            assert result.messages[:-1] == tuple(history[:9])
            assert "history_truncated" in [warning.code for warning in result.warnings]
