"""The laws over recorded images: of the endpoints, and in chats."""

import json

import pytest

from interlingua import dialects
from interlingua.conformance.laws import (
    LAWS,
    Case,
    check,
    cut_frames,
    decode_frames,
    encode_events,
    fold,
)
from interlingua.dialects.openai_responses.facts import IMAGE_CALL
from interlingua.dialects.openai_shared.image_rules import RULES
from interlingua.dialects.openai_shared.image_serve import image_served, write_images
from interlingua.dialects.openai_shared.images import encode_image_call, read_images
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Image, Text
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import (
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from interlingua.spec.messages import Message
from interlingua.spec.modalities.images import ImageInput
from interlingua.spec.request import Request
from interlingua.streams.accumulate import events_from_response
from interlingua.wire.image_size import read_image_size
from interlingua.wire.json_text import dump_text, dumps
from interlingua.wire.media import encode_base64
from support import corpus

pytestmark = pytest.mark.skipif(
    not corpus.file_records("images"), reason="no recorded exchanges at hand"
)
NAME = "openai_chat"
SERVED = {operation.name: operation for operation in image_served(NAME)}


RECORDS = corpus.file_records("images")
REQUESTS = [record for record in RECORDS if record["request_body"] is not None]
REPLIES = [record for record in RECORDS if record["status"] < 300]
FAILURES = [record for record in RECORDS if record["status"] >= 400]


def each(chosen):
    return pytest.mark.parametrize("record", chosen, ids=[record["id"] for record in chosen])


def read_request(record):
    name = "edit_image" if record["path"].endswith("/edits") else "generate_image"
    return SERVED[name].decode(WireCall(path=record["path"], body=record["request_body"]), {})


def write_request(value, record):
    return encode_image_call(value, NAME, RULES["xai" if record["host_provider"] == "xai" else ""])


def test_the_corpus_is_whole():
    """There are as many recordings as its list says."""
    assert (len(RECORDS), len(REQUESTS), len(REPLIES), len(FAILURES)) == (20, 16, 15, 5)


@each([record for record in REQUESTS if record["status"] < 300])
def test_requests_survive_a_round_trip(record):
    """A recorded request is written again as it was; an edit may change from JSON to a form."""
    value = read_request(record)

    call = write_request(value, record)

    assert call.warnings == ()
    if not call.form:
        assert call.body == record["request_body"]
        return
    again = SERVED["edit_image"].decode(WireCall(path=call.path, form=call.form), {})
    assert again == value


@each(REPLIES)
def test_replies_survive_a_round_trip(record):
    """A recorded reply is written again as it was, and each of its images is read."""
    result = read_images(record["response_body"], ImageInput(prompt="x"))

    assert write_images(result) == record["response_body"]
    assert len(result.items) == len(record["response_body"]["data"])
    for item, wire in zip(result.items, record["response_body"]["data"], strict=True):
        assert (item.image.url, item.revised_prompt) == (
            wire.get("url"),
            wire.get("revised_prompt"),
        )
        is_real = "trimmed" in record and item.image.data
        assert (item.width, item.height) == ((1, 1) if is_real else (None, None))


@each(REPLIES)
def test_replies_of_unknown_fields_survive(record):
    """A field that is not known yet stays, in the body and in each image."""
    body = json.loads(json.dumps(record["response_body"]))
    body["new_field"] = {"a": [1]}
    for item in body["data"]:
        item["other_field"] = "b"

    assert write_images(read_images(body, ImageInput(prompt="x"))) == body


@each(FAILURES)
def test_failures_are_typed(record):
    """Each recorded error is an error of the request, in the words of the vendor."""
    body = record["response_body"]

    error = dialects.get(NAME).decode_error(record["status"], {}, dumps(body))

    is_missing = "does not exist" in body["error"]["message"]
    assert type(error) is (NotFoundError if is_missing else InvalidRequestError)
    assert body["error"]["message"] in error.message


@each([record for record in FAILURES if record["response_body"]["error"]["param"] == "size"])
def test_what_the_vendor_refused_is_not_sent(record):
    """A size that the vendor's recorded answer calls invalid is refused before it is sent."""
    with pytest.raises(UnsupportedError, match="3x3"):
        write_request(read_request(record), record)


# Images in chats.

CHATS = {
    (dialect, record["id"]): (record, case)
    for dialect in ("openai_responses", "gemini_generate")
    for record, case in (
        zip(corpus.records(dialect), corpus.cases(dialect), strict=True) if corpus.is_here() else ()
    )
    if "image_generation" in record["features"]
}
every_chat = pytest.mark.parametrize("key", CHATS, ids=[record for _, record in CHATS])


def answer_of(key):
    """The answer to a recorded request, whole or streamed."""
    _, case = CHATS[key]
    dialect = dialects.get(key[0])
    if case.stream is None:
        return dialect.decode_response(case.response)
    return fold(decode_frames(dialect, cut_frames([case.stream])))


def images_in(message):
    return [part for part in message.content if isinstance(part, Image)]


@every_chat
def test_the_laws_hold_on_chats_with_images(key):
    """Each law holds on every record in which a model made an image."""
    report = check(dialects.get(key[0]), [CHATS[key][1]], LAWS)

    assert [(violation.law, violation.details[:2]) for violation in report.violations] == []


@every_chat
def test_images_of_chats_are_parts(key):
    """The image is a part of the message, with its bytes and its type."""
    (image,) = images_in(answer_of(key).message)

    assert image.media_type in ("image/png", "image/jpeg")
    assert read_image_size(image.data) == (1, 1)


def next_turn(key, target, *more):
    """What is sent to a provider when the conversation goes on."""
    answer = answer_of(key)
    history = (Message.user("Draw."), answer.message, Message.user("Now at night.", *more))
    model = {"anthropic_messages": "claude-haiku-4-5", "openai_chat": "gpt-4o"}.get(target, "m")
    profile = profile_for(target, model)
    request = Request(model=model, messages=history, on_loss="strict")
    return dialects.get(target).encode_request(request, profile)


@every_chat
def test_an_image_goes_back_to_its_maker_as_it_came(key):
    """The next request has the very item or part, with its id or its signature."""
    _, case = CHATS[key]
    call = next_turn(key, key[0])

    assert [each.code for each in call.warnings if each.code == "media_moved"] == []
    if key[0] == "gemini_generate":
        (sent,) = [each for each in call.body["contents"][1]["parts"] if "inlineData" in each]
        parts = case.response["candidates"][0]["content"]["parts"]
        assert sent in parts
    else:
        (sent,) = [each for each in call.body["input"] if each.get("type") == IMAGE_CALL]
        assert {*sent} >= {"id", "status", "result", "type"}
        assert case.stream is not None or sent in case.response["output"]


TARGETS = dialects.names()


@every_chat
@pytest.mark.parametrize("target", TARGETS)
def test_an_image_of_one_provider_is_an_input_for_another(key, target):
    """Any other provider gets the image in the next user message, or where its format has it."""
    (image,) = images_in(answer_of(key).message)
    text = encode_base64(image.data)

    call = next_turn(key, target)

    assert dump_text(call.body).count(text) == 1
    if target not in (key[0], "gemini_generate"):
        sent = dialects.get(target).decode_request(call)
        assert images_in(sent.messages[-1])[0].data == image.data


@every_chat
@pytest.mark.parametrize("target", TARGETS)
def test_an_answer_with_an_image_is_served_in_every_dialect(key, target):
    """A gateway passes the image on, whole and streamed, unless the dialect has no such answers."""
    answer = answer_of(key)
    (image,) = images_in(answer.message)
    dialect = dialects.get(target)

    whole = dialect.decode_response(dialect.encode_response(answer))
    frames = encode_events(dialect, events_from_response(answer))
    streamed = fold(decode_frames(dialect, frames))

    expected = [] if target == "anthropic_messages" else [image.data]
    assert [each.data for each in images_in(whole.message)] == expected
    assert [each.data for each in images_in(streamed.message)] == expected


# `images` of a message, as OpenRouter has it.

MADE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}


def chat_answer(*images):
    message = {"role": "assistant", "content": "Here.", "images": list(images)}
    return {
        "id": "gen-1",
        "object": "chat.completion",
        "model": "google/gemini-3-pro-image",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }


def chat_stream(*images):
    envelope = {"id": "gen-1", "object": "chat.completion.chunk", "model": "m"}
    deltas = [
        {"role": "assistant", "content": "He"},
        {"content": "re."},
        *({"content": "", "images": [image]} for image in images),
    ]
    chunks = [{"choices": [{"index": 0, "delta": delta}], **envelope} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **envelope})
    frames = [b"data: " + dumps(chunk) + b"\n\n" for chunk in chunks]
    return b"".join([*frames, b"data: [DONE]\n\n"])


@pytest.mark.parametrize("images", [[MADE], [MADE, {**MADE, "index": 1}]])
def test_the_laws_hold_on_images_of_gateways(images):
    """Images beside the content are parts after the text, whole and streamed, and go back so."""
    case = Case(name="images", response=chat_answer(*images), stream=chat_stream(*images))
    dialect = dialects.get(NAME)

    report = check(dialect, [case], {name: law for name, law in LAWS.items() if name[0] != "2"})
    whole = dialect.decode_response(case.response).message
    streamed = fold(decode_frames(dialect, cut_frames([case.stream]))).message

    assert [violation.details for violation in report.violations] == []
    assert [type(part) for part in whole.content] == [Text, *[Image] * len(images)]
    assert streamed.content == whole.content


@pytest.mark.parametrize("odd", [[{"type": "other"}], [MADE, 7], "text", [], None])
def test_odd_lists_of_images_survive(odd):
    """A list with anything but images is carried verbatim."""
    body = chat_answer()
    body["choices"][0]["message"]["images"] = odd
    dialect = dialects.get(NAME)

    assert dialect.encode_response(dialect.decode_response(body)) == body


@pytest.mark.parametrize(("provider", "is_sent_back"), [("openrouter", True), ("groq", False)])
def test_images_go_back_only_to_gateways_that_take_them(provider, is_sent_back):
    """To any other server they are sent in a user message."""
    dialect = dialects.get(NAME)
    message = dialect.decode_response(chat_answer(MADE)).message
    history = (Message.user("Draw."), message, Message.user("Now at night."))

    call = dialect.encode_request(
        Request(model="m", messages=history), profile_for(NAME, "m", provider)
    )

    sent = call.body["messages"]
    if is_sent_back:
        assert sent[1] == chat_answer(MADE)["choices"][0]["message"]
        assert call.warnings == ()
    else:
        assert "images" not in sent[1]
        assert MADE in sent[2]["content"]
        assert [warning.code for warning in call.warnings] == ["media_moved"]
