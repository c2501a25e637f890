"""
One lossless language for every LLM provider.

The names that most programs need are here. The others are in modules: `errors`, `events`,
`history`, `dialects`, `tools`, `execution`, `batch`, `bulk`, `files`, `mcp`, `media`, `catalog`,
`middleware`, `stores`, `transport`, `serving`, `sync`, and, for tests, `testing`, `simulator` and
`conformance`. Everything is loaded at its first use, so that `import interlingua` stays light.
"""

from interlingua.version import __version__ as __version__

TYPE_CHECKING = False  # as in `typing`, which would be nearly all of the time of this import

if TYPE_CHECKING:
    # For type checkers and editors, which cannot read the table below. `X as X` exports a name. A
    # test compares the two.
    from interlingua import batch as batch
    from interlingua import bulk as bulk
    from interlingua import catalog as catalog
    from interlingua import conformance as conformance
    from interlingua import dialects as dialects
    from interlingua import errors as errors
    from interlingua import events as events
    from interlingua import execution as execution
    from interlingua import files as files
    from interlingua import history as history
    from interlingua import mcp as mcp
    from interlingua import media as media
    from interlingua import middleware as middleware
    from interlingua import serving as serving
    from interlingua import simulator as simulator
    from interlingua import stores as stores
    from interlingua import sync as sync
    from interlingua import testing as testing
    from interlingua import tools as tools
    from interlingua import transport as transport
    from interlingua import video as video
    from interlingua.api.execute.execution import execute as execute
    from interlingua.api.modalities.embeddings import embed as embed
    from interlingua.api.modalities.embeddings import embed_many as embed_many
    from interlingua.api.modalities.images import edit_image as edit_image
    from interlingua.api.modalities.images import generate_image as generate_image
    from interlingua.api.modalities.speech import speak as speak
    from interlingua.api.modalities.speech import transcribe as transcribe
    from interlingua.api.modalities.video import generate_video as generate_video
    from interlingua.api.objects.functions import ObjectStream as ObjectStream
    from interlingua.api.objects.functions import generate_object as generate_object
    from interlingua.api.objects.functions import stream_object as stream_object
    from interlingua.api.run.clients import get_default_client as get_default_client
    from interlingua.api.run.clients import set_default_client as set_default_client
    from interlingua.api.run.generate import generate as generate
    from interlingua.api.run.generate import stream as stream
    from interlingua.api.run.limits import RunLimits as RunLimits
    from interlingua.api.run.many import generate_many as generate_many
    from interlingua.api.run.options import GenerateOptions as GenerateOptions
    from interlingua.api.run.options import TimeoutConfig as TimeoutConfig
    from interlingua.api.run.results import GenerateResult as GenerateResult
    from interlingua.api.run.results import StepResult as StepResult
    from interlingua.api.run.stream_result import StreamResult as StreamResult
    from interlingua.api.session.session import Session as Session
    from interlingua.api.session.store import SessionStore as SessionStore
    from interlingua.api.tools.context import Retry as Retry
    from interlingua.api.tools.tool import Tool as Tool
    from interlingua.api.tools.tool import tool as tool
    from interlingua.client.client import Client as Client
    from interlingua.client.explain import Explanation as Explanation
    from interlingua.client.retry_policy import RetryPolicy as RetryPolicy
    from interlingua.client.retry_policy import retry as retry
    from interlingua.providers.adapter import AnthropicAdapter as AnthropicAdapter
    from interlingua.providers.adapter import GeminiAdapter as GeminiAdapter
    from interlingua.providers.adapter import HttpAdapter as HttpAdapter
    from interlingua.providers.adapter import LocalAdapter as LocalAdapter
    from interlingua.providers.adapter import OpenAIAdapter as OpenAIAdapter
    from interlingua.providers.adapter import OpenAICompatibleAdapter as OpenAICompatibleAdapter
    from interlingua.runtime.cancel import AbortController as AbortController
    from interlingua.runtime.cancel import AbortSignal as AbortSignal
    from interlingua.spec.content import Audio as Audio
    from interlingua.spec.content import Citation as Citation
    from interlingua.spec.content import Document as Document
    from interlingua.spec.content import Image as Image
    from interlingua.spec.content import Opaque as Opaque
    from interlingua.spec.content import Part as Part
    from interlingua.spec.content import Refusal as Refusal
    from interlingua.spec.content import Text as Text
    from interlingua.spec.content import Thinking as Thinking
    from interlingua.spec.content import TokenLogprob as TokenLogprob
    from interlingua.spec.content import ToolCall as ToolCall
    from interlingua.spec.content import ToolResult as ToolResult
    from interlingua.spec.contracts import Adapter as Adapter
    from interlingua.spec.contracts import Profile as Profile
    from interlingua.spec.errors import SDKError as SDKError
    from interlingua.spec.json_form import FORMAT_VERSION as FORMAT_VERSION
    from interlingua.spec.json_form import from_json as from_json
    from interlingua.spec.json_form import to_json as to_json
    from interlingua.spec.messages import Message as Message
    from interlingua.spec.messages import Role as Role
    from interlingua.spec.request import BuiltinTool as BuiltinTool
    from interlingua.spec.request import Request as Request
    from interlingua.spec.request import ResponseFormat as ResponseFormat
    from interlingua.spec.request import ToolChoice as ToolChoice
    from interlingua.spec.request import ToolDefinition as ToolDefinition
    from interlingua.spec.response import Cost as Cost
    from interlingua.spec.response import FinishReason as FinishReason
    from interlingua.spec.response import RateLimitInfo as RateLimitInfo
    from interlingua.spec.response import Response as Response
    from interlingua.spec.response import Usage as Usage
    from interlingua.spec.response import Warning as Warning

_NAMES = {
    "api.execute.execution": ("execute",),
    "api.modalities.embeddings": ("embed", "embed_many"),
    "api.modalities.images": ("edit_image", "generate_image"),
    "api.modalities.speech": ("speak", "transcribe"),
    "api.modalities.video": ("generate_video",),
    "api.objects.functions": ("ObjectStream", "generate_object", "stream_object"),
    "runtime.cancel": ("AbortController", "AbortSignal"),
    "api.run.generate": ("generate", "stream"),
    "api.run.limits": ("RunLimits",),
    "api.run.many": ("generate_many",),
    "api.run.options": ("GenerateOptions", "TimeoutConfig"),
    "api.run.results": ("GenerateResult", "StepResult"),
    "api.run.stream_result": ("StreamResult",),
    "api.run.clients": ("get_default_client", "set_default_client"),
    "api.tools.context": ("Retry",),
    "api.session.session": ("Session",),
    "api.session.store": ("SessionStore",),
    "api.tools.tool": ("Tool", "tool"),
    "client.client": ("Client",),
    "client.explain": ("Explanation",),
    "client.retry_policy": ("RetryPolicy", "retry"),
    "providers.adapter": (
        "AnthropicAdapter",
        "GeminiAdapter",
        "HttpAdapter",
        "LocalAdapter",
        "OpenAIAdapter",
        "OpenAICompatibleAdapter",
    ),
    "spec.content": (
        "Audio",
        "Citation",
        "Document",
        "Image",
        "Opaque",
        "Part",
        "Refusal",
        "Text",
        "Thinking",
        "TokenLogprob",
        "ToolCall",
        "ToolResult",
    ),
    "spec.contracts": ("Adapter", "Profile"),
    "spec.errors": ("SDKError",),
    "spec.json_form": ("FORMAT_VERSION", "from_json", "to_json"),
    "spec.messages": ("Message", "Role"),
    "spec.request": ("BuiltinTool", "Request", "ResponseFormat", "ToolChoice", "ToolDefinition"),
    "spec.response": ("Cost", "FinishReason", "RateLimitInfo", "Response", "Usage"),
}
"""The public names by the module that defines them."""

_MODULES = (
    "batch",
    "bulk",
    "catalog",
    "conformance",
    "dialects",
    "errors",
    "events",
    "execution",
    "files",
    "history",
    "mcp",
    "media",
    "middleware",
    "serving",
    "simulator",
    "stores",
    "sync",
    "testing",
    "tools",
    "transport",
    "video",
)
"""The public modules."""

_ELSEWHERE = {
    "catalog": (
        *("AdapterCapabilities", "ModelInfo", "Provider", "ProviderConfig", "get_latest_model"),
        *("get_model_info", "list_models", "profile_for", "reprice"),
    ),
    "dialects": ("StreamAccumulator",),
    "errors": (
        *("AbortError", "AccessDeniedError", "AuthenticationError", "BudgetExceededError"),
        *("CircuitOpenError", "ConfigurationError", "ContentFilterError", "ContextLengthError"),
        *("DecodeError", "ErrorClass", "InvalidRequestError", "InvalidToolCallError"),
        *("MismatchError", "NetworkError", "NoObjectGeneratedError", "NotFoundError"),
        *("ProviderError", "ProviderTimeoutError", "QuotaExceededError", "RateLimitError"),
        *("RequestTimeoutError", "RunLimitError", "ServerError", "StoreError", "StreamError"),
        *("UnsupportedError", "UnsupportedToolChoiceError"),
    ),
    "events": (
        *("CallCompleted", "CallFailed", "CallStarted", "ErrorEvent", "Finish", "ProviderEvent"),
        *("ReasoningDelta", "ReasoningEnd", "ReasoningStart", "StepFinish", "StreamEvent"),
        *("StreamStart", "TextDelta", "TextEnd", "TextStart", "ToolCallDelta", "ToolCallEnd"),
        *("ToolCallStart", "ToolResultEvent", "UsageReport"),
    ),
    "history": ("cache_prefix_diff", "read_messages", "repair"),
    "middleware": ("Budget", "Cache", "CircuitBreaker", "Fallback", "RateLimit", "Redact"),
    "tools": ("ToolAnnotations", "ToolContext", "ToolLoop", "schema_of"),
}
"""Names that are in a public module, by that module."""

_OTHER_NAMES = {
    # of unified clients in other languages
    "AdapterTimeout": "transport.Timeouts",
    "AudioData": "Audio",
    "ContentBlock": "Part",
    "ContentPart": "Part",
    "DocumentData": "Document",
    "ImageData": "Image",
    "ProviderAdapter": "Adapter",
    "ThinkingData": "Thinking",
    "ToolCallData": "ToolCall",
    "ToolResultData": "ToolResult",
    # kinds of parts and of events are strings: `part.kind == "text"`, `event.type == "finish"`
    "ContentKind": "Part",
    "StreamEventType": "events.StreamEvent",
    "ERROR": "events.ErrorEvent",
    "FINISH": "events.Finish",
    "PROVIDER_EVENT": "events.ProviderEvent",
    "REASONING_DELTA": "events.ReasoningDelta",
    "REASONING_END": "events.ReasoningEnd",
    "REASONING_START": "events.ReasoningStart",
    "STREAM_START": "events.StreamStart",
    "TEXT_DELTA": "events.TextDelta",
    "TEXT_END": "events.TextEnd",
    "TEXT_START": "events.TextStart",
    "TOOL_CALL_DELTA": "events.ToolCallDelta",
    "TOOL_CALL_END": "events.ToolCallEnd",
    "TOOL_CALL_START": "events.ToolCallStart",
    # of canonical layers
    "AdapterError": "errors.ProviderError",
    "AuthError": "errors.AuthenticationError",
    "BaseAdapter": "HttpAdapter",
    "CancelledError": "errors.AbortError",
    "CanonicalContentBlock": "Part",
    "CanonicalError": "SDKError",
    "CanonicalImageBlock": "Image",
    "CanonicalMessage": "Message",
    "CanonicalRequest": "Request",
    "CanonicalResponse": "Response",
    "CanonicalStopReason": "FinishReason",
    "CanonicalStreamEvent": "events.StreamEvent",
    "CanonicalTextBlock": "Text",
    "CanonicalToolChoice": "ToolChoice",
    "CanonicalToolDefinition": "ToolDefinition",
    "CanonicalToolResultBlock": "ToolResult",
    "CanonicalToolUseBlock": "ToolCall",
    "ContextOverflowError": "errors.ContextLengthError",
    "LLMProvider": "Adapter",
    "LLMProviderAdapter": "Adapter",
    "ProviderManager": "Client",
    "ProviderResponse": "execution.ExecuteResult",
    "RetryConfig": "RetryPolicy",
    "StopReason": "FinishReason",
    "StreamAdapter": "dialects.StreamDecoder",
    "TextChunk": "execution.Chunk",
    "TokenUsage": "Usage",
    "ToolChunk": "execution.Chunk",
    "UniversalChatParams": "Request",
    "UniversalChatResponse": "Response",
    "UniversalMessage": "Message",
    "UniversalStreamResponse": "events.StreamEvent",
}
"""Names that other designs have, and what has their place here."""

_HOME = {name: module for module, names in _NAMES.items() for name in names}

_HOME["Warning"] = "spec.response"

_UNLISTED = frozenset(
    (
        "Warning",  # it would hide the builtin after `from interlingua import *`
        # Types that programs get as results and name only in annotations:
        *("Explanation", "GenerateOptions", "ObjectStream", "Opaque", "RateLimitInfo", "Role"),
        *("StepResult", "StreamResult", "TokenLogprob"),
        "FORMAT_VERSION",
    )
)
"""Importable, but not in `__all__`."""

__all__ = sorted(_HOME.keys() - _UNLISTED)  # noqa: PLE0605 -- a list of texts, as it must be

if not TYPE_CHECKING:  # a type checker would take any name for a public one

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"interlingua.{name}")
        if name not in _HOME:
            raise _missing(name)
        value = getattr(import_module(f"interlingua.{_HOME[name]}"), name)
        globals()[name] = value  # so that the next use is an ordinary one
        return value


def _missing(name: str) -> AttributeError | ImportError:
    """The error for a name that is not here; it says where to find it, or what it is called."""
    message = f"Module 'interlingua' has no attribute {name!r}."
    homes = {each: f"{module}.{each}" for module, names in _ELSEWHERE.items() for each in names}
    place = homes.get(name) or _OTHER_NAMES.get(name)
    if place is None:
        return AttributeError(message)
    module, _, own = f"interlingua.{place}".rpartition(".")
    message += f" Write `from {module} import {own}`."
    # An import statement drops the text of an AttributeError, but not that of an ImportError.
    from sys import _getframe

    is_import = _getframe(2).f_code.co_name == "_handle_fromlist"
    return ImportError(message, name=name) if is_import else AttributeError(message)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
