"""
More about embeddings, images, speech and the other modalities: streams, helpers, and all records.

The functions that most programs need, such as `transcribe` and `speak`, are at the top level.
Import from here to stream, or to name a result in an annotation.
"""

from interlingua.api.modalities.embeddings import EmbedProgress, rank, similarity
from interlingua.api.modalities.images import ImageOptions, ImageStream, save_image, stream_image
from interlingua.api.modalities.judgements import moderate, rerank
from interlingua.api.modalities.models import count_tokens, served_model, served_models
from interlingua.api.modalities.perform import MediaOptions
from interlingua.api.modalities.speech import (
    SpeechStream,
    TranscriptStream,
    stream_speech,
    stream_transcription,
)
from interlingua.spec.modalities.embeddings import EmbedResult, TaskType, Vector
from interlingua.spec.modalities.images import GeneratedImage, ImageResult, PartialImage
from interlingua.spec.modalities.judgements import (
    Moderation,
    ModerationResult,
    RankedDocument,
    RerankResult,
)
from interlingua.spec.modalities.speech import (
    Speech,
    Transcript,
    TranscriptDelta,
    TranscriptSegment,
    TranscriptWord,
)

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
    "served_model",
    "served_models",
    "similarity",
    "stream_image",
    "stream_speech",
    "stream_transcription",
]
