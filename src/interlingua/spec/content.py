"""The parts of a message."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Protocol, TypeAlias

import msgspec

from interlingua.spec.errors import ConfigurationError

if TYPE_CHECKING:
    Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
else:  # msgspec cannot read a recursive alias; at run time a field takes any JSON value
    Json = Any
"""A JSON value. Written by encoders, and read wherever its structure was checked."""
UncheckedJson: TypeAlias = Any
"""JSON from outside whose structure nothing has checked yet."""
"""A JSON value: None, bool, int, float, str, list, or dict with string keys."""

Extra: TypeAlias = Mapping[str, Any]
"""
Data that must be sent back to a provider, by dialect name: signatures, item ids, cache marks.

A `Thinking` part or a response that was decoded from a dialect always has the key of that dialect,
even with an empty value: `dialect in extra` shows its origin.
"""

STORED = "stored_file"
"""The key in `extra` of a part under which it is known who stores the file, and until when."""
LOST = "lost"
"""The key under that one for the reason why a provider cannot use the file, while it is sent."""

ToolType: TypeAlias = Literal["function", "custom", "search"]
"""
A `custom` tool takes free text. A `search` tool, which the caller runs, finds deferred tools.

Dialects without them get functions; the calls of these come back as calls of the declared tools.
"""


class Record(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True
):
    """The base of immutable values whose defaults are left out of their JSON and `repr`."""

    def __repr__(self) -> str:
        try:
            return msgspec.Struct.__repr__(self)
        except (RecursionError, ValueError):  # nested too deeply, or a number of 5,000 digits
            names = self.__struct_fields__
            return f"{type(self).__name__}({', '.join(_shown(self, name) for name in names)})"


def _shown(value: Record, name: str) -> str:
    try:
        return f"{name}={getattr(value, name)!r}"
    except (RecursionError, ValueError):
        return f"{name}=<{type(getattr(value, name)).__name__}>"


_construct: Any = msgspec.StructMeta.__call__


class Hinted(msgspec.StructMeta):
    """The type of records that say what to write in place of a field that does not exist."""

    if not TYPE_CHECKING:

        def __call__(cls, *args, **fields):  # noqa: ANN002, ANN003, ANN204, N805 -- a metaclass
            try:
                return _construct(cls, *args, **fields)
            except TypeError as error:
                from interlingua.spec.check import advice  # that module imports this one

                known = cls.__struct_fields__
                for name in fields.keys() - known:
                    hint = advice(name, known, cls.instead)
                    text = f"{cls.__name__} has no field {name!r}. {hint}"
                    raise ConfigurationError(text) from None
                raise ConfigurationError(f"{cls.__name__}: {error}") from None


class _Part(Record, frozen=True, kw_only=True, tag_field="kind"):
    extra: Extra = {}
    """Wire fields without a canonical place, by dialect; only that dialect gets them back."""


class _TextPart(_Part, frozen=True):  # its field may be given by position
    text: str
    """The text, unchanged."""


class Citation(Record, frozen=True, kw_only=True):
    """
    A source that a text of the model rests on.

    It is for readers: only the provider that wrote it gets it back.
    """

    url: str | None = None
    """The address of the source."""
    file_id: str | None = None
    """The id of the file that is the source."""
    document: int | None = None
    """The number of the document, among those of the request."""
    title: str | None = None
    """The title of the source."""
    quote: str | None = None
    """The text of the source."""
    start: int | None = None
    """Where the supported part of the text begins, in characters; None for the whole text."""
    end: int | None = None
    """Where the supported part ends, in characters."""


_Bytes: TypeAlias = bytes  # the field of `TokenLogprob` hides the type's own name


class TokenLogprob(Record, frozen=True, kw_only=True):
    """
    A token of the model, and the logarithm of its probability.

    It is for readers, as a citation is.
    """

    token: str
    """Its text."""
    logprob: float
    """The natural logarithm of its probability: 0 is certain."""
    bytes: _Bytes | None = None
    """The token in UTF-8; one token may be only a part of a character."""
    top: tuple[TokenLogprob, ...] = ()
    """The most probable tokens in this place, as many as `Request.logprobs` asked for."""


class Text(_TextPart, frozen=True, kw_only=True, tag="text"):
    """Plain text. Texts of the model may have citations, and the probabilities of its tokens."""

    kind: ClassVar[Literal["text"]] = "text"
    citations: tuple[Citation, ...] = ()
    """The sources of a text of the model."""
    logprobs: tuple[TokenLogprob, ...] = ()
    """The tokens of the text and their probabilities, if `Request.logprobs` asked for them."""


class PathObject(Protocol):
    """A path such as `pathlib.Path`."""

    def __fspath__(self) -> str:
        """The path as a string."""


class FilePath(str):
    """
    The path of a file that is read before the request is sent.

    It is a type of its own, so that JSON and dicts cannot produce it: their text may come from
    a stranger.
    """

    __slots__ = ()


class _MediaPart(_Part, frozen=True):  # as in `_TextPart`
    url: str | None = None
    """Its address; the provider fetches it, or the library where the provider cannot."""


class _FilePart(_MediaPart, frozen=True, kw_only=True):
    data: bytes | None = None
    """The bytes."""
    file_id: str | None = None
    """The id of a file that the provider stores."""
    path: FilePath | None = None
    """A file on this machine; only the program itself can name one."""
    media_type: str | None = None
    """The media type, such as `image/png`; by default found from the bytes or the name."""

    def __post_init__(self) -> None:
        if self.path is not None and type(self.path) is not FilePath:
            self._set_path("path", self.path)
        value: Any = self.url  # the one value by position: a URL, bytes or a path
        if value is None or type(value) is str:
            return
        if isinstance(value, (bytes, bytearray)) and self.data is None:
            msgspec.structs.force_setattr(self, "data", bytes(value))
            msgspec.structs.force_setattr(self, "url", None)
        elif hasattr(value, "__fspath__") and self.path is None:
            self._set_path("url", value)
            msgspec.structs.force_setattr(self, "url", None)

    def _set_path(self, field: str, value: Any) -> None:
        path = value.__fspath__() if hasattr(value, "__fspath__") else value
        if not isinstance(path, str) or not path:
            raise ConfigurationError(
                f"{type(self).__name__}: {field} must be the path of a file, not {value!r:.60}."
            )
        msgspec.structs.force_setattr(self, "path", FilePath(path))


class Image(_FilePart, frozen=True, kw_only=True, tag="image"):
    """
    An image by URL, bytes, id of an uploaded file, or path of a local file: exactly one of them.

        Image("https://example.com/cat.png"), Image(data), Image(Path("cat.png"))
    """

    kind: ClassVar[Literal["image"]] = "image"
    detail: str | None = None
    """How closely to look: `low`, `high` or `auto`, where the provider has it."""

    if TYPE_CHECKING:  # `__post_init__` accepts more types than the fields declare

        def __init__(
            self,
            url: str | bytes | PathObject | None = None,
            *,
            data: bytes | None = None,
            file_id: str | None = None,
            path: str | PathObject | None = None,
            media_type: str | None = None,
            detail: str | None = None,
            extra: Extra = ...,
        ) -> None: ...


class Audio(_FilePart, frozen=True, kw_only=True, tag="audio"):
    """Audio, as an `Image` is given."""

    kind: ClassVar[Literal["audio"]] = "audio"

    if TYPE_CHECKING:  # as in `Image`

        def __init__(
            self,
            url: str | bytes | PathObject | None = None,
            *,
            data: bytes | None = None,
            file_id: str | None = None,
            path: str | PathObject | None = None,
            media_type: str | None = None,
            extra: Extra = ...,
        ) -> None: ...


class Document(_FilePart, frozen=True, kw_only=True, tag="document"):
    """A PDF, text, video or other file: given as an `Image` is, or by its `text`."""

    kind: ClassVar[Literal["document"]] = "document"
    text: str | None = None
    """The content of a plain text document, instead of a file."""
    file_name: str | None = None
    """The name that the model sees."""

    if TYPE_CHECKING:  # as in `Image`

        def __init__(
            self,
            url: str | bytes | PathObject | None = None,
            *,
            data: bytes | None = None,
            file_id: str | None = None,
            path: str | PathObject | None = None,
            text: str | None = None,
            media_type: str | None = None,
            file_name: str | None = None,
            extra: Extra = ...,
        ) -> None: ...


class ToolCall(_Part, frozen=True, kw_only=True, tag="tool_call"):
    """A tool call that the model requests."""

    kind: ClassVar[Literal["tool_call"]] = "tool_call"
    id: str
    """The id of the call, which its result names."""
    name: str
    """The name of the tool."""
    arguments: dict[str, Any] = {}
    """The arguments as a JSON object."""
    raw_arguments: str | None = None
    """The original text; `arguments` is its parsed value. Dialects with text send it unchanged."""
    type: ToolType = "function"
    """A `custom` tool takes free text in `raw_arguments`; `arguments` is then empty."""
    namespace: str | None = None
    """The group of tools that the called one belongs to, as in `ToolDefinition`."""
    is_cut: bool = False
    """Whether the answer ended before the arguments did; then the call is not valid."""

    if TYPE_CHECKING:  # as in `Image`

        def __init__(
            self,
            *,
            id: str,  # noqa: A002 -- the field's name
            name: str,
            arguments: dict[str, Any] | str = ...,
            raw_arguments: str | None = None,
            type: ToolType = "function",  # noqa: A002 -- the field's name
            namespace: str | None = None,
            is_cut: bool = False,
            extra: Extra = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        text: Any = self.arguments  # callers may pass JSON text
        if isinstance(text, str):
            arguments = parse_arguments(text)
            if arguments is None:
                raise ConfigurationError(f"ToolCall: arguments are {argument_problem(text)}.")
            msgspec.structs.force_setattr(self, "arguments", arguments)
            if self.raw_arguments is None:
                msgspec.structs.force_setattr(self, "raw_arguments", text)

    @property
    def is_valid(self) -> bool:
        """
        False when the argument text is not a JSON object, or the answer was cut before its end.

        No text, `null` and `[]` mean `{}`.
        """
        if self.is_cut:
            return False
        raw = self.raw_arguments
        return raw is None or self.type == "custom" or parse_arguments(raw) is not None


class ToolResult(_Part, frozen=True, kw_only=True, tag="tool_result", metaclass=Hinted):
    """
    The result of a tool call.

    `content` is text, a JSON value, or a tuple of parts. The empty tuple means no content; `[]` is
    a JSON value. A single part becomes a tuple. A list or tuple is read as parts if every item is
    a part, or a part in JSON form; next to a part, a string becomes `Text`.
    """

    kind: ClassVar[Literal["tool_result"]] = "tool_result"
    instead: ClassVar[Mapping[str, str]] = {
        "id": "tool_call_id=",
        "image_data": "content=(Text(...), Image(data))",
        "image_media_type": "content=(Image(data, media_type=...),)",
    }
    """What to write in place of other fields, for error messages."""
    tool_call_id: str
    """The id of the call that this answers."""
    content: Any = ()
    is_error: bool = False
    """Whether the tool failed."""
    name: str | None = None
    """The name of the tool, for providers that link results by it."""

    def __post_init__(self) -> None:
        if type(self.content) is str:
            return
        if isinstance(self.content, str):
            msgspec.structs.force_setattr(self, "content", str.__str__(self.content))
        elif isinstance(self.content, PART_TYPES):
            msgspec.structs.force_setattr(self, "content", (self.content,))
        elif isinstance(self.content, (list, tuple)):
            parts = _as_parts(self.content)
            if parts is not None:
                msgspec.structs.force_setattr(self, "content", parts)
            elif isinstance(self.content, tuple):
                msgspec.structs.force_setattr(self, "content", list(self.content))

    @property
    def parts(self) -> tuple[Part, ...] | None:
        """The content if it consists of parts, else None."""
        return self.content if isinstance(self.content, tuple) else None


class _ThinkingPart(_Part, frozen=True):  # as in `_TextPart`
    text: str = ""
    """The visible text; empty if the provider hides it."""


class Thinking(_ThinkingPart, frozen=True, kw_only=True, tag="thinking"):
    """
    The visible thinking of the model.

    The signature and the data are sent back verbatim, and only to the provider that created them.
    """

    kind: ClassVar[Literal["thinking"]] = "thinking"
    signature: str | None = None
    """The provider's proof that the text is unchanged."""
    redacted: bool = False
    """Whether the provider has hidden the text; `data` holds it then."""
    data: str | None = None
    """The thinking in an opaque form, redacted or encrypted."""
    logprobs: tuple[TokenLogprob, ...] = ()
    """The tokens of the text and their probabilities, if `Request.logprobs` asked for them."""


class Refusal(_Part, frozen=True, kw_only=True, tag="refusal"):
    """The text with which the model refuses to answer."""

    kind: ClassVar[Literal["refusal"]] = "refusal"
    text: str
    """What the model says instead of an answer."""
    logprobs: tuple[TokenLogprob, ...] = ()
    """The tokens of the text and their probabilities, if `Request.logprobs` asked for them."""


class Opaque(_Part, frozen=True, kw_only=True, tag="opaque"):
    """A block of one dialect without a canonical form, kept verbatim."""

    kind: ClassVar[Literal["opaque"]] = "opaque"
    dialect: str
    """The dialect that the block belongs to."""
    data: UncheckedJson = None
    """The block, unchanged."""
    loaded_tools: tuple[str, ...] = ()
    """The deferred tools that the block makes available, by the names that other dialects get."""
    tool: str | None = None
    """
    The tool of the provider that this is a call or a result of.

    The names are those of `BuiltinTool.name`; of any other tool, the provider's own.
    """
    tool_call_id: str | None = None
    """What the call and its result have in common, where the provider has an id."""
    input: UncheckedJson = None
    """What the model asked the tool for, such as `{"query": …}`; None for a result."""
    output: UncheckedJson = None
    """
    What the tool returned, for readers: the text that code printed, or the sources that a search
    found as a list of objects with `url` and `title`. None for a call, or if it is not reported.
    """


Part: TypeAlias = (
    Text | Image | Audio | Document | ToolCall | ToolResult | Thinking | Refusal | Opaque
)
"""Any part of a message."""

PART_TYPES = (
    Text,
    Image,
    Audio,
    Document,
    ToolCall,
    ToolResult,
    Thinking,
    Refusal,
    Opaque,
)
MEDIA_TYPES = (Image, Audio, Document)
NO_MEDIA = frozenset((Text, ToolCall, Thinking, Refusal, Opaque))
"""The types of parts that neither are media nor hold any."""
_KINDS = tuple(
    part.kind for part in PART_TYPES
)  # a tuple: in hostile JSON `kind` may be unhashable


def _as_parts(items: list[Any] | tuple[Any, ...]) -> tuple[Part, ...] | None:
    if not items:
        return () if isinstance(items, tuple) else None
    if any(isinstance(item, PART_TYPES) for item in items):
        parts = tuple(Text(text=item) if isinstance(item, str) else item for item in items)
        return parts if all(isinstance(part, PART_TYPES) for part in parts) else None
    if not all(isinstance(item, dict) and item.get("kind") in _KINDS for item in items):
        return None
    try:
        return msgspec.convert(items, tuple[Part, ...], dec_hook=refuse_paths)
    except (msgspec.ValidationError, RecursionError):
        return None


def refuse_paths(_: type, value: Any) -> NoReturn:
    """For `msgspec.convert`: JSON and dicts may come from a stranger and cannot name a file."""
    raise ValueError(f"{value!r:.60} is the path of a file, which only `path=` can name")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text, by the parser that gives positions and keeps lone surrogates."""
    import json  # few texts need it

    return json.loads(text, **CHECKS)


def parse_arguments(text: str) -> dict[str, Any] | None:
    """The arguments in the text of a call: an object. No text, `null` and `[]` mean `{}`."""
    if not text.strip():
        return {}
    try:
        value = parse_json(text)
    except (ValueError, RecursionError):
        return None
    if value is None or value == []:
        return {}
    return value if isinstance(value, dict) else None


def argument_problem(text: str) -> str:
    """Why the text of a tool call has no arguments, such as `not valid JSON (at character 9)`."""
    import json

    try:
        parse_json(text)
    except json.JSONDecodeError as error:
        return f"not valid JSON ({error.msg} at character {error.pos})"
    except RecursionError:
        return "not valid JSON (nested too deeply)"
    except ValueError as error:
        return f"not valid JSON ({error})"
    return "not a JSON object"


def refuse_constant(name: str) -> NoReturn:
    """For `json.loads`: NaN and the infinities are not JSON."""
    raise ValueError(f"{name} is not a JSON value")


def finite_float(text: str) -> float:
    """For `json.loads`: a number beyond the range of a float is an error."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]} is out of range")
    return value


CHECKS: dict[str, Any] = {"parse_constant": refuse_constant, "parse_float": finite_float}
"""The arguments of `json.loads` that make it refuse what is not JSON."""
