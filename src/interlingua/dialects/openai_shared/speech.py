"""`POST /v1/audio/speech`: both sides, also as Mistral has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from interlingua.dialects.openai_shared.events import EventItems, encode_event
from interlingua.dialects.openai_shared.transcription import read_tokens, usage_body
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError, UnsupportedError
from interlingua.spec.modalities.speech import AUDIO_TYPES, SpeakInput, Speech
from interlingua.spec.operations import (
    Operation,
    OperationReply,
    Script,
    ServedReply,
)
from interlingua.spec.response import Usage, Warning
from interlingua.spec.warnings import make_warning
from interlingua.wire.fields import is_number, text_or_none
from interlingua.wire.json_text import loads
from interlingua.wire.media import decode_base64, encode_base64
from interlingua.wire.resources import serve
from interlingua.wire.wav import with_sizes

_PATH = "/v1/audio/speech"
_VOICE = "alloy"  # `voice` is required in the SDK's `SpeechCreateParams`; its first voice
_OWN_MODELS = ("tts-1", "gpt-")
"""How the names of OpenAI's own models begin, which have its voices."""
# The SDK: «The maximum length is 4096 characters». Other hosts have other limits.
_MAX_CHARACTERS = 4096
"""The limit of a text for OpenAI's own models."""
_ANY = {"accept": "*/*"}
# What a stream of server-sent events can begin with; no audio format begins so.
_EVENT_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


class SpeechRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a host's speech differs."""

    is_mistral: bool = False
    """`voice_id`, `stream` in place of a format of streams, and audio in JSON."""


MISTRAL = SpeechRules(is_mistral=True)
_OPENAI = SpeechRules()


def speech_operations(name: str, rules: SpeechRules = _OPENAI) -> dict[str, Operation]:
    """The operations for a dialect of this name."""

    def run(value: SpeakInput, _profile: Profile) -> Script:
        reply = yield _encode(value, name, rules, stream=False)
        return _decode(reply, value)

    streamed = Operation(
        name="stream_speech",
        encode=lambda value, _profile: _encode(value, name, rules, stream=True),
        stream_decoder=_SpeechItems,
    )
    return {"speak": Operation(name="speak", script=run), "stream_speech": streamed}


# The client side.


def _encode(value: SpeakInput, name: str, rules: SpeechRules, *, stream: bool) -> WireCall:
    is_own = value.model.startswith(_OWN_MODELS)
    if value.speakers:
        raise UnsupportedError(
            f"{value.model} speaks with one voice; the models of gemini can speak with two."
        )
    if is_own and len(value.text) > _MAX_CHARACTERS:
        raise UnsupportedError(
            f"{value.model} speaks at most {_MAX_CHARACTERS} characters at once, and the text has "
            f"{len(value.text)}. Split it."
        )
    body: dict[str, Json] = {
        "model": value.model,
        "input": value.text,
        "response_format": value.format,
        "speed": value.speed,
        "instructions": value.instructions,
    }
    warnings: list[Warning] = []
    for setting in _unknown_settings(value, rules):
        if body[setting] is not None:
            body[setting] = None
            fields = {"target": value.model, "setting": setting, "when": ""}
            warnings.append(make_warning("setting_dropped", path=setting, **fields))
    if rules.is_mistral:
        body |= {"voice_id": value.voice, "stream": True if stream else None}
    else:
        # Other hosts have voices of their own, of which none is known here.
        body["voice"] = value.voice or (_VOICE if is_own else None)
        # «`sse` is not supported for `tts-1` or `tts-1-hd`»; only events have the usage.
        body["stream_format"] = "sse" if value.model.startswith("gpt-") else None
    body = {field: given for field, given in body.items() if given is not None}
    return WireCall(
        path=_PATH,
        body=body_with_options(body, value, name),
        headers=_ANY,
        warnings=tuple(warnings),
    )


def _unknown_settings(value: SpeakInput, rules: SpeechRules) -> tuple[str, ...]:
    """The settings that this host or model does not have."""
    if rules.is_mistral:
        return ("speed", "instructions")
    # The SDK: «Does not work with `tts-1` or `tts-1-hd`».
    return ("instructions",) if value.model.startswith("tts-1") else ()


def _decode(reply: OperationReply, value: SpeakInput) -> Speech:
    content_type = reply.headers.get("content-type", "").partition(";")[0].strip()
    if content_type == "application/json":
        return _decode_json(reply.body, value)
    decoder = _SpeechItems(value)
    items = [*decoder.feed(reply.body), *decoder.finish()]
    end = next(item for item in reversed(items) if isinstance(item, Speech))
    data = b"".join(item for item in items if isinstance(item, bytes))
    is_audio = content_type.startswith("audio/")
    return Speech(
        data=with_sizes(data),
        media_type=content_type if is_audio else end.media_type,
        usage=end.usage,
    )


def _decode_json(body: bytes, value: SpeakInput) -> Speech:
    """Mistral sends the audio of a whole reply in JSON."""
    reply = loads(body)
    text = reply.get("audio_data") if isinstance(reply, dict) else None
    data = decode_base64(text) if isinstance(text, str) else None
    if not data:
        raise DecodeError("The reply has no audio.")
    return Speech(data=with_sizes(data), media_type=_media_type(value), usage=_spoken(value))


def _media_type(value: SpeakInput) -> str:
    return AUDIO_TYPES[value.format or "mp3"]


def _spoken(value: SpeakInput) -> Usage:
    return Usage(characters=len(value.text))


class _SpeechItems:
    """
    The audio of a stream: the bytes of the reply, or events of which the last has the usage.

    Servers that do not know events ignore the wish for them, so the first bytes decide.
    """

    def __init__(self, value: SpeakInput) -> None:
        self._value = value
        self._decoder: _EventSpeech | _RawSpeech | None = None
        self._first = b""

    def feed(self, chunk: bytes) -> list[bytes | Speech]:
        """The audio that this chunk completes."""
        if self._decoder is None:
            self._first += chunk
            start = self._first.lstrip(b"\r\n\xef\xbb\xbf")
            if not start or any(
                len(start) < len(each) and each.startswith(start) for each in _EVENT_STARTS
            ):
                return []
            is_events = start.startswith(_EVENT_STARTS)
            self._decoder = _EventSpeech(self._value) if is_events else _RawSpeech(self._value)
            chunk, self._first = self._first, b""
        return self._decoder.feed(chunk)

    def finish(self) -> list[bytes | Speech]:
        """The end of the audio; `StreamError` if it is incomplete."""
        if self._decoder is None:
            raise DecodeError("The reply has no audio.")
        return self._decoder.finish()


class _EventSpeech(EventItems[bytes | Speech]):
    """Audio in events; the last one has the usage."""

    def __init__(self, value: SpeakInput) -> None:
        super().__init__(self._item, "speech.audio.done")
        self._value = value

    def _item(self, event: dict[str, Json]) -> Iterator[bytes | Speech]:
        match event.get("type"):
            case "speech.audio.delta" | "audio.delta":
                text = event.get("audio", event.get("audio_data"))
                data = decode_base64(text) if isinstance(text, str) else None
                if data is None:
                    raise DecodeError("A piece of the audio is not valid base64.")
                yield data
            case "speech.audio.done":
                yield Speech(media_type=_media_type(self._value), usage=self._usage(event))

    def _usage(self, event: dict[str, Json]) -> Usage:
        """Tokens of OpenAI's models, whose output is all audio; other models bill characters."""
        wire = event.get("usage")
        if not isinstance(wire, dict) or "input_tokens" not in wire:
            return _spoken(self._value)
        usage = read_tokens(wire)
        return msgspec.structs.replace(usage, output_audio_tokens=usage.output_tokens)


class _RawSpeech:
    """Audio as the bytes of the reply."""

    def __init__(self, value: SpeakInput) -> None:
        self._value = value

    def feed(self, chunk: bytes) -> list[bytes | Speech]:
        """The chunk itself."""
        return [chunk]

    def finish(self) -> list[bytes | Speech]:
        """The end of the audio."""
        return [Speech(media_type=_media_type(self._value), usage=_spoken(self._value))]


# The server side.

_PIECE = 4096  # bytes of audio in one event or chunk


def _decode_served(call: WireCall, _params: Mapping[str, str]) -> SpeakInput:
    body = call.body if isinstance(call.body, dict) else {}
    for field in ("model", "input"):
        if not isinstance(body.get(field), str) or not body[field]:
            message = f"Missing required parameter: '{field}'."
            raise InvalidRequestError(message, status_code=400)
    given = body.get("response_format", "mp3")
    audio_format = next((name for name in AUDIO_TYPES if name == given), None)
    if audio_format is None:
        message = f"Invalid value for 'response_format': {given!r:.60}."
        raise InvalidRequestError(message, status_code=400)
    voice = body.get("voice", body.get("voice_id"))
    voice = voice.get("id") if isinstance(voice, dict) else voice
    if not isinstance(voice, str) and body["model"].startswith(_OWN_MODELS):
        raise InvalidRequestError("Missing required parameter: 'voice'.", status_code=400)
    speed = body.get("speed")
    return SpeakInput(
        model=body["model"],
        text=body["input"],
        voice=voice if isinstance(voice, str) else None,
        format=audio_format,
        speed=float(speed) if is_number(speed) else None,
        instructions=text_or_none(body.get("instructions")),
        provider_options={"": {"stream_format": body.get("stream_format", "audio")}},
    )


def _encode_served(result: Speech, value: SpeakInput) -> ServedReply:
    pieces = [result.data[i : i + _PIECE] for i in range(0, len(result.data), _PIECE)]
    if value.provider_options.get("", {}).get("stream_format") == "sse":
        return ServedReply(content=_events(pieces, result), content_type="text/event-stream")
    return ServedReply(content=pieces, content_type=result.media_type)


def _events(pieces: Iterable[bytes], result: Speech) -> Iterator[bytes]:
    for piece in pieces:
        yield encode_event({"type": "speech.audio.delta", "audio": encode_base64(piece)})
    usage = Usage(input_tokens=result.usage.input_tokens, output_tokens=result.usage.output_tokens)
    yield encode_event({"type": "speech.audio.done", "usage": usage_body(usage)})


SERVED = (serve("speak", "POST", r".*/audio/speech", _decode_served, _encode_served),)
