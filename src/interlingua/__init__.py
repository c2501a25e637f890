"""One lossless language for every LLM provider."""

from typing import TYPE_CHECKING, Any

from interlingua import dialects
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from interlingua.spec.contracts import (
    NEUTRAL_PROFILE,
    Adapter,
    Dialect,
    Frame,
    Profile,
    StreamDecoder,
    StreamEncoder,
    Timeouts,
    Transport,
    WireCall,
)
from interlingua.spec.errors import (
    AbortError,
    AccessDeniedError,
    AuthenticationError,
    ConfigurationError,
    ContentFilterError,
    ContextLengthError,
    DecodeError,
    ErrorClass,
    InvalidRequestError,
    InvalidToolCallError,
    NetworkError,
    NoObjectGeneratedError,
    NotFoundError,
    ProviderError,
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    RequestTimeoutError,
    SDKError,
    ServerError,
    StreamError,
    UnsupportedError,
    UnsupportedToolChoiceError,
)
from interlingua.spec.events import (
    ErrorEvent,
    Finish,
    ProviderEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StreamEvent,
    StreamStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from interlingua.spec.json_form import (
    FORMAT_VERSION,
    from_document,
    from_json,
    to_document,
    to_json,
)
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)
from interlingua.spec.response import FinishReason, RateLimit, Response, Usage, Warning
from interlingua.streams.accumulate import StreamAccumulator, events_from_response
from interlingua.wire.sse import SSEDecoder, encode_sse

if TYPE_CHECKING:
    from interlingua import sync as sync
    from interlingua.api.execute import (
        Chunk,
        ExecuteError,
        ExecuteResult,
        ExecuteUsage,
        Execution,
        execute,
    )
    from interlingua.api.objects.functions import generate_object, stream_object
    from interlingua.api.objects.stream import ObjectStream
    from interlingua.api.run.default_client import get_default_client, set_default_client
    from interlingua.api.run.generate import StreamResult, generate, stream
    from interlingua.api.run.loop import ToolLoop
    from interlingua.api.run.options import GenerateOptions, TimeoutConfig
    from interlingua.api.run.results import GenerateResult, StepResult
    from interlingua.api.tools.mcp import MCPHttpServer, MCPStdioServer, mcp_tools
    from interlingua.api.tools.runner import ToolObserver
    from interlingua.api.tools.tool import FunctionTool, Tool, ToolAnnotations, tool
    from interlingua.api.types import MismatchError, convert, schema_of
    from interlingua.client.attempts import retry
    from interlingua.client.call_events import CallCompleted, CallEvent, CallFailed, CallStarted
    from interlingua.client.client import Client
    from interlingua.client.explain import Explanation
    from interlingua.client.middleware.layers import Middleware
    from interlingua.client.registry import ModelEntry, Registry
    from interlingua.client.retry_policy import RetryPolicy
    from interlingua.prepare.cache_diff import cache_prefix_diff
    from interlingua.prepare.history import HistoryRepair, RepairPolicy, Target, doctor
    from interlingua.prepare.schema import drop_added_nulls, restore_arguments
    from interlingua.providers.adapter import HttpAdapter
    from interlingua.providers.cancel import AbortController, AbortSignal
    from interlingua.providers.catalog.models import (
        ModelInfo,
        get_latest_model,
        get_model_info,
        list_models,
    )
    from interlingua.providers.catalog.profiles import profile_for
    from interlingua.providers.listing import ServedModel
    from interlingua.providers.named import (
        AnthropicAdapter,
        GeminiAdapter,
        LocalAdapter,
        OpenAIAdapter,
        OpenAICompatibleAdapter,
    )
    from interlingua.providers.provider import Provider
    from interlingua.spec.capabilities import AdapterCapabilities, capabilities_of
    from interlingua.spec.warnings import raise_on_loss

__all__ = [
    "FORMAT_VERSION",
    "NEUTRAL_PROFILE",
    "AbortController",
    "AbortError",
    "AbortSignal",
    "AccessDeniedError",
    "Adapter",
    "AdapterCapabilities",
    "AnthropicAdapter",
    "Audio",
    "AuthenticationError",
    "BuiltinTool",
    "CallCompleted",
    "CallEvent",
    "CallFailed",
    "CallStarted",
    "Chunk",
    "Client",
    "ConfigurationError",
    "ContentFilterError",
    "ContextLengthError",
    "DecodeError",
    "Dialect",
    "Document",
    "ErrorClass",
    "ErrorEvent",
    "ExecuteError",
    "ExecuteResult",
    "ExecuteUsage",
    "Execution",
    "Explanation",
    "Finish",
    "FinishReason",
    "Frame",
    "FunctionTool",
    "GeminiAdapter",
    "GenerateOptions",
    "GenerateResult",
    "HistoryRepair",
    "HttpAdapter",
    "Image",
    "InvalidRequestError",
    "InvalidToolCallError",
    "LocalAdapter",
    "MCPHttpServer",
    "MCPStdioServer",
    "Message",
    "Middleware",
    "MismatchError",
    "ModelEntry",
    "ModelInfo",
    "NetworkError",
    "NoObjectGeneratedError",
    "NotFoundError",
    "ObjectStream",
    "Opaque",
    "OpenAIAdapter",
    "OpenAICompatibleAdapter",
    "Part",
    "Profile",
    "Provider",
    "ProviderError",
    "ProviderEvent",
    "ProviderTimeoutError",
    "QuotaExceededError",
    "RateLimit",
    "RateLimitError",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningStart",
    "Refusal",
    "Registry",
    "RepairPolicy",
    "Request",
    "RequestTimeoutError",
    "Response",
    "ResponseFormat",
    "RetryPolicy",
    "Role",
    "SDKError",
    "SSEDecoder",
    "ServedModel",
    "ServerError",
    "StepFinish",
    "StepResult",
    "StreamAccumulator",
    "StreamDecoder",
    "StreamEncoder",
    "StreamError",
    "StreamEvent",
    "StreamResult",
    "StreamStart",
    "Target",
    "Text",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "Thinking",
    "TimeoutConfig",
    "Timeouts",
    "Tool",
    "ToolAnnotations",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolChoice",
    "ToolDefinition",
    "ToolLoop",
    "ToolObserver",
    "ToolResult",
    "Transport",
    "UnsupportedError",
    "UnsupportedToolChoiceError",
    "Usage",
    "Warning",
    "WireCall",
    "cache_prefix_diff",
    "capabilities_of",
    "convert",
    "dialects",
    "doctor",
    "drop_added_nulls",
    "encode_sse",
    "events_from_response",
    "execute",
    "from_document",
    "from_json",
    "generate",
    "generate_object",
    "get_default_client",
    "get_latest_model",
    "get_model_info",
    "list_models",
    "mcp_tools",
    "profile_for",
    "raise_on_loss",
    "restore_arguments",
    "retry",
    "schema_of",
    "set_default_client",
    "stream",
    "stream_object",
    "to_document",
    "to_json",
    "tool",
]

_ON_USE = {
    "interlingua.api.run.default_client": ("get_default_client", "set_default_client"),
    "interlingua.api.execute": (
        "Chunk",
        "ExecuteError",
        "ExecuteResult",
        "ExecuteUsage",
        "Execution",
        "execute",
    ),
    "interlingua.api.run.generate": ("StreamResult", "generate", "stream"),
    "interlingua.api.types": ("MismatchError", "convert", "schema_of"),
    "interlingua.api.run.loop": ("ToolLoop",),
    "interlingua.api.tools.mcp": ("MCPHttpServer", "MCPStdioServer", "mcp_tools"),
    "interlingua.api.objects.stream": ("ObjectStream",),
    "interlingua.api.objects.functions": ("generate_object", "stream_object"),
    "interlingua.api.run.options": ("GenerateOptions", "TimeoutConfig"),
    "interlingua.api.run.results": ("GenerateResult", "StepResult"),
    "interlingua.api.tools.runner": ("ToolObserver",),
    "interlingua.api.tools.tool": ("FunctionTool", "Tool", "ToolAnnotations", "tool"),
    "interlingua.client.client": ("Client",),
    "interlingua.client.call_events": ("CallCompleted", "CallEvent", "CallFailed", "CallStarted"),
    "interlingua.client.explain": ("Explanation",),
    "interlingua.client.middleware.layers": ("Middleware",),
    "interlingua.client.registry": ("ModelEntry", "Registry"),
    "interlingua.client.attempts": ("retry",),
    "interlingua.client.retry_policy": ("RetryPolicy",),
    "interlingua.providers.cancel": ("AbortController", "AbortSignal"),
    "interlingua.providers.adapter": ("HttpAdapter",),
    "interlingua.providers.catalog.models": (
        "ModelInfo",
        "get_latest_model",
        "get_model_info",
        "list_models",
    ),
    "interlingua.providers.listing": ("ServedModel",),
    "interlingua.providers.named": (
        "AnthropicAdapter",
        "GeminiAdapter",
        "LocalAdapter",
        "OpenAIAdapter",
        "OpenAICompatibleAdapter",
    ),
    "interlingua.providers.catalog.profiles": ("profile_for",),
    "interlingua.providers.provider": ("Provider",),
    "interlingua.spec.capabilities": ("AdapterCapabilities", "capabilities_of"),
    "interlingua.prepare.history": ("HistoryRepair", "RepairPolicy", "Target", "doctor"),
    "interlingua.prepare.cache_diff": ("cache_prefix_diff",),
    "interlingua.prepare.schema": ("drop_added_nulls", "restore_arguments"),
    "interlingua.spec.warnings": ("raise_on_loss",),
}
"""What is loaded when it is first used, so that `import interlingua` stays light."""


if not TYPE_CHECKING:  # to a checker it would be any name at all, misspelt ones too

    def __getattr__(name: str) -> Any:
        if name == "sync":
            from importlib import import_module

            return import_module("interlingua.sync")
        for module, names in _ON_USE.items():
            if name in names:
                from importlib import import_module

                value = getattr(import_module(module), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module 'interlingua' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *(name for name in __all__ if name not in globals())]
