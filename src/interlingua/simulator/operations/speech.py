"""Simulated speech: a tone for each word, and a transcript that tells the size of the audio."""

from __future__ import annotations

import math
from array import array

from interlingua import dialects
from interlingua.simulator.answer import count_text
from interlingua.simulator.dsl import Turn
from interlingua.spec.content import Audio
from interlingua.spec.modalities.speech import (
    MEDIA_TYPES,
    SpeakInput,
    Speech,
    TranscribeInput,
    Transcript,
    TranscriptSegment,
    TranscriptWord,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Usage
from interlingua.wire.wav import wav_seconds, wrap_samples

RATE = 24_000
"""Samples a second."""
_WORD = 0.02  # seconds of sound for each word
_MAX_WORDS = 500
_SILENCE = b"\xff\xfb\x90\x00" + bytes(413)  # one silent frame of MP3


def speak(value: SpeakInput) -> Speech:
    """Real samples for `wav` and `pcm`; silent frames for the other formats."""
    words = value.text.split()[:_MAX_WORDS]
    audio_format = value.format or "mp3"
    if audio_format in ("wav", "pcm"):
        samples = b"".join(_tone(len(word)) for word in words)
        data = wrap_samples(samples, RATE) if audio_format == "wav" else samples
    else:
        data = _SILENCE * max(1, len(words))
    usage = Usage(input_tokens=count_text(value.text), output_tokens=len(words))
    return Speech(data=data, media_type=MEDIA_TYPES[audio_format], usage=usage, model=value.model)


def wanted_speech(request: Request) -> SpeakInput | None:
    """The speech that a request asks for, in the terms of any dialect; None if it asks for none."""
    for name in dialects.names():
        find = getattr(getattr(dialects.get(name), "serve", None), "wanted_speech", None)
        wanted: SpeakInput | None = None if find is None else find(request)
        if wanted is not None:
            return wanted
    return None


def say(value: SpeakInput) -> Turn:
    """The turn of a chat model that speaks this text."""
    speech = speak(value)
    return Turn(parts=(Audio(data=speech.data, media_type=f"audio/L16;codec=pcm;rate={RATE}"),))


def transcribe(value: TranscribeInput) -> Transcript:
    """One segment for each speaker, or one in all; each word takes a third of a second."""
    data = value.audio.data or b""
    seconds = wav_seconds(data)
    seconds = 1.0 if seconds is None else seconds
    text = f"This audio has {len(data)} bytes."
    words = text.split()
    step = seconds / len(words)
    half = len(words) // 2
    parts = (words[:half], words[half:]) if value.speakers else (words,)
    segments, start = [], 0
    for speaker, part in zip("AB", parts, strict=False):
        end = start + len(part)
        segments.append(
            TranscriptSegment(
                text=" ".join(part),
                start=start * step,
                end=end * step,
                speaker=speaker if value.speakers else None,
            )
        )
        start = end
    is_whisper = "whisper" in value.model
    tokens = Usage(
        input_tokens=max(1, round(seconds * 10)),
        input_audio_tokens=max(1, round(seconds * 10)),
        output_tokens=count_text(text),
    )
    return Transcript(
        model=value.model,
        text=text,
        language="english",
        seconds=seconds,
        segments=tuple(segments),
        words=tuple(
            TranscriptWord(text=word, start=i * step, end=(i + 1) * step)
            for i, word in enumerate(words)
        ),
        usage=Usage(audio_seconds=seconds) if is_whisper else tokens,
    )


def _tone(pitch: int) -> bytes:
    turn = 2 * math.pi * (200 + 40 * min(pitch, 30)) / RATE
    samples = array("h", (round(8000 * math.sin(turn * i)) for i in range(round(RATE * _WORD))))
    return samples.tobytes()
