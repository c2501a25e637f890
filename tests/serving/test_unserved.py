"""What only the vendor's own server can do is refused in plain words, never ignored."""

import asyncio
import json

import pytest

from interlingua import AnthropicAdapter, Client, dialects
from interlingua.serving import ClientApplication
from interlingua.simulator import Simulator, text
from interlingua.spec.contracts import HttpRequest
from interlingua.transport import AsgiTransport

CHAT = {"model": "any", "messages": [{"role": "user", "content": "Hi"}]}
RESPONSES = {"model": "any", "input": [{"role": "user", "content": "Hi"}]}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
MESSAGES = {**CHAT, "max_tokens": 9}
THREAD = {"type": "continue", "previous_message_id": "msg_1"}
ITEM = {"type": "item_reference", "id": "msg_1"}
REFUSED = [
    ("/v1/chat/completions", {**CHAT, "n": 2}, "`n`"),
    ("/v1/chat/completions", {**CHAT, "n": 2, "stream": True}, "`n`"),
    ("/v1/responses", {**RESPONSES, "background": True}, "`background`"),
    ("/v1/responses", {**RESPONSES, "background": True, "stream": True}, "`background`"),
    ("/v1/responses", {**RESPONSES, "previous_response_id": "r"}, "`previous_response_id`"),
    ("/v1/responses", {**RESPONSES, "conversation": {"id": "c"}}, "`conversation`"),
    ("/v1/responses", {**RESPONSES, "input": [*RESPONSES["input"], ITEM]}, "`item_reference`"),
    ("/v1/responses/input_tokens", {**RESPONSES, "conversation": "c"}, "`conversation`"),
    ("/v1/messages", {**MESSAGES, "thread": {"type": "create"}}, "`thread`"),
    ("/v1/messages", {**MESSAGES, "thread": THREAD, "stream": True}, "`thread`"),
    ("/v1beta/models/any:generateContent",
     {**GEMINI, "generationConfig": {"candidateCount": 2}}, "`candidateCount`"),
    ("/v1beta/models/any:streamGenerateContent?alt=sse",
     {**GEMINI, "generation_config": {"candidate_count": 2}}, "`candidateCount`"),
]  # fmt: skip
SERVED = [
    ("/v1/chat/completions", {**CHAT, "n": 1}),
    ("/v1/chat/completions", {**CHAT, "n": None}),
    ("/v1/responses", {**RESPONSES, "background": False, "previous_response_id": None}),
    ("/v1/responses", {**RESPONSES, "input": "Hi", "conversation": None}),
    ("/v1/messages", {**MESSAGES, "thread": None}),
    (
        "/v1beta/models/any:generateContent",
        {**GEMINI, "generationConfig": {"candidateCount": 1}},
    ),
]


def post(path, body):
    """The status and the body of the reply to a request, and the requests to the model."""
    simulator = Simulator(text("Hello."))

    async def run():
        adapter = AnthropicAdapter(api_key="k", transport=AsgiTransport(simulator))
        client = Client({"anthropic": adapter})
        app = ClientApplication(client, {"default": "anthropic:claude-haiku-4-5"})
        data = json.dumps(body).encode()
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
        request = HttpRequest(url=f"http://gateway{path}", headers=headers, body=data)
        async with AsgiTransport(app).send(request) as reply:
            answer = reply.status, await reply.read()
        await client.close()
        return answer

    return *asyncio.run(run()), simulator.script.requests


@pytest.mark.parametrize(("path", "body", "words"), REFUSED)
def test_what_cannot_be_done_is_refused(path, body, words):
    """The client gets 400 in its own form, which names the field; no model is asked."""
    status, answer, asked = post(path, body)
    error = json.loads(answer)["error"]

    assert status == 400
    assert words in error["message"]
    assert error.get("type", "invalid_request_error") == "invalid_request_error"
    assert error.get("status", "INVALID_ARGUMENT") == "INVALID_ARGUMENT"
    assert asked == ()


def test_a_thread_is_refused_so_that_the_sdk_sends_the_conversation():
    """Anthropic's SDKs look for this code, and then send every message themselves."""
    _, answer, _ = post("/v1/messages", {**MESSAGES, "thread": {"type": "create"}})

    details = json.loads(answer)["error"]["details"]
    assert details == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


@pytest.mark.parametrize(("path", "body"), SERVED)
def test_the_usual_values_are_served(path, body):
    """A client may say that it wants what there is."""
    status, answer, _ = post(path, body)

    assert (status, b"Hello." in answer) == (200, True)


def test_every_message_is_two_sentences_or_more():
    """What is not done, and what to send instead."""
    facts = [dialects.get(name).serve.SERVER.unserved for name in dialects.names()]

    for each in [each for unserved in facts for each in unserved]:
        assert each.message.endswith(".")
        assert each.message.count(". ") >= 1
