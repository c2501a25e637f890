"""
The names that `Telemetry` uses: OpenTelemetry's conventions for generative AI, and our own.

A test compares them with what the package `opentelemetry-util-genai` writes.
"""

from __future__ import annotations

from collections.abc import Mapping

# Attributes of the conventions.
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
STREAM = "gen_ai.request.stream"
RESPONSE_ID = "gen_ai.response.id"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
TOOL_DEFINITIONS = "gen_ai.tool.definitions"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 -- not a password
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
ERROR_TYPE = "error.type"

REQUEST_FIELDS: Mapping[str, str] = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "stop_sequences": "gen_ai.request.stop_sequences",
    "seed": "gen_ai.request.seed",
    "reasoning_effort": "gen_ai.request.reasoning.level",
}
"""The settings of a request, by field."""

USAGE_FIELDS: Mapping[str, str] = {
    "input_tokens": INPUT_TOKENS,
    "output_tokens": OUTPUT_TOKENS,
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_write.input_tokens",
    "input_audio_tokens": "gen_ai.usage.audio.input_tokens",
    "input_image_tokens": "gen_ai.usage.image.input_tokens",
    "output_audio_tokens": "gen_ai.usage.audio.output_tokens",
    "output_image_tokens": "gen_ai.usage.image.output_tokens",
}
"""The counts of a usage, by field."""

CACHE_CREATION = "gen_ai.usage.cache_creation.input_tokens"
"""The older name of the cache writes, which Phoenix and Logfire read."""

# Values of the conventions.
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
OPERATIONS: Mapping[str, str] = {"embed": "embeddings"}
"""The operations whose name in the conventions is another."""
PROVIDERS: Mapping[str, str] = {
    "azure": "azure.ai.openai",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""The rows whose name in the conventions is another."""
REASONS: Mapping[str, str] = {"tool_calls": "tool_call"}
"""The finish reasons whose name in a message of the conventions is another."""

# Metrics of the conventions, with their units and the boundaries of their buckets.
DURATION = "gen_ai.client.operation.duration"
TOKEN_USAGE = "gen_ai.client.token.usage"  # noqa: S105 -- not a password
TIME_TO_FIRST_CHUNK = "gen_ai.client.operation.time_to_first_chunk"
TOOL_DURATION = "gen_ai.execute_tool.duration"
SECONDS = "s"
TOKENS = "{token}"
SECONDS_BUCKETS = tuple(0.01 * 2**power for power in range(14))
TOKEN_BUCKETS = tuple(4**power for power in range(14))

# Our own.
ATTEMPT = "interlingua.attempt"
ATTEMPT_MODEL = "interlingua.model"
ATTEMPT_PROVIDER = "interlingua.provider"
ATTEMPTS = "interlingua.attempts"
CACHED = "interlingua.cached"
COST = "interlingua.cost"
CURRENCY = "interlingua.currency"
REQUEST_ID = "interlingua.request_id"
STEP = "interlingua.step"
STATUS_CODE = "http.response.status_code"
