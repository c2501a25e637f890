"""A client on a scripted model in one line."""

import asyncio
import subprocess
import sys

import pytest

from interlingua import (
    Image,
    Message,
    embed,
    files,
    generate,
    generate_many,
    generate_object,
    set_default_client,
    stream,
    sync,
    tool,
)
from interlingua.dialects import names
from interlingua.errors import (
    ConfigurationError,
    NetworkError,
    RateLimitError,
    ServerError,
    StreamError,
)
from interlingua.middleware import Fallback
from interlingua.providers.rows import providers
from interlingua.simulator import (
    ScriptError,
    cut,
    error,
    scripted,
    text,
    thinking,
    tool_call,
)

MODEL = "anthropic:claude-haiku-4-5"
CHAT_ROWS = sorted(providers().keys() - {"voyage", "jina", "local"})  # these have no such model


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: 4 C"


def ask(client, prompt="Hi.", model=MODEL, **options):
    return asyncio.run(generate(model, prompt, client=client, **options))


async def collect(client, model=MODEL, **options):
    return [event async for event in stream(model, "Hi.", client=client, **options)]


def test_a_tool_loop_in_three_turns():
    """The turns are the answers in order, and the requests tell what the models were asked."""
    client = scripted(
        "Hello.", tool_call("get_weather", city="Oslo") + tool_call("get_weather", city="Rome"), "!"
    )

    assert ask(client).text == "Hello."
    result = ask(client, "Weather?", tools=[get_weather])

    assert [each.content for each in result.steps[0].tool_results] == ["Oslo: 4 C", "Rome: 4 C"]
    assert result.text == "!"
    first, second, third = client.requests
    assert first.messages == (Message.user("Hi."),)
    assert [each.name for each in second.tools] == ["get_weather"]
    assert [len(each.content) for each in third.messages] == [1, 2, 2]
    assert [each.dialect for each in client.script.received] == ["anthropic_messages"] * 3


@pytest.mark.parametrize("dialect", names())
def test_each_dialect_may_be_chosen(dialect):
    """For a model without a provider; whole answers and streams are the same."""
    turn = thinking("Hm.") + text("Yes it is.")
    client = scripted(turn, turn, dialect=dialect)

    whole = ask(client, model="scripted:some-model", include_thinking=True, thinking_budget=2048)
    events = asyncio.run(collect(client, "some-model"))

    assert (whole.text, whole.reasoning) == ("Yes it is.", "Hm.")
    assert "".join(each.delta for each in events if each.type == "text_delta") == whole.text
    assert [each.dialect for each in client.script.received] == [dialect] * 2


DIALECTS = {"bedrock": "bedrock_converse"}
"""The dialect of a model that is not known, where it is not the row's own."""


@pytest.mark.parametrize("name", CHAT_ROWS)
def test_every_provider_is_scripted(name):
    """In its own dialect, whatever the environment has of it."""
    client = scripted("Whole.", "In pieces.")

    assert ask(client, model=f"{name}:a-model").text == "Whole."
    assert asyncio.run(collect(client, f"{name}:a-model"))[-1].response.text == "In pieces."
    assert client.script.received[0].dialect == DIALECTS.get(name, providers()[name].dialect)


def test_the_end_of_the_script():
    """One clear error: it is neither retried nor covered by a fallback."""
    client = scripted("Once.").with_middleware(Fallback("openai:gpt-5.2"))
    ask(client)
    with pytest.raises(ScriptError, match="no turn for request 2"):
        ask(client)
    with pytest.raises(ScriptError, match="no turn for request 3"):
        asyncio.run(collect(client))
    assert len(client.requests) == 3


def test_a_function_may_assert():
    """What it raises is the cause of one error, which is not retried."""

    def answer(request):
        assert request.temperature == 0, "temperature must be 0"
        return "Right."

    client = scripted(answer, answer)

    assert ask(client, temperature=0).text == "Right."
    with pytest.raises(ScriptError, match="temperature must be 0") as failed:
        ask(client)
    assert isinstance(failed.value.__cause__, AssertionError)
    assert len(client.requests) == 2


def test_errors_and_faults():
    """Statuses, errors of ours and broken connections are raised as those of a provider are."""
    client = scripted(
        error(503), RateLimitError("slow down"), cut(), text("Half of it.") + cut(200), "Fine."
    )
    for kind in (ServerError, RateLimitError, NetworkError):
        with pytest.raises(kind):
            ask(client, max_retries=0)
    with pytest.raises(StreamError):
        asyncio.run(collect(client, max_retries=0))
    assert ask(client).text == "Fine."


@pytest.mark.usefixtures("no_backoff")
def test_a_retry_takes_the_next_turn():
    """The client's retries are the real ones."""
    client = scripted(error(503, retry_after=0), "Second.")

    assert ask(client).text == "Second."
    assert [each.status for each in client.script.received] == [503, 200]


def test_without_turns_it_uses_tools():
    """The default script of the simulator, for ever."""
    client = scripted()

    for _ in range(2):
        assert "simulated: 4 C" in ask(client, "Weather?", tools=[get_weather]).text


def test_objects_and_many_calls():
    """Every function with `client=` takes it."""
    client = scripted(
        '{"name": "Alice"}', '{"name": "Bob"}', lambda request: request.messages[0].text
    )
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}

    async def main():
        for name in ("Alice", "Bob"):
            result = await generate_object(MODEL, "Who?", schema=schema, client=client)
            assert result.output == {"name": name}
        (only,) = [each async for each in generate_many(["Hi."], MODEL, client=client)]
        assert only.result.text == "Hi."
        return await embed("openai:text-embedding-3-small", "Hello", client=client)

    assert asyncio.run(main()).embedding


def test_the_default_client_and_blocking_functions():
    """It is a client like any other, in any thread and loop."""
    client = scripted("Async.", "Blocking.", "In pieces.")
    set_default_client(client)
    try:
        assert asyncio.run(generate(MODEL, "Hi.")).text == "Async."
        assert sync.generate(MODEL, "Hi.").text == "Blocking."
        with sync.stream(MODEL, "Hi.", client=client) as events:
            assert [event.delta for event in events if event.type == "text_delta"]
    finally:
        set_default_client(None)
    assert len(client.requests) == 3


def test_media_arrive():
    """The requests are what the provider would read."""
    client = scripted("A dot.")
    ask(client, [Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png"), "What is it?"])

    assert client.requests[0].messages[0].content[0].data == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_files_are_stored(provider):
    """Also where the provider names an address to which the bytes are sent."""
    client = scripted()
    file = asyncio.run(files.upload(provider, b"Hello.", file_name="hello.txt", client=client))

    assert file.file_name == "hello.txt"


def test_a_default_provider():
    """A name without a provider is its model; a misspelt provider is an error."""
    client = scripted("Hi.", default_provider="gemini")

    assert ask(client, model="some-model").text == "Hi."
    assert client.script.received[0].dialect == "gemini_generate"
    with pytest.raises(ConfigurationError, match="Did you mean anthropic:claude"):
        ask(scripted("Hi."), model="antropic:claude")
    with pytest.raises(ConfigurationError, match="nowhere"):
        scripted("Hi.", default_provider="nowhere")
    with pytest.raises(ConfigurationError, match="morse"):
        scripted("Hi.", dialect="morse")


LEAVES_EARLY = """
import asyncio, gc
from interlingua import Request, stream, stream_object, sync
from interlingua.simulator import scripted, text

client = scripted(lambda request: text("word " * 200))
model = {model!r}

async def leaves_a_run():
    async for event in stream(model, "?", client=client):
        if event.type == "text_delta":
            break

async def leaves_a_call():
    async for event in client.stream(Request(model=model, messages="?")):
        if event.type == "text_delta":
            return

async def closes_it():
    events = stream(model, "?", client=client)
    async for event in events:
        if event.type == "text_delta":
            await events.aclose()

async def leaves_after_a_while():
    await leaves_a_run()
    await asyncio.sleep(0.2)

for work in (leaves_a_run, leaves_a_call, closes_it, leaves_after_a_while):
    asyncio.run(work())
for event in sync.stream(model, "?", client=client):
    if event.type == "text_delta":
        break
gc.collect()
print("done")
"""


@pytest.mark.parametrize("model", ["openai:gpt-5.2", "gemini:gemini-2.5-flash"])
def test_leaving_a_stream_early_prints_nothing(model):
    """However it is left: no task, generator or coroutine is left behind."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LEAVES_EARLY.format(model=model)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
