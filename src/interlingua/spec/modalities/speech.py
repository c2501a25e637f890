"""Speech: audio to text, and text to audio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from interlingua.spec.check import Amount
from interlingua.spec.content import Audio, Record
from interlingua.spec.operations import OperationInput, OperationResult

AudioFormat: TypeAlias = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
"""A format of spoken audio; `pcm` is 16-bit samples without a header, 24,000 a second."""
Timestamps: TypeAlias = Literal["segment", "word"]
"""What of a transcript has times."""

AUDIO_TYPES: Mapping[AudioFormat, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}
"""The media types of the formats."""


class TranscribeInput(OperationInput, frozen=True, kw_only=True):
    """Audio to transcribe."""

    audio: Audio
    language: str | None = None
    """The language of the audio, as in ISO 639-1; guessed if None."""
    prompt: str | None = None
    """A text that guides the style and the spelling of names."""
    temperature: Amount | None = None
    timestamps: tuple[Timestamps, ...] = ()
    speakers: bool = False
    """Say who speaks in each segment."""
    translate: bool = False
    """Translate the text to English."""

    @property
    def rough_size(self) -> int:
        """As in `OperationInput`."""
        return len(self.audio.data or b"")


class TranscriptWord(Record, frozen=True, kw_only=True):
    """A word and when it is spoken, in seconds."""

    text: str
    """The word."""
    start: float = 0.0
    """When it begins, in seconds."""
    end: float = 0.0
    """When it ends, in seconds."""


class TranscriptSegment(Record, frozen=True, kw_only=True):
    """A part of a transcript and when it is spoken, in seconds."""

    text: str
    """What is said."""
    start: float = 0.0
    """When it begins, in seconds."""
    end: float = 0.0
    """When it ends, in seconds."""
    speaker: str | None = None
    """Who speaks, if speakers were asked for."""


class TranscriptDelta(Record, frozen=True, kw_only=True):
    """The next piece of the text of a transcript."""

    text: str
    """The piece."""


class Transcript(OperationResult, frozen=True, kw_only=True):
    """The text of an audio file."""

    text: str = ""
    """The whole text."""
    language: str | None = None
    """The language, as the provider names it."""
    seconds: float | None = None
    """The length of the audio, if the provider says so."""
    segments: tuple[TranscriptSegment, ...] = ()
    """The segments with their times, if `timestamps` or `speakers` asked for them."""
    words: tuple[TranscriptWord, ...] = ()
    """The words with their times, if `timestamps` asked for them."""

    def to_srt(self) -> str:
        """Write the segments as SubRip subtitles."""
        cues = (
            f"{number}\n{_time(each.start, ',')} --> {_time(each.end, ',')}\n{_line(each)}\n"
            for number, each in enumerate(self.segments, 1)
        )
        return "\n".join(cues)

    def to_vtt(self) -> str:
        """Write the segments as WebVTT subtitles."""
        cues = (
            f"{_time(each.start, '.')} --> {_time(each.end, '.')}\n{_line(each)}\n"
            for each in self.segments
        )
        return "\n".join(("WEBVTT\n", *cues))


class SpeakInput(OperationInput, frozen=True, kw_only=True):
    """Text to speak."""

    text: str
    voice: str | None = None
    format: AudioFormat | None = None
    """None: the format that the provider prefers."""
    speed: float | None = None
    """1.0 is the normal speed."""
    instructions: str | None = None
    """How to speak: tone, pace, accent."""
    speakers: Mapping[str, str] = {}
    """The voices of several speakers, by the names that the text has before their lines."""


class Speech(OperationResult, frozen=True, kw_only=True):
    """Spoken text. At the end of a stream of audio, `data` is empty."""

    data: bytes = b""
    """The audio."""
    media_type: str = ""
    """The media type, such as `audio/mpeg`."""

    @property
    def audio(self) -> Audio:
        """The audio as a part of a message."""
        return Audio(data=self.data, media_type=self.media_type or None)

    def __repr__(self) -> str:
        return f"Speech({self.media_type}, {len(self.data)} bytes, model={self.model!r})"


def _time(seconds: float, point: str) -> str:
    milliseconds = max(0, round(seconds * 1000))
    minutes, milliseconds = divmod(milliseconds, 60_000)
    whole, rest = divmod(milliseconds, 1000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{whole:02d}{point}{rest:03d}"


def _line(segment: TranscriptSegment) -> str:
    # A blank line would end the cue, and `-->` would begin another one.
    text = " ".join(segment.text.split()).replace("-->", "->")
    return f"{segment.speaker}: {text}" if segment.speaker else text
