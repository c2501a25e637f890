"""
More about embeddings, images, speech and the other modalities: streams, helpers, and all records.

The functions that most programs need, such as `transcribe` and `speak`, are at the top level.
Import from here to stream, or to name a result in an annotation.
"""

from interlingua.api.media.perform import MediaOptions
from interlingua.api.media.speech import (
    SpeechStream,
    TranscriptStream,
    stream_speech,
    stream_transcription,
)
from interlingua.spec.media.speech import (
    Speech,
    Transcript,
    TranscriptDelta,
    TranscriptSegment,
    TranscriptWord,
)

__all__ = [
    "MediaOptions",
    "Speech",
    "SpeechStream",
    "Transcript",
    "TranscriptDelta",
    "TranscriptSegment",
    "TranscriptStream",
    "TranscriptWord",
    "stream_speech",
    "stream_transcription",
]
