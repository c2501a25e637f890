"""`POST /v1/audio/transcriptions`, `/v1/audio/translations` and `/v1/audio/speech`: both sides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from interlingua.dialects.openai_shared.events import EventItems, whole_items
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Audio, Json
from interlingua.spec.contracts import FormPart, Frame, Profile, WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError, UnsupportedError
from interlingua.spec.media.speech import (
    MEDIA_TYPES,
    SpeakInput,
    Speech,
    TranscribeInput,
    Transcript,
    TranscriptDelta,
    TranscriptSegment,
    TranscriptWord,
)
from interlingua.spec.operations import (
    Operation,
    OperationReply,
    Script,
    ServedOperation,
    ServedReply,
)
from interlingua.spec.response import Usage, Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import count
from interlingua.wire.framing import encode_sse
from interlingua.wire.json_text import dump_text, loads
from interlingua.wire.media import decode_base64, encode_base64, media_type_for

_SPEECH = "/v1/audio/speech"
_TRANSCRIPTIONS = "/v1/audio/transcriptions"
_TRANSLATIONS = "/v1/audio/translations"
_VOICE = "alloy"
_ANY = {"accept": "*/*"}
_SUFFIXES = {
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/opus": "ogg",
    "audio/mp4": "m4a",
    "audio/aac": "m4a",
    "audio/webm": "webm",
    "video/webm": "webm",
    "video/mp4": "mp4",
}
"""The vendor tells the format of audio from the name of the file."""

# OpenAI's own models by the start of their names: what they can return besides the text.
# https://platform.openai.com/docs/guides/speech-to-text
_DIARIZING = "gpt-4o-transcribe-diarize"
_PLAIN = ("gpt-transcribe", "gpt-4o-transcribe", "gpt-4o-mini-transcribe")


def transcribe(name: str) -> Operation:
    """The operation for a dialect of this name."""

    def run(value: TranscribeInput, _profile: Profile) -> Script:
        reply = yield _encode_transcribe(value, name, stream=False)
        return _decode_transcript(reply, value)

    return Operation(name="transcribe", script=run)


def stream_transcription(name: str) -> Operation:
    """The operation for a dialect of this name."""
    return Operation(
        name="stream_transcription",
        encode=lambda value, _profile: _encode_transcribe(value, name, stream=True),
        stream_decoder=lambda _value: EventItems(_transcript_item, "transcript.text.done"),
    )


def speak(name: str) -> Operation:
    """The operation for a dialect of this name."""

    def run(value: SpeakInput, _profile: Profile) -> Script:
        reply = yield _encode_speak(value, name)
        return _decode_speech(reply, value)

    return Operation(name="speak", script=run)


def stream_speech(name: str) -> Operation:
    """The operation for a dialect of this name."""
    return Operation(
        name="stream_speech",
        encode=lambda value, _profile: _encode_speak(value, name),
        stream_decoder=_speech_decoder,
    )


# Transcription.


def _encode_transcribe(value: TranscribeInput, name: str, *, stream: bool) -> WireCall:
    data = value.audio.data
    if data is None:
        raise UnsupportedError(
            "This provider transcribes only audio that is sent as bytes: pass `path=` or `data=`."
        )
    media_type = value.audio.media_type or media_type_for(data) or "application/octet-stream"
    fields = {
        "model": value.model,
        "language": value.language,
        "prompt": value.prompt,
        "temperature": value.temperature,
        "response_format": _response_format(value),
        "stream": True if stream else None,
        "chunking_strategy": "auto" if _is_diarizing(value) else None,
    }
    body: dict[str, Any] = {field: given for field, given in fields.items() if given is not None}
    if value.timestamps and not _is_diarizing(value):
        body["timestamp_granularities"] = list(value.timestamps)
    body = body_with_options(body, value, name)
    file_name = f"audio.{_SUFFIXES.get(media_type, 'bin')}"
    file = FormPart(name="file", content=data, file_name=file_name, media_type=media_type)
    path = _TRANSLATIONS if value.translate else _TRANSCRIPTIONS
    return WireCall(path=path, form=(*_form_fields(body), file), headers=_ANY, stream=stream)


def _is_diarizing(value: TranscribeInput) -> bool:
    return value.speakers or value.model.startswith(_DIARIZING)


def _response_format(value: TranscribeInput) -> str | None:
    """The format with what was asked for; `UnsupportedError` if the model does not have it."""
    is_plain = value.model.startswith(_PLAIN) and not value.model.startswith(_DIARIZING)
    if value.speakers:
        if is_plain or "whisper" in value.model:
            raise UnsupportedError(
                f"{value.model} does not tell speakers apart; {_DIARIZING} does."
            )
        return "diarized_json"
    if value.timestamps and is_plain:
        raise UnsupportedError(f"{value.model} gives no timestamps; whisper-1 does.")
    if value.model.startswith(_DIARIZING):
        return "diarized_json"
    return "verbose_json" if value.timestamps else None


def _form_fields(body: Mapping[str, Any]) -> Iterator[FormPart]:
    """The fields of a form; the name of a list has brackets."""
    for name, given in body.items():
        if isinstance(given, (list, tuple)):
            for item in given:
                yield FormPart(name=f"{name}[]", content=_form_text(item))
        else:
            yield FormPart(name=name, content=_form_text(given))


def _form_text(value: Json) -> str:
    return value if isinstance(value, str) else dump_text(value)


def _decode_transcript(reply: OperationReply, value: TranscribeInput) -> Transcript:
    """The transcript; some servers answer with the text alone."""
    if "json" not in reply.headers.get("content-type", "json"):
        return Transcript(text=reply.body.decode("utf-8", "replace"), model=value.model)
    body = loads(reply.body)
    if not isinstance(body, dict) or not isinstance(body.get("text"), str):
        raise DecodeError("the reply has no transcript")
    return read_transcript(body)


def read_transcript(body: dict[str, Any]) -> Transcript:
    """The transcript in a body with `text`, and with segments and words if they were asked for."""
    seconds = _number(body.get("duration"))
    language = body.get("language")
    return Transcript(
        text=body["text"],
        language=language if isinstance(language, str) else None,
        seconds=seconds,
        segments=tuple(_read_segment(each) for each in _objects(body.get("segments"))),
        words=tuple(_read_word(each) for each in _objects(body.get("words"))),
        usage=_read_usage(body.get("usage"), seconds),
        raw=body,
    )


def _read_segment(wire: dict[str, Any]) -> TranscriptSegment:
    speaker = wire.get("speaker", wire.get("speaker_id"))
    return TranscriptSegment(
        text=str(wire.get("text", "")),
        start=_number(wire.get("start")) or 0.0,
        end=_number(wire.get("end")) or 0.0,
        speaker=speaker if isinstance(speaker, str) else None,
    )


def _read_word(wire: dict[str, Any]) -> TranscriptWord:
    return TranscriptWord(
        text=str(wire.get("word", wire.get("text", ""))),
        start=_number(wire.get("start")) or 0.0,
        end=_number(wire.get("end")) or 0.0,
    )


def _read_usage(wire: Json, seconds: float | None) -> Usage:
    """
    Tokens, or the seconds of audio where those are billed.

    OpenAI has `type: tokens` or `type: duration`; Mistral counts tokens beside the seconds, which
    it bills.
    """
    wire = wire if isinstance(wire, dict) else {}
    billed = _number(wire.get("prompt_audio_seconds", wire.get("seconds")))
    if billed is not None or not wire:
        return Usage(audio_seconds=billed if billed is not None else seconds, raw=wire or None)
    details = wire.get("input_token_details")
    details = details if isinstance(details, dict) else {}
    return Usage(
        input_tokens=count(wire.get("input_tokens", wire.get("prompt_tokens"))) or 0,
        output_tokens=count(wire.get("output_tokens", wire.get("completion_tokens"))) or 0,
        input_audio_tokens=count(details.get("audio_tokens")) or None,
        raw=wire,
    )


def _transcript_item(event: dict[str, Any]) -> Iterator[Any]:
    match event.get("type"):
        case "transcript.text.delta" if isinstance(event.get("delta"), str):
            yield TranscriptDelta(text=event["delta"])
        case "transcript.text.segment":
            yield _read_segment(event)
        case "transcript.text.done":
            yield read_transcript({"text": "", **event})


def _objects(value: Json) -> Iterable[dict[str, Any]]:
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def _number(value: Json) -> float | None:
    if isinstance(value, str):  # the vendor has written durations as text
        value = float(value) if re.fullmatch(r"[0-9]{1,12}(?:\.[0-9]{1,12})?", value) else None
    return float(value) if isinstance(value, (int, float)) and value == value else None  # noqa: PLR0124


# Speech.


def _encode_speak(value: SpeakInput, name: str) -> WireCall:
    warnings: list[Warning] = []
    fields = {
        "model": value.model,
        "input": value.text,
        "voice": value.voice or _VOICE,
        "response_format": value.format,
        "speed": value.speed,
        "instructions": value.instructions,
        "stream_format": "sse" if _sends_events(value.model) else None,
    }
    if value.instructions is not None and value.model.startswith("tts-1"):
        fields["instructions"] = None
        warnings.append(_dropped(value, "instructions"))
    if value.speakers:
        warnings.append(_dropped(value, "speakers"))
    body = {field: given for field, given in fields.items() if given is not None}
    return WireCall(
        path=_SPEECH,
        body=body_with_options(body, value, name),
        headers=_ANY,
        warnings=tuple(warnings),
    )


def _dropped(value: SpeakInput, setting: str) -> Warning:
    return make_warning(
        "setting_dropped", path=setting, target=value.model, setting=setting, when=""
    )


def _sends_events(model: str) -> bool:
    """Whether a model can send its audio in events, of which the last one has the usage."""
    return model.startswith("gpt-")


def _decode_speech(reply: OperationReply, value: SpeakInput) -> Speech:
    content_type = reply.headers.get("content-type", "").partition(";")[0].strip()
    if content_type == "text/event-stream":
        items = whole_items(_EventSpeech(value), reply.body)
        end = items[-1]
        data = b"".join(item for item in items if isinstance(item, bytes))
        return Speech(data=data, media_type=end.media_type, usage=end.usage)
    if not reply.body or content_type == "application/json":
        raise DecodeError("the reply has no audio")
    return Speech(
        data=reply.body, media_type=_media_type(value, content_type), usage=_spoken(value)
    )


def _media_type(value: SpeakInput, content_type: str = "") -> str:
    is_audio = content_type.startswith("audio/")
    return content_type if is_audio else MEDIA_TYPES[value.format or "mp3"]


def _spoken(value: SpeakInput) -> Usage:
    return Usage(characters=len(value.text))


def _speech_decoder(value: SpeakInput) -> _EventSpeech | _RawSpeech:
    return _EventSpeech(value) if _sends_events(value.model) else _RawSpeech(value)


class _EventSpeech(EventItems):
    """Audio in events; the last one has the usage."""

    def __init__(self, value: SpeakInput) -> None:
        super().__init__(self._item, "speech.audio.done")
        self._value = value

    def _item(self, event: dict[str, Any]) -> Iterator[Any]:
        match event.get("type"):
            case "speech.audio.delta" | "audio.delta" if isinstance(event.get("audio"), str):
                data = decode_base64(event["audio"])
                if data is None:
                    raise DecodeError("a piece of the audio is not valid base64")
                yield data
            case "speech.audio.done":
                has_usage = isinstance(event.get("usage"), dict)
                usage = _read_usage(event["usage"], None) if has_usage else _spoken(self._value)
                yield Speech(media_type=_media_type(self._value), usage=usage)


class _RawSpeech:
    """Audio as the bytes of the reply."""

    def __init__(self, value: SpeakInput) -> None:
        self._value = value
        self._has_audio = False

    def feed(self, chunk: bytes) -> list[Any]:
        """The chunk itself."""
        self._has_audio = True
        return [chunk]

    def finish(self) -> list[Any]:
        """The end of the audio."""
        if not self._has_audio:
            raise DecodeError("the reply has no audio")
        return [Speech(media_type=_media_type(self._value), usage=_spoken(self._value))]


# The server side.


def _decode_served_transcribe(call: WireCall, _params: Mapping[str, str]) -> TranscribeInput:
    fields: dict[str, str] = {}
    file: FormPart | None = None
    granularities: list[str] = []
    for part in call.form:
        if part.name == "file" and isinstance(part.content, bytes):
            file = part
        elif part.name.startswith("timestamp_granularities"):
            granularities.append(str(part.content))
        elif isinstance(part.content, str):
            fields[part.name] = part.content
    if file is None or not isinstance(file.content, bytes):
        raise InvalidRequestError("Missing required parameter: 'file'.")
    if not fields.get("model"):
        raise InvalidRequestError("Missing required parameter: 'model'.")
    response_format = fields.get("response_format", "json")
    kinds = ("segment", "word")
    stamps: tuple[Any, ...] = tuple(kind for kind in kinds if kind in granularities)
    if response_format == "verbose_json" and not stamps:
        stamps = ("segment",)
    options: dict[str, Any] = {"response_format": response_format}
    if fields.get("stream") == "true":
        options["stream"] = True
    temperature = fields.get("temperature")
    return TranscribeInput(
        model=fields["model"],
        audio=Audio(data=file.content, media_type=file.media_type),
        language=fields.get("language"),
        prompt=fields.get("prompt"),
        temperature=None if temperature is None else _number(temperature),
        timestamps=stamps,
        speakers=response_format == "diarized_json",
        translate=call.path.partition("?")[0].endswith("/translations"),
        provider_options={"": options},
    )


def _encode_served_transcript(result: Transcript, value: TranscribeInput) -> ServedReply:
    options = value.provider_options.get("", {})
    if options.get("stream"):
        return ServedReply(content=_transcript_events(result), content_type="text/event-stream")
    match options.get("response_format"):
        case "text":
            return _text_reply(f"{result.text}\n")
        case "srt":
            return _text_reply(result.to_srt())
        case "vtt":
            return _text_reply(result.to_vtt())
    return ServedReply(body=_transcript_body(result, value))


def _text_reply(text: str) -> ServedReply:
    return ServedReply(content=text.encode(), content_type="text/plain; charset=utf-8")


def _transcript_body(result: Transcript, value: TranscribeInput) -> dict[str, Any]:
    body: dict[str, Any] = {"text": result.text, "usage": _usage_body(result.usage)}
    if value.timestamps or value.speakers:
        task = "translate" if value.translate else "transcribe"
        body |= {"task": task, "duration": result.seconds or 0.0}
    if value.speakers:
        body["segments"] = [_spoken_segment(*each) for each in enumerate(result.segments)]
    elif value.timestamps:
        body["language"] = result.language or "english"
        if "segment" in value.timestamps:
            body["segments"] = [_plain_segment(*each) for each in enumerate(result.segments)]
        if "word" in value.timestamps:
            body["words"] = [
                {"word": each.text, "start": each.start, "end": each.end} for each in result.words
            ]
    return body


def _spoken_segment(number: int, segment: TranscriptSegment) -> dict[str, Any]:
    return {
        "type": "transcript.text.segment",
        "id": f"seg_{number}",
        "start": segment.start,
        "end": segment.end,
        "text": segment.text,
        "speaker": segment.speaker or "A",
    }


def _plain_segment(number: int, segment: TranscriptSegment) -> dict[str, Any]:
    return {
        "id": number,
        "seek": 0,
        "start": segment.start,
        "end": segment.end,
        "text": segment.text,
        "tokens": [],
        "temperature": 0.0,
        "avg_logprob": -0.1,
        "compression_ratio": 1.0,
        "no_speech_prob": 0.0,
    }


def _usage_body(usage: Usage) -> dict[str, Any]:
    if usage.audio_seconds is not None:
        return {"type": "duration", "seconds": usage.audio_seconds}
    return {
        "type": "tokens",
        "input_tokens": usage.input_tokens,
        "input_token_details": {"audio_tokens": usage.input_audio_tokens or 0, "text_tokens": 0},
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }


def _transcript_events(result: Transcript) -> Iterator[bytes]:
    for segment in result.segments if any(each.speaker for each in result.segments) else ():
        yield _event(_spoken_segment(0, segment))
    for word in re.findall(r"\S+\s*", result.text):
        yield _event({"type": "transcript.text.delta", "delta": word})
    usage = _usage_body(result.usage)
    yield _event({"type": "transcript.text.done", "text": result.text, "usage": usage})


def _event(body: dict[str, Any]) -> bytes:
    return encode_sse(Frame(data=dump_text(body)))


def _decode_served_speak(call: WireCall, _params: Mapping[str, str]) -> SpeakInput:
    body = call.body if isinstance(call.body, dict) else {}
    for field in ("model", "input", "voice"):
        if not body.get(field):
            raise InvalidRequestError(f"Missing required parameter: '{field}'.")
    audio_format = body.get("response_format", "mp3")
    if audio_format not in MEDIA_TYPES:
        raise InvalidRequestError(f"Invalid value for 'response_format': {audio_format!r}.")
    voice = body["voice"]
    return SpeakInput(
        model=body["model"],
        text=body["input"],
        voice=voice if isinstance(voice, str) else str(voice.get("id", "")),
        format=audio_format,
        speed=_number(body.get("speed")),
        instructions=body.get("instructions"),
        provider_options={"": {"stream_format": body.get("stream_format", "audio")}},
    )


_PIECE = 4096  # bytes of audio in one event or chunk


def _encode_served_speech(result: Speech, value: SpeakInput) -> ServedReply:
    pieces = [result.data[i : i + _PIECE] for i in range(0, len(result.data), _PIECE)]
    if value.provider_options.get("", {}).get("stream_format") == "sse":
        return ServedReply(content=_speech_events(pieces, result), content_type="text/event-stream")
    return ServedReply(content=pieces, content_type=result.media_type)


def _speech_events(pieces: Iterable[bytes], result: Speech) -> Iterator[bytes]:
    for piece in pieces:
        yield _event({"type": "speech.audio.delta", "audio": encode_base64(piece)})
    usage = _usage_body(Usage(input_tokens=result.usage.input_tokens or 1, output_tokens=1))
    usage["output_tokens"] = result.usage.output_tokens
    usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
    yield _event({"type": "speech.audio.done", "usage": usage})


SERVED = (
    ServedOperation(
        name="transcribe",
        method="POST",
        pattern=re.compile(r".*/audio/(?:transcriptions|translations)"),
        decode=_decode_served_transcribe,
        encode=_encode_served_transcript,
    ),
    ServedOperation(
        name="speak",
        method="POST",
        pattern=re.compile(r".*/audio/speech"),
        decode=_decode_served_speak,
        encode=_encode_served_speech,
    ),
)
