"""
Reasoning state through clients that lose all places of it but one.

Each way of losing was seen with a real client. Over every upstream, whole and streamed, the model
gets its state back as if its own client had sent it.
"""

import asyncio
import json

import pytest

from interlingua import (
    AnthropicAdapter,
    Client,
    GeminiAdapter,
    HttpAdapter,
    OpenAIAdapter,
    Tool,
    dialects,
)
from interlingua.conformance.laws import fold
from interlingua.serving import ClientApplication, KeptResponses
from interlingua.simulator import Simulator, signed, text, thinking, tool_call, tool_loop
from interlingua.spec.content import Text, Thinking, ToolCall, ToolResult
from interlingua.spec.contracts import HttpRequest
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.stores import MemoryStore
from interlingua.transport import AsgiTransport
from interlingua.wire.fields import extra_of
from interlingua.wire.seal_marks import MARK, split_id

KEY = b"a key of this test only"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
ASK = "Weather in Oslo and Rome?"
UPSTREAMS = {
    "openai_chat": ("openai:gpt-5.2", lambda t: OpenAIAdapter(
        api_key="k", transport=t, dialect="openai_chat")),
    "openai_responses": ("openai:gpt-5.2", lambda t: OpenAIAdapter(api_key="k", transport=t)),
    "anthropic_messages": ("anthropic:claude-haiku-4-5", lambda t: AnthropicAdapter(
        api_key="k", transport=t)),
    "gemini_generate": ("gemini:gemini-2.5-flash", lambda t: GeminiAdapter(
        api_key="k", transport=t)),
    "bedrock_converse": ("bedrock_converse:us.anthropic.claude-haiku-4-5-20251001-v1:0",
        lambda t: HttpAdapter("bedrock_converse", "k", base_url="http://aws", transport=t)),
}  # fmt: skip
TURN = (
    thinking("I must look.", signature="AAEC")
    + text("One moment. ")
    + signed(tool_call("get_weather", city="Oslo"), "AwQF")
    + thinking("And there.", signature="BgcI")
    + signed(tool_call("get_weather", city="Rome"), "CQoL")
)


def frames_of(body):
    """The JSON of the frames of a stream."""
    lines = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


class Chat:
    """A client of Chat Completions, which keeps only some of the fields of a message."""

    path = "/v1/chat/completions"
    losses = ("nothing", "all but details", "all but calls", "all but ids")

    def first(self):
        tool = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
        return {"model": "m", "messages": [{"role": "user", "content": ASK}], "tools": [tool]}

    def whole(self, body):
        return body["choices"][0]["message"]

    def streamed(self, frames):
        message = {"role": "assistant", "content": "", "reasoning_details": []}
        calls = {}
        for delta in [choice["delta"] for frame in frames for choice in frame["choices"]]:
            message["content"] += delta.get("content") or ""
            message["reasoning_details"] += delta.get("reasoning_details") or []
            for piece in delta.get("tool_calls") or []:
                call = calls.setdefault(piece["index"], {"function": {"arguments": ""}})
                function = piece.pop("function", {})
                arguments = call["function"]["arguments"] + function.pop("arguments", "")
                call["function"].update(function, arguments=arguments)
                call.update(piece)
        return {**message, "tool_calls": list(calls.values())}

    def keep(self, message, loss):
        kept = {"role": "assistant", "content": message["content"]}
        kept["tool_calls"] = [dict(call) for call in message["tool_calls"]]
        if loss in ("nothing", "all but details"):
            kept["reasoning_details"] = message.get("reasoning_details", [])
        for call in kept["tool_calls"]:
            if loss in ("all but details", "all but ids"):
                call.pop("extra_content", None)
            if loss in ("all but details", "all but calls"):
                call["id"] = split_id(call["id"])[0]
        return kept

    def second(self, message):
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "rain"}
            for call in message["tool_calls"]
        ]
        asked = self.first()
        return {**asked, "messages": [*asked["messages"], message, *results]}


class Messages:
    """A client of Messages, which reads signatures only where Claude Code does."""

    path = "/v1/messages"
    losses = ("nothing", "signatures of starts", "thinking without text")

    def first(self):
        tools = [{"name": "get_weather", "input_schema": SCHEMA}]
        messages = [{"role": "user", "content": ASK}]
        return {"model": "m", "max_tokens": 2000, "messages": messages, "tools": tools}

    def whole(self, body):
        return [(block, block.get("signature")) for block in body["content"]]

    def streamed(self, frames):
        blocks = []
        for frame in frames:
            if frame["type"] == "content_block_start":
                blocks.append([frame["content_block"], None])
            elif frame["type"] == "content_block_delta":
                block, delta = blocks[-1], frame["delta"]
                if delta["type"] == "signature_delta":
                    block[1] = delta["signature"]
                elif delta["type"] == "input_json_delta":
                    block[0]["input"] = json.loads(delta["partial_json"] or "{}")
                else:
                    name = delta["type"].removesuffix("_delta")
                    block[0][name] += delta[name]
        return blocks

    def keep(self, blocks, loss):
        kept = []
        for block, signature in blocks:
            known = signature if loss != "nothing" else signature or block.get("signature")
            is_thought = block["type"] == "thinking"
            if loss == "thinking without text" and is_thought and not block["thinking"]:
                continue  # as pi does
            kept.append({**block, "signature": known or ""} if is_thought else block)
        return kept

    def second(self, blocks):
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "rain"}
            for block in blocks
            if block["type"] == "tool_use"
        ]
        turns = [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
        asked = self.first()
        return {**asked, "messages": asked["messages"] + turns}


class Responses:
    """A client of Responses, which sends its items back."""

    path = "/v1/responses"
    losses = ("nothing",)

    def first(self):
        tools = [{"type": "function", "name": "get_weather", "parameters": SCHEMA}]
        return {"model": "m", "input": [{"role": "user", "content": ASK}], "tools": tools}

    def whole(self, body):
        return body["output"]

    def streamed(self, frames):
        return [frame["item"] for frame in frames if frame["type"] == "response.output_item.done"]

    def keep(self, items, _):
        return items

    def second(self, items):
        results = [
            {"type": "function_call_output", "call_id": item["call_id"], "output": "rain"}
            for item in items
            if item["type"] == "function_call"
        ]
        asked = self.first()
        return {**asked, "input": asked["input"] + items + results}


class Gemini:
    """A client of Gemini, which keeps or drops thoughts."""

    path = "/v1beta/models/m:generateContent"
    losses = ("nothing", "thoughts", "signatures of others")

    def first(self):
        function = {"name": "get_weather", "parametersJsonSchema": SCHEMA}
        contents = [{"role": "user", "parts": [{"text": ASK}]}]
        return {"contents": contents, "tools": [{"functionDeclarations": [function]}]}

    def whole(self, body):
        return body["candidates"][0]["content"]["parts"]

    def streamed(self, frames):
        contents = [frame["candidates"][0].get("content", {}) for frame in frames]
        return [part for content in contents for part in content.get("parts", [])]

    def keep(self, parts, loss):
        if loss == "thoughts":
            return [part for part in parts if not part.get("thought")]
        if loss == "signatures of others":
            return [
                {n: v for n, v in part.items() if n != "thoughtSignature" or part.get("thought")}
                for part in parts
            ]
        return parts

    def second(self, parts):
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        results = [
            {"functionResponse": {**call, "args": None, "response": {"output": "rain"}}}
            for call in calls
        ]
        for result in results:
            del result["functionResponse"]["args"]
        turns = [{"role": "model", "parts": parts}, {"role": "user", "parts": results}]
        asked = self.first()
        return {**asked, "contents": asked["contents"] + turns}


CLIENTS = {
    "openai_chat": Chat(),
    "openai_responses": Responses(),
    "anthropic_messages": Messages(),
    "gemini_generate": Gemini(),
}
CASES = [
    (client, loss, upstream)
    for client, kind in CLIENTS.items()
    for loss in kind.losses
    for upstream in UPSTREAMS
    if client != upstream
]


async def post(app, client, body, *, stream):
    """The status, the headers and the body of a reply."""
    path = client.path
    if stream:
        body = {**body, "stream": True} if "contents" not in body else body
        path = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    request = HttpRequest(
        url=f"http://gateway{path}", headers=headers, body=json.dumps(body).encode()
    )
    async with AsgiTransport(app).send(request) as reply:
        return reply.status, reply.headers, await reply.read()


def loop(client, loss, upstream, *, stream, turn=TURN, keep=None, kept=None):
    """A tool loop of this client; returns the requests to the model, and the first reply."""
    kind, simulator = CLIENTS[client], Simulator(tool_loop(turn, text("Rain.")))
    model, make = UPSTREAMS[upstream]

    async def run():
        provider = model.partition(":")[0]
        ours = Client({provider: make(AsgiTransport(simulator))})
        app = ClientApplication(ours, {"*": model, "default": model}, secret=KEY, kept=kept)
        status, headers, body = await post(app, kind, kind.first(), stream=stream)
        assert status == 200, body
        said = kind.streamed(frames_of(body)) if stream else kind.whole(json.loads(body))
        returned = (keep or kind.keep)(said, loss)
        status, _, last = await post(app, kind, kind.second(returned), stream=stream)
        assert status == 200, last
        await ours.close()
        return headers, body

    headers, body = asyncio.run(run())
    return simulator.script.requests, headers, body


def state_of(upstream, messages):
    """What the model must get back, in its order, with what it is before."""
    field = dialects.get(upstream).FACTS.history.signature_field
    found = []
    for part in [part for message in messages for part in message.content]:
        own = extra_of(part, upstream)
        if isinstance(part, Thinking) and (part.signature or part.data):
            found.append((part.text, part.signature, part.data, own.get("id")))
        elif isinstance(part, ToolCall):
            found.append((part.id, part.arguments, own.get(field) if field else None))
        elif isinstance(part, ToolResult):
            found.append(part.tool_call_id)
    return found


def expected(upstream, *, stream, turn=TURN):
    """The state as a client of the model's own dialect returns it."""
    if upstream not in CLIENTS:
        return state_of(upstream, direct_loop(upstream, turn, stream=stream))
    (_, second), _, _ = loop(upstream, "nothing", upstream, stream=stream, turn=turn)
    return state_of(upstream, second.messages)


def direct_loop(upstream, turn, *, stream):
    """A tool loop without a gateway; returns the messages of its second request."""
    simulator = Simulator(tool_loop(turn, text("Rain.")))
    model, make = UPSTREAMS[upstream]
    tools = [Tool(name="get_weather", parameters=SCHEMA)]

    async def run():
        adapter = make(AsgiTransport(simulator))
        async with Client({model.partition(":")[0]: adapter}) as client:
            first = Request(model=model, messages=ASK, tools=tools)
            if stream:
                answer = fold([event async for event in client.stream(first)])
            else:
                answer = await client.complete(first)
            calls = [part for part in answer.message.content if isinstance(part, ToolCall)]
            results = [ToolResult(tool_call_id=call.id, content="rain") for call in calls]
            messages = (*first.messages, answer.message, Message(role="tool", content=results))
            await client.complete(Request(model=model, messages=messages, tools=tools))

    asyncio.run(run())
    return simulator.script.requests[-1].messages


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("client", "loss", "upstream"), CASES)
def test_the_model_gets_its_state_back(client, loss, upstream, stream):
    """Whatever one place of it the client returns, or all of them: nothing is lost or doubled."""
    (_, second), _, _ = loop(client, loss, upstream, stream=stream)

    assert state_of(upstream, second.messages) == expected(upstream, stream=stream)
    words = [p.text for m in second.messages[1:] for p in m.content if isinstance(p, Text)]
    assert "".join(words) == "One moment. "
    assert MARK not in str(second)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", ["anthropic_messages", "openai_responses", "bedrock_converse"])
@pytest.mark.parametrize(
    ("client", "loss"), [(client, loss) for client, kind in CLIENTS.items() for loss in kind.losses]
)
def test_two_thoughts_before_one_call(client, loss, upstream, stream):
    """The call carries both: each is restored once, also where each has a place of its own."""
    first, second = (
        thinking(word, signature=mark) for word, mark in [("A", "AAEC"), ("B", "BgcI")]
    )
    turn = first + second + tool_call("get_weather", city="Oslo")
    (_, asked), _, _ = loop(client, loss, upstream, stream=stream, turn=turn)

    assert state_of(upstream, asked.messages) == expected(upstream, stream=stream, turn=turn)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "upstream", ["anthropic_messages", "openai_responses", "gemini_generate", "bedrock_converse"]
)
def test_only_the_results_come_back(upstream, stream):
    """The model sees its own ids, also in results whose calls the client has cut off."""

    def keep(message, _):
        return {"role": "assistant", "content": "Gone.", "tool_calls": message["tool_calls"]}

    (_, second), _, _ = loop("openai_chat", "nothing", upstream, stream=stream, keep=keep)
    calls = [part for m in second.messages for part in m.content if isinstance(part, ToolCall)]
    results = [part for m in second.messages for part in m.content if isinstance(part, ToolResult)]

    assert [call.id for call in calls] == [result.tool_call_id for result in results]
    assert all(len(call.id) < 64 for call in calls)


LARGE = "QUJD" + "".join(f"{(i * i * 7919) % 65521:04x}" for i in range(400))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("client", "loss", "upstream"),
    [
        ("openai_chat", "all but ids", "anthropic_messages"),
        ("openai_chat", "all but ids", "openai_responses"),
        ("anthropic_messages", "thinking without text", "openai_responses"),
    ],
)
def test_large_state_is_kept_under_a_reference(client, loss, upstream, stream):
    """Where the gateway keeps responses, an id refers to a state that is too large for it."""
    first, second = (
        thinking(word, signature=f"{mark}{LARGE}") for word, mark in [("A", "AAEC"), ("B", "BgcI")]
    )
    turn = first + tool_call("get_weather", city="Oslo")
    turn += second + tool_call("get_weather", city="Rome")
    kept = KeptResponses(MemoryStore())
    given = {"stream": stream, "turn": turn}
    (_, asked), headers, body = loop(client, loss, upstream, kept=kept, **given)
    (_, lost), _, _ = loop(client, loss, upstream, **given)

    assert state_of(upstream, asked.messages) == expected(upstream, **given)
    assert LARGE not in str(lost)
    assert "x-interlingua-warnings" not in headers or stream
    assert b"kept" in body


def test_a_reference_of_another_caller_is_none():
    """What is kept for one caller restores nothing for another; so does what has ended."""
    turn = thinking("A", signature=LARGE) + tool_call("get_weather", city="Oslo")
    store = MemoryStore()
    kept = KeptResponses(store)
    (_, mine), _, _ = loop(
        "openai_chat", "all but ids", "anthropic_messages", stream=False, turn=turn, kept=kept
    )
    names = [key for key in store._values if "seal/" in key]
    other = asyncio.run(kept.of_caller("other").load_seals([names[0].rpartition("/")[2]]))

    assert LARGE in str(mine)
    assert len(names) == 1
    assert other.known == {}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_state_that_no_id_can_carry_is_told(stream):
    """An id has at most 512 characters; a larger state is in the other places, with a warning."""
    large = LARGE
    turn = thinking("Long.", signature=large) + tool_call("get_weather", city="Oslo")
    client, upstream = "openai_chat", "anthropic_messages"
    (_, lost), headers, body = loop(client, "all but ids", upstream, stream=stream, turn=turn)
    (_, kept), _, _ = loop(client, "all but calls", upstream, stream=stream, turn=turn)

    assert large not in str(lost)
    assert large in str(kept)
    if not stream:  # the headers of a stream leave before its calls are known
        assert headers["x-interlingua-warnings"] == "state_not_carried"
        (call,) = json.loads(body)["choices"][0]["message"]["tool_calls"]
        assert len(call["id"]) < 64


@pytest.mark.parametrize(
    "upstream", ["anthropic_messages", "openai_responses", "gemini_generate", "bedrock_converse"]
)
def test_ids_have_the_letters_that_clients_accept(upstream):
    """An id with state is of letters, digits, `_` and `-`, and at most 512 of them."""
    _, _, body = loop("openai_chat", "nothing", upstream, stream=False)
    calls = json.loads(body)["choices"][0]["message"]["tool_calls"]

    assert any(split_id(call["id"])[1] for call in calls)
    for call in calls:
        assert call["id"].replace("_", "").replace("-", "").isalnum()
        assert len(call["id"]) <= 512


@pytest.mark.parametrize("upstream", ["openai_responses", "gemini_generate", "openai_chat"])
def test_signatures_are_in_deltas(upstream):
    """No `content_block_start` of a Messages stream has a signature: Claude Code loses it there."""
    _, _, body = loop("anthropic_messages", "nothing", upstream, stream=True)
    starts = [f["content_block"] for f in frames_of(body) if f["type"] == "content_block_start"]

    assert [block for block in starts if block.get("signature")] == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", ["openai_responses", "gemini_generate", "anthropic_messages"])
def test_a_seal_is_no_thinking_without_text(upstream, stream):
    """Nothing that looks like a thought comes after an answer, as in the streams of vendors."""
    turn = thinking("Hm.", signature="AAEC") + signed(text("Hello."), "AwQF")
    _, _, body = loop("openai_chat", "nothing", upstream, stream=stream, turn=turn + TURN)
    choices = [
        c for each in (frames_of(body) if stream else [json.loads(body)]) for c in each["choices"]
    ]
    said = [choice.get("delta") or choice.get("message") or {} for choice in choices]

    assert [each for each in said if each.get("reasoning_content") == ""] == []
    assert any(each.get("reasoning_details") for each in said)


def test_a_seal_does_not_hold_a_text_back():
    """The first piece of a text of a Gemini stream has the seal, and is sent as it comes."""
    turn = thinking("Hm.", signature="AAEC") + text("One two three four five six seven.")
    _, _, body = loop("gemini_generate", "nothing", "anthropic_messages", stream=True, turn=turn)
    parts = [p for p in CLIENTS["gemini_generate"].streamed(frames_of(body)) if "thought" not in p]

    assert len(parts) > 2
    assert parts[0]["thoughtSignature"].startswith(MARK)
    assert all("thoughtSignature" not in part for part in parts[1:])


def test_what_was_not_unsealed_is_in_no_request():
    """A seal in an id or in a field of a call is removed before a model sees it."""
    _, _, body = loop("openai_chat", "nothing", "gemini_generate", stream=False)
    call = CLIENTS["openai_chat"].second(json.loads(body)["choices"][0]["message"])
    chat = dialects.get("openai_chat")
    messages = chat.decode_request(dialects.WireCall(body=call)).messages
    asked = Request(model="m", messages=(*messages, Message.user("And now?")))
    for name in UPSTREAMS:
        assert MARK not in json.dumps(dialects.get(name).encode_request(asked).body)
