"""Speech on the wire: variants of hosts, and streams that are cut at every byte."""

import asyncio
import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.errors import ContentFilterError, SDKError, StreamError, UnsupportedError
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.content import Audio
from interlingua.spec.contracts import NEUTRAL_PROFILE
from interlingua.spec.modalities.speech import SpeakInput, Speech, TranscribeInput, Transcript
from interlingua.spec.operations import OperationReply
from interlingua.transport import CannedReply, CannedTransport
from interlingua.wire.wav import wrap_samples

WAV = wrap_samples(bytes(48_000), 24_000)  # one second
CHAT, GEMINI = dialects.get("openai_chat"), dialects.get("gemini_generate")


def fields(call):
    return [(part.name, part.content) for part in call.form if part.file_name is None]


def started(operation, value):
    """The first call of an operation."""
    if operation.script is None:
        return operation.encode(value, NEUTRAL_PROFILE)
    return next(operation.script(value, NEUTRAL_PROFILE))


def ended(operation, value, body, content_type="application/json"):
    """The result, after this reply to the first call."""
    script = operation.script(value, NEUTRAL_PROFILE)
    next(script)
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(StopIteration) as end:
        script.send(OperationReply(200, {"content-type": content_type}, body))
    return end.value.value


def heard(**options):
    return TranscribeInput(model="m", audio=Audio(data=WAV), **options)


# Mistral.


def test_mistral_transcribes_with_flags():
    """No formats, no brackets, no prompt; the words of its reply are read."""
    operation = CHAT.OPERATIONS["transcribe.mistral"]
    value = heard(speakers=True, prompt="names", language="en", temperature=0.0)

    call = started(operation, value)

    assert fields(call) == [
        ("model", "m"),
        ("language", "en"),
        ("temperature", "0.0"),
        ("diarize", "true"),
        ("timestamp_granularities", "segment"),
    ]
    assert [warning.path for warning in call.warnings] == ["prompt"]
    reply = {
        "model": "voxtral-mini-2602",
        "text": "Hello.",
        "language": None,
        "segments": [
            {"type": "transcription_segment", "text": "Hello.", "start": 0.1, "end": 0.9}
            | {"speaker_id": "speaker_1", "score": None}
        ],
        "usage": {"prompt_audio_seconds": 4, "prompt_tokens": 4, "total_tokens": 9},
    }
    transcript = ended(operation, value, reply)
    assert (transcript.model, transcript.usage.audio_seconds) == ("voxtral-mini-2602", 4.0)
    assert transcript.segments[0].speaker == "speaker_1"
    with pytest.raises(UnsupportedError, match="whisper-1"):
        started(operation, heard(translate=True))


def test_mistral_takes_stored_files():
    """By their ids; OpenAI takes bytes only."""
    value = TranscribeInput(model="m", audio=Audio(file_id="f1"))

    assert ("file_id", "f1") in fields(started(CHAT.OPERATIONS["transcribe.mistral"], value))
    with pytest.raises(UnsupportedError, match="as bytes"):
        started(CHAT.OPERATIONS["transcribe"], value)


def test_mistral_streams_transcripts():
    """Its events have names of their own."""
    decoder = CHAT.OPERATIONS["stream_transcription.mistral"].stream_decoder(heard())
    segment = {"type": "transcription.segment", "text": "b", "start": 0, "end": 1}
    body = sse(
        {"type": "transcription.language", "audio_language": "en"},
        {"type": "transcription.text.delta", "text": "a"},
        segment,
        {"type": "transcription.done", "text": "ab", "usage": {"prompt_audio_seconds": 2}},
    )

    items = [*decoder.feed(body), *decoder.finish()]

    assert [item.text for item in items] == ["a", "b", "ab"]
    assert items[-1].usage.audio_seconds == 2.0


def test_mistral_speaks_in_json():
    """With `voice_id`; the audio is in base64, and characters are paid for."""
    operation = CHAT.OPERATIONS["speak.mistral"]
    value = SpeakInput(model="voxtral-mini-tts-2603", text="Hi", voice="v1", speed=2.0)

    call = started(operation, value)
    speech = ended(operation, value, {"audio_data": base64.b64encode(b"mp3").decode()})

    assert call.body == {"model": "voxtral-mini-tts-2603", "input": "Hi", "voice_id": "v1"}
    assert [warning.path for warning in call.warnings] == ["speed"]
    assert (speech.data, speech.usage.characters) == (b"mp3", 2)
    streamed = CHAT.OPERATIONS["stream_speech.mistral"]
    assert started(streamed, value).body["stream"] is True
    decoder = streamed.stream_decoder(value)
    audio = {"type": "speech.audio.delta", "audio_data": base64.b64encode(b"mp3").decode()}
    end = {"type": "speech.audio.done", "usage": {"prompt_tokens": 3}}
    first, last = [*decoder.feed(sse(audio, end)), *decoder.finish()]
    assert (first, last.usage.characters) == (b"mp3", 2)


# Other hosts.


def test_groq_is_asked_for_the_length():
    """Its short reply has none, and seconds are what it bills."""
    value = heard()

    call = started(CHAT.OPERATIONS["transcribe.timed"], value)

    assert ("response_format", "verbose_json") in fields(call)
    reply = {"text": "Hi.", "duration": 1.5, "segments": []}
    assert ended(CHAT.OPERATIONS["transcribe.timed"], value, reply).usage.audio_seconds == 1.5


def test_the_length_of_a_wav_file_is_an_estimate_of_the_usage():
    """Where the reply says nothing; other audio stays unknown."""
    operation = CHAT.OPERATIONS["transcribe"]

    known = ended(operation, heard(), {"text": "Hi."})
    plain = ended(operation, heard(), b"Hi.\n", "text/plain")
    unknown = ended(
        operation, TranscribeInput(model="m", audio=Audio(data=b"ID3")), {"text": "Hi."}
    )

    assert (known.usage.audio_seconds, known.usage.estimated) == (1.0, True)
    assert (plain.text, plain.usage.audio_seconds) == ("Hi.", 1.0)
    assert unknown.usage.audio_seconds is None


ROWS = {
    "groq": ("/openai/v1/audio/transcriptions", "whisper-large-v3"),
    "together": ("/v1/audio/transcriptions", "openai/whisper-large-v3"),
    "deepinfra": ("/v1/openai/audio/transcriptions", "openai/whisper-large-v3"),
    "mistral": ("/v1/audio/transcriptions", "voxtral-mini-latest"),
}


@pytest.mark.parametrize("row", ROWS)
def test_rows_with_their_paths(row):
    """Each host has its own base address and takes the same form."""
    path, model = ROWS[row]
    canned = CannedTransport([CannedReply(body=b'{"text":"Hi."}')])
    adapter = HttpAdapter(row, "k", transport=canned)
    value = TranscribeInput(model=model, audio=Audio(data=WAV))

    transcript = asyncio.run(adapter.perform("transcribe", value))

    assert transcript.text == "Hi."
    assert canned.requests[0].url.endswith(path)


def test_detected_languages():
    """`gpt-transcribe` lists what it has heard."""
    reply = {"text": "Hi.", "languages": [{"code": "en"}, {"code": "no"}]}

    assert ended(CHAT.OPERATIONS["transcribe"], heard(), reply).language == "en"


# Streams.


def sse(*events):
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def piece(data, mime="audio/L16;codec=pcm;rate=24000", **more):
    blob = {"mimeType": mime, "data": base64.b64encode(data).decode()}
    return {"candidates": [{"content": {"parts": [{"inlineData": blob}]}, **more}]}


STREAMS = {
    "openai transcript": (
        CHAT.OPERATIONS["stream_transcription"],
        heard(),
        sse(
            {"type": "transcript.text.delta", "delta": "Hi "},
            {"type": "transcript.text.delta", "delta": "there"},
            {"type": "transcript.text.done", "text": "Hi there", "usage": {"type": "tokens"}},
        ),
        Transcript,
    ),
    "openai speech": (
        CHAT.OPERATIONS["stream_speech"],
        SpeakInput(model="gpt-4o-mini-tts", text="Hi"),
        sse(
            {"type": "speech.audio.delta", "audio": base64.b64encode(b"abc").decode()},
            {"type": "speech.audio.done", "usage": {"input_tokens": 1, "output_tokens": 2}},
        ),
        Speech,
    ),
    "gemini speech": (
        GEMINI.OPERATIONS["stream_speech"],
        SpeakInput(model="tts", text="Hi"),
        sse(piece(b"ab"), piece(b"cd", finishReason="STOP")),
        Speech,
    ),
    "gemini transcript": (
        GEMINI.OPERATIONS["stream_transcription"],
        heard(),
        sse(
            {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]},
            {"candidates": [{"content": {"parts": [{"text": "!"}]}, "finishReason": "STOP"}]},
        ),
        Transcript,
    ),
}
every_stream = pytest.mark.parametrize("name", STREAMS)


def read(operation, value, chunks):
    decoder = operation.stream_decoder(value)
    items = [item for chunk in chunks for item in decoder.feed(chunk)]
    return [*items, *decoder.finish()]


@every_stream
def test_chunking_never_shows(name):
    """One byte at a time gives what the whole gives."""
    operation, value, body, kind = STREAMS[name]

    whole = read(operation, value, [body])
    bytewise = read(operation, value, [body[i : i + 1] for i in range(len(body))])

    assert whole == bytewise
    assert isinstance(whole[-1], kind)


@every_stream
def test_cut_anywhere_is_an_error(name):
    """Before the last event has arrived, there is no result."""
    operation, value, body, kind = STREAMS[name]
    complete = body.rindex(b"}") + 1

    for cut in range(complete):
        with pytest.raises(SDKError):
            read(operation, value, [body[:cut]])
    assert isinstance(read(operation, value, [body[:complete]])[-1], kind)


@every_stream
@given(noise=st.binary(max_size=200))
def test_noise_raises_only_our_errors(name, noise):
    """Whatever a server sends."""
    operation, value, body, _ = STREAMS[name]

    for stream in (noise, body[:40] + noise, b"data: " + noise + b"\n\n"):
        with contextlib.suppress(SDKError):
            read(operation, value, [stream])


def test_a_server_that_knows_no_events_sends_bytes():
    """The first bytes decide, even if they come one by one."""
    operation, value, _, _ = STREAMS["openai speech"]
    data = b"ID3 data of an mp3"

    items = read(operation, value, [data[i : i + 1] for i in range(len(data))])

    assert b"".join(items[:-1]) == data
    assert items[-1].usage.characters == 2


def test_errors_and_refusals_in_streams_are_typed():
    """An error event, and an answer that was blocked."""
    operation, value, _, _ = STREAMS["gemini speech"]
    fault = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}
    blocked = {"candidates": [{"finishReason": "SAFETY"}]}

    with pytest.raises(SDKError, match="quota"):
        read(operation, value, [sse(fault)])
    with pytest.raises(ContentFilterError):
        read(operation, value, [sse(blocked)])
    with pytest.raises(StreamError):
        read(operation, value, [sse(piece(b"ab"))])
    openai, spoken, _, _ = STREAMS["openai speech"]
    with pytest.raises(SDKError, match="too long"):
        read(openai, spoken, [sse({"type": "error", "error": {"message": "too long"}})])


def test_gemini_audio_that_is_no_samples_keeps_its_type():
    """No header is put before it."""
    operation, value, _, _ = STREAMS["gemini speech"]

    items = read(operation, value, [sse(piece(b"ID3", "audio/mpeg", finishReason="STOP"))])

    assert (items[0], items[-1].media_type) == (b"ID3", "audio/mpeg")
