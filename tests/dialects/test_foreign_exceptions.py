"""Whatever a server sends or a caller names, only our own errors leave a dialect."""

import asyncio
import json
from contextlib import suppress
from urllib.parse import quote

import msgspec
import pytest

from interlingua import (
    Audio,
    FinishReason,
    Image,
    Message,
    Request,
    Response,
    Text,
    Usage,
    dialects,
)
from interlingua.dialects import Frame, events_from_response
from interlingua.dialects.gemini_generate import files as gemini_files
from interlingua.dialects.openai_shared import batches as openai_batches
from interlingua.errors import ProviderError, SDKError
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.media import refuse_lost_files
from interlingua.providers.rows import providers
from interlingua.simulator import Simulator
from interlingua.spec.content import STORED
from interlingua.spec.contracts import NEUTRAL_PROFILE
from interlingua.spec.modalities.speech import SpeakInput, TranscribeInput
from interlingua.spec.operations import OperationReply
from interlingua.transport import CannedReply, CannedTransport
from interlingua.wire.json_text import dumps, loads
from support.simulator_calls import call

DIGITS = "9" * 5_000
"""Python refuses to read such a number, or to write it."""
COUNT = 123_456
ANSWER = Response(
    id="r_1",
    model="m",
    message=Message.assistant([Text("Hello.")]),
    finish_reason=FinishReason(reason="stop"),
    usage=Usage(input_tokens=COUNT, output_tokens=COUNT),
)
SURROGATE = "a\ud800b"
every_dialect = pytest.mark.parametrize("dialect", dialects.names())


@every_dialect
@pytest.mark.parametrize("field", ["code", "type", "status", "message", "param"])
def test_an_error_with_a_number_of_many_digits_is_the_providers(dialect, field):
    """It is an error of the provider, with a text of moderate length."""
    body = json.dumps({"error": {"message": "no", field: 0}}).replace(": 0", f": {DIGITS}")

    error = dialects.get(dialect).decode_error(400, {}, body.encode())

    assert isinstance(error, ProviderError)
    assert error.status_code == 400
    assert len(str(error)) < 10_000


@every_dialect
def test_usage_of_many_digits_raises_no_foreign_exception(dialect):
    """Whole and streamed; the counts may be lost, or the answer is refused."""
    codec = dialects.get(dialect)
    whole = dumps(codec.encode_response(ANSWER)).decode()
    assert str(COUNT) in whole
    with suppress(SDKError):
        codec.decode_response(loads(whole.replace(str(COUNT), DIGITS)))

    encoder, decoder = codec.stream_encoder(None), codec.stream_decoder()
    frames = [frame for event in events_from_response(ANSWER) for frame in encoder.feed(event)]
    with suppress(SDKError):
        for frame in [*frames, *encoder.finish()]:
            decoder.feed(Frame(event=frame.event, data=frame.data.replace(str(COUNT), DIGITS)))
        decoder.finish()


@every_dialect
@pytest.mark.parametrize("field", ["model", "user", "text", "system", "name"])
def test_a_request_with_a_lone_surrogate_can_be_sent(dialect, field):
    """In any text of a request; what is encoded can be sent."""
    request = Request(model="m", messages=[Message.system("Be brief."), Message.user("Hi.")])
    changed = {
        "model": {"model": SURROGATE},
        "user": {"user": SURROGATE},
        "text": {"messages": (Message.user(SURROGATE),)},
        "system": {"messages": (Message.system(SURROGATE), Message.user("Hi."))},
        "name": {"messages": (Message(role="user", content="Hi.", name=SURROGATE),)},
    }[field]
    request = msgspec.structs.replace(request, **changed)

    with suppress(SDKError):
        sent = dialects.get(dialect).encode_request(request)
        assert dumps(sent.body).decode()
        assert sent.path.encode()


@every_dialect
@pytest.mark.parametrize("code", [DIGITS, "²", "٤٠٠", "4_0_0", " 429", "-429", [], {}, 10**400])
def test_an_error_in_a_success_with_an_odd_code_is_the_providers(dialect, code):
    """A body with status 200 may report an error; only a code of three digits is a status."""
    row = next(row for row in providers().values() if row.dialect == dialect)
    body = dumps({"error": {"message": "no", "code": code}, "code": code, "status": code})
    replies = CannedTransport([CannedReply(body=body)])
    adapter = HttpAdapter(row, "key", transport=replies, base_url="https://example.com")

    with pytest.raises(ProviderError, match="no"):
        asyncio.run(adapter.complete(Request(model="m", messages="Hi.")))


@pytest.mark.parametrize("code", [DIGITS, "²", "4_2_9", True, 10**40, -1])
def test_a_line_of_a_batch_with_an_odd_code_is_a_failed_request(code):
    """The status of a failed request is its code only if that is a status."""
    line = {"custom_id": "a", "error": {"code": code, "message": "no"}}

    assert openai_batches.read_reply(line, 0).status == 500
    assert openai_batches.read_reply(line | {"error": {"code": "429"}}, 0).status == 429


@pytest.mark.parametrize("value", [[], {}, ["ACTIVE"], {"a": 1}, 5, None, True])
@pytest.mark.parametrize("field", ["state", "sizeBytes", "createTime", "error"])
def test_a_file_of_gemini_with_an_odd_field_is_read(field, value):
    """The field is kept as it came."""
    file = gemini_files.read_file({"name": "files/a", field: value})

    assert (file.state, file.size) == ("ready", None)
    assert file.extra["gemini_generate"][field] == value


@pytest.mark.parametrize("year", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_time_outside_the_years_that_can_be_written_is_kept_as_it_came(year):
    """A time zone moves it before the year 1 or behind 9999."""
    file = gemini_files.read_file({"name": "files/a", "createTime": year})

    assert file.created_at is None
    assert file.extra["gemini_generate"] == {"createTime": year}


@pytest.mark.parametrize("parts", [5, "x", {"inlineData": {}}, [5], [{"inlineData": 5}], None])
def test_speech_of_gemini_with_odd_parts_has_no_audio(parts):
    """It is our error, whole and streamed, that says so."""
    body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    operations = dialects.get("gemini_generate").OPERATIONS
    value = SpeakInput(model="m", text="Hi.")
    whole = operations["speak"].script(value, NEUTRAL_PROFILE)
    next(whole)
    with pytest.raises(SDKError):
        whole.send(OperationReply(200, {}, dumps(body)))
    streamed = operations["stream_speech"].stream_decoder(value)
    assert streamed.feed(b"data: " + dumps(body) + b"\n\n") == []
    with pytest.raises(SDKError):
        streamed.finish()


def test_a_segment_of_gemini_at_an_impossible_time_begins_at_zero():
    """A number that does not fit into a float is none."""
    said = dumps({"segments": [{"text": "Hi.", "start": 10**400, "end": True}]}).decode()
    body = {"candidates": [{"content": {"parts": [{"text": said}]}, "finishReason": "STOP"}]}
    value = TranscribeInput(model="m", audio=Audio(data=b"RIFF"), timestamps=("segment",))
    script = dialects.get("gemini_generate").OPERATIONS["transcribe"].script(value, NEUTRAL_PROFILE)
    next(script)

    with pytest.raises(StopIteration) as end:
        script.send(OperationReply(200, {}, dumps(body)))
    assert [(part.start, part.end) for part in end.value.value.segments] == [(0.0, 0.0)]


REFUSED = [
    ("/v1/audio/speech", {"model": "m", "input": "Hi.", "response_format": {}}),
    ("/v1/audio/speech", {"model": "m", "input": "Hi.", "response_format": []}),
    ("/v1/audio/speech", {"model": "m", "input": "Hi.", "response_format": "tape"}),
]


@pytest.mark.parametrize(("path", "body"), REFUSED)
def test_an_odd_response_format_is_refused_by_the_simulator(path, body):
    """With a 400, as the vendor does, and not with a failure of the server."""
    assert call(Simulator(), path, body).status == 400


@pytest.mark.parametrize("path", ["/v1/batch/jobs?page=", "/v1/batch/jobs?page_size="])
@pytest.mark.parametrize("number", [DIGITS, "-1", "²", "1_0", ""])
def test_an_odd_page_is_refused_or_the_first_one(path, number):
    """A number of a query is text of a stranger."""
    reply = call(Simulator(), path + quote(number), method="GET")

    assert reply.status in (200, 400)


def test_a_file_that_expires_at_an_impossible_time_is_sent():
    """The time stands in a message, which may be a stranger's."""
    for moment in (-(10**400), -1e300, "x", []):
        extra = {STORED: {"provider": "openai", "expires_at": moment}}
        request = Request(messages=[Message.user(Image(file_id="f", extra=extra))])
        refuse_lost_files(request, ("openai",), 1_000.0)
