"""The functions of `interlingua.media`, blocking, and those of the modalities at the top level."""

from __future__ import annotations

from os import PathLike
from typing import Final, Generic, TypeVar

from interlingua.api.modalities import (
    embeddings,
    images,
    judgements,
    models,
    speech,
    streams,
    video,
)
from interlingua.api.modalities.images import ImageOptions
from interlingua.api.modalities.perform import MediaOptions
from interlingua.api.modalities.speech import TranscriptEvent
from interlingua.runtime.cancel import AbortSignal
from interlingua.spec.modalities.images import ImageResult, PartialImage
from interlingua.spec.modalities.speech import Speech, Transcript
from interlingua.spec.operations import OperationResult
from interlingua.sync.blocking import blocking, blocking_stream
from interlingua.sync.blocking_iterator import AbortableIterator
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
    "served_model",
    "served_models",
    "stream_image",
    "stream_speech",
    "stream_transcription",
]

Item = TypeVar("Item")
End = TypeVar("End", bound=OperationResult)


class ItemStream(AbortableIterator[Item], Generic[Item, End]):
    """The items of a streamed operation, each as soon as it arrives; they can be read once."""

    def __init__(
        self, stream: streams.ItemStream[Item, End], signal: AbortSignal | None = None
    ) -> None:
        super().__init__(stream, signal)
        self._stream = stream

    def result(self) -> End:
        """Return the result with its usage and cost; only after the stream was read."""
        self._check_ended()
        return self._stream.result()


class ImageStream(ItemStream[PartialImage, ImageResult]):
    """
    Unfinished images, which can be read once.

    At the end, `result()` has the finished image, the usage and the cost.
    """


class TranscriptStream(ItemStream[TranscriptEvent, Transcript]):
    """
    Pieces of a transcript, which can be read once.

    A `TranscriptDelta` has the next text, a `TranscriptSegment` who spoke it. At the end,
    `result()` has the whole transcript.
    """


class SpeechStream(ItemStream[bytes, Speech]):
    """
    Pieces of audio, which can be read once.

    At the end, `result()` has the media type, the usage and the cost.
    """

    def __init__(self, stream: speech.SpeechStream, signal: AbortSignal | None = None) -> None:
        super().__init__(stream, signal)
        self._speech = stream

    def save(self, path: str | PathLike[str]) -> int:
        """Write the audio to a file as it arrives; returns the number of bytes."""
        size = background.run(self._speech.save(path))
        self._is_over = True
        return size


generate_image: Final = blocking(images.generate_image, __name__)
edit_image: Final = blocking(images.edit_image, __name__)
stream_image: Final = blocking_stream(images.stream_image, ImageStream, __name__)
save_image: Final = blocking(images.save_image, __name__)
transcribe: Final = blocking(speech.transcribe, __name__)
stream_transcription: Final = blocking_stream(
    speech.stream_transcription, TranscriptStream, __name__
)
speak: Final = blocking(speech.speak, __name__)
stream_speech: Final = blocking_stream(speech.stream_speech, SpeechStream, __name__)
generate_video: Final = blocking(video.generate_video, __name__)
embed: Final = blocking(embeddings.embed, __name__)
embed_many: Final = blocking(embeddings.embed_many, __name__)
rerank: Final = blocking(judgements.rerank, __name__)
moderate: Final = blocking(judgements.moderate, __name__)
count_tokens: Final = blocking(models.count_tokens, __name__)
served_model: Final = blocking(models.served_model, __name__)
served_models: Final = blocking(models.served_models, __name__)
