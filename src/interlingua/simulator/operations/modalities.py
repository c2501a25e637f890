"""
Simulated results of the operations that need no state, in the order of this module.

- Reranking, moderation and embeddings follow the words of the texts. Texts with words in common
  have similar vectors: each word has a vector of its own, made from a digest, and the vector of a
  text is the sum of the vectors of its words.
- An image is a real PNG file of one colour, which depends on the prompt.
- Speech is a tone for each word, and a transcript states the size of the audio.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
import zlib
from array import array
from functools import lru_cache
from typing import Any

from interlingua import dialects
from interlingua.prepare.images import ANYTHING, in_pixels, parse_pixels
from interlingua.simulator.answer import count_text
from interlingua.simulator.dsl import Turn, refusal
from interlingua.spec.content import MEDIA_TYPES, Audio, Image, Text
from interlingua.spec.errors import ContentFilterError
from interlingua.spec.modalities.embeddings import EmbedContent, EmbedInput, EmbedResult, Vector
from interlingua.spec.modalities.images import GeneratedImage, ImageInput, ImageResult, PartialImage
from interlingua.spec.modalities.judgements import (
    ModeratedContent,
    ModerateInput,
    Moderation,
    ModerationResult,
    RankedDocument,
    RerankInput,
    RerankResult,
)
from interlingua.spec.modalities.speech import (
    AUDIO_TYPES,
    SpeakInput,
    Speech,
    TranscribeInput,
    Transcript,
    TranscriptSegment,
    TranscriptWord,
)
from interlingua.spec.request import Request
from interlingua.spec.response import Usage
from interlingua.wire.image_size import ImageSize
from interlingua.wire.wav import wav_seconds, wrap_samples

_find_words = re.compile(r"\w+").findall
_CATEGORIES = {
    "harassment": frozenset(("hate", "idiot", "stupid")),
    "self-harm": frozenset(("suicide",)),
    "sexual": frozenset(("porn",)),
    "violence": frozenset(("kill", "murder", "shoot")),
}
"""The words that each category is made of."""
DIMENSIONS = 8
"""The length of a vector, unless the request sets it."""
DEFAULT_SIZE = ImageSize(1024, 1024)
REFUSED = "[refused]"
"""A prompt with this text is refused, as a vendor refuses what its policy forbids."""
_IMAGE_TOKENS = {"low": 272, "medium": 1056, "high": 4160}  # of a square image, as recorded
_EDITED_IMAGE_TOKENS = 194  # of an image that is edited
_MAX_EDGE = 4096
RATE = 24_000
"""Samples a second."""
_WORD_SECONDS = 0.02  # seconds of sound for each word
_MAX_WORDS = 500
_SILENCE = b"\xff\xfb\x90\x00" + bytes(413)  # one silent frame of MP3


def rerank(value: RerankInput) -> RerankResult:
    """Rank documents by the share of the words of the query that each has."""
    query = set(_find_words(value.query.lower()))
    ranked = [
        RankedDocument(index=index, score=_share_of_words(query, text), text=text)
        for index, text in enumerate(value.documents)
    ]
    ranked.sort(key=lambda document: -document.score)
    tokens = count_text(value.query) + sum(map(count_text, value.documents))
    return RerankResult(
        model=value.model,
        documents=tuple(ranked[: value.top_n]),
        usage=Usage(input_tokens=tokens),
    )


def _share_of_words(query: set[str], document: str) -> float:
    return len(query & set(_find_words(document.lower()))) / (len(query) or 1)


def moderate(value: ModerateInput) -> ModerationResult:
    """Judge texts: a text with one of a few words is harmful, and images never are."""
    return ModerationResult(model=value.model, results=tuple(map(_judge, value.inputs)))


def _judge(content: ModeratedContent) -> Moderation:
    if not isinstance(content, str):
        content = " ".join(part.text for part in content if isinstance(part, Text))
    words = set(_find_words(content.lower()))
    categories = {name: bool(words & harmful) for name, harmful in _CATEGORIES.items()}
    return Moderation(
        flagged=any(categories.values()),
        categories=categories,
        scores={name: 0.9 if is_in else 0.01 for name, is_in in categories.items()},
    )


def embed(value: EmbedInput) -> EmbedResult:
    """Make one vector of length 1 for each text."""
    texts = [_text(content) for content in value.inputs]
    size = value.dimensions or DIMENSIONS
    tokens = sum(map(count_text, texts))
    return EmbedResult(
        model=value.model,
        embeddings=tuple(_vector(text, size) for text in texts),
        usage=Usage(input_tokens=tokens),
    )


def _text(content: EmbedContent) -> str:
    """A text that differs for different contents."""
    if isinstance(content, str):
        return content
    return " ".join(map(_part_text, content))


def _part_text(part: object) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, MEDIA_TYPES):
        source = part.data or (part.url or part.file_id or "").encode("utf-8", "replace")
        return f"{part.kind} {hashlib.sha256(source).hexdigest()}"
    return str(part)


def _vector(text: str, size: int) -> Vector:
    words = _find_words(text.lower()) or [text]
    sums = [
        sum(column) for column in zip(*(_word_vector(word, size) for word in words), strict=True)
    ]
    length = sum(value * value for value in sums) ** 0.5 or 1.0
    return array("d", (value / length for value in sums))


@lru_cache(maxsize=4096)
def _word_vector(word: str, size: int) -> tuple[float, ...]:
    digest = hashlib.shake_128(word.encode("utf-8", "replace")).digest(2 * size)
    return tuple(value / 32768 - 1 for value in struct.unpack(f"<{size}H", digest))


def make_image(value: ImageInput) -> ImageResult | list[PartialImage | ImageResult]:
    """The result with the images; for a stream, the unfinished images before it."""
    if REFUSED in value.prompt:
        raise ContentFilterError(
            "Your request was rejected by the safety system.",
            status_code=400,
            error_code="moderation_blocked",
        )
    size = _image_size(value)
    count = value.count or 1
    items = tuple(_generated(value, size, number) for number in range(count))
    quality = value.quality if value.quality in _IMAGE_TOKENS else "medium"
    drawn = count * max(1, _IMAGE_TOKENS[quality or ""] * size.width * size.height // 1024**2)
    seen = _EDITED_IMAGE_TOKENS * len(value.images)
    result = ImageResult(
        items=items,
        operation=value.operation,
        model=value.model,
        size=str(size),
        quality=quality,
        background="opaque" if value.background in (None, "auto") else value.background,
        format="png",
        created_at=1,
        usage=Usage(
            input_tokens=count_text(value.prompt) + seen,
            output_tokens=drawn,
            input_image_tokens=seen or None,
            output_image_tokens=drawn,
        ),
    )
    if value.partial_images is None:
        return result
    unfinished = range(value.partial_images)
    return [*(_partial(value, size, index) for index in unfinished), result]


def wanted_image(request: Request) -> ImageInput | None:
    """The image that a request asks for, in the terms of any dialect; None if it asks for none."""
    wanted: ImageInput | None = _wanted("wanted_image", request)
    return wanted


def draw(value: ImageInput) -> Turn:
    """The turn of a chat model that makes this image; it refuses as the endpoints do."""
    if REFUSED in value.prompt:
        return refusal("I cannot make this image.")
    image = _image(value.prompt, _image_size(value))
    return Turn(parts=(Text("Here is the image."), image))


def make_png(size: ImageSize, colour: bytes) -> bytes:
    """A PNG image of one colour, three bytes of red, green and blue."""
    header = struct.pack(">IIBBBBB", *size, 1, 3, 0, 0, 0)  # one bit for each pixel, a palette
    row = bytes(1 + (size.width + 7) // 8)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", colour),
        (b"IDAT", zlib.compress(row * size.height, 1)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _image_size(value: ImageInput) -> ImageSize:
    size = parse_pixels(in_pixels(value, ANYTHING).size) or DEFAULT_SIZE
    return ImageSize(min(size.width, _MAX_EDGE), min(size.height, _MAX_EDGE))


def _generated(value: ImageInput, size: ImageSize, number: int) -> GeneratedImage:
    image = _image(f"{value.prompt} {number}", size)
    return GeneratedImage(image=image, width=size.width, height=size.height)


def _partial(value: ImageInput, size: ImageSize, index: int) -> PartialImage:
    image = _image(f"{value.prompt} part {index}", size)
    return PartialImage(image=image, index=index, width=size.width, height=size.height)


def _image(seed: str, size: ImageSize) -> Image:
    colour = hashlib.shake_128(seed.encode("utf-8", "replace")).digest(3)
    return Image(data=make_png(size, colour), media_type="image/png")


def speak(value: SpeakInput) -> Speech:
    """Make real samples for `wav` and `pcm`, and silent frames for the other formats."""
    words = value.text.split()[:_MAX_WORDS]
    audio_format = value.format or "mp3"
    if audio_format in ("wav", "pcm"):
        samples = b"".join(_tone(len(word)) for word in words)
        data = wrap_samples(samples, RATE) if audio_format == "wav" else samples
    else:
        data = _SILENCE * max(1, len(words))
    usage = Usage(input_tokens=count_text(value.text), output_tokens=len(words))
    return Speech(data=data, media_type=AUDIO_TYPES[audio_format], usage=usage, model=value.model)


def wanted_speech(request: Request) -> SpeakInput | None:
    """The speech that a request asks for, in the terms of any dialect; None if it asks for none."""
    wanted: SpeakInput | None = _wanted("wanted_speech", request)
    return wanted


def _wanted(function: str, request: Request) -> Any:
    """What the first dialect finds whose server side has this function; None if none does."""
    for name in dialects.names():
        find = getattr(getattr(dialects.get(name), "serve", None), function, None)
        wanted = None if find is None else find(request)
        if wanted is not None:
            return wanted
    return None


def say(value: SpeakInput) -> Turn:
    """The turn of a chat model that speaks this text."""
    speech = speak(value)
    return Turn(parts=(Audio(data=speech.data, media_type=f"audio/L16;codec=pcm;rate={RATE}"),))


def transcribe(value: TranscribeInput) -> Transcript:
    """Make one segment for each speaker, or one for the whole audio."""
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
    samples = array(
        "h", (round(8000 * math.sin(turn * i)) for i in range(round(RATE * _WORD_SECONDS)))
    )
    return samples.tobytes()
