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

_RIG = "rig-anthropic-strict-schema-matrix-"

NARROWED: dict[str, str] = {
    f"{_RIG}top-level-any-of-is-rejected-for-tool-input-cdd059db.00": "refused: a union as root",
    f"{_RIG}top-level-one-of-is-rejected-for-tool-input-8373093e.00": "refused: a union as root",
}
"""Recorded schemas that the provider refused; they go out changed, with a warning."""

_MIRASCOPE = "mirascope-typescript-e2e-input-strict-tool-openai-completions-handles-optional-"

MADE_STRICT: dict[str, str] = {
    f"{_MIRASCOPE}properties-in-strict-mode-0f583a70.00": "refused: an object that is not closed",
    "mirascope-ops-internal-instrumentation-llm-model-call-with-tools-a1a21204.01": (
        "refused: an optional property in a strict tool"
    ),
}
"""The same, where the change of words loses nothing."""

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("1 chunking never shows", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("2 a stream equals the whole", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("3 round trip of streams", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("6 the unknown survives", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("8 the grammar holds", _GROQ_FAILED): _TOLD_AN_ERROR,
    ("9 streams of others", _GROQ_FAILED): _TOLD_AN_ERROR,
    **{("3 round trip", name): why for name, why in REPAIRED.items()},
    **{("6 the unknown survives", name): why for name, why in REPAIRED.items()},
    **{("3 round trip", name): why for name, why in (NARROWED | MADE_STRICT).items()},
}
"""(law, record id) -> why."""

_COMPATIBLE = "not OpenAI's own: compatible servers and routers answer so, and clients look there"
_CUSTOM = "custom calls are recorded so; the types of the client have them elsewhere, or not yet"

NEWER: dict[str, str] = {
    "unknown: .choices.*.message.reasoning_content": _COMPATIBLE,
    "unknown: .choices.*.delta.reasoning_content": _COMPATIBLE,
    "unknown: .choices.*.message.images": _COMPATIBLE,
    "unknown: .choices.*.delta.images": _COMPATIBLE,
    "choices.*.delta.tool_calls.*.type: literal_error": _CUSTOM,
    "unknown: .choices.*.delta.tool_calls.*.custom": _CUSTOM,
    "unknown: .output.*.status": _CUSTOM,
    "unknown: .item.status": _CUSTOM,
    "unknown: .response.output.*.status": _CUSTOM,
}
"""What we write in answers and the vendor's own types do not have -> why."""

_BELOW_ZERO = "asks for a negative temperature, which every vendor refuses; it is passed on"

CROSSING: dict[tuple[str, str, str, str], str] = {
    (
        *("types", "openai_responses", "bedrock_converse"),
        "pydantic-ai-openai-responses-openai-responses-model-http-error-b83b2e51.00",
    ): _BELOW_ZERO,
    (
        *("types", "anthropic_messages", "bedrock_converse"),
        "rig-anthropic-error-identity-edge-validation-error-carries-identity-5c5ce5bf.00",
    ): _BELOW_ZERO,
}
"""(`9 crossing` or `types`, dialect, other dialect, record id) -> why."""
