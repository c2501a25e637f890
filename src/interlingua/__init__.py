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
    DEFAULT,
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
from interlingua.spec.document import VERSION, from_document, from_json, to_document, to_json
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
from interlingua.spec.messages import Message, Role
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)
from interlingua.spec.response import FinishReason, RateLimit, Response, Usage, Warning
from interlingua.wire.accumulate import StreamAccumulator, replay
from interlingua.wire.sse import SSEDecoder, encode_sse

if TYPE_CHECKING:
    from interlingua import sync as sync
    from interlingua.api.abort import AbortController, AbortSignal
    from interlingua.api.default import get_default_client, set_default_client
    from interlingua.api.execute import (
        Chunk,
        ExecuteError,
        ExecuteResult,
        ExecuteUsage,
        Execution,
        execute,
    )
    from interlingua.api.generate import StreamResult, generate, stream
    from interlingua.api.hints import MismatchError, convert, schema_of
    from interlingua.api.loop import ToolLoop
    from interlingua.api.mcp import HttpServer, StdioServer, mcp_tools
    from interlingua.api.object_stream import ObjectStream
    from interlingua.api.objects import generate_object, stream_object
    from interlingua.api.options import GenerateOptions, TimeoutConfig
    from interlingua.api.results import GenerateResult, StepResult
    from interlingua.api.running import ToolObserver
    from interlingua.api.tools import FunctionTool, Tool, ToolAnnotations, tool
    from interlingua.client.client import Client
    from interlingua.client.events import CallCompleted, CallEvent, CallFailed, CallStarted
    from interlingua.client.explain import Explanation
    from interlingua.client.middleware import Middleware
    from interlingua.client.registry import ModelEntry, Registry
    from interlingua.client.retry import RetryPolicy, retry
    from interlingua.providers.adapter import HttpAdapter
    from interlingua.providers.catalog import (
        ModelInfo,
        get_latest_model,
        get_model_info,
        list_models,
    )
    from interlingua.providers.local import LocalAdapter
    from interlingua.providers.models import ServedModel
    from interlingua.providers.named import (
        AnthropicAdapter,
        GeminiAdapter,
        OpenAIAdapter,
        OpenAICompatibleAdapter,
    )
    from interlingua.providers.profiles import profile_for
    from interlingua.providers.provider import Provider
    from interlingua.spec.capabilities import AdapterCapabilities, capabilities_of
    from interlingua.wire.history import Diagnosis, Policy, Target, doctor
    from interlingua.wire.prefix import cache_prefix_diff
    from interlingua.wire.schema import drop_added_nulls, restore_arguments
    from interlingua.wire.strict import raise_on_loss

__all__ = [
    "DEFAULT",
    "VERSION",
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
    "Diagnosis",
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
    "HttpAdapter",
    "HttpServer",
    "Image",
    "InvalidRequestError",
    "InvalidToolCallError",
    "LocalAdapter",
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
    "Policy",
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
    "StdioServer",
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
    "replay",
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
    "interlingua.api.abort": ("AbortController", "AbortSignal"),
    "interlingua.api.default": ("get_default_client", "set_default_client"),
    "interlingua.api.execute": (
        "Chunk",
        "ExecuteError",
        "ExecuteResult",
        "ExecuteUsage",
        "Execution",
        "execute",
    ),
    "interlingua.api.generate": ("StreamResult", "generate", "stream"),
    "interlingua.api.hints": ("MismatchError", "convert", "schema_of"),
    "interlingua.api.loop": ("ToolLoop",),
    "interlingua.api.mcp": ("HttpServer", "StdioServer", "mcp_tools"),
    "interlingua.api.object_stream": ("ObjectStream",),
    "interlingua.api.objects": ("generate_object", "stream_object"),
    "interlingua.api.options": ("GenerateOptions", "TimeoutConfig"),
    "interlingua.api.results": ("GenerateResult", "StepResult"),
    "interlingua.api.running": ("ToolObserver",),
    "interlingua.api.tools": ("FunctionTool", "Tool", "ToolAnnotations", "tool"),
    "interlingua.client.client": ("Client",),
    "interlingua.client.events": ("CallCompleted", "CallEvent", "CallFailed", "CallStarted"),
    "interlingua.client.explain": ("Explanation",),
    "interlingua.client.middleware": ("Middleware",),
    "interlingua.client.registry": ("ModelEntry", "Registry"),
    "interlingua.client.retry": ("RetryPolicy", "retry"),
    "interlingua.providers.adapter": ("HttpAdapter",),
    "interlingua.providers.catalog": (
        "ModelInfo",
        "get_latest_model",
        "get_model_info",
        "list_models",
    ),
    "interlingua.providers.local": ("LocalAdapter",),
    "interlingua.providers.models": ("ServedModel",),
    "interlingua.providers.named": (
        "AnthropicAdapter",
        "GeminiAdapter",
        "OpenAIAdapter",
        "OpenAICompatibleAdapter",
    ),
    "interlingua.providers.profiles": ("profile_for",),
    "interlingua.providers.provider": ("Provider",),
    "interlingua.spec.capabilities": ("AdapterCapabilities", "capabilities_of"),
    "interlingua.wire.history": ("Diagnosis", "Policy", "Target", "doctor"),
    "interlingua.wire.prefix": ("cache_prefix_diff",),
    "interlingua.wire.schema": ("drop_added_nulls", "restore_arguments"),
    "interlingua.wire.strict": ("raise_on_loss",),
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
