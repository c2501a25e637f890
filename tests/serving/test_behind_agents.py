"""`ClientApplication`: the vendors' clients, with any model behind them."""

import asyncio

import pytest
from google.genai import types as genai_types

from interlingua import AnthropicAdapter, Client, GeminiAdapter, HttpAdapter, OpenAIAdapter
from interlingua.serving import ClientApplication
from interlingua.simulator import (
    Simulator,
    error,
    serve_in_thread,
    signed,
    text,
    thinking,
    tool_call,
    tool_loop,
)
from interlingua.spec.content import Thinking, ToolCall, ToolResult
from interlingua.transport import HttpxTransport
from interlingua.wire.fields import extra_of
from support.vendor_clients import QUESTION, VENDORS, Gemini, connect
from support.vendor_loops import RESULTS, check_loop, looping

WAYS = ("complete", "stream")
KEY = b"a key of this test only"
UPSTREAMS = {
    "openai_chat": ("openai:gpt-5.2", lambda url: OpenAIAdapter(
        api_key="k", base_url=f"{url}/v1", dialect="openai_chat")),
    "openai_responses": ("openai:gpt-5.2", lambda url: OpenAIAdapter(
        api_key="k", base_url=f"{url}/v1")),
    "anthropic_messages": ("anthropic:claude-haiku-4-5", lambda url: AnthropicAdapter(
        api_key="k", base_url=url)),
    "gemini_generate": ("gemini:gemini-2.5-flash", lambda url: GeminiAdapter(
        api_key="k", base_url=url)),
    "bedrock_converse": ("bedrock_converse:us.anthropic.claude-haiku-4-5-20251001-v1:0",
        lambda url: HttpAdapter("bedrock_converse", "k", base_url=url)),
}  # fmt: skip


class Switch:
    """One server for all tests; the application behind it changes."""

    def __init__(self):
        self.app = Simulator()

    async def __call__(self, *asgi):
        await self.app(*asgi)


@pytest.fixture(scope="module")
def stage():
    """An upstream, the program before it, and one client of each vendor."""
    provider, front = Switch(), Switch()
    with serve_in_thread(provider) as upstream, serve_in_thread(front) as gateway:
        clients = {name: connect(name, gateway.url, "any") for name in VENDORS}
        yield provider, front, upstream.url, clients
        for client in clients.values():
            client.close()


def behind(stage, dialect, simulator):
    """Puts this simulator behind the program; returns the client of our library, to be closed."""
    provider, front, url, _ = stage
    provider.app = simulator
    model, make = UPSTREAMS[dialect]
    client = Client({model.partition(":")[0]: make(url)})
    front.app = ClientApplication(client, {"*": model}, secret=KEY)
    return client


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_tool_loop(stage, vendor, upstream, way):
    """Two calls at once, their results, the answer; the upstream gets its own thinking back."""
    simulator = looping()
    client = behind(stage, upstream, simulator)
    agent = VENDORS[vendor](stage[3][vendor])
    asked = getattr(agent, way)()
    agent.give(RESULTS)
    answer = getattr(agent, way)()
    asyncio.run(client.close())

    check_loop(simulator, vendor, upstream, asked, answer)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("vendor", VENDORS)
def test_an_error_of_the_upstream(stage, vendor, way):
    """It reaches the client as an error of its own API, with the upstream's words."""
    simulator = Simulator(error(429, message="Slow down, please.", retry_after=7))
    client = behind(stage, "anthropic_messages", simulator)
    agent = VENDORS[vendor](stage[3][vendor])
    with pytest.raises(Exception, match="Slow down, please"):
        getattr(agent, way)()
    asyncio.run(client.close())


def test_the_upstream_may_use_another_transport(stage):
    """The program does not care how its client connects."""
    client = behind(stage, "anthropic_messages", Simulator(text("Hello.")))
    adapter = AnthropicAdapter(api_key="k", base_url=stage[2], transport=HttpxTransport())
    routes = {"*": "anthropic:claude-haiku-4-5"}
    stage[1].app = ClientApplication(Client({"anthropic": adapter}), routes, secret=KEY)
    answer = VENDORS["openai_chat"](stage[3]["openai_chat"]).complete()
    asyncio.run(client.close())

    assert answer.text == "Hello."


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_chat_of_googles_client(stage, upstream, streamed):
    """Its history keeps each piece of a stream as a turn: the loop has no empty one among them."""
    calls = thinking("I must look.") + text("One moment. ") + tool_call("get_weather", city="Oslo")
    simulator = Simulator(tool_loop(calls, text("Rain.")))
    client = behind(stage, upstream, simulator)
    agent = Gemini(stage[3]["gemini_generate"])
    chat = agent.client.chats.create(model="m", config=agent.config)

    def send(message):
        if not streamed:
            return chat.send_message(message).candidates[0].content.parts
        answers = list(chat.send_message_stream(message))
        return [part for answer in answers for part in answer.candidates[0].content.parts]

    parts = send(QUESTION)
    (call,) = [part.function_call for part in parts if part.function_call]
    result = {"id": call.id, "name": call.name, "response": {"output": "4 C"}}
    answer = send(genai_types.Part(function_response=genai_types.FunctionResponse(**result)))
    asyncio.run(client.close())
    second = simulator.script.requests[1].messages

    assert "".join(part.text or "" for part in answer if not part.thought) == "Rain."
    assert [part for part in parts if part.text == "" and not part.thought] == []
    assert isinstance(second[-1].content[-1], ToolResult)
    said = [part for message in second[1:-1] for part in message.content]
    assert isinstance(said[-1], ToolCall)
    assert said[-1].id == second[-1].content[-1].tool_call_id
    signed = [part for part in said if isinstance(part, Thinking) and (part.signature or part.data)]
    if upstream in ("anthropic_messages", "openai_responses"):
        assert len(signed) == 1


SIGNED = "+/+/8PHy8/T1"
"""A signature that is written with other letters in the alphabet for URLs."""


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_googles_chat_returns_signatures_in_another_form(stage, upstream, streamed):
    """In the alphabet for URLs; a model of any vendor gets its own as it made it, each turn."""
    look = thinking("I must look.", signature=SIGNED)
    look += signed(text("One moment. ") + tool_call("get_weather", city="Oslo"), SIGNED)
    simulator = Simulator(tool_loop(look, thinking("So.", signature=SIGNED) + text("Rain.")))
    client = behind(stage, upstream, simulator)
    agent = Gemini(stage[3]["gemini_generate"])
    chat = agent.client.chats.create(model="m", config=agent.config)

    def send(message):
        if not streamed:
            return chat.send_message(message).candidates[0].content.parts
        answers = list(chat.send_message_stream(message))
        return [part for answer in answers for part in answer.candidates[0].content.parts]

    for _ in range(3):
        parts = send(QUESTION)
        (call,) = [part.function_call for part in parts if part.function_call]
        result = {"id": call.id, "name": call.name, "response": {"output": "4 C"}}
        send(genai_types.Part(function_response=genai_types.FunctionResponse(**result)))
    asyncio.run(client.close())
    made = {SIGNED, SIGNED.replace("+", "-").replace("/", "_")}
    own = {SIGNED} if upstream != "gemini_generate" else made  # Google reads both alphabets
    last = [part for message in simulator.script.requests[-1].messages for part in message.content]
    thoughts = [part.signature or part.data for part in last if isinstance(part, Thinking)]
    calls = [extra_of(part, upstream) for part in last if isinstance(part, ToolCall)]

    assert len(calls) == 3
    if upstream in ("anthropic_messages", "openai_responses"):
        assert [each for each in thoughts if each] == [SIGNED] * 5
    elif upstream == "gemini_generate":
        assert all(fields["thoughtSignature"] in own for fields in calls)
