"""Requests to a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    Unpack,
    get_args,
)

import msgspec

from interlingua.spec.check import Amount, Count, Positive, ThinkingBudget, advice
from interlingua.spec.content import Extra, Hinted, Record, ToolType, UncheckedJson
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import AnyMessage, Message

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from interlingua.spec.settings import RequestSettings

ToolChoiceMode: TypeAlias = Literal["auto", "none", "required", "named"]
FormatType: TypeAlias = Literal["text", "json", "json_schema"]
DeferredBy: TypeAlias = Literal["client", "server"]
OnLoss: TypeAlias = Literal["content", "strict", "warn"]
"""What to do when the target cannot express all of a request; see `Request.on_loss`."""
UploadMode: TypeAlias = Literal["auto"]
"""What to do about media that is too large for a request; see `Request.upload`."""


class Grammar(Record, frozen=True, kw_only=True):
    """The grammar of the text that a `custom` tool takes."""

    syntax: str
    """`lark` or `regex`."""
    definition: str
    """The grammar itself, in that syntax."""


class ToolDefinition(Record, frozen=True, kw_only=True, tag_field="kind", tag="function"):
    """A tool that the caller runs: its name, description and input schema."""

    name: str
    """The name by which the model calls it."""
    description: str | None = None
    """What it does and when to call it, for the model."""
    parameters: UncheckedJson = None
    """A JSON Schema of type object; None for a tool without input and for a `custom` tool."""
    strict: bool | None = None
    """Whether the provider enforces the schema; None for its default."""
    type: ToolType = "function"
    """`function` takes a JSON object, `custom` free text; `search` finds deferred tools."""
    grammar: Grammar | None = None
    """What the text of a `custom` tool must match."""
    namespace: str | None = None
    """The group of tools that it belongs to; within it the name is unique."""
    deferred: DeferredBy | None = None
    """
    Who loads the tool when it is needed: a search of the caller, or one of the provider.

    Providers that cannot defer get a tool of a caller's search once a result has named it
    (`Opaque.loaded_tools`), and a tool of a provider's search at once.
    """
    extra: Extra = {}
    """Fields of the wire without a canonical place, by dialect."""


class BuiltinTool(Record, frozen=True, kw_only=True, tag_field="kind", tag="builtin"):
    """
    A tool that the provider runs (web search, code execution, MCP).

    The class methods make the tools that several providers have; each gets its own form. Any other
    tool is given in the wire form of one dialect: `BuiltinTool(dialect=…, data=…)`.
    """

    dialect: str = ""
    """The dialect that `data` is for; empty for a tool of a class method."""
    data: UncheckedJson = None
    """The tool in the wire form of that dialect."""
    name: str = ""
    """One of `HOSTED_NAMES`; empty for a tool that only its dialect has."""
    options: Mapping[str, Any] = {}
    """The arguments of the class method; of a decoded tool, also options of its dialect only."""

    @classmethod
    def web_search(
        cls,
        *,
        max_uses: int | None = None,
        allowed_domains: Iterable[str] | None = None,
        blocked_domains: Iterable[str] | None = None,
        location: Mapping[str, str] | None = None,
    ) -> BuiltinTool:
        """
        Let the model search the web.

        `location` is where the user is: `country` (two letters), `region`, `city`, `timezone`.
        """
        return _hosted(
            "web_search",
            max_uses=max_uses,
            allowed_domains=_names(allowed_domains),
            blocked_domains=_names(blocked_domains),
            location=None if location is None else dict(location),
        )

    @classmethod
    def code_execution(cls) -> BuiltinTool:
        """Let the model write code that the provider runs."""
        return _hosted("code_execution")

    @classmethod
    def file_search(
        cls, stores: str | Iterable[str], *, max_results: int | None = None
    ) -> BuiltinTool:
        """Let the model search in stores of files at the provider, given by their ids or names."""
        return _hosted("file_search", stores=_names(stores), max_results=max_results)

    @classmethod
    def url_context(
        cls,
        *,
        max_uses: int | None = None,
        allowed_domains: Iterable[str] | None = None,
        blocked_domains: Iterable[str] | None = None,
    ) -> BuiltinTool:
        """Let the model read pages whose addresses are in the conversation."""
        return _hosted(
            "url_context",
            max_uses=max_uses,
            allowed_domains=_names(allowed_domains),
            blocked_domains=_names(blocked_domains),
        )

    @classmethod
    def computer(
        cls,
        *,
        width: int | None = None,
        height: int | None = None,
        environment: str | None = None,
    ) -> BuiltinTool:
        """
        Let the model ask for clicks, keys and screenshots, which the caller performs.

        `width` and `height` are those of the screen, in pixels.
        """
        return _hosted("computer", width=width, height=height, environment=environment)


def _hosted(name: str, **options: object) -> BuiltinTool:
    given = {key: value for key, value in options.items() if value is not None}
    return BuiltinTool(name=name, options=given)


def _names(values: str | Iterable[str] | None) -> list[str] | None:
    return None if values is None else list(_texts(values))


ToolSpec: TypeAlias = ToolDefinition | BuiltinTool


def tool_key(tool: ToolSpec) -> tuple[str | None, str]:
    """The namespace and the name of a tool that the caller runs; no name for another."""
    return (tool.namespace, tool.name) if isinstance(tool, ToolDefinition) else (None, "")


class ToolChoice(Record, frozen=True, kw_only=True):
    """Whether the model may or must call tools, and which."""

    mode: ToolChoiceMode = "auto"
    """`auto`, `none`, `required` or `named`."""
    tool_name: str | None = None
    """The tool to call, with mode `named`."""
    allowed: tuple[str, ...] | None = None
    """The only tools that may be called, with mode `auto` or `required`."""
    extra: Extra = {}
    """Fields of the wire without a canonical place, by dialect."""

    if TYPE_CHECKING:  # `__post_init__` accepts more types than the fields declare

        def __init__(
            self,
            *,
            mode: ToolChoiceMode = "auto",
            tool_name: str | None = None,
            allowed: str | Iterable[str] | None = None,
            extra: Extra = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.allowed is not None:
            msgspec.structs.force_setattr(self, "allowed", _texts(self.allowed))


class ResponseFormat(Record, frozen=True, kw_only=True):
    """The format of the response text."""

    type: FormatType = "text"
    """`text`, `json` (any object) or `json_schema`."""
    json_schema: UncheckedJson = None
    """The schema that the text must match, with type `json_schema`."""
    strict: bool | None = None
    """Whether the provider enforces the schema; None for its default."""
    name: str | None = None
    """A name for the schema, where the provider wants one."""
    description: str | None = None
    """What the object is, for the model."""
    extra: Extra = {}
    """Fields of the wire without a canonical place, by dialect."""


_INSTEAD = {
    "prompt": "messages=",
    "system": "Message.system(...) as the first of messages=",
    "system_prompt": "Message.system(...) as the first of messages=",
    "instructions": "Message.system(...) as the first of messages=",
    "input": "messages=",
    "timeout": "the option timeout= of generate, or of the adapter",
    "max_retries": "retry= of client.complete",
}


class Request(Record, frozen=True, kw_only=True, metaclass=Hinted):
    """
    One request, in the canonical language.

    None means "not set"; 0, 0.0, "" and () are values.
    """

    instead: ClassVar[Mapping[str, str]] = _INSTEAD
    """What to write in place of other fields, for error messages."""

    # The only list of settings: a new field is an option of `generate`, is checked, and is saved by
    # sessions. After a change, run scripts/settings_types.py, which writes `spec/settings.py`.

    model: str = ""
    """The model: `provider:model`, or the provider's own name for it."""
    messages: tuple[Message, ...] = ()
    """The conversation."""
    provider: str | None = None
    """The provider, if the name of the model does not contain it."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools that the model may call: definitions and tools of the provider."""
    tool_choice: ToolChoice | None = None
    """`auto`, `none`, `required` (or `any`), the name of a tool, or a `ToolChoice`."""
    parallel_tool_calls: bool | None = None
    """Whether the model may call several tools in one answer."""
    response_format: ResponseFormat | None = None
    """The format of the text; for objects use `generate_object`."""
    temperature: Amount | None = None
    """Sampling temperature: higher values give more varied answers."""
    top_p: Amount | None = None
    """Samples only from the most likely tokens that together have this probability."""
    top_k: int | None = None
    """Samples only from this many of the most likely tokens."""
    max_tokens: Positive | None = None
    """The maximum number of tokens in one answer."""
    stop_sequences: tuple[str, ...] | None = None
    """Strings at which generation stops."""
    seed: int | None = None
    """Seed for reproducible sampling, where the provider supports it."""
    frequency_penalty: float | None = None
    """Penalises tokens in proportion to how often they have appeared."""
    presence_penalty: float | None = None
    """Penalises tokens that have appeared."""
    logprobs: Count | None = None
    """
    Asks for the probabilities of the tokens, with this many alternatives to each.

    With 0 the answer has only those of its own tokens. They are in `Text.logprobs`.
    """
    reasoning_effort: str | None = None
    """How much the model should think, as the provider's value: `low`, `high`, …"""
    thinking_budget: ThinkingBudget | None = None
    """How much the model should think, in tokens."""
    include_thinking: bool | None = None
    """
    Whether to ask for visible thoughts, or for none, where a provider can be asked.

    By default an effort or a budget asks, where showing them needs no permission.
    """
    verbosity: str | None = None
    """How long the answer should be: `low`, `medium` or `high`."""
    user: str | None = None
    """An id of the end user, for the provider's abuse detection."""
    metadata: Mapping[str, Any] | None = None
    """Labels, for providers that store them."""
    provider_options: Mapping[str, Any] = {}
    """Fields of the wire format, by provider or dialect; merged last, `tools` are added."""
    request_id: str | None = None
    """The id of the run or call, for `client.cancel(id)` and logs. Defaults to a new one."""
    on_loss: OnLoss | None = None
    """
    Which losses raise `UnsupportedError` before anything is sent. Defaults to `content`.

    `"content"` (the default of adapters): a loss of what the current turn asks for. `"strict"`:
    any loss. `"warn"`: none. Never sent itself.
    """
    keep_raw: bool = False
    """Whether `Response.raw` of a stream has its wire events. Never sent. Defaults to False."""
    upload: UploadMode | None = None
    """
    `"auto"` stores media that makes the request too large at the provider, during the run or call.

    The media is stored through the provider's API for files, and deleted when the run or call has
    ended. Without this setting, such a request is an error before anything is sent. Never sent
    itself.
    """
    session_id: str | None = None
    """The conversation that this is a turn of, for logs, events and limits; never sent."""
    active_skills: tuple[str, ...] = ()
    """
    The skills in use, for a `Behaviour` that limits the number of tools; never sent.

    A tool belongs to a skill if its name begins with the name of the skill.
    """
    active_connectors: tuple[str, ...] = ()
    """The connectors in use, for the same; a tool belongs to one as to a skill. Never sent."""
    chosen_because: str | None = None
    """Why this model was chosen, for events and the metadata of the answer; never sent."""
    short_name: str | None = None
    """The short name of the catalog that a client has replaced by `model`; never sent."""
    context: Any = None
    """What a program hands to its own middleware; never sent, and not in the JSON form."""

    if TYPE_CHECKING:  # as in `ToolChoice`

        def __init__(
            self,
            *,
            model: str = "",
            messages: AnyMessage | Iterable[AnyMessage] = (),
            tools: Iterable[AnyTool] | None = (),
            short_name: str | None = None,
            context: Any = None,
            **settings: Unpack[RequestSettings],
        ) -> None: ...

    def __post_init__(self) -> None:
        messages: object = self.messages  # callers may pass a string
        if type(messages) is not tuple or not _MESSAGE.issuperset(map(type, messages)):
            from interlingua.spec.plain_dicts import to_request_messages

            _set(self, "messages", to_request_messages(messages))
        tools: object = self.tools
        if type(tools) is not tuple or (tools and not _TOOLS.issuperset(map(type, tools))):
            _set(self, "tools", to_tools(tools))
        # A request has none of these usually, and asking an abstract class is slow.
        choice: object = self.tool_choice
        if choice is not None and isinstance(choice, (str, Mapping)):
            _set(self, "tool_choice", to_tool_choice(choice))
        form: object = self.response_format
        if form is not None and isinstance(form, (Mapping, type)):
            _set(self, "response_format", to_response_format(form))
        if self.stop_sequences is not None:
            _set(self, "stop_sequences", _texts(self.stop_sequences))
        if self.active_skills != ():
            _set(self, "active_skills", _texts(self.active_skills))
        if self.active_connectors != ():
            _set(self, "active_connectors", _texts(self.active_connectors))


NOT_SETTINGS = frozenset(("model", "messages", "tools", "short_name", "context"))
"""The fields of a request that are no settings."""
NEVER_SENT = frozenset(
    (
        *("provider_options", "request_id", "on_loss", "keep_raw", "upload", "session_id"),
        *("active_skills", "active_connectors", "chosen_because"),
        *("short_name", "context"),
    )
)
"""The fields that no dialect has a name for: they say how a request is sent."""
SAME_FOR_EVERY_MODEL = frozenset(
    (
        *("response_format", "user", "metadata", "request_id", "keep_raw", "upload"),
        *("session_id", "active_skills", "active_connectors", "chosen_because"),
    )
)
"""The settings that say what is wanted, or of which call; any other may differ by model."""

_MESSAGE = frozenset((Message,))
_set = msgspec.structs.force_setattr


class HasDefinition(Protocol):
    """A tool, such as one made by `@tool`."""

    @property
    def definition(self) -> ToolDefinition:
        """The description that the model gets."""


AnyTool: TypeAlias = ToolSpec | HasDefinition | Mapping[str, Any]
"""A definition, a tool that has one, or a dict."""

_TOOLS = frozenset((ToolDefinition, BuiltinTool))
HOSTED_NAMES = ("code_execution", "computer", "file_search", "url_context", "web_search")
"""The canonical names of tools that the provider runs."""

# Anthropic and Gemini say "any" for what OpenAI calls "required".
_MODES: Mapping[str, ToolChoiceMode] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",
}


def to_tool_choice(choice: ToolChoice | str | Mapping[str, Any]) -> ToolChoice:
    """Return a tool choice from its mode, the name of a tool, or a dict as the APIs have it."""
    if isinstance(choice, ToolChoice):
        return choice
    if isinstance(choice, Mapping):
        return _choice_from_dict(choice)
    mode = _MODES.get(choice)
    return ToolChoice(mode="named", tool_name=choice) if mode is None else ToolChoice(mode=mode)


def _choice_from_dict(choice: Mapping[str, Any]) -> ToolChoice:
    match {name: value for name, value in choice.items() if value is not None}:
        case {"type": "function", "function": {"name": str(name), **inner}, **rest} if not inner:
            pass
        case {"type": "function" | "tool" | "custom", "name": str(name), **rest}:
            pass
        case {"type": str(name), **rest} if name in _MODES:
            pass
        case fields:
            return _record(fields, ToolChoice, "tool_choice", "a tool choice")
    for key in rest:
        raise ConfigurationError(
            f"tool_choice has an unknown field {key!r:.60}. Whether tools are called in parallel "
            "is set by parallel_tool_calls=."
        )
    return to_tool_choice(name)


def to_response_format(form: Mapping[str, Any] | type) -> ResponseFormat:
    """Return the format of a text from a dict: OpenAI's, Anthropic's, or our JSON form."""
    if isinstance(form, type):
        raise ConfigurationError(
            f"response_format is a class. Use generate_object(..., schema={form.__name__})."
        )
    fields = {name: value for name, value in form.items() if value is not None}
    inner = fields.get("json_schema")
    if isinstance(inner, Mapping) and "schema" in inner:  # OpenAI's Chat Completions
        del fields["json_schema"]
        fields |= inner
    if "schema" in fields:
        fields["json_schema"] = fields.pop("schema")
    if fields.get("type") == "json_object":
        fields["type"] = "json"
    return _record(fields, ResponseFormat, "response_format", "the format of a text")


def to_tools(tools: object) -> tuple[ToolSpec, ...]:
    """Return the tools as definitions; `ConfigurationError` says which one is no tool."""
    return tuple(to_tool(tool, f"tools[{i}]") for i, tool in enumerate(list_tools(tools)))


def list_tools(tools: object) -> tuple[Any, ...]:
    """Return the tools as a tuple; `ConfigurationError` if they are not given as a list."""
    if type(tools) is tuple:
        return tools
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable | None):
        raise ConfigurationError(f"tools must be a list of tools, not a {type(tools).__name__}.")
    return () if tools is None else tuple(tools)


def to_tool(tool: object, path: str) -> ToolSpec:
    """Return one tool as a definition."""
    if isinstance(tool, (ToolDefinition, BuiltinTool)):
        return tool
    if isinstance(tool, Mapping):
        return _tool_from_dict(tool, path)
    definition = getattr(tool, "definition", None)
    if isinstance(definition, ToolDefinition):
        return definition
    raise ConfigurationError(
        f"{path} is a {type(tool).__name__}, which is not a tool. Decorate a function with @tool, "
        "or pass a Tool, a ToolDefinition, a BuiltinTool or a dict."
    )


def _tool_from_dict(tool: Mapping[str, Any], path: str) -> ToolSpec:
    """A tool in our JSON form, or in the form of one of the providers' APIs."""
    if "kind" in tool:
        return _convert(dict(tool), ToolSpec, path)
    kind = tool.get("type") or "function"
    inner = tool.get(kind) if isinstance(kind, str) else None
    fields = dict(inner if isinstance(inner, Mapping) else tool)
    fields.pop("type", None)
    if kind not in get_args(ToolType):
        raise ConfigurationError(
            f"{path} is a tool of type {kind!r:.60}. A tool that the provider runs is a "
            "BuiltinTool, such as BuiltinTool.web_search() or BuiltinTool(dialect=…, data=…)."
        )
    if "input_schema" in fields:
        fields["parameters"] = fields.pop("input_schema")
    for name in fields.keys() - _TOOL_FIELDS:
        raise ConfigurationError(f"{path} has an unknown field {name!r:.60}.")
    return _convert({**fields, "kind": "function", "type": kind}, ToolDefinition, path)


_TOOL_FIELDS = frozenset(("name", "description", "parameters", "strict"))
_Kind = TypeVar("_Kind")


_TOOL = "the definition of a tool"


def _convert(
    fields: dict[str, Any],
    kind: TypeForm[_Kind],
    path: str,
    words: str = _TOOL,
) -> _Kind:
    try:
        value: _Kind = msgspec.convert(fields, kind)
        return value
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{path} is not {words}: {error}.") from None


_RecordT = TypeVar("_RecordT", bound=Record)


def _record(fields: dict[str, Any], kind: type[_RecordT], path: str, words: str) -> _RecordT:
    for name in fields.keys() - kind.__struct_fields__:
        raise ConfigurationError(
            f"{path} has an unknown field {name!r:.60}. {advice(name, kind.__struct_fields__)}"
        )
    return _convert(fields, kind, path, words)


def _texts(value: Any) -> tuple[str, ...]:
    """A tuple of plain strings, from one or several of any class."""
    values = (value,) if isinstance(value, str) else value
    return tuple([str.__str__(each) if isinstance(each, str) else each for each in values])
