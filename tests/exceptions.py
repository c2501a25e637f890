"""
Recorded exchanges that break a law, each with the reason.

A record that no longer breaks its law must leave this list: a test says so.
"""

_GROQ_FAILED = "pydantic-ai-groq-tool-use-failed-error-streaming-280772c1.00"
_TOLD_AN_ERROR = "the stream is nothing but the provider's error event, which is raised as such"

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("1 chunking never shows", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("2 a stream equals the whole", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("3 round trip of streams", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("6 the unknown survives", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("8 the grammar holds", _GROQ_FAILED): _TOLD_AN_ERROR,
}
"""(law, record id) -> why."""
