"""`transcribe` and `speak`, async and blocking, over HTTP against the simulator."""

import asyncio
import io
import wave
from pathlib import Path

import pytest

from interlingua import AbortController, Audio, Client, speak, sync, transcribe
from interlingua.errors import (
    AbortError,
    ConfigurationError,
    RequestTimeoutError,
    UnsupportedError,
)
from interlingua.media import stream_speech, stream_transcription
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, error, serve_in_thread, text
from interlingua.simulator.operations.modalities import RATE
from interlingua.transport import CannedReply, CannedTransport
from interlingua.wire.wav import wrap_samples
from support.simulated import run, simulated
from support.warning_codes import codes

WAV = wrap_samples(bytes(2 * RATE * 3), RATE)  # three seconds
SPEAKING = {"openai": "gpt-4o-mini-tts", "gemini": "gemini-2.5-flash-preview-tts"}
every_speaker = pytest.mark.parametrize("provider", SPEAKING)
TEXT = "one two three four five"


def frames(data):
    with wave.open(io.BytesIO(data)) as file:
        return file.getframerate(), file.getnframes()


async def joined(stream):
    async with stream:
        data = b"".join([chunk async for chunk in stream])
    return data, stream.result()


# Speaking.


@every_speaker
@pytest.mark.parametrize("audio_format", ["wav", "pcm"])
def test_whole_streamed_and_saved_audio_are_the_same(provider, audio_format, tmp_path):
    """However it is read, the samples are equal, and a WAV file has the right sizes."""
    model = f"{provider}:{SPEAKING[provider]}"
    path = tmp_path / "speech"

    async def work(client):
        options = {"format": audio_format, "client": client}
        whole = await speak(model, TEXT, **options)
        data, end = await joined(stream_speech(model, TEXT, **options))
        saved = await speak(model, TEXT, output_path=path, **options)
        return whole, data, end, saved

    with simulated() as peer:
        whole, data, end, saved = run(peer, work)

    assert whole.data[44:] == data[44:]
    assert path.read_bytes() == whole.data
    assert whole.media_type == end.media_type == saved.media_type
    assert saved.data == end.data == b""
    assert whole.provider == end.provider == provider
    assert whole.model.startswith(SPEAKING[provider])
    if audio_format == "wav":
        assert frames(path.read_bytes()) == (RATE, 5 * 480)
        assert whole.audio.media_type == "audio/wav"


@pytest.mark.parametrize("audio_format", ["mp3", "opus", "aac", "flac"])
def test_formats(audio_format):
    """OpenAI-shaped servers have them all; Gemini has only samples, and says so before sending."""

    async def work(client):
        speech = await speak("openai:tts-1", TEXT, format=audio_format, client=client)
        with pytest.raises(UnsupportedError, match="wav and pcm"):
            await speak(f"gemini:{SPEAKING['gemini']}", TEXT, format=audio_format, client=client)
        return speech

    with simulated() as peer:
        speech = run(peer, work)
        assert len(peer.app.script.received) == 1

    assert speech.media_type.startswith("audio/")
    assert speech.data


def test_several_speakers():
    """Gemini has two voices; OpenAI has one, and nothing is sent."""
    text = "Ann: Hello.\nBen: Good morning."
    voices = {"Ann": "Kore", "Ben": "Puck"}

    async def work(client):
        model = f"gemini:{SPEAKING['gemini']}"
        await speak(model, text, speakers=voices, client=client)
        with pytest.raises(UnsupportedError, match="at most 2 voices"):
            await speak(model, text, speakers=voices | {"Eva": "Leda"}, client=client)
        with pytest.raises(UnsupportedError, match="gemini"):
            await speak("openai:tts-1", text, speakers=voices, client=client)

    with simulated() as peer:
        run(peer, work)
        (sent,) = peer.app.script.received

    config = sent.call.body["generationConfig"]["speechConfig"]["multiSpeakerVoiceConfig"]
    assert [each["speaker"] for each in config["speakerVoiceConfigs"]] == ["Ann", "Ben"]


def test_settings():
    """What a model does not have is dropped with a warning; other hosts get no voice of OpenAI."""

    async def work(client):
        first = await speak("openai:tts-1", TEXT, instructions="Whisper.", client=client)
        second = await speak(f"gemini:{SPEAKING['gemini']}", TEXT, speed=2.0, client=client)
        third = await speak("openai:gpt-4o-mini-tts", TEXT, instructions="Whisper.", client=client)
        await speak("openai_compatible:kokoro", TEXT, client=client)
        return first, second, third

    with simulated() as peer:
        first, second, third = run(peer, work)
        bodies = [exchange.call.body for exchange in peer.app.script.received]

    assert [each.path for each in first.warnings] == ["instructions"]
    assert [each.path for each in second.warnings] == ["speed"]
    assert third.warnings == ()
    assert (bodies[0]["voice"], bodies[2]["instructions"]) == ("alloy", "Whisper.")
    assert "voice" not in bodies[3]


def test_costs():
    """By character, by token, by second of audio; an unknown price is None with a warning."""

    async def work(client):
        by_character = await speak("openai:tts-1", "a" * 1000, client=client)
        by_token = await speak("openai:gpt-4o-mini-tts-2025-12-15", TEXT, client=client)
        data, end = await joined(
            stream_speech("openai:gpt-4o-mini-tts-2025-12-15", TEXT, client=client)
        )
        by_second = await transcribe("openai:whisper-1", WAV, client=client)
        by_audio_token = await transcribe("openai:gpt-4o-transcribe", WAV, client=client)
        unknown = await transcribe("openai_compatible:my-model", WAV, client=client)
        return by_character, by_token, end, by_second, by_audio_token, unknown, data

    with simulated() as peer:
        by_character, by_token, end, by_second, by_audio_token, unknown, _ = run(peer, work)

    assert by_character.cost.total == pytest.approx(15.0 / 1000)
    usage = by_token.usage
    assert usage.output_audio_tokens == usage.output_tokens == 5
    expected = (usage.input_tokens * 0.6 + 5 * 12.0) / 1e6
    assert by_token.cost.total == pytest.approx(expected)
    assert end.cost == by_token.cost
    assert by_second.usage.audio_seconds == 3.0
    assert by_second.cost.total == pytest.approx(3 / 3600 * 0.36)
    heard = by_audio_token.usage
    expected = (heard.input_audio_tokens * 6.0 + heard.output_tokens * 10.0) / 1e6
    assert by_audio_token.cost.total == pytest.approx(expected)
    assert unknown.cost is None
    assert [each.code for each in unknown.warnings] == ["price_unknown"]


def test_reports_of_usage():
    """`on_usage` is called for speech too, through the middleware that every operation passes."""
    reports, names = [], []

    class Log:
        async def perform(self, operation, value, call_next):
            names.append(operation.name)
            return await call_next(value)

    async def work(client):
        client = client.with_middleware(Log())
        await speak("openai:tts-1", TEXT, on_usage=reports.append, client=client)
        await transcribe("openai:whisper-1", WAV, on_usage=reports.append, client=client)

    with simulated() as peer:
        run(peer, work)

    assert names == ["speak", "transcribe"]
    assert [report.model for report in reports] == ["tts-1", "whisper-1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": " "}, "not blank"),
        ({"text": 7}, "not blank"),
        ({"format": "midi"}, "mp3"),
        ({"voise": "x"}, "Unknown option 'voise'"),
        ({"text": "x" * 5000}, "at most 4096 characters"),
    ],
)
def test_bad_input_is_refused_before_sending(options, message):
    """With a typed error that says what is wrong."""

    async def work(client):
        await speak("openai:tts-1", **{"text": TEXT, "client": client, **options})

    with simulated() as peer:
        with pytest.raises(ConfigurationError, match=message):
            run(peer, work)
        assert peer.app.script.received == ()


def test_who_can_speak():
    """A provider that cannot says who can, before anything is sent."""

    async def work(client):
        await speak("anthropic:claude-haiku-4-5", TEXT, client=client)

    with simulated() as peer, pytest.raises(UnsupportedError, match="openai, gemini"):
        run(peer, work)


# Listening.


def test_segments_words_and_subtitles():
    """They are there if asked for; subtitles are made from the segments."""

    async def work(client):
        plain = await transcribe("openai:whisper-1", WAV, client=client)
        timed = await transcribe(
            "openai:whisper-1", WAV, timestamps=["segment", "word"], client=client
        )
        return plain, timed

    with simulated() as peer:
        plain, timed = run(peer, work)

    assert plain.text == timed.text
    assert (plain.segments, plain.words) == ((), ())
    assert "".join(f"{word.text} " for word in timed.words).strip() == timed.text
    assert timed.segments[-1].end == pytest.approx(timed.seconds) == pytest.approx(3.0)
    assert timed.to_srt() == f"1\n00:00:00,000 --> 00:00:03,000\n{timed.text}\n"
    assert timed.to_vtt() == f"WEBVTT\n\n00:00:00.000 --> 00:00:03.000\n{timed.text}\n"


def test_speakers():
    """Whole and streamed; the result of a stream has the segments."""
    model = "openai:gpt-4o-transcribe-diarize"

    async def work(client):
        whole = await transcribe(model, WAV, speakers=True, client=client)
        stream = stream_transcription(model, WAV, speakers=True, client=client)
        events = [event async for event in stream]
        return whole, events, stream.result()

    with simulated() as peer:
        whole, events, result = run(peer, work)

    assert [segment.speaker for segment in whole.segments] == ["A", "B"]
    assert result.segments == whole.segments
    assert "".join(each.text for each in events if type(each).__name__ == "TranscriptDelta") == (
        whole.text
    )
    assert whole.to_srt().count("A: ") == 1


def test_translation_has_its_own_endpoint():
    """Without the language of the audio, which is said in a warning."""

    async def work(client):
        return await transcribe(
            "openai:whisper-1", WAV, translate=True, language="no", client=client
        )

    with simulated() as peer:
        transcript = run(peer, work)
        (sent,) = peer.app.script.received

    assert sent.call.path.endswith("/audio/translations")
    assert "language" not in {part.name for part in sent.call.form}
    assert [each.path for each in transcript.warnings] == ["language"]


UNSUPPORTED = [
    ("openai:gpt-4o-transcribe", {"timestamps": "segment"}, "whisper-1"),
    ("openai:gpt-4o-transcribe", {"translate": True}, "whisper-1"),
    ("openai:gpt-4o-transcribe", {"speakers": True}, "diarize"),
    ("openai:whisper-1", {"speakers": True}, "diarize"),
    ("openai:whisper-1", {"translate": True, "timestamps": "word"}, "segment"),
    ("openai:gpt-4o-transcribe-diarize", {"timestamps": "word"}, "whisper-1"),
    ("gemini:gemini-2.5-flash", {"timestamps": "word"}, "segment"),
]


@pytest.mark.parametrize(("model", "options", "message"), UNSUPPORTED)
def test_what_models_cannot_do(model, options, message):
    """An error before sending names a model that can."""

    async def work(client):
        await transcribe(model, WAV, client=client, **options)

    with simulated() as peer:
        with pytest.raises(UnsupportedError, match=message):
            run(peer, work)
        assert peer.app.script.received == ()


def test_whisper_does_not_stream():
    """The vendor would ignore the wish; here it is an error before sending."""

    async def work(client):
        async for _ in stream_transcription("openai:whisper-1", WAV, client=client):
            pass

    with simulated() as peer, pytest.raises(UnsupportedError, match="gpt-4o-transcribe"):
        run(peer, work)


def test_gemini_transcribes():
    """In text, in segments, and as a stream."""
    segments = '{"language":"en","segments":[{"start":0,"end":1.5,"speaker":"A","text":"Hello."}]}'
    model = "gemini:gemini-2.5-flash"

    async def plain(client):
        stream = stream_transcription(model, WAV, client=client)
        events = [event.text async for event in stream]
        return await transcribe(model, WAV, client=client), events, stream.result()

    with simulated(text("Hello there.")) as peer:
        transcript, events, result = run(peer, plain)
        (body, _) = [each.call.body for each in peer.app.script.received]

    assert transcript.text == result.text == "".join(events) == "Hello there."
    assert body["contents"][0]["parts"][0]["inlineData"]["mimeType"] == "audio/wav"

    async def timed(client):
        return await transcribe(model, WAV, timestamps="segment", speakers=True, client=client)

    with simulated(text(segments)) as peer:
        transcript = run(peer, timed)

    (segment,) = transcript.segments
    assert (segment.end, segment.speaker, transcript.language) == (1.5, "A", "en")


@pytest.mark.parametrize("source", ["path", "bytes", "part"])
def test_sources(source, tmp_path):
    """A file is read from a Path; a name is refused."""
    path = tmp_path / "a.wav"
    path.write_bytes(WAV)
    audio = {"path": path, "bytes": WAV, "part": Audio(data=WAV)}[source]

    async def work(client):
        transcript = await transcribe("openai:whisper-1", audio, client=client)
        with pytest.raises(ConfigurationError, match=r"pathlib\.Path"):
            await transcribe("openai:whisper-1", str(path), client=client)
        return transcript

    with simulated() as peer:
        transcript = run(peer, work)
        (sent,) = peer.app.script.received

    (file,) = [part for part in sent.call.form if part.name == "file"]
    assert (file.content, file.file_name, file.media_type) == (WAV, "audio.wav", "audio/wav")
    assert transcript.text == f"This audio has {len(WAV)} bytes."


# Failures, cancelling, blocking.


def test_failures_before_the_audio_are_retried():
    """As other calls; a stream too."""
    reply = CannedReply(body=b"\xff\xfbaudio", headers={"content-type": "audio/mpeg"})
    busy = CannedReply(status=503, body=b"{}", headers={"retry-after-ms": "1"})
    canned = CannedTransport([busy, reply, busy, reply])

    async def work():
        async with Client({"openai": HttpAdapter("openai", "k", transport=canned)}) as client:
            whole = await speak("openai:tts-1", TEXT, client=client)
            data, _ = await joined(stream_speech("openai:tts-1", TEXT, client=client))
            return whole.data, data

    assert asyncio.run(work()) == (b"\xff\xfbaudio", b"\xff\xfbaudio")


def test_a_stream_can_be_left_cancelled_and_limited():
    """By closing it, by its id, by a signal, and by a timeout."""

    def client_of():
        canned = CannedTransport([CannedReply(body=(b"first", 60.0))])
        return Client({"openai": HttpAdapter("openai", "k", transport=canned)})

    async def by_id():
        async with client_of() as client:
            stream = stream_speech("openai:tts-1", TEXT, request_id="r1", client=client)
            assert await anext(stream) == b"first"
            assert await client.cancel("r1")
            with pytest.raises(AbortError):
                await anext(stream)

    async def by_signal():
        controller = AbortController()
        async with client_of() as client:
            stream = stream_speech(
                "openai:tts-1", TEXT, abort_signal=controller.signal, client=client
            )
            assert await anext(stream) == b"first"
            controller.abort()
            with pytest.raises(AbortError):
                await anext(stream)

    async def by_time():
        async with client_of() as client:
            stream = stream_speech("openai:tts-1", TEXT, timeout=0.1, client=client)
            with pytest.raises(RequestTimeoutError):
                [_ async for _ in stream]

    async def by_leaving():
        async with client_of() as client:
            async with stream_speech("openai:tts-1", TEXT, client=client) as stream:
                await anext(stream)
            with pytest.raises(ConfigurationError, match="has not ended"):
                stream.result()

    for way in (by_id, by_signal, by_time, by_leaving):
        asyncio.run(way())


def test_an_error_is_the_vendors(tmp_path):
    """A refused request is a typed error; no file is left behind."""

    async def work():
        canned = CannedTransport(
            [CannedReply(status=400, body=b'{"error":{"message":"bad voice"}}')] * 2
        )
        async with Client({"openai": HttpAdapter("openai", "k", transport=canned)}) as client:
            for options in ({}, {"output_path": tmp_path / "a.mp3"}):
                with pytest.raises(Exception, match="bad voice"):
                    await speak("openai:tts-1", TEXT, client=client, **options)

    asyncio.run(work())
    assert list(tmp_path.iterdir()) == []


def test_blocking_twins(tmp_path):
    """The same results, in a thread without a loop."""
    with serve_in_thread(Simulator()) as server:
        adapters = {"openai": HttpAdapter("openai", "k", base_url=server.url)}
        with sync.Client(adapters) as client:
            whole = sync.speak("openai:tts-1", TEXT, format="wav", client=client)
            stream = sync.media.stream_speech("openai:tts-1", TEXT, format="wav", client=client)
            with pytest.raises(ConfigurationError, match="has not ended"):
                stream.result()
            data = b"".join(stream)
            with sync.media.stream_speech("openai:tts-1", TEXT, format="wav", client=client) as it:
                size = it.save(tmp_path / "a.wav")
            text = sync.transcribe("openai:whisper-1", data, client=client).text
            events = sync.media.stream_transcription(
                "openai:gpt-4o-transcribe", data, client=client
            )
            spoken = "".join(event.text for event in events)

    assert data == whole.data == (tmp_path / "a.wav").read_bytes()
    assert (stream.result().media_type, size) == ("audio/wav", len(data))
    assert text == spoken == events.result().text


def test_a_blocking_stream_is_aborted():
    """The reader gets the error, not what had been read ahead."""
    controller = AbortController()
    with serve_in_thread(Simulator()) as server:
        adapters = {"openai": HttpAdapter("openai", "k", base_url=server.url)}
        with sync.Client(adapters) as client:
            stream = sync.media.stream_speech(
                "openai:tts-1", TEXT * 100, abort_signal=controller.signal, client=client
            )
            next(stream)
            controller.abort()
            with pytest.raises(AbortError):
                next(stream)


def test_simulated_errors():
    """A key that is refused is refused here too."""

    async def work(client):
        await speak("openai:tts-1", TEXT, client=client)

    with simulated(error(500), key="another") as peer, pytest.raises(Exception, match="key"):
        run(peer, work)


def test_codes_are_known():
    """Every warning of speech is in the table."""

    async def work(client):
        return await speak("openai:tts-1", TEXT, instructions="x", client=client)

    with simulated() as peer:
        assert codes(run(peer, work)) == ["setting_dropped"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"audio": b""}, "audio.data is empty"),
        ({"audio": Audio(data=b"x", media_type=5)}, "audio.media_type must be a string"),
        ({"audio": Path("missing.wav")}, "audio: cannot read 'missing.wav'"),
        ({"language": 5}, "language must be a string"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"timestamps": 5}, "timestamps must be"),
        ({"speakers": "yes"}, "speakers must be True or False"),
        ({"model": 5}, "model must be"),
        ({"model": "openai:whisper-\ud800"}, "model contains a lone surrogate"),
    ],
    ids=str,
)
def test_wrong_values_are_refused_before_sending(options, message):
    """By the name of the argument."""
    settings = {"model": "openai:whisper-1", "audio": WAV, **options}

    async def work(client):
        await transcribe(settings.pop("model"), settings.pop("audio"), **settings, client=client)

    with simulated() as peer:
        with pytest.raises(ConfigurationError, match=message):
            run(peer, work)
        assert peer.app.script.received == ()
