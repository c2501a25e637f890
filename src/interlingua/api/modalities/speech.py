"""`transcribe`, `speak`, and their streamed forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TypeAlias, Unpack

from msgspec.structs import replace

from interlingua.api.modalities.perform import MediaCall, MediaOptions
from interlingua.api.modalities.sources import AudioSource, media_part
from interlingua.api.modalities.streams import ItemStream
from interlingua.spec.check import check_literal, describe, refuse
from interlingua.spec.content import Audio
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.modalities.speech import (
    AudioFormat,
    SpeakInput,
    Speech,
    Timestamps,
    TranscribeInput,
    Transcript,
    TranscriptDelta,
    TranscriptSegment,
)
from interlingua.transport.downloads import save
from interlingua.wire.wav import unsized

TranscriptEvent: TypeAlias = TranscriptDelta | TranscriptSegment
"""What a streamed transcript consists of."""


async def transcribe(
    model: str,
    audio: AudioSource,
    *,
    language: str | None = None,
    prompt: str | None = None,
    temperature: float | None = None,
    timestamps: Timestamps | Iterable[Timestamps] = (),
    speakers: bool = False,
    translate: bool = False,
    **options: Unpack[MediaOptions],
) -> Transcript:
    """
    Return the text of an audio file.

        transcript = await transcribe("openai:whisper-1", Path("call.mp3"), timestamps="segment")
        print(transcript.text, transcript.to_srt())

    `timestamps` asks for the times of segments, words or both; `speakers` asks who speaks in each
    segment; `translate` asks for English. A provider that cannot do what is asked for raises
    `UnsupportedError` before anything is sent.
    """
    call = MediaCall(model, options)
    value = TranscribeInput(
        audio=media_part(audio, Audio, "audio"),
        language=language,
        prompt=prompt,
        temperature=temperature,
        timestamps=_timestamps(timestamps),
        speakers=speakers,
        translate=translate,
        **call.fields(),
    )
    result: Transcript = await call.run(call.perform("transcribe", value))
    return result


def stream_transcription(
    model: str,
    audio: AudioSource,
    *,
    language: str | None = None,
    prompt: str | None = None,
    temperature: float | None = None,
    speakers: bool = False,
    **options: Unpack[MediaOptions],
) -> TranscriptStream:
    """
    Return the text of an audio file as it is recognised.

        async for event in stream_transcription("openai:gpt-4o-transcribe", Path("call.mp3")):
            print(event.text, end="")
    """
    call = MediaCall(model, options)
    value = TranscribeInput(
        audio=media_part(audio, Audio, "audio"),
        language=language,
        prompt=prompt,
        temperature=temperature,
        speakers=speakers,
        **call.fields(),
    )
    return TranscriptStream(call.stream("stream_transcription", value))


async def speak(
    model: str,
    text: str,
    *,
    voice: str | None = None,
    format: AudioFormat | None = None,  # noqa: A002 -- the name that users know
    speed: float | None = None,
    instructions: str | None = None,
    speakers: Mapping[str, str] | None = None,
    output_path: str | PathLike[str] | None = None,
    **options: Unpack[MediaOptions],
) -> Speech:
    """
    Speak a text.

        speech = await speak("openai:gpt-4o-mini-tts", "Hello.", voice="alloy")
        Path("hello.mp3").write_bytes(speech.data)

    With `output_path` the audio is written to that file while it arrives, and `data` is empty.
    """
    call = MediaCall(model, options)
    value = _speak_input(call, text, voice, format, speed, instructions, speakers)
    if output_path is None:
        result: Speech = await call.run(call.perform("speak", value))
        return result
    async with SpeechStream(call.stream("stream_speech", value)) as stream:
        await stream.save(output_path)
        return stream.result()


def stream_speech(
    model: str,
    text: str,
    *,
    voice: str | None = None,
    format: AudioFormat | None = None,  # noqa: A002 -- the name that users know
    speed: float | None = None,
    instructions: str | None = None,
    speakers: Mapping[str, str] | None = None,
    **options: Unpack[MediaOptions],
) -> SpeechStream:
    """
    Speak a text and return the audio as it is made, for a player.

        async for chunk in stream_speech("openai:tts-1", "Hello.", format="pcm"):
            player.write(chunk)
    """
    call = MediaCall(model, options)
    value = _speak_input(call, text, voice, format, speed, instructions, speakers)
    return SpeechStream(call.stream("stream_speech", value))


class SpeechStream(ItemStream[bytes, Speech]):
    """
    Pieces of audio, which can be read once.

    At the end, `result()` has the media type, the usage and the cost.
    """

    async def save(self, path: str | PathLike[str]) -> int:
        """Write the audio to a file as it arrives; returns the number of bytes."""
        return await save(self, path, patch=unsized)


class TranscriptStream(ItemStream[TranscriptEvent, Transcript]):
    """
    Pieces of a transcript, which can be read once.

    A `TranscriptDelta` has the next text, a `TranscriptSegment` who spoke it. At the end,
    `result()` has the whole transcript.
    """

    _segments: tuple[TranscriptSegment, ...] = ()

    async def __anext__(self) -> TranscriptEvent:
        event = await super().__anext__()
        if isinstance(event, TranscriptSegment):
            self._segments = (*self._segments, event)
        return event

    def _finish(self, end: Transcript) -> Transcript:
        return end if end.segments else replace(end, segments=self._segments)


def _timestamps(given: object) -> tuple[Timestamps, ...]:
    if not isinstance(given, Iterable):
        refuse("timestamps", "'segment', 'word' or a list of them", given)
    kinds = (given,) if isinstance(given, str) else tuple(given)
    for kind in kinds:
        check_literal("timestamps", kind, Timestamps)
    return kinds


def _speak_input(
    call: MediaCall,
    text: str,
    voice: str | None,
    audio_format: AudioFormat | None,
    speed: float | None,
    instructions: str | None,
    speakers: Mapping[str, str] | None,
) -> SpeakInput:
    given: object = text  # a caller without a type checker may pass anything
    if not isinstance(given, str) or not given.strip():
        raise ConfigurationError(f"`text` must be a text that is not blank, not {describe(text)}.")
    if audio_format is not None:
        check_literal("format", audio_format, AudioFormat)
    return SpeakInput(
        text=text,
        voice=voice,
        format=audio_format,
        speed=speed,
        instructions=instructions,
        speakers=speakers or {},
        **call.fields(),
    )
