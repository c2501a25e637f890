"""
The integration matrix: every case against every dialect, over real HTTP.

Rows of two lists of what a client must do: one by capability, one by task of an agent.
"""

import asyncio
import base64
import json

import pytest

from interlingua.api.generate import generate, stream
from interlingua.api.tools import Tool, tool
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import (
    Simulator,
    error,
    latency,
    serve_in_thread,
    text,
    thinking,
    tool_call,
    usage,
)
from interlingua.spec.content import Audio, Document, Image, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.errors import (
    AuthenticationError,
    ConfigurationError,
    ContextLengthError,
    NotFoundError,
    RateLimitError,
)
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from simulated import DIALECTS, KEY, MODELS, adapters, run, simulated

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))


def named(provider):
    return f"{provider}:{MODELS[provider]}"


def given(request):
    """The results of tools in a request, in order."""
    return [p for m in request.messages for p in m.content if isinstance(p, ToolResult)]


def ask(peer, provider, prompt="hi", **options):
    return run(peer, lambda client: generate(named(provider), prompt, client=client, **options))


def listen(peer, provider, prompt="hi", **options):
    async def work(client):
        result = stream(named(provider), prompt, client=client, **options)
        return [event async for event in result], result

    return run(peer, work)


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: rain"


# Text.


@every_provider
def test_simple_text(provider):
    """Text, usage and a reason."""
    with simulated(text("Hello there.") + usage(7, 3)) as peer:
        result = ask(peer, provider)

    assert (result.text, result.finish_reason.reason) == ("Hello there.", "stop")
    assert (result.usage.input_tokens, result.usage.output_tokens) == (7, 3)
    assert result.usage.total_tokens == 10


@every_provider
def test_streaming_text(provider):
    """Start, deltas that join to the text, end, finish."""
    with simulated(text("one two three four")) as peer:
        events, result = listen(peer, provider)

    kinds = [event.type for event in events]
    assert (kinds[0], kinds[1], kinds[-2], kinds[-1]) == (
        "stream_start",
        "text_start",
        "text_end",
        "finish",
    )
    assert "".join(e.delta for e in events if e.type == "text_delta") == "one two three four"
    assert result.response().text == "one two three four"


@every_provider
def test_all_roles_arrive(provider):
    """System, developer, user, assistant and tool."""
    call = ToolCall(id="call_1", name="get_weather", arguments={"city": "Oslo"})
    history = [
        Message.system("Be brief."),
        Message.developer("In English."),
        Message.user("Weather?"),
        Message.assistant([call]),
        Message.tool_result("call_1", "rain"),
    ]
    with simulated(text("It rains.")) as peer:
        result = ask(peer, provider, None, messages=history, tools=[get_weather])
        (request,) = peer.app.script.requests

    said = [message.text for message in request.messages]
    assert result.text == "It rains."
    assert "Be brief." in "\n".join(said)
    assert "In English." in "\n".join(said)
    assert given(request)[0].content == "rain"


# Media.


@every_provider
@pytest.mark.parametrize("form", ["bytes", "url", "file"])
def test_images(provider, form, tmp_path):
    """As bytes, by address, from a file on this machine."""
    path = tmp_path / "dot.png"
    path.write_bytes(PNG)
    image = {
        "bytes": Image(data=PNG, media_type="image/png"),
        "url": Image(url="https://example.com/dot.png", media_type="image/png"),
        "file": Image(url=str(path)),
    }[form]
    question = Message(role="user", content=(Text(text="What is it?"), image))
    with simulated(text("A dot.")) as peer:
        result = ask(peer, provider, None, messages=[question])
        (request,) = peer.app.script.requests

    (received,) = [p for m in request.messages for p in m.content if isinstance(p, Image)]
    assert result.text == "A dot."
    if form == "url":
        assert received.url == "https://example.com/dot.png"
    else:
        assert (received.data, received.media_type) == (PNG, "image/png")


@every_provider
@pytest.mark.parametrize(
    "part",
    [
        Audio(data=b"RIFF\x24\x00\x00\x00WAVEfmt ", media_type="audio/wav"),
        Document(data=b"%PDF-1.7 ", media_type="application/pdf", file_name="a.pdf"),
    ],
    ids=["audio", "document"],
)
def test_other_media_arrive_or_are_told(provider, part):
    """Never lost in silence."""
    question = Message(role="user", content=(Text(text="What is it?"), part))
    with simulated(text("Something.")) as peer:
        result = ask(peer, provider, None, messages=[question])
        (request,) = peer.app.script.requests

    arrived = any(isinstance(p, type(part)) for m in request.messages for p in m.content)
    assert arrived or result.warnings


# Tools.


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
    for words in ("no power, 3 times", "unknown tool 'fial'", "times"):
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
    """Each mode reaches the provider, or a warning says why not."""
    with simulated(text("ok")) as peer:
        result = ask(peer, provider, tools=[get_weather], tool_choice=choice)
        (request,) = peer.app.script.requests

    arrived = request.tool_choice
    mode = "named" if choice == "get_weather" else choice
    if not any("tool" in warning.code for warning in result.warnings):
        assert arrived is None or arrived.mode == mode or choice == "none"
        assert (arrived is not None) or choice in ("auto", "none")


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


@every_provider
def test_strict_schemas(provider):
    """Optional parameters, nested objects, arrays of objects; what was not given stays absent."""
    seen = []

    @tool(strict=True)
    def book(city: str, nights: int = 1, guests: list[dict[str, str]] | None = None) -> str:
        """Book a room."""
        seen.append((city, nights, guests))
        return "booked"

    def play(request):
        return text("ok") if given(request) else tool_call("book", city="Oslo")

    with simulated(play) as peer:
        result = ask(peer, provider, tools=[book])

    assert result.text == "ok"
    assert seen == [("Oslo", 1, None)]


# Thinking and caching.


@every_provider
def test_thinking_and_its_tokens(provider):
    """Told apart from the text, and sent back whole to its maker."""
    answer = thinking("Oslo is north.") + text("Cold.") + usage(9, 8, reasoning=5)
    with simulated(answer) as peer:
        result = ask(peer, provider, reasoning_effort="low")
        ask(peer, provider, None, messages=[*result.messages, Message.user("Sure?")])
        second = peer.app.script.requests[1]

    assert result.reasoning == "Oslo is north."
    assert result.text == "Cold."
    assert result.usage.reasoning_tokens in (5, None)
    thoughts = [p for m in second.messages for p in m.content if isinstance(p, Thinking)]
    own = [p for p in result.response.message.content if isinstance(p, Thinking)]
    if thoughts:
        assert [p.signature for p in thoughts] == [p.signature for p in own]


@every_provider
def test_cached_tokens(provider):
    """From the second turn on most of the input is read from the cache."""

    async def work(client):
        history = [Message.system("You are a careful assistant. " * 40)]
        shares = []
        for number in range(5):
            history.append(Message.user(f"Question {number}: " + "please explain. " * 10))
            result = await generate(named(provider), messages=history, client=client)
            history = list(result.messages)
            read = result.usage.cache_read_tokens or 0
            shares.append(read / result.usage.input_tokens)
        return shares

    with simulated(text("An answer. " * 5)) as peer:
        shares = run(peer, work)

    assert shares[0] == 0
    assert all(share > 0.5 for share in shares[1:])


# Errors and the rest.


@every_provider
def test_errors(provider):
    """A wrong key, a limit, a model that is not there."""
    for status, kind in ((401, AuthenticationError), (429, RateLimitError), (404, NotFoundError)):
        with simulated(error(status)) as peer, pytest.raises(kind):
            ask(peer, provider, max_retries=0)


@every_provider
def test_rate_limits_pass_unseen(provider):
    """One that goes away is waited for."""
    with simulated(error(429, retry_after=0), text("at last")) as peer:
        assert ask(peer, provider).text == "at last"


@every_provider
def test_options_of_a_provider(provider):
    """They reach its wire as they are."""
    with simulated(text("ok")) as peer:
        ask(peer, provider, provider_options={DIALECTS[provider]: {"my_setting": {"a": 1}}})
        (exchange,) = peer.app.script.received

    assert exchange.call.body["my_setting"] == {"a": 1}


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
    assert partial.text.startswith("word")
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
            assert result.messages[0].text == "Be brief."
            assert result.messages[-2].text == history[8].text


# What is asked of the whole.


def test_environment_and_routes():
    """From the environment, by name, by default; nothing configured is told."""
    with serve_in_thread(Simulator(text("hi"))) as server:
        names = {"openai": "OPENAI", "anthropic": "ANTHROPIC", "gemini": "GEMINI"}
        environ = {f"{name}_API_KEY": KEY for name in names.values()}
        environ |= {f"{name}_BASE_URL": server.url for name in names.values()}

        async def work():
            async with Client.from_env(environ) as client:
                asked = [Request(provider=name, model="m", messages="hi") for name in names]
                asked.append(Request(model="m", messages="hi"))
                return [(await client.complete(request)).provider for request in asked]

        assert asyncio.run(work()) == [*names, "openai"]
    with pytest.raises(ConfigurationError):
        Client({}).stream(Request(model="m", messages="hi"))


def test_native_apis():
    """Each vendor is spoken to in its own language."""
    paths = {
        name: HttpAdapter(name, KEY).prepare(Request(model="m", messages="hi")).url
        for name in ("openai", "anthropic", "gemini")
    }

    assert paths["openai"].endswith("/v1/responses")
    assert paths["anthropic"].endswith("/v1/messages")
    assert paths["gemini"].endswith("/v1beta/models/m:generateContent")


def test_beta_headers():
    """Joined into one header, from either name of the option."""
    adapter = adapters("http://127.0.0.1:9")["anthropic"]
    request = Request(
        provider="anthropic",
        model="m",
        messages="hi",
        provider_options={"anthropic": {"beta_headers": ["a-1", "b-2"], "betas": ["c-3"]}},
    )
    call = adapter.prepare(request)

    assert set(call.headers["anthropic-beta"].split(",")) == {"a-1", "b-2", "c-3"}
    assert "beta_headers" not in json.dumps(call.body)
