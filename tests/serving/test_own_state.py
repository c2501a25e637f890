"""
Reasoning state of a model through a client of its own dialect, where clients lose the field of it.

opencode and Qwen Code return no `reasoning_details`, but every client returns the ids of calls.
"""

import json

import pytest

from interlingua import dialects
from interlingua.serving import SealedState
from interlingua.spec.content import Text, Thinking, ToolCall, ToolResult
from interlingua.spec.contracts import WireCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.streams.accumulate import events_from_response

CHAT = dialects.get("openai_chat")
ASKED = Request(model="m", messages="Weather?")
FORMS = {
    "encrypted": ("", {"type": "reasoning.encrypted", "data": "AAEC", "index": 0}),
    "signed": ("Hm.", {"type": "reasoning.text", "text": "Hm.", "signature": "AAEC", "index": 0}),
}


def thought(form):
    text, detail = FORMS[form]
    fields = {"~fields": ["reasoning"]} if text else {}
    return Thinking(text=text, extra={"openai_chat": {**fields, "reasoning_details": [detail]}})


def answer(*parts):
    message = Message(role="assistant", content=parts)
    reason = FinishReason(reason="tool_calls")
    return Response(id="r", model="m", message=message, finish_reason=reason, usage=Usage())


def sealed():
    facts = CHAT.FACTS
    return SealedState(b"a key of this test only", client=facts, upstream=facts, model="m")


def returned(body, lose):
    """The request that a client makes of an answer, after it has lost these fields."""
    message = {k: v for k, v in body["choices"][0]["message"].items() if k not in lose}
    message = {k: v for k, v in message.items() if v is not None}
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "4 C"}
    ask = {"role": "user", "content": "Weather?"}
    wire = {"model": "m", "messages": [ask, message, result]}
    return CHAT.decode_request(WireCall(path="/v1/chat/completions", body=wire))


LOSSES = {
    "nothing": (),
    "details": ("reasoning_details",),
    "all thinking": ("reasoning_details", "reasoning", "reasoning_content"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_state_comes_back_once(form, loss, stream):
    """It is that of the model, byte by byte, in one thought, and the ids are those of the model."""
    state = sealed()
    response = answer(thought(form), Text(text="So. "), ToolCall(id="c1", name="f", arguments={}))
    if stream:
        body = folded(state.encoder(CHAT.stream_encoder(ASKED)), response)
    else:
        body = CHAT.encode_response(state.seal_response(response), ASKED)
    request, warnings = state.unseal_request(returned(json.loads(json.dumps(body)), LOSSES[loss]))

    _, said, result = request.messages
    thoughts = [part for part in said.content if isinstance(part, Thinking)]
    details = [each.extra["openai_chat"]["reasoning_details"] for each in thoughts]
    assert details == [[FORMS[form][1]]]
    assert [call.id for call in said.tool_calls] == ["c1"]
    assert [part.tool_call_id for part in result.content if isinstance(part, ToolResult)] == ["c1"]
    assert warnings == ()


def folded(encoder, response):
    """The message that a client makes of a stream."""
    frames = [frame for event in events_from_response(response) for frame in encoder.feed(event)]
    frames += encoder.finish()
    message = {"role": "assistant", "content": "", "tool_calls": []}
    for frame in frames:
        for choice in [] if frame.data == "[DONE]" else json.loads(frame.data)["choices"]:
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            for name in ("reasoning", "reasoning_content"):
                if delta.get(name):
                    message[name] = message.get(name, "") + delta[name]
            if delta.get("reasoning_details"):
                message.setdefault("reasoning_details", []).extend(delta["reasoning_details"])
            for piece in delta.get("tool_calls") or ():
                if piece.get("id"):
                    message["tool_calls"].append({**piece, "type": "function"})
                elif piece["function"].get("arguments"):
                    message["tool_calls"][-1]["function"]["arguments"] += piece["function"][
                        "arguments"
                    ]
    return {"choices": [{"message": message}]}


def test_thinking_without_state_changes_nothing():
    """Its text is all there is, and an id stays as it is."""
    plain = Thinking(text="Hm.", extra={"openai_chat": {"~fields": ["reasoning_content"]}})
    response = answer(plain, ToolCall(id="c1", name="f", arguments={}))

    assert sealed().seal_response(response) == response


@pytest.mark.parametrize("dialect", [name for name in dialects.names() if name != "openai_chat"])
def test_where_clients_return_the_field(dialect):
    """The other dialects need no other place: nothing is sealed for a client of the model's own."""
    facts = dialects.get(dialect).FACTS
    if facts.sealed_field is None:
        return
    state = SealedState(b"a key of this test only", client=facts, upstream=facts, model="m")
    signed = Thinking(text="Hm.", signature="AAEC", extra={dialect: {}})
    response = answer(signed, ToolCall(id="c1", name="f", arguments={}))

    assert state.seal_response(response) == response
