"""
Speech: `generateContent` with audio in or out.

There are no endpoints for speech. A model that speaks returns 16-bit samples without a header; a
model that listens is asked for the transcript.
https://ai.google.dev/gemini-api/docs/speech-generation
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from interlingua.dialects.gemini_generate.decoder import stream_decoder
from interlingua.dialects.gemini_generate.errors import read_error
from interlingua.dialects.gemini_generate.facts import NAME
from interlingua.dialects.gemini_generate.media_calls import decode_reply, encode_media_call
from interlingua.dialects.gemini_generate.response import decode_response
from interlingua.spec.content import Audio, Json, Text, UncheckedJson
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import ContentFilterError, DecodeError, StreamError, UnsupportedError
from interlingua.spec.events import Finish, TextDelta
from interlingua.spec.modalities.speech import (
    SpeakInput,
    Speech,
    TranscribeInput,
    Transcript,
    TranscriptDelta,
    TranscriptSegment,
)
from interlingua.spec.operations import Operation, Script
from interlingua.spec.request import Request
from interlingua.spec.response import Response, Usage, Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import is_number
from interlingua.wire.json_text import loads
from interlingua.wire.media import decode_base64
from interlingua.wire.sse import SSEDecoder
from interlingua.wire.wav import wav_header, wrap_samples

_RATE = 24_000  # samples a second, if the media type does not say
_find_rate = re.compile(r"rate=([0-9]{1,7})").search
_VOICE = "Kore"  # the voice of the vendor's examples: a voice must be named
_UNKNOWN_SIZE = 0xFFFFFFFF - 36  # of a WAV file whose length is not known yet
_FORMATS = ("wav", "pcm")
_MAX_SPEAKERS = 2  # of `MultiSpeakerVoiceConfig`, as documented
_SCHEMA: dict[str, Json] = {
    "type": "OBJECT",
    "properties": {
        "language": {"type": "STRING", "description": "ISO 639-1 code of the spoken language"},
        "segments": {
            "type": "ARRAY",
            "items": {
                "type": "OBJECT",
                "properties": {
                    "start": {"type": "NUMBER", "description": "seconds from the beginning"},
                    "end": {"type": "NUMBER", "description": "seconds from the beginning"},
                    "speaker": {"type": "STRING", "description": "A, B, … by first appearance"},
                    "text": {"type": "STRING"},
                },
                "required": ["start", "end", "text"],
            },
        },
    },
    "required": ["segments"],
}


# Speaking.


def _speak(value: SpeakInput, profile: Profile) -> Script:
    reply = yield _encode_speak(value, profile, stream=False)
    response = decode_reply(reply)
    parts = [part for part in response.message.content if isinstance(part, Audio) and part.data]
    if not parts:
        raise _no_audio(response)
    data = b"".join(part.data or b"" for part in parts)
    media_type = parts[0].media_type or ""
    if _is_raw(media_type) and value.format != "pcm":
        data = wrap_samples(data, _rate(media_type))
    return Speech(
        data=data,
        media_type=_sent_type(media_type, value),
        usage=_spoken(response.usage),
        model=response.model,
        raw=response.raw,
    )


def _encode_speak(value: SpeakInput, profile: Profile, *, stream: bool) -> WireCall:
    if value.format not in (None, *_FORMATS):
        raise UnsupportedError(
            f"{value.model} speaks in the formats wav and pcm, not {value.format}. Convert it, or "
            "use another provider."
        )
    if len(value.speakers) > _MAX_SPEAKERS:
        raise UnsupportedError(
            f"{value.model} speaks with at most {_MAX_SPEAKERS} voices, not {len(value.speakers)}."
        )
    warnings: tuple[Warning, ...] = ()
    if value.speed is not None:
        fields = {"target": value.model, "setting": "speed", "when": ""}
        warnings = (make_warning("setting_dropped", path="speed", **fields),)
    # Style is asked for in words, before the text.
    text = value.text if value.instructions is None else f"{value.instructions}\n\n{value.text}"
    config: dict[str, Json] = {
        "responseModalities": ["AUDIO"],
        "speechConfig": _speech_config(value),
    }
    return encode_media_call(
        value, (Text(text),), config, profile, stream=stream, warnings=warnings
    )


def _speech_config(value: SpeakInput) -> dict[str, Json]:
    if not value.speakers:
        return {"voiceConfig": _voice(value.voice or _VOICE)}
    voices: list[Json] = [
        {"speaker": speaker, "voiceConfig": _voice(voice)}
        for speaker, voice in value.speakers.items()
    ]
    return {"multiSpeakerVoiceConfig": {"speakerVoiceConfigs": voices}}


def _voice(name: str) -> dict[str, Json]:
    return {"prebuiltVoiceConfig": {"voiceName": name}}


def _is_raw(media_type: str) -> bool:
    return media_type.lower().startswith(("audio/l16", "audio/pcm"))


def _sent_type(media_type: str, value: SpeakInput) -> str:
    """The media type of what the caller gets, from that of what the provider sends."""
    if not _is_raw(media_type):
        return media_type
    return f"audio/pcm;rate={_rate(media_type)}" if value.format == "pcm" else "audio/wav"


def _spoken(usage: Usage) -> Usage:
    """The usage; all output of a model that speaks is audio."""
    if usage.output_audio_tokens is not None:
        return usage
    return replace(usage, output_audio_tokens=usage.output_tokens)


def _rate(media_type: str) -> int:
    match = _find_rate(media_type)
    return int(match[1]) if match else _RATE


class _SpeechItems:
    """Samples as they arrive; a WAV file begins with a header that names no length."""

    def __init__(self, value: SpeakInput) -> None:
        self._frames = SSEDecoder()
        self._value = value
        self._media_type = ""
        self._has_ended = False
        self._last: dict[str, Json] = {}
        self._usage: Json = None

    def feed(self, chunk: bytes) -> list[Any]:
        """The audio of the events that this chunk completes."""
        return [data for frame in self._frames.feed(chunk) for data in self._read(frame.data)]

    def finish(self) -> list[Any]:
        """The rest of the audio, and its end; `StreamError` if it is incomplete."""
        items: list[Any] = [
            data for frame in self._frames.finish() for data in self._read(frame.data)
        ]
        last = decode_response({"candidates": [], **self._last, "usageMetadata": self._usage})
        if not self._has_ended and last.finish_reason.reason != "content_filter":
            raise StreamError("The stream ended before a finish reason.")
        if not self._media_type:
            raise _no_audio(last)
        return [
            *items,
            Speech(
                media_type=_sent_type(self._media_type, self._value),
                usage=_spoken(last.usage),
                model=last.model,
            ),
        ]

    def _read(self, data: str) -> list[bytes]:
        body = loads(data) if data else None
        if not isinstance(body, dict):
            return []
        if body.get("error") and "candidates" not in body:
            raise read_error(None, {}, body)
        self._last = body
        self._usage = body.get("usageMetadata", self._usage)
        candidate = _candidate(body)
        self._has_ended = self._has_ended or bool(candidate.get("finishReason"))
        pieces: list[bytes] = []
        for blob in _blobs(candidate):
            samples = decode_base64(str(blob.get("data", "")))
            if samples is None:
                raise DecodeError("A piece of the audio is not valid base64.")
            if not self._media_type:
                self._media_type = str(blob.get("mimeType") or "audio/l16")
                if self._value.format != "pcm" and _is_raw(self._media_type):
                    pieces.append(wav_header(_UNKNOWN_SIZE, _rate(self._media_type)))
            pieces.append(samples)
        return pieces


def _candidate(body: dict[str, Json]) -> dict[str, Json]:
    candidates = body.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    return first if isinstance(first, dict) else {}


def _blobs(candidate: dict[str, Json]) -> list[dict[str, Json]]:
    """The inline data of a candidate."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    parts = parts if isinstance(parts, list) else []
    blobs = [part.get("inlineData") for part in parts if isinstance(part, dict)]
    return [blob for blob in blobs if isinstance(blob, dict)]


def _no_audio(response: Response) -> Exception:
    finish = response.finish_reason
    if finish.reason == "content_filter":
        return ContentFilterError(
            f"The provider refused to speak this text ({finish.raw}).", partial=response
        )
    return DecodeError(f"The reply has no audio (finish reason {finish.raw or 'unknown'}).")


# Listening.


def _transcribe(value: TranscribeInput, profile: Profile) -> Script:
    reply = yield _encode_transcribe(value, profile, stream=False)
    response = decode_reply(reply)
    if response.finish_reason.reason == "content_filter":
        raise ContentFilterError("The provider refused to transcribe.", partial=response)
    if not value.timestamps and not value.speakers:
        return Transcript(
            text=response.text.strip(),
            language=value.language,
            usage=response.usage,
            model=response.model,
            raw=response.raw,
        )
    return _read_segments(response, value)


def _encode_transcribe(value: TranscribeInput, profile: Profile, *, stream: bool) -> WireCall:
    if stream and value.speakers:
        raise UnsupportedError(
            f"{value.model} does not say who speaks in a stream. Use `transcribe`, or a model such "
            "as gpt-4o-transcribe-diarize."
        )
    if "word" in value.timestamps:
        raise UnsupportedError(
            f"{value.model} gives times of segments, not of words. Use timestamps='segment', or "
            "a model such as whisper-1."
        )
    sentences = [
        "Translate the speech to English." if value.translate else "Transcribe the speech.",
        "Return only the text, with punctuation.",
    ]
    if value.language is not None:
        sentences.append(f"The language is {value.language}.")
    if value.prompt is not None:
        sentences.append(f"Context: {value.prompt}")
    config: dict[str, Json] = {}
    if value.temperature is not None:
        config["temperature"] = value.temperature
    if (value.timestamps or value.speakers) and not stream:
        # The API has no times and speakers of its own, so the model writes them in a schema.
        config |= {"responseMimeType": "application/json", "responseSchema": _SCHEMA}
        sentences.append("Give the start and the end of each segment in seconds.")
        if value.speakers:
            sentences.append("Say who speaks in each segment.")
    parts = (value.audio, Text(" ".join(sentences)))
    return encode_media_call(value, parts, config, profile, stream=stream)


def _read_segments(response: Response, value: TranscribeInput) -> Transcript:
    body = loads(response.text)
    rows = body.get("segments") if isinstance(body, dict) else None
    if not isinstance(rows, list):
        raise DecodeError("The model returned no segments.")
    segments = tuple(_read_segment(each) for each in rows if isinstance(each, dict))
    language = body.get("language")
    return Transcript(
        text=" ".join(segment.text for segment in segments),
        language=language if isinstance(language, str) else value.language,
        segments=segments,
        usage=response.usage,
        model=response.model,
        raw=response.raw,
    )


def _read_segment(wire: dict[str, Json]) -> TranscriptSegment:
    speaker = wire.get("speaker")
    return TranscriptSegment(
        text=str(wire.get("text", "")).strip(),
        start=_seconds(wire.get("start")),
        end=_seconds(wire.get("end")),
        speaker=speaker if isinstance(speaker, str) else None,
    )


def _seconds(value: UncheckedJson) -> float:
    return float(value) if is_number(value) else 0.0


class _TranscriptItems:
    """The text as it arrives."""

    def __init__(self) -> None:
        self._frames = SSEDecoder()
        self._events = stream_decoder()
        self._pieces: list[str] = []
        self._usage = Usage()
        self._reason = ""

    def feed(self, chunk: bytes) -> list[Any]:
        """The text of the events that this chunk completes."""
        frames = self._frames.feed(chunk)
        return self._items([event for frame in frames for event in self._events.feed(frame)])

    def finish(self) -> list[Any]:
        """The last text, and the whole transcript; `StreamError` if it is incomplete."""
        frames = self._frames.finish()
        events = [event for frame in frames for event in self._events.feed(frame)]
        items = self._items([*events, *self._events.finish()])
        if self._reason == "content_filter":
            raise ContentFilterError("The provider refused to transcribe.")
        return [*items, Transcript(text="".join(self._pieces).strip(), usage=self._usage)]

    def _items(self, events: list[Any]) -> list[Any]:
        items: list[Any] = []
        for event in events:
            if isinstance(event, TextDelta):
                self._pieces.append(event.delta)
                items.append(TranscriptDelta(text=event.delta))
            elif isinstance(event, Finish):
                self._usage, self._reason = event.usage, event.finish_reason.reason
        return items


# The server side.


def wanted_speech(request: Request) -> SpeakInput | None:
    """The speech that a request for an answer asks for; None if it asks for none."""
    config = request.provider_options.get(NAME, {}).get("generationConfig")
    config = config if isinstance(config, Mapping) else {}
    if config.get("responseModalities") != ["AUDIO"]:
        return None
    text = request.messages[-1].text if request.messages else ""
    match config.get("speechConfig"):
        case {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": str(voice)}}}:
            return SpeakInput(model=request.model, text=text, voice=voice, format="pcm")
        case {"multiSpeakerVoiceConfig": {"speakerVoiceConfigs": list(configs)}}:
            names = [str(each.get("speaker")) for each in configs if isinstance(each, dict)]
            speakers = dict.fromkeys(names, _VOICE)
            return SpeakInput(model=request.model, text=text, speakers=speakers, format="pcm")
    return SpeakInput(model=request.model, text=text, format="pcm")


OPERATIONS: Mapping[str, Operation] = {
    "speak": Operation(name="speak", script=_speak, chat_models="output"),
    "stream_speech": Operation(
        name="stream_speech",
        chat_models="output",
        encode=lambda value, profile: _encode_speak(value, profile, stream=True),
        stream_decoder=_SpeechItems,
    ),
    "transcribe": Operation(name="transcribe", script=_transcribe, chat_models="all"),
    "stream_transcription": Operation(
        name="stream_transcription",
        chat_models="all",
        encode=lambda value, profile: _encode_transcribe(value, profile, stream=True),
        stream_decoder=lambda _value: _TranscriptItems(),
    ),
}
