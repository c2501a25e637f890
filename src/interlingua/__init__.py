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
    from interlingua.wire.strict import raise_on_loss

__all__ = [
    "DEFAULT",
    "VERSION",
    "AbortError",
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
    "Explanation",
    "Finish",
    "FinishReason",
    "Frame",
    "GeminiAdapter",
    "HttpAdapter",
    "Image",
    "InvalidRequestError",
    "InvalidToolCallError",
    "Message",
    "Middleware",
    "ModelEntry",
    "ModelInfo",
    "NetworkError",
    "NoObjectGeneratedError",
    "NotFoundError",
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
    "StepFinish",
    "StreamAccumulator",
    "StreamDecoder",
    "StreamEncoder",
    "StreamError",
    "StreamEvent",
    "StreamStart",
    "Target",
    "Text",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "Thinking",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolChoice",
    "ToolDefinition",
    "ToolResult",
    "Transport",
    "UnsupportedError",
    "UnsupportedToolChoiceError",
    "Usage",
    "Warning",
    "WireCall",
    "cache_prefix_diff",
    "capabilities_of",
    "dialects",
    "doctor",
    "encode_sse",
    "from_document",
    "from_json",
    "get_latest_model",
    "get_model_info",
    "list_models",
    "profile_for",
    "raise_on_loss",
    "replay",
    "retry",
    "to_document",
    "to_json",
]

_ON_USE = {
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
    "interlingua.wire.strict": ("raise_on_loss",),
}
"""What is loaded when it is first used, so that `import interlingua` stays light."""


def __getattr__(name: str) -> Any:
    for module, names in _ON_USE.items():
        if name in names:
            from importlib import import_module

            value = getattr(import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'interlingua' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *(name for name in __all__ if name not in globals())]
