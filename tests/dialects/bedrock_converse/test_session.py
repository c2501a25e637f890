"""A conversation goes from Anthropic to Converse, to OpenAI and back to Converse."""

import asyncio
import base64

import pytest

from interlingua import (
    Client,
    HttpAdapter,
    Image,
    Message,
    Request,
    RetryPolicy,
    Session,
    Text,
    stream,
    tool,
)
from interlingua.simulator import Simulator, cut, serve_in_thread, text, thinking, tool_call
from interlingua.spec.content import Thinking, ToolCall, ToolResult
from interlingua.spec.request import ToolDefinition

PNG = b"\x89PNG\r\n\x1a\n"
CLAUDE = "claude-sonnet-4-5"
ON_BEDROCK = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
TOOL = ToolDefinition(
    name="get_weather",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}},
)


def answers():
    """Each model thinks, calls the tool, and answers when it has the result."""
    for number in range(4):
        yield thinking(f"Thought {number}.") + tool_call("get_weather", {"city": f"City {number}"})
        yield text(f"Answer {number}.")


async def turn(client, model, history):
    """One turn of the user, with an image, and the round of the tool."""
    question = Message.user((Text("What is the weather there?"), Image(PNG)))
    history = (*history, question)
    settings = {"tools": (TOOL,), "max_tokens": 4000, "on_loss": "content"}
    if "gpt" not in model:
        settings["thinking_budget"] = 2000
    while True:
        answer = await client.complete(Request(model=model, messages=history, **settings))
        history = (*history, answer.message)
        if not answer.tool_calls:
            return history
        (call,) = answer.tool_calls
        result = ToolResult(tool_call_id=call.id, content={"celsius": 7})
        history = (*history, Message(role="tool", content=(result,)))


async def converse(url):
    adapters = {
        "anthropic": HttpAdapter("anthropic", "k", base_url=url),
        "bedrock_converse": HttpAdapter("bedrock_converse", "k", base_url=url),
        "openai": HttpAdapter("openai", "k", base_url=f"{url}/v1"),
    }
    history = ()
    async with Client(adapters) as client:
        for model in (
            f"anthropic:{CLAUDE}",
            f"bedrock_converse:{ON_BEDROCK}",
            "openai:gpt-5.5",
            f"bedrock_converse:{ON_BEDROCK}",
        ):
            history = await turn(client, model, history)
    return history


def test_a_conversation_keeps_tools_images_and_signed_reasoning():
    """The strict simulator refuses nothing, and the last request has all of the conversation."""
    app = Simulator(*answers(), strict=True)
    with serve_in_thread(app) as server:
        history = asyncio.run(converse(server.url))

    statuses = [exchange.status for exchange in app.script.received]
    assert statuses == [200] * 8
    dialects = [exchange.dialect for exchange in app.script.received]
    assert dialects[::2] == [
        *("anthropic_messages", "bedrock_converse", "openai_responses", "bedrock_converse"),
    ]
    body = app.script.received[-1].call.body
    blocks = [block for message in body["messages"] for block in message["content"]]
    images = [block["image"]["source"]["bytes"] for block in blocks if "image" in block]
    assert images == [base64.b64encode(PNG).decode()] * 4
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    results = [block["toolResult"] for block in blocks if "toolResult" in block]
    assert [use["input"]["city"] for use in uses] == [f"City {n}" for n in range(4)]
    assert [each["toolUseId"] for each in results] == [use["toolUseId"] for use in uses]
    assert [each["content"] for each in results] == [[{"json": {"celsius": 7}}]] * 4

    thoughts = [
        block["reasoningContent"]["reasoningText"] for block in blocks if _is_thought(block)
    ]
    made = [part for message in history for part in message.content if type(part) is Thinking]
    signatures = {part.text: part.signature for part in made if part.signature}
    # Those of Claude go back with their signatures, also the one of Anthropic's own API; that of
    # OpenAI only OpenAI can read.
    assert [thought["text"] for thought in thoughts] == ["Thought 0.", "Thought 1.", "Thought 3."]
    assert all(signatures[thought["text"]] == thought["signature"] for thought in thoughts)
    assert [part for message in history for part in message.content if type(part) is ToolCall]


def _is_thought(block):
    return "reasoningContent" in block


def test_thinking_of_converse_goes_back_to_anthropic():
    """The signature that Bedrock returned is what Anthropic's own API gets."""
    app = Simulator(*answers(), strict=True)

    async def run(url):
        adapters = {
            "anthropic": HttpAdapter("anthropic", "k", base_url=url),
            "bedrock_converse": HttpAdapter("bedrock_converse", "k", base_url=url),
        }
        async with Client(adapters) as client:
            history = await turn(client, f"bedrock_converse:{ON_BEDROCK}", ())
            return await turn(client, f"anthropic:{CLAUDE}", history)

    with serve_in_thread(app) as server:
        history = asyncio.run(run(server.url))

    first = next(part for part in history[1].content if type(part) is Thinking)
    body = app.script.received[-1].call.body
    blocks = [block for message in body["messages"] for block in message["content"]]
    thoughts = [each for each in blocks if isinstance(each, dict) and each["type"] == "thinking"]
    assert thoughts[0]["signature"] == first.signature
    assert thoughts[0]["thinking"] == "Thought 0."


# The same with a session, which swaps its model.

ROUTE = (
    f"anthropic:{CLAUDE}",
    f"bedrock_converse:{ON_BEDROCK}",
    "openai:gpt-5.5",
    f"bedrock_converse:{ON_BEDROCK}",
    "openai:gpt-5.5",
    f"anthropic:{CLAUDE}",
)
SIGNATURES = [f"c2lnbmVk{number:04}" for number in range(2 * len(ROUTE))]
"""Two for each turn, in base64."""
SEEN = b"\x89PNG\r\n\x1a\n of the tool"


@tool
def look(city: str):
    """Look out of the window."""
    return [Text(f"{city}: rain"), Image(SEEN, media_type="image/png")]


def session_answers():
    """Each model thinks, calls the tool twice at once, and answers."""
    for number, _ in enumerate(ROUTE):
        calls = tool_call("look", city=f"A{number}") + tool_call("look", city=f"B{number}")
        first, second = SIGNATURES[2 * number : 2 * number + 2]
        yield thinking("Hm.", signature=first) + text(f"Looking {number}.") + calls
        yield thinking("So it is.", signature=second) + text(f"Answer {number}.")


async def swap_through(url, path, *, streamed):
    """One turn with each model, with an image; in the middle the session is saved and loaded."""
    adapters = {
        "anthropic": HttpAdapter("anthropic", "k", base_url=url),
        "bedrock_converse": HttpAdapter("bedrock_converse", "k", base_url=url),
        "openai": HttpAdapter("openai", "k", base_url=f"{url}/v1"),
    }
    options = {"tools": [look], "max_tokens": 8000, "reasoning_effort": "low"}
    async with Client(adapters) as client:
        session = Session(ROUTE[0], client=client, **options)
        for number, model in enumerate(ROUTE):
            if number == 2:
                session.save(path)
                session = Session.load(path, client=client, tools=[look])
            session.swap(model)
            question = [f"What is this {number}?", Image(PNG + bytes([number]))]
            if streamed:
                [_ async for _ in session.stream(question)]
            else:
                await session.send(question)


def signatures_in(body):
    """The signatures in a body, in order; OpenAI's reasoning is encrypted."""
    if isinstance(body, list):
        return [found for item in body for found in signatures_in(item)]
    if not isinstance(body, dict):
        return []
    own = [body[name] for name in ("signature", "encrypted_content") if name in body]
    return own + [found for item in body.values() for found in signatures_in(item)]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_session_swaps_its_model_and_nothing_is_lost(streamed, tmp_path):
    """Tools, images and signed reasoning: each vendor gets its own signatures byte-equal."""
    app = Simulator(*session_answers(), strict=True)
    with serve_in_thread(app) as server:
        asyncio.run(swap_through(server.url, tmp_path / "s.json", streamed=streamed))

    received = app.script.received
    assert [exchange.status for exchange in received] == [200] * 12
    assert [exchange.dialect for exchange in received[::2]] == [
        *("anthropic_messages", "bedrock_converse", "openai_responses"),
        *("bedrock_converse", "openai_responses", "anthropic_messages"),
    ]
    for number, exchange in enumerate(received):
        sent = exchange.request.messages
        turns = range(number // 2 + 1)
        assert [part.data for part in images_of(sent)] == [PNG + bytes([n]) for n in turns]
        cities = [call.arguments["city"] for call in parts_of(sent, ToolCall)]
        done = range((number + 1) // 2)
        assert cities == [f"{letter}{n}" for n in done for letter in "AB"]
        calls = [call.id for call in parts_of(sent, ToolCall)]
        results = parts_of(sent, ToolResult)
        assert [result.tool_call_id for result in results] == calls
        shown = [(result.content[0].text, result.content[1].data) for result in results]
        assert shown == [(f"{city}: rain", SEEN) for city in cities]

    # The last requests to Claude, by each of its two APIs, and to OpenAI, in the middle of a turn.
    for number, own in ((7, (0, 1, 3)), (9, (2, 4)), (11, (0, 1, 3, 5))):
        *made, _ = [SIGNATURES[2 * turn + i] for turn in own for i in (0, 1)]
        assert signatures_in(received[number].call.body) == made


def parts_of(messages, kind):
    return [part for message in messages for part in message.content if type(part) is kind]


def images_of(messages):
    return parts_of([message for message in messages if message.role == "user"], Image)


async def read_stream(url, provider):
    """The events of an answer, which may be asked for twice."""
    adapter = HttpAdapter(provider, "k", base_url=url)
    async with Client({provider: adapter}) as client:
        policy = RetryPolicy(max_retries=1, base_delay=0)
        events = stream(f"{provider}:{ON_BEDROCK}", "Hi.", client=client, retry_policy=policy)
        return [event async for event in events]


@pytest.mark.parametrize("provider", ["bedrock_converse", "bedrock_invoke"])
@pytest.mark.parametrize("place", [0, 1, 12, 60, 100])
def test_a_stream_that_is_cut_before_its_first_content_is_asked_for_again(provider, place):
    """A part of an event of AWS is no page of a proxy, whose error would not be retried."""
    app = Simulator(text("Hello there.") + cut(place), text("Again."))
    with serve_in_thread(app) as server:
        *_, last = asyncio.run(read_stream(server.url, provider))

    assert last.response.text == "Again."
    assert len(app.script.received) == 2


def test_a_conversation_on_the_row_bedrock_goes_through_its_apis():
    """Four APIs behind one name: tools, images and the signed reasoning of Claude are intact."""
    models = (
        *("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-2-lite-v1:0"),
        *("openai.gpt-5.5", "anthropic.claude-sonnet-4-6"),
    )
    app = Simulator(*answers(), strict=True)

    async def run(url):
        history = ()
        async with Client({"bedrock": HttpAdapter("bedrock", "k", base_url=url)}) as client:
            for model in models:
                history = await turn(client, f"bedrock:{model}", history)
        return history

    with serve_in_thread(app) as server:
        history = asyncio.run(run(server.url))
    received = app.script.received
    assert [exchange.status for exchange in received] == [200] * 8
    assert [exchange.dialect for exchange in received[::2]] == [
        *("anthropic_messages", "bedrock_converse", "openai_responses", "anthropic_messages")
    ]
    contents = [message["content"] for message in received[-1].call.body["messages"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    kinds = [block["type"] for block in blocks]
    assert [kinds.count(kind) for kind in ("image", "tool_use", "tool_result")] == [4, 4, 4]
    thoughts = {each["thinking"]: each["signature"] for each in blocks if "thinking" in each}
    made = [part for message in history for part in message.content if type(part) is Thinking]
    signatures = {part.text: part.signature for part in made}
    assert thoughts["Thought 0."] == signatures["Thought 0."]
    assert "Thought 2." not in thoughts  # only OpenAI can read it
