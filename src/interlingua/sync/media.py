"""
The functions of `interlingua.media`, blocking, and those of the modalities at the top level.

Each has the parameters and results of the async function it names.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping
from os import PathLike
from typing import Generic, Literal, Self, TypeVar, Unpack

from interlingua.api.modalities import embeddings as async_embeddings
from interlingua.api.modalities import images as async_images
from interlingua.api.modalities import judgements as async_judgements
from interlingua.api.modalities import models as async_models
from interlingua.api.modalities import speech as async_speech
from interlingua.api.modalities import streams as async_streams
from interlingua.api.modalities import video as async_video
from interlingua.api.modalities.embeddings import CONCURRENCY, Embeddable, ProgressCallback
from interlingua.api.modalities.images import ImageSettings
from interlingua.api.modalities.judgements import Moderated
from interlingua.api.modalities.perform import MediaSettings
from interlingua.api.modalities.sources import AudioSource, ImageSource
from interlingua.api.modalities.speech import TranscriptEvent
from interlingua.api.modalities.streams import NOT_ENDED
from interlingua.api.run.options import Prompt
from interlingua.client.client import Client as AsyncClient
from interlingua.runtime.cancel import ABORTED, AbortSignal
from interlingua.spec.content import Image
from interlingua.spec.errors import AbortError, ConfigurationError
from interlingua.spec.modalities.embeddings import EmbedResult, TaskType, VectorEncoding
from interlingua.spec.modalities.images import GeneratedImage, ImageResult, PartialImage
from interlingua.spec.modalities.moderation import ModerationResult
from interlingua.spec.modalities.ranking import RerankResult
from interlingua.spec.modalities.speech import AudioFormat, Speech, Timestamps, Transcript
from interlingua.spec.modalities.video import VideoJob, VideoProgress, VideoVariant
from interlingua.spec.operations import OperationResult, ServedModel
from interlingua.spec.plain_dicts import AnyMessage
from interlingua.spec.request import AnyTool
from interlingua.sync.blocking_iterator import BlockingIterator, ClosedByWith
from interlingua.sync.client import Client, unwrap
from interlingua.sync.loop_thread import background

__all__ = [
    "ImageOptions",
    "ImageStream",
    "MediaOptions",
    "SpeechStream",
    "TranscriptStream",
    "count_tokens",
    "moderate",
    "rerank",
    "save_image",
    "served_models",
    "stream_image",
    "stream_speech",
    "stream_transcription",
]

Item = TypeVar("Item")
End = TypeVar("End", bound=OperationResult)


class MediaOptions(MediaSettings, total=False):
    """The options of all functions here; the client may be blocking or async."""

    client: Client | AsyncClient | None


class ItemStream(ClosedByWith, Generic[Item, End]):
    """The items of a streamed operation, each as soon as it arrives; they can be read once."""

    def __init__(
        self, stream: async_streams.ItemStream[Item, End], signal: AbortSignal | None = None
    ) -> None:
        self._stream = stream
        self._signal = signal
        self._items: BlockingIterator[Item] = BlockingIterator(stream)
        self._is_over = False  # for the reader; the async stream may be ahead

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        signal = self._signal
        if signal is not None and signal.aborted and not self._is_over:
            self._is_over = True
            raise self._items.discard() or AbortError(signal.reason or ABORTED)
        try:
            return next(self._items)
        except BaseException:
            self._is_over = True
            raise

    def result(self) -> End:
        """The result with its usage and cost; only after the stream was read."""
        if not self._is_over:
            raise ConfigurationError(NOT_ENDED)
        return self._stream.result()

    def close(self) -> None:
        """Stop it and close the connection."""
        self._items.close()


class SpeechStream(ItemStream[bytes, Speech]):
    """Like `interlingua.media.SpeechStream`, blocking."""

    def __init__(
        self, stream: async_speech.SpeechStream, signal: AbortSignal | None = None
    ) -> None:
        super().__init__(stream, signal)
        self._speech = stream

    def save(self, path: str | PathLike[str]) -> int:
        """Write the audio to a file as it arrives; returns the number of bytes."""
        size = background.run(self._speech.save(path))
        self._is_over = True
        return size


class TranscriptStream(ItemStream[TranscriptEvent, Transcript]):
    """Like `interlingua.media.TranscriptStream`, blocking."""


class ImageOptions(ImageSettings, MediaOptions, total=False):
    """The options of the functions that make images."""


class ImageStream(ItemStream[PartialImage, ImageResult]):
    """Like `interlingua.media.ImageStream`, blocking."""


def generate_image(
    model: str, prompt: str, *, download: bool = False, **options: Unpack[ImageOptions]
) -> ImageResult:
    """Like `interlingua.generate_image`, blocking."""
    call = async_images.generate_image(model, prompt, download=download, **unwrap(options))
    return background.run(call)


def edit_image(
    model: str,
    prompt: str,
    images: ImageSource | Iterable[ImageSource],
    *,
    mask: ImageSource | None = None,
    download: bool = False,
    **options: Unpack[ImageOptions],
) -> ImageResult:
    """Like `interlingua.edit_image`, blocking."""
    call = async_images.edit_image(
        model, prompt, images, mask=mask, download=download, **unwrap(options)
    )
    return background.run(call)


def stream_image(
    model: str,
    prompt: str,
    images: ImageSource | Iterable[ImageSource] = (),
    *,
    mask: ImageSource | None = None,
    partial_images: int = 2,
    **options: Unpack[ImageOptions],
) -> ImageStream:
    """
    Like `interlingua.media.stream_image`, blocking.

        with stream_image("openai:gpt-image-2", "A lighthouse.") as stream:
            for partial in stream:
                show(partial.image)
    """
    stream = async_images.stream_image(
        model, prompt, images, mask=mask, partial_images=partial_images, **unwrap(options)
    )
    return ImageStream(stream, options.get("abort_signal"))


def save_image(image: GeneratedImage | Image, path: str | PathLike[str]) -> int:
    """Like `interlingua.media.save_image`, blocking."""
    return background.run(async_images.save_image(image, path))


def transcribe(
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
    """Like `interlingua.transcribe`, blocking."""
    return background.run(
        async_speech.transcribe(
            model,
            audio,
            language=language,
            prompt=prompt,
            temperature=temperature,
            timestamps=timestamps,
            speakers=speakers,
            translate=translate,
            **unwrap(options),
        )
    )


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
    Like `interlingua.media.stream_transcription`, blocking.

        for event in stream_transcription("openai:gpt-4o-transcribe", Path("call.mp3")):
            print(event.text, end="")
    """
    stream = async_speech.stream_transcription(
        model,
        audio,
        language=language,
        prompt=prompt,
        temperature=temperature,
        speakers=speakers,
        **unwrap(options),
    )
    return TranscriptStream(stream, options.get("abort_signal"))


def speak(
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
    """Like `interlingua.speak`, blocking."""
    return background.run(
        async_speech.speak(
            model,
            text,
            voice=voice,
            format=format,
            speed=speed,
            instructions=instructions,
            speakers=speakers,
            output_path=output_path,
            **unwrap(options),
        )
    )


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
    Like `interlingua.media.stream_speech`, blocking.

        for chunk in stream_speech("openai:tts-1", "Hello.", format="pcm"):
            player.write(chunk)
    """
    stream = async_speech.stream_speech(
        model,
        text,
        voice=voice,
        format=format,
        speed=speed,
        instructions=instructions,
        speakers=speakers,
        **unwrap(options),
    )
    return SpeechStream(stream, options.get("abort_signal"))


def generate_video(  # noqa: PLR0913 -- as the async function
    model: str,
    prompt: str,
    *,
    image: ImageSource | None = None,
    seconds: float | None = None,
    size: str | None = None,
    aspect_ratio: str | None = None,
    count: int | None = None,
    wait: Literal["poll", "none"] = "poll",
    output_path: str | PathLike[str] | None = None,
    variant: VideoVariant = "video",
    poll_interval: float | None = None,
    on_progress: VideoProgress | None = None,
    **options: Unpack[MediaOptions],
) -> VideoJob:
    """Like `interlingua.generate_video`, blocking."""
    return background.run(
        async_video.generate_video(
            model,
            prompt,
            image=image,
            seconds=seconds,
            size=size,
            aspect_ratio=aspect_ratio,
            count=count,
            wait=wait,
            output_path=output_path,
            variant=variant,
            poll_interval=poll_interval,
            on_progress=on_progress,
            **unwrap(options),
        )
    )


def embed(
    model: str,
    content: Embeddable,
    *,
    task: TaskType | None = None,
    dimensions: int | None = None,
    encoding: VectorEncoding | None = None,
    user: str | None = None,
    **options: Unpack[MediaOptions],
) -> EmbedResult:
    """Like `interlingua.embed`, blocking."""
    return background.run(
        async_embeddings.embed(
            model,
            content,
            task=task,
            dimensions=dimensions,
            encoding=encoding,
            user=user,
            **unwrap(options),
        )
    )


def embed_many(
    model: str,
    contents: Iterable[Embeddable] | AsyncIterable[Embeddable],
    *,
    task: TaskType | None = None,
    dimensions: int | None = None,
    encoding: VectorEncoding | None = None,
    user: str | None = None,
    concurrency: int = CONCURRENCY,
    on_progress: ProgressCallback | None = None,
    **options: Unpack[MediaOptions],
) -> EmbedResult:
    """Like `interlingua.embed_many`, blocking."""
    return background.run(
        async_embeddings.embed_many(
            model,
            contents,
            task=task,
            dimensions=dimensions,
            encoding=encoding,
            user=user,
            concurrency=concurrency,
            on_progress=on_progress,
            **unwrap(options),
        )
    )


def rerank(
    model: str,
    query: str,
    documents: Iterable[str],
    *,
    top_n: int | None = None,
    **options: Unpack[MediaOptions],
) -> RerankResult:
    """Like `interlingua.media.rerank`, blocking."""
    work = async_judgements.rerank(model, query, documents, top_n=top_n, **unwrap(options))
    return background.run(work)


def moderate(model: str, content: Moderated, **options: Unpack[MediaOptions]) -> ModerationResult:
    """Like `interlingua.media.moderate`, blocking."""
    return background.run(async_judgements.moderate(model, content, **unwrap(options)))


def count_tokens(
    model: str,
    prompt: Prompt = None,
    *,
    messages: AnyMessage | Iterable[AnyMessage] | None = None,
    system: str | None = None,
    tools: Iterable[AnyTool] | None = None,
    **options: Unpack[MediaOptions],
) -> int:
    """Like `interlingua.media.count_tokens`, blocking."""
    work = async_models.count_tokens(
        model, prompt, messages=messages, system=system, tools=tools, **unwrap(options)
    )
    return background.run(work)


def served_models(
    provider: str | None = None,
    *,
    client: Client | AsyncClient | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> list[ServedModel]:
    """Like `interlingua.media.served_models`, blocking."""
    options = unwrap({"client": client})
    work = async_models.served_models(
        provider, **options, api_key=api_key, base_url=base_url, headers=headers
    )
    return background.run(work)
