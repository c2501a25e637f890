"""Citations: the sources of a text are in the language, and come out in every dialect."""

import json

import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response as OpenAIResponse

from interlingua import dialects
from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold
from interlingua.dialects import StreamAccumulator, events_from_response
from interlingua.errors import SDKError
from interlingua.spec.content import Citation, Text
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response
from support import corpus

here = pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")
NAMES = dialects.names()
URL = Citation(url="https://a.example/x", title="A page", start=0, end=5)
ANSWER = Response(
    id="r",
    model="m",
    message=Message(role="assistant", content=(Text("Zürich is big.", citations=(URL,)),)),
    finish_reason=FinishReason(reason="stop"),
)


def cited(response):
    return [part.citations for part in response.message.content if isinstance(part, Text)]


def urls(response):
    """The addresses; documents without one cannot be cited in every dialect."""
    every = [each.url for citations in cited(response) for each in citations]
    return [url for url in every if url]


def streamed(dialect, response):
    encoder, decoder, accumulator = (
        dialect.stream_encoder(None),
        dialect.stream_decoder(),
        StreamAccumulator(),
    )
    frames = [frame for event in events_from_response(response) for frame in encoder.feed(event)]
    for event in [e for frame in frames for e in decoder.feed(frame)] + decoder.finish():
        accumulator.feed(event)
    return accumulator.response()


@pytest.mark.parametrize("name", NAMES)
def test_a_citation_comes_out_in_every_dialect(name):
    """Whole and streamed, with its address and title, and its span where the dialect has one."""
    dialect = dialects.get(name)
    whole = dialect.decode_response(dialect.encode_response(ANSWER))
    again = streamed(dialect, ANSWER)

    assert cited(whole) == cited(again)
    assert [(c.url, c.title) for c in cited(whole)[0]] == [("https://a.example/x", "A page")]
    if name not in (
        "anthropic_messages",
        "bedrock_converse",
    ):  # whose citations are for a whole text
        assert [(c.start, c.end) for c in cited(whole)[0]] == [(0, 5)]


@pytest.mark.parametrize("name", NAMES)
def test_it_comes_back_as_it_was(name):
    """A dialect's own citations are sent again unchanged."""
    dialect = dialects.get(name)
    body = dialect.encode_response(ANSWER)
    decoded = dialect.decode_response(body)

    assert dialect.encode_response(decoded) == body


def test_the_vendors_read_them():
    """OpenAI's types accept the annotations."""
    chat = ChatCompletion.model_validate(dialects.get("openai_chat").encode_response(ANSWER))
    responses = OpenAIResponse.model_validate(
        dialects.get("openai_responses").encode_response(ANSWER)
    )

    assert chat.choices[0].message.annotations[0].url_citation.url == URL.url
    assert responses.output[0].content[0].annotations[0].url == URL.url


def test_spans_are_in_characters():
    """Gemini counts bytes."""
    body = dialects.get("gemini_generate").encode_response(ANSWER)
    segment = body["candidates"][0]["groundingMetadata"]["groundingSupports"][0]["segment"]

    assert (segment["endIndex"], segment["text"]) == (6, "Züric")


WORDS = {  # of Converse there is no recording
    "anthropic_messages": '"cited_text"',
    "openai_responses": '"url_citation"',
    "openai_chat": '"url_citation"',
    "gemini_generate": '"groundingSupports"',
}


@here
@pytest.mark.parametrize("name", WORDS)
def test_recorded_citations_are_in_the_language(name):
    """Every recorded answer with citations has them on its texts, within the text."""
    count = 0
    for record in corpus.records(name):
        body = record["response_body"]
        if record["status"] != 200 or not isinstance(body, dict):
            continue
        response = dialects.get(name).decode_response(body)
        if WORDS[name] not in json.dumps(body):
            continue
        found = [(part, each) for part in response.message.content if isinstance(part, Text)
                 for each in part.citations]  # fmt: skip
        assert found, record["id"]
        for part, each in found:
            assert each.url or each.title or each.file_id, record["id"]
            assert each.end is None or each.end <= len(part.text), record["id"]
        count += 1

    assert count


@here
@pytest.mark.parametrize("name", WORDS)
def test_recorded_streams_have_their_citations(name):
    """As whole answers have; and they come back in a stream of the same dialect."""
    dialect, count = dialects.get(name), 0
    for case in corpus.cases(name):
        word = WORDS[name].encode()
        if case.stream is None or word not in case.stream.replace(b'": ', b'":'):
            continue
        try:
            events = decode_frames(dialect, cut_frames([case.stream], case.framing))
        except SDKError:  # some recordings end early
            continue
        response = fold(events)
        again = fold(decode_frames(dialect, encode_events(dialect, events)))

        assert any(cited(response)), case.name
        assert cited(again) == cited(response), case.name
        count += 1

    assert count or name == "openai_chat"


@here
@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("client", NAMES)
def test_recorded_citations_cross(name, client):
    """What a model cites reaches a client of any other dialect, whole and streamed."""
    for record in corpus.records(name):
        body = record["response_body"]
        if record["status"] != 200 or not isinstance(body, dict) or name == client:
            continue
        response = dialects.get(name).decode_response(body)
        if not urls(response):
            continue
        dialect = dialects.get(client)
        whole = dialect.decode_response(dialect.encode_response(response))

        assert urls(whole) == urls(response), record["id"]
        assert urls(streamed(dialect, response)) == urls(response), record["id"]
