"""The vendors' own clients speak and listen through the simulator, over HTTP on loopback."""

import io
import wave

import openai
import pytest
from google import genai
from google.genai import types as genai_types

from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.wire.wav import wrap_samples

WAV = wrap_samples(bytes(48_000), 24_000)


@pytest.fixture
def client(closed):
    with serve_in_thread(Simulator()) as server:
        yield closed(openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0))


def ask(client, model="whisper-1", **options):
    return client.audio.transcriptions.create(model=model, file=("a.wav", WAV), **options)


def test_openai_transcribes(client):
    """In every format, with its own types."""
    plain = ask(client, "gpt-4o-transcribe")
    verbose = ask(
        client, response_format="verbose_json", timestamp_granularities=["segment", "word"]
    )
    diarized = ask(
        client,
        "gpt-4o-transcribe-diarize",
        response_format="diarized_json",
        chunking_strategy="auto",
    )

    assert plain.usage.type == "tokens"
    assert verbose.usage.type == "duration"
    assert (verbose.duration, verbose.usage.seconds) == (1.0, 1.0)
    assert len(verbose.segments) == 1
    assert [word.word for word in verbose.words] == verbose.text.split()
    assert [segment.speaker for segment in diarized.segments] == ["A", "B"]
    assert ask(client, response_format="text").strip() == plain.text
    assert "00:00:00,000 -->" in ask(client, response_format="srt")
    assert ask(client, response_format="vtt").startswith("WEBVTT")


def test_openai_streams_transcripts(client):
    """Deltas, then the whole text with its usage."""
    events = list(ask(client, "gpt-4o-transcribe", stream=True))

    *deltas, last = events
    assert {event.type for event in deltas} == {"transcript.text.delta"}
    assert "".join(event.delta for event in deltas) == last.text
    assert last.usage.total_tokens > 0


def test_openai_translates(client):
    """At its own endpoint, which the SDK calls deprecated."""
    with pytest.warns(DeprecationWarning, match="deprecated"):
        result = client.audio.translations.create(model="whisper-1", file=("a.wav", WAV))

    assert result.text.startswith("This audio has")


def test_openai_speaks(client):
    """Bytes, a stream to a file, and events."""
    speech = client.audio.speech.create(
        model="tts-1", voice="alloy", input="Hello there.", response_format="wav"
    )
    with client.audio.speech.with_streaming_response.create(
        model="tts-1", voice="alloy", input="Hello there.", response_format="wav"
    ) as streamed:
        data = b"".join(streamed.iter_bytes())

    assert speech.read() == data
    with wave.open(io.BytesIO(data)) as file:
        assert file.getframerate() == 24_000


def test_openai_is_told_what_is_wrong(client):
    """With the vendor's error."""
    with pytest.raises(openai.BadRequestError, match="response_format"):
        client.audio.speech.create(
            model="tts-1", voice="alloy", input="Hello", response_format="midi"
        )


def test_gemini_speaks_and_listens(closed):
    """Samples for a request that asks for audio; text for one that has audio."""
    with serve_in_thread(Simulator()) as server:
        options = genai_types.HttpOptions(base_url=server.url)
        client = closed(genai.Client(api_key="k", http_options=options))
        voice = genai_types.PrebuiltVoiceConfig(voice_name="Kore")
        speech = genai_types.SpeechConfig(
            voice_config=genai_types.VoiceConfig(prebuilt_voice_config=voice)
        )
        config = genai_types.GenerateContentConfig(
            response_modalities=["AUDIO"], speech_config=speech
        )
        model = "gemini-2.5-flash-preview-tts"
        reply = client.models.generate_content(
            model=model, contents="Say: hello there", config=config
        )
        chunks = client.models.generate_content_stream(
            model=model, contents="Say: hello there", config=config
        )
        streamed = b"".join(
            part.inline_data.data
            for chunk in chunks
            for part in chunk.parts or ()
            if part.inline_data
        )

    blob = reply.candidates[0].content.parts[0].inline_data
    assert blob.mime_type.startswith("audio/L16")
    assert blob.data == streamed
    assert len(blob.data) == 3 * 480 * 2

    with serve_in_thread(Simulator(text("Hello."))) as server:
        options = genai_types.HttpOptions(base_url=server.url)
        client = closed(genai.Client(api_key="k", http_options=options))
        part = genai_types.Part.from_bytes(data=WAV, mime_type="audio/wav")
        heard = client.models.generate_content(
            model="gemini-2.5-flash", contents=[part, "Transcribe."]
        )
    assert heard.text == "Hello."
