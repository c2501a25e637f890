"""
Recorded exchanges that break a law, each with the reason.

A record that no longer breaks its law must leave this list: a test says so.
"""

_GROQ_FAILED = "pydantic-ai-groq-tool-use-failed-error-streaming-280772c1.00"
_TOLD_AN_ERROR = "the stream is nothing but the provider's error event, which is raised as such"

_DD_TRACE = "dd-trace-py-contrib-anthropic-anthropic-completion-tools-call-with-tool-result-stream-"
_OLLAMA = (
    "activeagent-vcr-ollama-chat-common-format-tools-agent-common-format-multiple-tools-1d7d878d.01"
)
_EMPTY = (
    "mirascope-typescript-e2e-input-empty-call-anthropic-handles-empty-string-content-2fe9ea42.00"
)

REPAIRED: dict[str, str] = {
    f"{_DD_TRACE}d24dd84c.00": "the result's id is not the call's; only Claude 3 let that pass",
    f"{_DD_TRACE}helper-c7a47810.00": "the same request through the SDK's helper",
    _OLLAMA: "one of two calls has no result; Ollama does not look",
    _EMPTY: "an empty message, which the provider refused",
}
"""Recorded histories that are broken, so that they do not come back as they were."""

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("1 chunking never shows", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("2 a stream equals the whole", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("3 round trip of streams", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("6 the unknown survives", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("8 the grammar holds", _GROQ_FAILED): _TOLD_AN_ERROR,
    **{("3 round trip", name): why for name, why in REPAIRED.items()},
    **{("6 the unknown survives", name): why for name, why in REPAIRED.items()},
}
"""(law, record id) -> why."""
