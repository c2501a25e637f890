"""`/v1/audio/transcriptions` and `/v1/audio/translations`: both sides, also as Mistral has it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from interlingua.dialects.openai_shared.events import EventItems, encode_event
from interlingua.prepare.options import form_fields, form_with_options
from interlingua.spec.content import Audio, Json
from interlingua.spec.contracts import FormPart, Profile, WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError, UnsupportedError
from interlingua.spec.modalities.speech import (
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
    ServedReply,
)
from interlingua.spec.response import Usage, Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import count, text_of
from interlingua.wire.json_text import loads
from interlingua.wire.media import media_type_for
from interlingua.wire.resources import serve
from interlingua.wire.wav import wav_seconds

_TRANSCRIPTIONS = "/v1/audio/transcriptions"
_TRANSLATIONS = "/v1/audio/translations"
_STAMPS: tuple[Literal["segment", "word"], ...] = ("segment", "word")
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
"""The SDK: «We recommend an extension-bearing filename and an appropriate content type»."""

# OpenAI's own models by the start of their names: what they can return besides the text.
# https://platform.openai.com/docs/guides/speech-to-text
_DIARIZING = "gpt-4o-transcribe-diarize"
_PLAIN = ("gpt-transcribe", "gpt-4o-transcribe", "gpt-4o-mini-transcribe")
_WHISPER = "whisper-1"


class TranscriptionRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a host's transcriptions differ."""

    asks_for_length: bool = False
    """A short reply has no length; the long form has it, and it is what is paid for."""
    is_mistral: bool = False
    """Flags in place of formats, no prompt, no translations, and names of its own for events."""


# Groq and others bill the length of the audio, which only their `verbose_json` tells.
TIMED = TranscriptionRules(asks_for_length=True)
# https://docs.mistral.ai/studio/audio/speech-to-text/transcribe-files
MISTRAL = TranscriptionRules(is_mistral=True)
_OPENAI = TranscriptionRules()


def transcription_operations(
    name: str, rules: TranscriptionRules = _OPENAI
) -> dict[str, Operation]:
    """The operations for a dialect of this name."""

    def run(value: TranscribeInput, _profile: Profile) -> Script:
        reply = yield _encode(value, name, rules, stream=False)
        return _decode(reply, value)

    last = "transcription.done" if rules.is_mistral else "transcript.text.done"
    # Voxtral models answer chat requests too, and Mistral calls them by one name for both.
    chat_models: Literal["all"] | None = "all" if rules.is_mistral else None
    streamed = Operation(
        name="stream_transcription",
        chat_models=chat_models,
        encode=lambda value, _profile: _encode(value, name, rules, stream=True),
        stream_decoder=lambda value: _TranscriptItems(value, last),
    )
    return {
        "transcribe": Operation(name="transcribe", script=run, chat_models=chat_models),
        "stream_transcription": streamed,
    }


# The client side.


def _encode(
    value: TranscribeInput, name: str, rules: TranscriptionRules, *, stream: bool
) -> WireCall:
    _check(value, rules, stream=stream)
    warnings: list[Warning] = []
    body: dict[str, Json] = {
        "model": value.model,
        "language": value.language,
        "prompt": value.prompt,
        "temperature": value.temperature,
        "stream": True if stream else None,
    }
    for setting in _unknown_settings(value, rules):
        if body[setting] is not None:
            body[setting] = None
            fields = {"target": value.model, "setting": setting, "when": ""}
            warnings.append(make_warning("setting_dropped", path=setting, **fields))
    body |= _mistral_fields(value) if rules.is_mistral else _format_fields(value, rules)
    parts = [part for field, given in body.items() for part in form_fields(field, given)]
    if rules.is_mistral:  # it has no brackets in the names of lists
        parts = [msgspec.structs.replace(each, name=each.name.rstrip("[]")) for each in parts]
    path = _TRANSLATIONS if value.translate else _TRANSCRIPTIONS
    form = form_with_options((*parts, _source(value.audio, rules)), value, name)
    return WireCall(path=path, form=form, headers=_ANY, stream=stream, warnings=tuple(warnings))


def _check(value: TranscribeInput, rules: TranscriptionRules, *, stream: bool) -> None:
    """Raise `UnsupportedError` for what the model or the host cannot do."""
    model, lack = value.model, ""
    is_plain = model.startswith(_PLAIN)
    is_diarizing = model.startswith(_DIARIZING)
    if rules.is_mistral:
        if value.translate:
            lack = "Mistral does not translate speech; whisper-1 and Gemini do."
    elif value.translate and is_plain:
        lack = f"{model} does not translate speech; whisper-1 does."
    elif value.translate and "word" in value.timestamps:
        lack = "Translations have times of segments, not of words: use timestamps='segment'."
    elif value.speakers and not is_diarizing and (is_plain or "whisper" in model):
        lack = f"{model} does not tell speakers apart; {_DIARIZING} does."
    elif value.timestamps and is_plain and not is_diarizing:
        lack = f"{model} gives no timestamps; whisper-1 does."
    elif "word" in value.timestamps and is_diarizing:
        lack = f"{model} gives times of segments, not of words; whisper-1 does."
    elif stream and model.startswith(_WHISPER):
        lack = f"{model} does not stream; gpt-4o-transcribe does."
    if lack:
        raise UnsupportedError(lack)


def _unknown_settings(value: TranscribeInput, rules: TranscriptionRules) -> tuple[str, ...]:
    """The settings that this endpoint or model does not have."""
    # The SDK of `prompt`: «not supported when using `gpt-4o-transcribe-diarize`»; Mistral has
    # `context_bias` instead, a list of words.
    if rules.is_mistral or value.model.startswith(_DIARIZING):
        return ("prompt",)
    return ("language",) if value.translate else ()


def _format_fields(value: TranscribeInput, rules: TranscriptionRules) -> dict[str, Json]:
    """The format with what was asked for."""
    if value.speakers or value.model.startswith(_DIARIZING):
        # The SDK: `diarized_json` is «required to receive speaker annotations», and a strategy is
        # «Required when using `gpt-4o-transcribe-diarize` for inputs longer than 30 seconds».
        return {"response_format": "diarized_json", "chunking_strategy": "auto"}
    if not value.timestamps:
        return {"response_format": "verbose_json"} if rules.asks_for_length else {}
    # The SDK: «`response_format` must be set `verbose_json` to use timestamp granularities».
    # Translations have no such field; their long form has segments.
    fields: dict[str, Json] = {"response_format": "verbose_json"}
    if not value.translate:
        fields["timestamp_granularities"] = list(value.timestamps)
    return fields


def _mistral_fields(value: TranscribeInput) -> dict[str, Json]:
    fields: dict[str, Json] = {"diarize": True if value.speakers else None}
    # Speakers are named per segment, so segments are needed for them.
    stamps = value.timestamps or (("segment",) if value.speakers else ())
    if stamps:
        fields["timestamp_granularities"] = list(stamps)
    return fields


def _source(audio: Audio, rules: TranscriptionRules) -> FormPart:
    if audio.data is None:
        if audio.file_id is not None and rules.is_mistral:
            return FormPart(name="file_id", content=audio.file_id)
        raise UnsupportedError(
            "This provider transcribes only audio that is sent as bytes: pass `path=` or `data=`."
        )
    data = audio.data
    media_type = audio.media_type or media_type_for(data) or "application/octet-stream"
    file_name = f"audio.{_SUFFIXES.get(media_type, 'bin')}"
    return FormPart(name="file", content=data, file_name=file_name, media_type=media_type)


def _decode(reply: OperationReply, value: TranscribeInput) -> Transcript:
    """The transcript; some servers answer with the text alone."""
    if "json" not in reply.headers.get("content-type", "json"):
        text = reply.body.decode("utf-8", "replace")
        return _with_length(Transcript(text=text.removesuffix("\n"), model=value.model), value)
    body = loads(reply.body)
    if not isinstance(body, dict) or not isinstance(body.get("text"), str):
        raise DecodeError("The reply has no transcript.")
    return _with_length(read_transcript(body), value)


def _with_length(transcript: Transcript, value: TranscribeInput) -> Transcript:
    """The transcript with the length that the audio itself tells, if the reply has no usage."""
    if transcript.usage != Usage():
        return transcript
    seconds = wav_seconds(value.audio.data or b"")
    usage = Usage(audio_seconds=seconds, estimated=True)
    return msgspec.structs.replace(transcript, usage=usage, seconds=transcript.seconds or seconds)


def read_transcript(body: dict[str, Json]) -> Transcript:
    """The transcript in a body with `text`, and with segments and words if they were asked for."""
    seconds = _number(body.get("duration"))
    segments = list(_objects(body.get("segments")))
    words = list(_objects(body.get("words")))
    model = body.get("model")
    return Transcript(
        text=text_of(body.get("text")),
        language=_language(body),
        model=model if isinstance(model, str) else "",
        seconds=seconds,
        segments=tuple(map(_read_segment, segments)),
        words=tuple(map(_read_word, words)),
        usage=_read_usage(body.get("usage"), seconds),
        raw=body,
    )


def _language(body: dict[str, Json]) -> str | None:
    """The language; `gpt-transcribe` lists all that it has heard."""
    for each in _objects(body.get("languages")):
        if isinstance(each.get("code"), str):
            return str(each["code"])
    language = body.get("language")
    return language if isinstance(language, str) else None


def _read_segment(wire: dict[str, Json]) -> TranscriptSegment:
    speaker = wire.get("speaker", wire.get("speaker_id"))  # the second is Mistral's
    return TranscriptSegment(
        text=str(wire.get("text", "")),
        start=_number(wire.get("start")) or 0.0,
        end=_number(wire.get("end")) or 0.0,
        speaker=speaker if isinstance(speaker, str) else None,
    )


def _read_word(wire: dict[str, Json]) -> TranscriptWord:
    return TranscriptWord(
        text=str(wire.get("word", wire.get("text", ""))),  # OpenAI, Mistral
        start=_number(wire.get("start")) or 0.0,
        end=_number(wire.get("end")) or 0.0,
    )


def _read_usage(wire: Json, seconds: float | None) -> Usage:
    """
    Tokens, or seconds of audio where seconds are billed.

    OpenAI has `type: tokens` or `type: duration`; Mistral counts tokens beside the seconds, which
    it bills.
    """
    wire = wire if isinstance(wire, dict) else {}
    billed = _number(wire.get("prompt_audio_seconds", wire.get("seconds")))
    if billed is not None or not wire:
        return Usage(audio_seconds=billed if billed is not None else seconds, raw=wire or None)
    return read_tokens(wire)


def read_tokens(wire: dict[str, Json]) -> Usage:
    """The tokens of a usage object."""
    details = wire.get("input_token_details")
    details = details if isinstance(details, dict) else {}
    return Usage(
        input_tokens=count(wire.get("input_tokens", wire.get("prompt_tokens"))) or 0,
        output_tokens=count(wire.get("output_tokens", wire.get("completion_tokens"))) or 0,
        input_audio_tokens=count(details.get("audio_tokens")) or None,
        raw=wire,
    )


class _TranscriptItems(EventItems[TranscriptDelta | TranscriptSegment | Transcript]):
    """The text of a stream as it comes, segments with speakers, and the whole transcript."""

    def __init__(self, value: TranscribeInput, last: str) -> None:
        super().__init__(self._items, last)
        self._value = value

    def _items(
        self, event: dict[str, Json]
    ) -> Iterator[TranscriptDelta | TranscriptSegment | Transcript]:
        delta, text = event.get("delta"), event.get("text")
        match event.get("type"):
            case "transcript.text.delta" if isinstance(delta, str):
                yield TranscriptDelta(text=delta)
            case "transcription.text.delta" if isinstance(text, str):
                yield TranscriptDelta(text=text)
            case "transcript.text.segment" | "transcription.segment":
                yield _read_segment(event)
            case "transcript.text.done" | "transcription.done":
                yield _with_length(read_transcript(event), self._value)


def _objects(value: Json) -> Iterable[dict[str, Json]]:
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()


def _number(value: Json) -> float | None:
    if isinstance(value, str):  # the vendor has written durations as text
        value = float(value) if re.fullmatch(r"[0-9]{1,12}(?:\.[0-9]{1,12})?", value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e12 else None


# The server side.


def _decode_served(call: WireCall, _params: Mapping[str, str]) -> TranscribeInput:
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
        raise InvalidRequestError("Missing required parameter: 'file'.", status_code=400)
    if not fields.get("model"):
        raise InvalidRequestError("Missing required parameter: 'model'.", status_code=400)
    response_format = fields.get("response_format", "json")
    stamps = tuple(kind for kind in _STAMPS if kind in granularities)
    if response_format == "verbose_json" and not stamps:
        stamps = ("segment",)
    options: dict[str, Json] = {"response_format": response_format}
    if fields.get("stream", "").lower() == "true":
        options["stream"] = True
    temperature = fields.get("temperature")
    return TranscribeInput(
        model=fields["model"],
        audio=Audio(data=file.content, media_type=file.media_type),
        language=fields.get("language"),
        prompt=fields.get("prompt"),
        temperature=None if temperature is None else _number(temperature),
        timestamps=stamps,
        speakers=response_format == "diarized_json" or fields.get("diarize", "").lower() == "true",
        translate=call.path.partition("?")[0].endswith("/translations"),
        provider_options={"": options},
    )


def _encode_served(result: Transcript, value: TranscribeInput) -> ServedReply:
    options = value.provider_options.get("", {})
    if options.get("stream"):
        return ServedReply(content=_events(result), content_type="text/event-stream")
    match options.get("response_format"):
        case "text":
            return _text_reply(f"{result.text}\n")
        case "srt":
            return _text_reply(result.to_srt())
        case "vtt":
            return _text_reply(result.to_vtt())
    return ServedReply(body=_body(result, value))


def _text_reply(text: str) -> ServedReply:
    return ServedReply(content=text.encode(), content_type="text/plain; charset=utf-8")


def _body(result: Transcript, value: TranscribeInput) -> dict[str, Json]:
    body: dict[str, Json] = {"text": result.text, "usage": usage_body(result.usage)}
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


def _spoken_segment(number: int, segment: TranscriptSegment) -> dict[str, Json]:
    return {
        "type": "transcript.text.segment",
        "id": f"seg_{number}",
        "start": segment.start,
        "end": segment.end,
        "text": segment.text,
        "speaker": segment.speaker or "A",
    }


def _plain_segment(number: int, segment: TranscriptSegment) -> dict[str, Json]:
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


def usage_body(usage: Usage) -> dict[str, Json]:
    """A usage object: seconds where seconds are billed, else tokens."""
    if usage.audio_seconds is not None:
        return {"type": "duration", "seconds": usage.audio_seconds}
    return {
        "type": "tokens",
        "input_tokens": usage.input_tokens,
        "input_token_details": {"audio_tokens": usage.input_audio_tokens or 0, "text_tokens": 0},
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }


def _events(result: Transcript) -> Iterator[bytes]:
    has_speakers = any(each.speaker for each in result.segments)
    for number, segment in enumerate(result.segments if has_speakers else ()):
        yield encode_event(_spoken_segment(number, segment))
    for word in re.findall(r"\S+\s*", result.text):
        yield encode_event({"type": "transcript.text.delta", "delta": word})
    usage = usage_body(result.usage)
    yield encode_event({"type": "transcript.text.done", "text": result.text, "usage": usage})


SERVED = (
    serve(
        "transcribe",
        "POST",
        r".*/audio/(?:transcriptions|translations)",
        _decode_served,
        _encode_served,
    ),
)
