"""
More about embeddings, images, speech and the other modalities: streams, helpers, and all records.

The functions that most programs need, such as `transcribe` and `speak`, are at the top level.
Import from here to stream, or to name a result in an annotation.
"""

from interlingua.api.media.embeddings import EmbedProgress, rank, similarity
from interlingua.api.media.images import ImageOptions, ImageStream, save_image, stream_image
from interlingua.api.media.judgements import moderate, rerank
from interlingua.api.media.models import count_tokens, served_models
from interlingua.api.media.perform import MediaOptions
from interlingua.api.media.speech import (
    SpeechStream,
    TranscriptStream,
    stream_speech,
    stream_transcription,
)
from interlingua.spec.media.embeddings import EmbedResult, TaskType
from interlingua.spec.media.images import GeneratedImage, ImageResult, PartialImage
from interlingua.spec.media.moderation import Moderation, ModerationResult
from interlingua.spec.media.ranking import RankedDocument, RerankResult
from interlingua.spec.media.speech import (
    Speech,
    Transcript,
    TranscriptDelta,
    TranscriptSegment,
    TranscriptWord,
)
from interlingua.spec.media.vectors import Vector

__all__ = [
    "EmbedProgress",
    "EmbedResult",
    "GeneratedImage",
    "ImageOptions",
    "ImageResult",
    "ImageStream",
    "MediaOptions",
    "Moderation",
    "ModerationResult",
    "PartialImage",
    "RankedDocument",
    "RerankResult",
    "Speech",
    "SpeechStream",
    "TaskType",
    "Transcript",
    "TranscriptDelta",
    "TranscriptSegment",
    "TranscriptStream",
    "TranscriptWord",
    "Vector",
    "count_tokens",
    "moderate",
    "rank",
    "rerank",
    "save_image",
    "served_models",
    "similarity",
    "stream_image",
    "stream_speech",
    "stream_transcription",
]
