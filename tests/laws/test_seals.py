"""
Sealed state: what a model must get back survives a client of another dialect.

For all twenty pairs and every recorded answer of A: the state goes out through B's response, comes
back in the next request of B's client, and is restored for A byte by byte.
"""

import base64
import functools
import json

import pytest
from msgspec.structs import replace

from interlingua import dialects
from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold
from interlingua.dialects import Frame, StreamAccumulator, WireCall, events_from_response
from interlingua.errors import SDKError, ServerError
from interlingua.serving import SealedState
from interlingua.spec.content import Opaque, Text, Thinking, ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.wire.fields import extra_of
from interlingua.wire.seal_marks import MARK
from support import corpus
from support.patterns import seconds
from support.run_profile import FULL

pytestmark = pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")

KEY = b"a key of the program itself"
NAMES = dialects.names()
PAIRS = [(a, b) for a in NAMES for b in NAMES if a != b]
PATH = "/v1beta/models/m:generateContent"


def state_between(upstream, client):
    return SealedState(
        KEY,
        client=dialects.get(client).FACTS,
        upstream=dialects.get(upstream).FACTS,
        provider="p",
        model="m",
    )


def next_request(client, body):
    """What a client of this dialect sends after it got this answer."""
    ask = "Go on."
    if client == "anthropic_messages":
        turn = {"role": "assistant", "content": body["content"]}
        wire = {"max_tokens": 9, "messages": [{"role": "user", "content": ask}, turn]}
    elif client == "openai_responses":
        wire = {"input": [{"role": "user", "content": ask}, *body["output"]]}
    elif client == "openai_chat":
        wire = {"messages": [{"role": "user", "content": ask}, body["choices"][0]["message"]]}
    elif client == "bedrock_converse":
        turn = body["output"]["message"]
        wire = {"messages": [{"role": "user", "content": [{"text": ask}]}, turn]}
    else:
        turn = body["candidates"][0]["content"]
        wire = {"contents": [{"role": "user", "parts": [{"text": ask}]}, turn]}
    call = WireCall(body=json.loads(json.dumps({"model": "m", **wire})), path=PATH)
    return dialects.get(client).decode_request(call)


def reasoning_state(upstream, parts):
    """The state that A needs: its thinking, and the signatures of its texts, calls and blocks."""
    field = dialects.get(upstream).FACTS.history.signature_field
    found = []
    for part in parts:
        own = extra_of(part, upstream)
        if isinstance(part, Thinking) and (part.signature or part.data or own):
            found.append((part.text, part.signature, part.data, part.redacted, own))
        elif isinstance(part, Opaque) and isinstance(part.data, dict) and field in part.data:
            found.append(part.data)
        elif isinstance(part, (Text, ToolCall)) and field and own.get(field):
            found.append(own)
    return found


def converse_answer(body):
    """What Converse would have sent for an answer of Anthropic; None if it has other blocks."""
    blocks = [_converse_block(block) for block in body.get("content") or ()]
    message = {"role": "assistant", "content": blocks}
    usage = {"inputTokens": 9, "outputTokens": 9, "totalTokens": 18}
    return (
        None
        if None in blocks
        else {"output": {"message": message}, "stopReason": "end_turn", "usage": usage}
    )


def _converse_block(block):
    match block:
        case {"type": "text", "text": text}:
            return {"text": text}
        case {"type": "thinking", "thinking": text, "signature": signature}:
            return {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}
        case {"type": "redacted_thinking", "data": data}:
            blob = base64.b64encode(data.encode()).decode()
            return {"reasoningContent": {"redactedContent": blob}}
        case {"type": "tool_use", "id": call_id, "name": name, "input": arguments}:
            return {"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}}


def recorded_bodies(upstream):
    """The ids and bodies of whole answers; of Converse there is no recording, so they are made."""
    source = "anthropic_messages" if upstream == "bedrock_converse" else upstream
    for record in corpus.records(source):
        body = record["response_body"]
        if record["status"] == 200 and isinstance(body, dict):
            body = converse_answer(body) if source != upstream else body
            if body is not None:
                yield record["id"], body


def answers(upstream):
    """The whole answers of a dialect that have state."""
    dialect = dialects.get(upstream)
    for name, body in recorded_bodies(upstream):
        response = dialect.decode_response(body)
        if reasoning_state(upstream, response.message.content):
            yield name, response


def restored(upstream, client, response, *, stream=False):
    """The state after a round through the client; the warnings; and the body that was sent."""
    dialect, state = dialects.get(client), state_between(upstream, client)
    if stream:
        body = dialect.encode_response(streamed(dialect, state, response))
    else:
        body = dialect.encode_response(state.seal_response(response))
    request, warnings = state.unseal_request(next_request(client, body))
    parts = [part for message in request.messages[1:] for part in message.content]
    return reasoning_state(upstream, parts), warnings, body


def streamed(dialect, state, response):
    encoder, decoder = state.encoder(dialect.stream_encoder(None)), dialect.stream_decoder()
    accumulator = StreamAccumulator()
    frames = [frame for event in events_from_response(response) for frame in encoder.feed(event)]
    for event in [e for frame in frames for e in decoder.feed(frame)] + decoder.finish():
        accumulator.feed(event)
    return accumulator.response()


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_every_signature_and_encrypted_block_is_restored_in_order(upstream, client):
    """Every signature and encrypted block is restored, in its order (field bugs 99 and 100)."""
    broken, count = {}, 0
    for name, response in answers(upstream):
        before = reasoning_state(upstream, response.message.content)
        after, warnings, _ = restored(upstream, client, response)
        count += 1
        if before != after or warnings:
            broken[name] = (before, after, warnings)

    assert broken == {}
    assert count > 20


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_state_survives_streams(upstream, client):
    """A stream carries the same state."""
    broken = {}
    for number, (name, response) in enumerate(answers(upstream)):
        if not FULL and number % 5:
            continue
        if response.finish_reason.reason == "error" and client == "openai_responses":
            with pytest.raises(ServerError):  # such a stream ends with `response.failed`
                restored(upstream, client, response, stream=True)
            continue
        before = reasoning_state(upstream, response.message.content)
        after, warnings, _ = restored(upstream, client, response, stream=True)
        if before != after or warnings:
            broken[name] = (before, after, warnings)

    assert broken == {}


OPAQUE = (
    *("signature", "data", "encrypted_content", "thoughtSignature", "reasoning_details"),
    "redactedContent",
)


def opaque_values(value):
    """Every value of an opaque field in a body, in order; results of hosted tools are no state."""
    if isinstance(value, list):
        return [found for item in value for found in opaque_values(item)]
    if not isinstance(value, dict) or str(value.get("type")).endswith("_tool_result"):
        return []
    own = [value[name] for name in OPAQUE if value.get(name)]
    return own + [found for item in value.values() for found in opaque_values(item)]


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_the_model_is_sent_what_it_would_have_been_sent(upstream, client):
    """The next request to A has the same opaque fields as if the client spoke A's dialect."""
    codec, broken, count = dialects.get(upstream), {}, 0
    for number, (name, response) in enumerate(answers(upstream)):
        if not FULL and number % 5:
            continue
        _, _, body = restored(upstream, client, response)
        state = state_between(upstream, client)
        request, _ = state.unseal_request(next_request(client, body))
        own = (Message.user("Go on."), response.message)
        sent = [
            opaque_values(
                codec.encode_request(
                    Request(model="m", messages=(*messages, Message.user("And now?")))
                ).body
            )
            for messages in (own, request.messages)
        ]
        count += bool(sent[0])
        if sent[0] != sent[1]:
            broken[name] = sent

    assert broken == {}
    assert count


@functools.cache
def recorded_streams(upstream):
    """The events of the recorded streams of a dialect that have state."""
    found = {}
    if upstream == "bedrock_converse":  # no recordings: made of whole answers
        codec = dialects.get(upstream)
        for name, response in answers(upstream):
            frames = encode_events(codec, events_from_response(response))
            events = decode_frames(codec, frames)
            found[name] = (events, fold(events))
    for case in corpus.cases(upstream):
        if case.stream is not None:
            try:
                frames = cut_frames([case.stream], case.framing)
                events = decode_frames(dialects.get(upstream), frames)
            except SDKError:  # an error in the stream, or one that ends early
                continue
            # the last event of some APIs has a whole response, with other encryptions of the same
            response = fold([*events[:-1], replace(events[-1], response=None)])
            if reasoning_state(upstream, response.message.content):
                found[case.name] = (events, response)
    return found


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_recorded_streams_keep_their_state(upstream, client):
    """Passed on event by event, as a server does it, a stream of A restores the same state."""
    dialect, broken = dialects.get(client), {}
    for number, (name, (events, response)) in enumerate(recorded_streams(upstream).items()):
        is_failed = response.finish_reason.reason == "error"
        if (not FULL and number % 4) or is_failed:
            continue
        state = state_between(upstream, client)
        encoder = state.encoder(dialect.stream_encoder(None))
        frames = [frame for event in events for frame in encoder.feed(event)] + encoder.finish()
        body = dialect.encode_response(fold(decode_frames(dialect, frames)))
        request, warnings = state.unseal_request(next_request(client, body))
        parts = [part for message in request.messages[1:] for part in message.content]
        before, after = (
            reasoning_state(upstream, each) for each in (response.message.content, parts)
        )
        if before != after or warnings:
            broken[name] = (before, after, warnings)

    assert broken == {}
    assert recorded_streams(upstream)


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_without_a_key_nothing_foreign_is_sent(upstream, client):
    """What was not unsealed reaches no provider, not even one of the client's own dialect."""
    for number, (_, response) in enumerate(answers(upstream)):
        if number % 10:
            continue
        _, _, body = restored(upstream, client, response)
        request = next_request(client, body)
        request = Request(model="m", messages=(*request.messages, Message.user("And now?")))
        for target in NAMES:
            call = dialects.get(target).encode_request(request)
            assert MARK not in json.dumps(call.body)
            assert MARK.replace("+", "-") not in json.dumps(call.body)


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_another_model_gets_no_state(upstream, client):
    """A client that switches the model keeps its history; the state is dropped with a warning."""
    _, response = next(answers(upstream))
    body = dialects.get(client).encode_response(
        state_between(upstream, client).seal_response(response)
    )
    other = SealedState(
        KEY,
        client=dialects.get(client).FACTS,
        upstream=dialects.get(upstream).FACTS,
        provider="p",
        model="another",
    )
    request, warnings = other.unseal_request(next_request(client, body))

    assert {warning.code for warning in warnings} == {"seal_dropped"}
    assert MARK not in str(request.messages)


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_a_damaged_seal_is_dropped_with_a_warning(upstream, client):
    """A change anywhere in it: nothing of the state is restored, and nothing is sent."""
    _, response = min(answers(upstream), key=lambda each: len(str(each[1].message)))
    _, _, body = restored(upstream, client, response)
    text = json.dumps(body)
    start = min(at for at in (text.find(MARK), text.find(MARK.replace("+", "-"))) if at >= 0)
    end = text.index('"', start)
    for place in range(start + len(MARK), end, max(1, (end - start) // 40)):
        other = "B" if text[place] == "A" else "A"
        damaged = json.loads(text[:place] + other + text[place + 1 :])
        state = state_between(upstream, client)
        request, warnings = state.unseal_request(next_request(client, damaged))
        asked = Request(model="m", messages=(*request.messages, Message.user("And now?")))
        sent = json.dumps(dialects.get(upstream).encode_request(asked).body)

        assert [warning.code for warning in warnings] == ["seal_dropped"]
        assert MARK not in sent
        assert MARK.replace("+", "-") not in sent


SIGNED = {"candidates": [{"content": {"role": "model", "parts": [
    {"text": "Here are two."},
    {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "AAEC"},
    {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgoA"}},
    {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgoB"}, "thoughtSignature": "AwQF"},
]}, "finishReason": "STOP"}]}  # fmt: skip


@pytest.mark.parametrize("client", ["openai_responses", "openai_chat"])
@pytest.mark.parametrize("stream", [False, True])
def test_images_have_their_signatures_again(client, stream):
    """A client that sends images back gets no signature lost or moved (field bug 99)."""
    gemini = dialects.get("gemini_generate")
    recorded = [record["response_body"] for record in corpus.records("gemini_generate")]
    signed = [body for body in recorded if any(mark for _, mark in pictures(body))]
    assert len(signed) == 3
    for answer in (SIGNED, *signed):
        response = gemini.decode_response(answer)
        _, warnings, body = restored("gemini_generate", client, response, stream=stream)
        state = state_between("gemini_generate", client)
        request, _ = state.unseal_request(next_request(client, body))
        asked = Request(model="m", messages=(*request.messages, "Go on."))
        sent = gemini.encode_request(asked).body

        assert warnings == ()
        assert pictures({"candidates": [{"content": turn} for turn in sent["contents"]]}) == (
            pictures(answer)
        )
        assert MARK not in json.dumps(sent)


def pictures(body):
    """The images of an answer, and the signature of each."""
    candidates = body.get("candidates") or () if isinstance(body, dict) else ()
    return [
        (part["inlineData"]["data"], part.get("thoughtSignature"))
        for candidate in candidates
        for part in candidate.get("content", {}).get("parts", ())
        if str(part.get("inlineData", {}).get("mimeType")).startswith("image/")
    ]


@pytest.mark.parametrize("client", [name for name in NAMES if name != "gemini_generate"])
def test_what_comes_at_the_end_belongs_to_the_same_text(client):
    """Sealed state adds parts to a stream; late citations and tokens stay on their texts."""
    tokens = {"chosenCandidates": [{"token": "Paris", "logProbability": -0.5}]}
    grounding = {
        "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
        "groundingSupports": [
            {"segment": {"partIndex": 1, "endIndex": 5}, "groundingChunkIndices": [0]}
        ],
    }
    parts = [{"text": "Look:", "thoughtSignature": "AAEC"}, {"text": "Paris"}]
    candidate = {
        "content": {"role": "model", "parts": parts},
        "finishReason": "STOP",
        "logprobsResult": tokens,
        "groundingMetadata": grounding,
    }
    upstream, dialect = dialects.get("gemini_generate"), dialects.get(client)
    events = decode_frames(upstream, [Frame(data=json.dumps({"candidates": [candidate]}))])
    encoder = state_between("gemini_generate", client).encoder(dialect.stream_encoder(None))
    frames = [frame for event in events for frame in encoder.feed(event)] + encoder.finish()
    again = fold(decode_frames(dialect, frames))

    cited = [part.text for part in again.message.content if getattr(part, "citations", ())]
    spoken = [part.text for part in again.message.content if getattr(part, "logprobs", ())]
    # These have citations in the block of their text, which has ended, and no probabilities.
    without = client in ("anthropic_messages", "bedrock_converse")
    assert [text[-5:] for text in cited] == ([] if without else ["Paris"])
    assert [text[-5:] for text in spoken] == ([] if without else ["Paris"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("marks", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 1, 1)])
@pytest.mark.parametrize("texts", [("One. ", "Two. ", "Three."), ("One.", "", ""), ("", "é", "")])
def test_texts_that_a_client_joins_are_apart_again(texts, marks, stream):
    """Chat has one text: each signed text is found in it, also an empty one at its end."""
    parts = [
        {"text": text, **({"thoughtSignature": f"AAE{i}"} if mark else {})}
        for i, (text, mark) in enumerate(zip(texts, marks, strict=True))
    ]
    answer = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    response = dialects.get("gemini_generate").decode_response(answer)
    _, warnings, body = restored("gemini_generate", "openai_chat", response, stream=stream)
    state = state_between("gemini_generate", "openai_chat")
    request, _ = state.unseal_request(next_request("openai_chat", body))
    found = [
        (part.text, extra_of(part, "gemini_generate").get("thoughtSignature"))
        for message in request.messages[1:]
        for part in message.content
    ]

    assert warnings == ()
    assert "".join(text for text, _ in found) == "".join(texts)
    assert [pair for pair in found if pair[1]] == [
        (part["text"], part["thoughtSignature"]) for part in parts if "thoughtSignature" in part
    ]


def test_a_text_that_the_client_changed_is_not_torn():
    """The state of a text is put on no other text."""
    parts = [{"text": "One. "}, {"text": "Two.", "thoughtSignature": "AAEC"}]
    answer = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    response = dialects.get("gemini_generate").decode_response(answer)
    _, _, body = restored("gemini_generate", "openai_chat", response)
    body["choices"][0]["message"]["content"] = "Something else."
    state = state_between("gemini_generate", "openai_chat")
    request, _ = state.unseal_request(next_request("openai_chat", body))

    assert [part.text for part in request.messages[1].content] == ["Something else."]
    assert request.messages[1].content[0].extra == {}


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_between_texts_that_a_client_joins(stream):
    """It is where it was: the last part of a turn must not be thinking."""
    content = [
        {"type": "text", "text": "One "},
        {"type": "text", "text": "moment. "},
        {"type": "thinking", "thinking": "Hm.", "signature": "AAEC"},
        {"type": "text", "text": "Two."},
        {"type": "redacted_thinking", "data": "AAED"},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
    ]
    body = {"id": "r", "type": "message", "role": "assistant", "model": "m", "content": content}
    response = dialects.get("anthropic_messages").decode_response(body)
    _, _, sent = restored("anthropic_messages", "openai_chat", response, stream=stream)
    state = state_between("anthropic_messages", "openai_chat")
    request, warnings = state.unseal_request(next_request("openai_chat", sent))
    found = [getattr(part, "text", part.kind) for part in request.messages[1].content]

    assert warnings == ()
    assert found == ["One moment. ", "Hm.", "Two.", "", "tool_call"]


def test_many_seals_take_time_in_proportion():
    """A client may send the same seal as often as it likes."""
    parts = [{"text": "x" * 50}, {"text": "y", "thoughtSignature": "AAEC"}]
    answer = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    response = dialects.get("gemini_generate").decode_response(answer)
    _, _, body = restored("gemini_generate", "openai_chat", response)
    state = state_between("gemini_generate", "openai_chat")

    def unseal(number):
        message = body["choices"][0]["message"]
        more = {**message, "reasoning_details": message["reasoning_details"] * number}
        state.unseal_request(next_request("openai_chat", {"choices": [{"message": more}]}))

    assert seconds(unseal, 4000, times=3) < 10 * seconds(unseal, 1000)
