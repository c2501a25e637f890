"""An answer has the time, the ids and all fields of the vendor's own, whoever answered."""

import json
import time

import pytest
from anthropic.types import Message
from anthropic.types import RawMessageStartEvent as MessageStart
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from interlingua.serving.answer_stamp import stamp_result
from interlingua.simulator import Simulator, serve_in_thread, text, thinking, tool_call
from interlingua.spec.modalities.images import ImageResult
from support.gateways import gateway
from support.simulated import DIALECTS, MODELS, adapters
from support.wire_requests import ask

CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
GOOGLE = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
RESPONSES = {
    "input": "Hi",
    "instructions": "Be brief.",
    "max_output_tokens": 99,
    "metadata": {"who": "me"},
    "parallel_tool_calls": False,
    "prompt_cache_key": "cache-1",
    "reasoning": {"effort": "low"},
    "safety_identifier": "user-1",
    "service_tier": "flex",
    "store": False,
    "temperature": 0.5,
    "text": {"verbosity": "low"},
    "tool_choice": "auto",
    "tools": [{"type": "function", "name": "look", "parameters": SCHEMA}],
    "top_p": 0.9,
    "truncation": "auto",
    "user": "user-2",
}
ECHOED = {**RESPONSES, "text": {"format": {"type": "text"}, "verbosity": "low"}}
every_upstream = pytest.mark.parametrize("upstream", DIALECTS)


@pytest.fixture(scope="module")
def front():
    turn = thinking("Hm.") + text("Hello.") + tool_call("look", a="b")
    with serve_in_thread(Simulator(lambda _: turn)) as peer, gateway(adapters(peer.url)) as front:
        yield front


def name_of(upstream):
    return f"{upstream}:{MODELS[upstream]}"


def events_of(reply):
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def is_now(seconds):
    return type(seconds) is int and abs(time.time() - seconds) < 600


@every_upstream
def test_chat_whole(front, upstream):
    """The SDK's type accepts it, with the time, an id and all fields."""
    reply = ask(front, "/v1/chat/completions", {**CHAT, "model": name_of(upstream)})
    answer = ChatCompletion.model_validate(reply.json)

    assert is_now(answer.created)
    assert answer.id.startswith("chatcmpl-")
    assert answer.service_tier == "default"
    assert {"system_fingerprint", "usage"} <= reply.json.keys()
    assert reply.json["choices"][0]["logprobs"] is None
    assert reply.json["choices"][0]["message"]["annotations"] == []
    assert answer.usage.prompt_tokens_details.cached_tokens == 0
    assert answer.usage.completion_tokens_details.accepted_prediction_tokens == 0


@every_upstream
def test_chat_stream(front, upstream):
    """Each chunk has the same id and time, and null as usage but for the last."""
    body = {**CHAT, "model": name_of(upstream), "stream": True}
    body["stream_options"] = {"include_usage": True}
    sent = events_of(ask(front, "/v1/chat/completions", body))
    chunks = [ChatCompletionChunk.model_validate(chunk) for chunk in sent]

    assert len({(chunk.id, chunk.created) for chunk in chunks}) == 1
    assert is_now(chunks[0].created)
    assert chunks[0].id.startswith("chatcmpl-")
    assert [chunk["usage"] for chunk in sent[:-1]] == [None] * (len(sent) - 1)
    assert sent[-1]["usage"]["total_tokens"] > 0
    assert {chunk.service_tier for chunk in chunks} == {"default"}


@every_upstream
def test_responses_whole(front, upstream):
    """The SDK's type accepts it, and what was asked is repeated."""
    reply = ask(front, "/v1/responses", {**RESPONSES, "model": name_of(upstream)})
    answer = Response.model_validate(reply.json)

    assert is_now(reply.json["created_at"])
    assert answer.id.startswith("resp_")
    assert_repeated(reply.json)


@every_upstream
def test_responses_stream(front, upstream):
    """The first events and the last have the same id and time, and repeat what was asked."""
    body = {**RESPONSES, "model": name_of(upstream), "stream": True}
    events = events_of(ask(front, "/v1/responses", body))
    bodies = [event["response"] for event in events if "response" in event]

    assert [event["type"].rpartition(".")[2] for event in events[:2]] == ["created", "in_progress"]
    assert len(bodies) == 3
    assert len({(body["id"], body["created_at"]) for body in bodies}) == 1
    for each in bodies:
        Response.model_validate(each)
        assert is_now(each["created_at"])
        assert_repeated(each)
    assert {item["id"] for item in bodies[-1]["output"]} == {
        event["item"]["id"] for event in events if event["type"] == "response.output_item.done"
    }


def assert_repeated(body):
    """The fields of the request are in the response; the server chooses the tier."""
    strict = body["tools"][0]["strict"]  # a server of the same dialect has an opinion
    tools = [{**RESPONSES["tools"][0], "description": None, "strict": strict}]
    reasoning = {"effort": "low", "summary": None}
    expected = {**ECHOED, "tools": tools, "reasoning": reasoning}
    for name in ("input", "service_tier"):
        del expected[name]
    if body["model"] == MODELS["openai"]:  # it takes neither, and says so
        del expected["temperature"], expected["top_p"]

    assert {name: body[name] for name in expected} == expected
    assert body["service_tier"] in ("auto", "default", "flex")


@every_upstream
def test_messages(front, upstream):
    """The SDK's types accept it, whole and streamed; its usage has all counts."""
    body = {**CHAT, "max_tokens": 99, "model": name_of(upstream)}
    whole = ask(front, "/v1/messages", body).json
    first, *_, late, _ = events_of(ask(front, "/v1/messages", {**body, "stream": True}))
    answer = Message.model_validate(whole)
    start = MessageStart.model_validate(first)

    assert answer.id.startswith("msg_")
    assert start.message.id.startswith("msg_")
    for usage in (whole["usage"], first["message"]["usage"]):
        assert usage["service_tier"] == "standard"
        assert "ephemeral_1h_input_tokens" in usage["cache_creation"]
        assert {"cache_creation_input_tokens", "cache_read_input_tokens"} <= usage.keys()
    assert {"input_tokens", "cache_read_input_tokens"} <= late["usage"].keys()


@every_upstream
def test_gemini(front, upstream):
    """The SDK's type accepts it, with an id and tokens by modality; the API sends no time."""
    path = f"/v1beta/models/{name_of(upstream)}"
    whole = ask(front, f"{path}:generateContent", GOOGLE).json
    chunks = events_of(ask(front, f"{path}:streamGenerateContent?alt=sse", GOOGLE))
    answer = GenerateContentResponse.model_validate(whole)

    assert answer.response_id
    assert answer.usage_metadata.prompt_tokens_details[0].modality.value == "TEXT"
    assert len({chunk["responseId"] for chunk in chunks}) == 1
    assert "promptTokensDetails" in chunks[-1]["usageMetadata"]


def test_two_answers_have_two_ids(front):
    """Also if the upstream sends the same one."""
    body = {**CHAT, "model": name_of("anthropic")}
    ids = {ask(front, "/v1/chat/completions", body).json["id"] for _ in range(2)}

    assert len(ids) == 2


def test_the_id_of_the_upstream(front):
    """In a header, whole and streamed, beside our own."""
    for stream in (False, True):
        body = {**CHAT, "model": name_of("anthropic"), "stream": stream}
        reply = ask(front, "/v1/chat/completions", body)

        assert reply.headers["x-interlingua-upstream-request-id"].startswith("req_")
        assert reply.headers["x-request-id"] != reply.headers["x-interlingua-upstream-request-id"]


def test_an_image_has_a_time():
    """Where its provider does not say when it was made."""
    assert stamp_result(ImageResult(), lambda: 7.5).created_at == 7
    assert stamp_result(ImageResult(created_at=3), lambda: 7.5).created_at == 3
    assert stamp_result("a text") == "a text"
