"""Probabilities of tokens: in the language, and in every dialect that has them."""

import asyncio
import functools
import itertools
import json

import pytest
from google.genai.types import GenerateContentResponse
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response as OpenAIResponse

from interlingua import Client, HttpAdapter, Request, Text, dialects
from interlingua.api.run.loop import join_answers
from interlingua.conformance.equality import same_response
from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold
from interlingua.dialects import events_from_response
from interlingua.middleware import Redact
from interlingua.simulator import Simulator, text
from interlingua.spec.content import Refusal, Thinking, TokenLogprob
from interlingua.spec.contracts import Frame, Profile, WireCall
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response
from interlingua.transport import AsgiTransport
from support import corpus
from support.patterns import seconds

CHAT, RESPONSES, GEMINI, ANTHROPIC = (
    "openai_chat",
    "openai_responses",
    "gemini_generate",
    "anthropic_messages",
)
HAVING = (CHAT, RESPONSES, GEMINI)
PROVIDERS = {CHAT: "openrouter", RESPONSES: "openai", GEMINI: "gemini"}
CROSSINGS = [*itertools.permutations(HAVING, 2)]
here = pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")


def token(word, logprob=-0.5, top=()):
    return TokenLogprob(token=word, logprob=logprob, bytes=word.encode(), top=tuple(top))


TOKENS = (token("Zü", -0.25, [token("Zü", -0.25), token("Be", -2.5)]), token("rich", -1))


def answer(*parts):
    return Response(
        id="r",
        model="m",
        message=Message(role="assistant", content=parts or (Text("Zürich", logprobs=TOKENS),)),
        finish_reason=FinishReason(reason="stop"),
    )


def pairs(tokens):
    """What every dialect has of a token: its text and value, and those of its alternatives."""
    return [(each.token, each.logprob, pairs(each.top)) for each in tokens]


def tokens_of(response, kinds=(Text, Refusal, Thinking)):
    return [
        pair
        for part in response.message.content
        if isinstance(part, kinds)
        for pair in pairs(part.logprobs)
    ]


def whole(name, response):
    dialect = dialects.get(name)
    return dialect.decode_response(dialect.encode_response(response))


def streamed(name, response):
    """The response after its way as a stream."""
    dialect = dialects.get(name)
    frames = encode_events(dialect, events_from_response(response))
    return fold(decode_frames(dialect, frames))


# What is asked for.

ASKED = {
    CHAT: ({"logprobs": True}, {"logprobs": True, "top_logprobs": 3}),
    RESPONSES: (
        {"include": ["message.output_text.logprobs"]},
        {"include": ["message.output_text.logprobs"], "top_logprobs": 3},
    ),
    GEMINI: (
        {"generationConfig": {"responseLogprobs": True}},
        {"generationConfig": {"responseLogprobs": True, "logprobs": 3}},
    ),
}


def request(**fields):
    return Request(model="m", messages="Hi.", **fields)


@pytest.mark.parametrize("name", HAVING)
@pytest.mark.parametrize("number", [0, 3])
def test_each_api_is_asked_in_its_own_form(name, number):
    """A number of alternatives is sent only if there are any, and comes back."""
    dialect = dialects.get(name)
    plain = dialect.encode_request(request()).body
    call = dialect.encode_request(request(logprobs=number))

    assert {key: value for key, value in call.body.items() if key not in plain} == (
        ASKED[name][number > 0]
    )
    assert call.warnings == ()
    again = dialect.decode_request(call)
    assert again.logprobs == number
    assert again.provider_options == {}


def test_an_api_without_them_is_not_asked():
    """Anthropic's has none: the setting is dropped, with a warning."""
    call = dialects.get(ANTHROPIC).encode_request(request(logprobs=0, max_tokens=9))

    assert [(each.code, each.path) for each in call.warnings] == [("logprobs_dropped", "logprobs")]
    assert "logprobs" not in json.dumps(call.body)


@pytest.mark.parametrize("name", HAVING)
@pytest.mark.parametrize(
    ("row", "more"),
    [
        ({"logprobs": False}, {}),
        (
            {"rejected_while_thinking": ("logprobs",), "thinking": True},
            {"reasoning_effort": "low"},
        ),
    ],
    ids=["never", "while thinking"],
)
def test_a_model_without_them_is_not_asked(name, row, more):
    """The profile of a model or server drops them with the same warning, once."""
    dialect = dialects.get(name)
    asked = request(logprobs=2, **more)
    if name == RESPONSES:  # as decoded beside another word
        include = ["reasoning.encrypted_content", "message.output_text.logprobs"]
        asked = replace(asked, provider_options={RESPONSES: {"include": include}})
    call = dialect.encode_request(asked, Profile(dialect=name, **row))

    assert [each.code for each in call.warnings] == ["logprobs_dropped"]
    assert "logprobs" not in json.dumps(call.body).lower()


def test_what_else_is_included_stays_as_it_is():
    """The list of the caller is only completed, and a complete one is not changed."""
    dialect = dialects.get(RESPONSES)
    own = ["reasoning.encrypted_content"]
    for include, sent in (
        (own, [*own, "message.output_text.logprobs"]),
        (["message.output_text.logprobs", *own], ["message.output_text.logprobs", *own]),
    ):
        asked = request(logprobs=1, provider_options={RESPONSES: {"include": include}})
        body = dialect.encode_request(asked).body
        decoded = dialect.decode_request(WireCall(path="/v1/responses", body=body))

        assert body["include"] == sent
        assert decoded.logprobs == 1
        assert dialect.encode_request(decoded).body == body


EXPLICIT = {
    CHAT: [
        {"logprobs": True, "top_logprobs": 0},
        {"logprobs": False},
        {"logprobs": None},
        {"logprobs": 5},
        {"top_logprobs": 2},
    ],
    RESPONSES: [
        {"include": ["message.output_text.logprobs"], "top_logprobs": 0},
        {"top_logprobs": 2},
        {"include": []},
    ],
    GEMINI: [
        {"generationConfig": {"responseLogprobs": True, "logprobs": 0}},
        {"generationConfig": {"responseLogprobs": False, "logprobs": 2}},
    ],
}


@pytest.mark.parametrize(
    ("name", "fields"), [(name, fields) for name in EXPLICIT for fields in EXPLICIT[name]]
)
def test_unusual_questions_are_sent_on_unchanged(name, fields):
    """What is not our way to ask survives in the options."""
    dialect = dialects.get(name)
    body = {**dialect.encode_request(request()).body, **fields}
    call = replace(dialect.encode_request(request()), body=body)

    assert dialect.encode_request(dialect.decode_request(call)).body == body


def test_a_server_that_takes_a_number():
    """Together's `logprobs` is the number itself."""
    profile = dialects.get(CHAT).FACTS.quirks
    quirks = profile(logprobs_number=True)
    for number, sent in ((0, 1), (3, 3)):
        call = dialects.get(CHAT).encode_request(
            request(logprobs=number), Profile(dialect=CHAT, quirks=quirks)
        )
        assert (call.body["logprobs"], "top_logprobs" in call.body) == (sent, False)


# What is returned.


@pytest.mark.parametrize("name", HAVING)
def test_tokens_go_out_and_come_back(name):
    """Whole and streamed alike, with their values and alternatives."""
    once, again = whole(name, answer()), streamed(name, answer())

    assert tokens_of(once) == tokens_of(again) == pairs(TOKENS)
    if name != GEMINI:  # which has no bytes
        assert once.message.content[0].logprobs == TOKENS


@pytest.mark.parametrize("name", HAVING)
def test_they_are_sent_on_once_and_unchanged(name):
    """A dialect's own answer is encoded as it was; its tokens are not doubled."""
    dialect = dialects.get(name)
    body = dialect.encode_response(answer())
    decoded = dialect.decode_response(body)

    assert dialect.encode_response(decoded) == body
    frames = encode_events(dialect, events_from_response(decoded))
    assert [frame.data.count('"Be"') for frame in frames if '"Be"' in frame.data][-1] == 1


def test_without_bytes_they_are_made_only_where_they_are_required():
    """OpenAI's Responses require bytes; Chat says null for those that are not known."""
    bare = (TokenLogprob(token="Zü", logprob=-1.0),)
    response = answer(Text("Zü", logprobs=bare))

    assert whole(CHAT, response).message.content[0].logprobs == bare
    assert whole(RESPONSES, response).message.content[0].logprobs[0].bytes == "Zü".encode()


def test_tokens_of_a_refusal_and_of_thinking():
    """Chat has a list for each kind of text."""
    refused = answer(
        Thinking("Hm", logprobs=(token("Hm"),)), Refusal(text="No", logprobs=(token("No"),))
    )
    body = dialects.get(CHAT).encode_response(refused)

    assert [*body["choices"][0]["logprobs"]] == ["content", "refusal", "reasoning_content"]
    for again in (whole(CHAT, refused), streamed(CHAT, refused)):
        found = {type(part): pairs(part.logprobs) for part in again.message.content}
        assert found == {Thinking: pairs([token("Hm")]), Refusal: pairs([token("No")])}


def test_the_vendors_read_them():
    """The types of the vendors' SDKs accept bodies and chunks."""
    chat = dialects.get(CHAT)
    body = ChatCompletion.model_validate(chat.encode_response(answer()), strict=True)
    assert body.choices[0].logprobs.content[0].top_logprobs[1].token == "Be"
    frames = encode_events(chat, events_from_response(answer()))
    chunks = [
        ChatCompletionChunk.model_validate_json(frame.data, strict=True)
        for frame in frames
        if frame.data != "[DONE]"
    ]
    streamed_tokens = [
        each.token
        for chunk in chunks
        for choice in chunk.choices
        for each in (choice.logprobs and choice.logprobs.content) or ()
    ]
    assert streamed_tokens == ["Zü", "rich"]
    responses = OpenAIResponse.model_validate(dialects.get(RESPONSES).encode_response(answer()))
    assert responses.output[0].content[0].logprobs[0].top_logprobs[1].token == "Be"
    gemini = GenerateContentResponse.model_validate(dialects.get(GEMINI).encode_response(answer()))
    result = gemini.candidates[0].logprobs_result
    assert result.chosen_candidates[1].token == "rich"
    assert result.top_candidates[0].candidates[1].log_probability == -2.5


def test_frames_of_gemini_have_the_tokens_of_their_own_text():
    """Equal frames in a row count as often as they come."""
    result = {
        "chosenCandidates": [{"token": "ha", "logProbability": 0.0}],
        "topCandidates": [{"candidates": [{"token": "ha", "logProbability": 0.0}]}],
    }

    def frame(**more):
        candidate = {"content": {"role": "model", "parts": [{"text": "ha"}]}, "index": 0, **more}
        return Frame(data=json.dumps({"candidates": [candidate], "modelVersion": "m"}))

    frames = [frame(logprobsResult=result)] * 3 + [
        frame(logprobsResult=result, finishReason="STOP")
    ]
    response = fold(decode_frames(dialects.get(GEMINI), frames))

    assert response.text == "hahahaha"
    assert tokens_of(response) == [("ha", 0.0, [("ha", 0.0, [])])] * 4


def test_gemini_in_the_names_of_its_sdk():
    """Some clients write names with underscores."""
    result = {
        "chosen_candidates": [{"token": "a", "token_id": 1, "log_probability": -1.0}],
        "top_candidates": [{"candidates": [{"token": "b", "log_probability": -2.0}]}],
    }
    body = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "logprobs_result": result}]}

    response = dialects.get(GEMINI).decode_response(body)

    assert tokens_of(response) == [("a", -1.0, [("b", -2.0, [])])]


NOT_TOKENS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("token", "logprob", "bytes", "top_logprobs", "logProbability", "content"),
                    *("chosenCandidates", "topCandidates", "candidates", "refusal"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(NOT_TOKENS)
def test_anything_else_there_is_carried(value):
    """A list that cannot be read is no error, and is sent on as it is."""
    chat = {
        "id": "r",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "a", "refusal": "no"},
                "logprobs": value,
                "finish_reason": "stop",
            }
        ],
    }
    gemini = {
        "candidates": [
            {"content": {"parts": [{"text": "a"}], "role": "model"}, "logprobsResult": value}
        ]
    }
    part = {"type": "output_text", "text": "a", "annotations": [], "logprobs": value}
    item = {"type": "message", "id": "i", "role": "assistant", "content": [part]}
    responses = {"id": "r", "model": "m", "status": "completed", "output": [item]}
    for name, body in ((CHAT, chat), (GEMINI, gemini), (RESPONSES, responses)):
        dialect = dialects.get(name)
        decoded = dialect.decode_response(body)
        assert dialect.encode_response(decoded) == body
        assert from_json(to_json(decoded.message), Message) == decoded.message


def test_deep_lists_are_no_danger():
    """Alternatives of alternatives are not followed."""
    item = {"token": "a", "logprob": 0}
    for _ in range(900):
        item = {"token": "a", "logprob": 0, "top_logprobs": [item]}
    message = {"role": "assistant", "content": "a"}
    body = {"choices": [{"message": message, "logprobs": {"content": [item]}}]}

    (found,) = dialects.get(CHAT).decode_response(body).message.content[0].logprobs

    assert pairs([found]) == [("a", 0, [("a", 0, [])])]


@pytest.mark.parametrize("name", HAVING)
@pytest.mark.parametrize("change", ["whole", "streamed"])
def test_a_changed_text_does_not_show_its_old_tokens(name, change):
    """What a middleware replaces is in no list of the body or stream, in any dialect."""
    secret = tuple(token(each) for each in ("bob", "@", "a.example"))
    model = Simulator(text("bob@a.example", logprobs=secret))

    async def ask():
        adapter = HttpAdapter(PROVIDERS[name], "key", transport=AsgiTransport(model))
        client = Client({"p": adapter}, middleware=[Redact("email", answers=True)])
        asked = Request(model="p:m", messages="Who?", logprobs=0)
        if change == "whole":
            response = await client.complete(asked)
            return response, [json.dumps(dialects.get(name).encode_response(response))]
        events = [event async for event in client.stream(asked)]
        frames = encode_events(dialects.get(name), events)
        return events[-1].response, [frame.data for frame in frames]

    response, sent = asyncio.run(ask())

    assert response.text == "[EMAIL_1]"
    assert tokens_of(response) == []
    assert "EMAIL" in "".join(sent)
    assert "bob" not in "".join(sent)


def test_an_answer_in_two_parts_has_the_tokens_of_both():
    """A paused answer that goes on is one text."""
    joined = join_answers(
        answer(Text("Zü", logprobs=TOKENS[:1])), answer(Text("rich", logprobs=TOKENS[1:]))
    )

    assert joined.message.content == (Text("Zürich", logprobs=TOKENS),)


# Recorded answers.


def wire_tokens(name, record):
    """The tokens of a recorded answer, read from its JSON without our decoders."""
    if record["response_text"] is None:
        bodies = [record["response_body"]]
    else:
        lines = record["response_text"].splitlines()
        bodies = [
            json.loads(line[5:])
            for line in lines
            if line.startswith("data:") and line[5:].strip() != "[DONE]"
        ]
    return [found for body in bodies for found in _tokens_in(name, body)]


def _tokens_in(name, body):
    if name == CHAT:
        for choice in body.get("choices", ()):
            for items in (choice.get("logprobs") or {}).values():
                yield from (_pair(item) for item in items or ())
    elif name == RESPONSES:
        for item in (body.get("response") or body).get("output", ()):
            for part in item.get("content") or ():
                yield from (_pair(each) for each in part.get("logprobs") or ())
    else:
        for candidate in body.get("candidates", ()):
            result = candidate.get("logprobsResult") or {}
            top = [each["candidates"] for each in result.get("topCandidates", ())]
            for each, others in itertools.zip_longest(result.get("chosenCandidates", ()), top):
                yield _pair({**each, "top_logprobs": others or []})


def _pair(item):
    value = item.get("logprob", item.get("logProbability"))
    return (item["token"], value, [_pair(each) for each in item.get("top_logprobs") or ()])


@functools.cache
def recorded(name):
    """The answers with tokens: the record, what its JSON has, and the decoded response."""
    found = []
    for record in corpus.records(name):
        body = record["response_text"] or json.dumps(record["response_body"])
        if record["status"] != 200 or '"token"' not in body:
            continue
        tokens = wire_tokens(name, record)
        if tokens:
            found.append((record, sorted(tokens), decoded(name, record)))
    return found


def decoded(name, record):
    dialect = dialects.get(name)
    case = corpus.to_case(record)
    if case.stream is None:
        return dialect.decode_response(case.response)
    return fold(decode_frames(dialect, cut_frames([case.stream], case.framing)))


@here
@pytest.mark.parametrize(("name", "least"), [(CHAT, 38), (RESPONSES, 2), (GEMINI, 1)])
def test_every_recorded_token_is_in_the_language(name, least):
    """None is lost, whole or streamed, and none is invented."""
    assert len(recorded(name)) >= least
    for record, tokens, response in recorded(name):
        assert sorted(tokens_of(response)) == tokens, record["id"]
        texts = [part for part in response.message.content if isinstance(part, Text)]
        joined = b"".join(each.bytes or each.token.encode() for each in texts[-1].logprobs)
        assert joined.decode() == response.text, record["id"]


@here
@pytest.mark.parametrize("name", HAVING)
def test_recorded_tokens_come_back(name):
    """Encoded and decoded in their own dialect, answers are equal, whole and streamed."""
    for record, _, response in recorded(name):
        assert same_response(whole(name, response), response) == [], record["id"]
        assert tokens_of(streamed(name, response)) == tokens_of(response), record["id"]
        if record["response_body"] is not None:
            body = dialects.get(name).encode_response(response)
            assert body == record["response_body"], record["id"]


@here
@pytest.mark.parametrize(("name", "client"), CROSSINGS)
def test_recorded_tokens_cross(name, client):
    """Tokens of texts, their values and alternatives reach a client of another dialect."""
    for record, _, response in recorded(name):
        tokens = tokens_of(response, Text)
        assert tokens, record["id"]
        assert tokens_of(whole(client, response), Text) == tokens, record["id"]
        assert tokens_of(streamed(client, response), Text) == tokens, record["id"]
        back = whole(name, whole(client, response))
        assert tokens_of(back, Text) == tokens, record["id"]


@here
@pytest.mark.parametrize(("name", "client"), CROSSINGS)
def test_recorded_streams_cross_as_streams(name, client):
    """The events of one dialect's stream, as another's stream, have every token."""
    for record, _, response in recorded(name):
        case = corpus.to_case(record)
        if case.stream is not None:
            dialect = dialects.get(name)
            events = decode_frames(dialect, cut_frames([case.stream], case.framing))
            frames = encode_events(dialects.get(client), events)
            again = fold(decode_frames(dialects.get(client), frames))
            assert tokens_of(again, Text) == tokens_of(response, Text), record["id"]


@here
@pytest.mark.parametrize("name", HAVING)
def test_recorded_requests_ask_for_them(name):
    """Whoever got tokens had asked for them, and the request is sent on unchanged."""
    for record, _, _ in recorded(name):
        call = corpus.to_case(record).call
        asked = dialects.get(name).decode_request(call)
        again = dialects.get(name).encode_request(asked, stream=call.stream)

        assert asked.logprobs is not None, record["id"]
        for key in ("logprobs", "top_logprobs", "include", "generationConfig"):
            assert again.body.get(key) == call.body.get(key), record["id"]


def test_many_tokens_take_time_in_proportion():
    """A stream of four times as many tokens takes about four times as long."""
    chunk = {
        "id": "r",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "delta": {"content": "ha"},
                "finish_reason": None,
                "logprobs": {
                    "content": [{"token": "ha", "logprob": 0, "bytes": None, "top_logprobs": []}]
                },
            }
        ],
    }
    end = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

    def read(number):
        frames = [Frame(data=json.dumps(chunk))] * number
        frames += [Frame(data=json.dumps(end)), Frame(data="[DONE]")]
        response = fold(decode_frames(dialects.get(CHAT), frames))
        assert len(response.message.content[0].logprobs) == number

    assert seconds(read, 8000, times=3) < 10 * seconds(read, 2000)
