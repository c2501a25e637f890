"""Whatever a server sends or a caller names, only our own errors leave a dialect."""

import json
from contextlib import suppress

import msgspec
import pytest

from interlingua import FinishReason, Message, Request, Response, Text, Usage, dialects
from interlingua.dialects import Frame, events_from_response
from interlingua.errors import ProviderError, SDKError
from interlingua.wire.json_text import dumps, loads

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
        call = dialects.get(dialect).encode_request(request)
        assert dumps(call.body).decode()
        assert call.path.encode()
