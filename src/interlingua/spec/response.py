"""Responses of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import islice
from math import floor, log10
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import msgspec

from interlingua.spec.content import Extra, Record, ToolCall, UncheckedJson
from interlingua.spec.errors import ErrorClass
from interlingua.spec.messages import Message

Reason: TypeAlias = Literal[
    "stop", "length", "tool_calls", "content_filter", "cancelled", "error", "other"
]
REASONS: frozenset[str] = frozenset(
    ("stop", "length", "tool_calls", "content_filter", "cancelled", "error", "other")
)


class FinishReason(Record, frozen=True, kw_only=True):
    """Why generation ended; `raw` is the provider's own value."""

    reason: Reason
    """`stop`, `length`, `tool_calls`, `content_filter`, `cancelled`, `error` or `other`."""
    raw: str | None = None


class Usage(Record, frozen=True, kw_only=True):
    """
    Token counts with the same meaning for every provider.

    `input_tokens` includes cache reads and writes, `output_tokens` includes reasoning. The other
    counts are subsets of these two; None if the provider did not report them. Counts of audio and
    images are also None where it reported 0.
    """

    input_tokens: int = 0
    """Everything that went in, cache reads and writes included."""
    output_tokens: int = 0
    """Everything that came out, reasoning included."""
    reasoning_tokens: int | None = None
    """The part of `output_tokens` that was thinking."""
    cache_read_tokens: int | None = None
    """The part of `input_tokens` that was read from the provider's cache."""
    cache_write_tokens: int | None = None
    """The part of `input_tokens` that was written to the provider's cache."""
    cache_write_1h_tokens: int | None = None
    """The part of `cache_write_tokens` that is kept for an hour, which costs more."""
    cache_read_audio_tokens: int | None = None
    """The part of `cache_read_tokens` that is audio."""
    input_audio_tokens: int | None = None
    """The part of `input_tokens` that was audio."""
    input_image_tokens: int | None = None
    """The part of `input_tokens` that was images."""
    output_audio_tokens: int | None = None
    """The part of `output_tokens` that was audio."""
    output_image_tokens: int | None = None
    """The part of `output_tokens` that was images."""
    images: int | None = None
    """How many images were made, where they are paid for one by one."""
    characters: int | None = None
    """How many characters were spoken, where they are paid for one by one."""
    audio_seconds: float | None = None
    """The length of audio that was transcribed or made."""
    video_seconds: float | None = None
    """The length of video that was made."""
    media_size: str | None = None
    """The size of the images or the video that were made, where prices may depend on it."""
    media_quality: str | None = None
    """The quality of images that are paid for one by one, if their price depends on it."""
    web_searches: int | None = None
    """How many searches the provider made, if it says so."""
    service_tier: str | None = None
    """The tier that served the call: `batch`, `flex`, `priority`, …; None is the standard tier."""
    reported_cost: float | None = None
    """The cost in dollars, if the provider reports it."""
    passes: tuple[UsagePass, ...] = ()
    """
    The passes that the counts are the sum of, if the provider lists them and bills each alone.

    Such as the summary of a long conversation, or the advice of another model. The sum of two
    usages has none.
    """
    estimated: bool = False
    """Whether the counts are estimates, because the provider reported none."""
    raw: UncheckedJson = None
    """The usage object of the provider."""

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    @property
    def is_known(self) -> bool:
        """Whether there are counts; 0 counts if the provider reported it."""
        if self.input_tokens or self.output_tokens:
            return True
        raw = self.raw
        return isinstance(raw, Mapping) and any(type(value) is int for value in raw.values())

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        parts: dict[str, Any] = {}
        for name in _COUNTS:
            mine, others = getattr(self, name), getattr(other, name)
            if mine is not None or others is not None:
                parts[name] = (mine or 0) + (others or 0)
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            service_tier=self.service_tier if self.service_tier == other.service_tier else None,
            media_size=self.media_size if self.media_size == other.media_size else None,
            media_quality=self.media_quality if self.media_quality == other.media_quality else None,
            reported_cost=_add_known(self.reported_cost, other.reported_cost),
            estimated=self.estimated or other.estimated,
            **parts,
        )


class UsagePass(Record, frozen=True, kw_only=True):
    """One pass of a model over an answer that took several."""

    model: str = ""
    """The model that made it; empty if it is the one that answered."""
    usage: Usage = Usage()
    """The tokens of this pass."""


class Cost(Record, frozen=True, kw_only=True):
    """
    The price of a call, by what it was paid for. Adds with `+`.

    `str(cost)` is such as `$0.00098`, and `float(cost)` is its total; `f"{cost:.4f}"` works too.
    `output` includes reasoning, and the other parts do not overlap: `total` is the sum of `input`,
    `cache_read`, `cache_write`, `output` and `media`. A provider that reports only the total leaves
    them 0.
    """

    total: float = 0.0
    """The sum, or what the provider reported."""
    input: float = 0.0
    """
    For input that was neither read from a cache nor written to one.

    Prices per request and per web search are in it too.
    """
    cache_read: float = 0.0
    """For input that was read from a cache."""
    cache_write: float = 0.0
    """For input that was written to a cache."""
    output: float = 0.0
    """For output, thinking included."""
    reasoning: float = 0.0
    """The part of `output` that was paid for thinking."""
    media: float = 0.0
    """For audio, images and video that have a price of their own."""
    currency: str = "USD"
    """Always `USD`."""
    pricing_version: str = ""
    """The version of the table of prices; empty if the provider reported the cost."""
    source: CostSource = "catalog"
    """Where the figure is from: `provider`, `catalog`, `prices`, `local`, `cache` or `mixed`."""

    def __str__(self) -> str:
        return dollars(self.total)

    def __float__(self) -> float:
        return self.total

    def __format__(self, form: str) -> str:
        is_number = form[-1:] in _NUMBER_FORMS
        return format(self.total if is_number and form else str(self), form)

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        if _NO_COST in (self, other):  # the start of a sum has no source of its own
            return other if self == _NO_COST else self
        return self._with(
            other, {name: getattr(self, name) + getattr(other, name) for name in _AMOUNTS}
        )

    def __sub__(self, other: Cost) -> Cost:
        """The rest of a sum; never less than 0, as sums of floats are not exact."""
        if not isinstance(other, Cost):
            return NotImplemented
        rests = {name: getattr(self, name) - getattr(other, name) for name in _AMOUNTS}
        return self._with(
            other, {name: rest if rest > _TINY else 0.0 for name, rest in rests.items()}
        )

    def _with(self, other: Cost, amounts: dict[str, float]) -> Cost:
        versions = (self.pricing_version, other.pricing_version)
        return Cost(
            **amounts,
            currency=self.currency,
            pricing_version=versions[0] if versions[0] == versions[1] else "",
            source=self.source if self.source == other.source else "mixed",
        )


CostSource: TypeAlias = Literal["provider", "catalog", "prices", "local", "cache", "mixed"]
"""Where a cost is from: the provider, a table of prices, a cache, or a sum of several sources."""
_TINY = 1e-12  # dollars
_NO_COST = Cost()
_NUMBER_FORMS = ("e", "E", "f", "F", "g", "G", "n", "%")  # of Python's format language
_AMOUNTS = ("total", "input", "cache_read", "cache_write", "output", "reasoning", "media")


def dollars(amount: float) -> str:
    """The amount with cents, or with two digits that are not 0: `$1.50`, `$0.00098`."""
    is_small = _TINY < amount < 1
    decimals = max(2, 1 - floor(log10(amount))) if is_small else 2
    return f"${amount:.{decimals}f}"


class Warning(Record, frozen=True, kw_only=True):
    """Something in the request or response that was dropped or changed."""

    code: str
    """What happened, from a fixed list."""
    message: str
    """The same as a sentence."""
    path: str | None = None
    """The place in the request, e.g. `messages[2].content[0]`."""


class _Unread:
    """Holds the function that parses the headers until a field is read."""

    __slots__ = ("_read",)
    _read: Callable[[], RateLimitInfo] | None


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class RateLimitInfo(_Unread):
    """
    The rate limits in the headers of a response.

    This is a dataclass because the headers are parsed on first use: msgspec reads the fields of a
    Struct without calling `__getattr__`.
    """

    requests_limit: int | None = None
    """How many requests a period allows."""
    requests_remaining: int | None = None
    """How many of them are left."""
    tokens_limit: int | None = None
    """How many tokens a period allows."""
    tokens_remaining: int | None = None
    """How many of them are left."""
    reset_after: float | None = None
    """Seconds until an exhausted limit resets; if none is exhausted, until the next reset."""
    reset_at: datetime | None = None
    """The same as a point in time."""
    raw: Mapping[str, str] = field(default_factory=dict)
    """The headers about limits, unchanged."""

    @classmethod
    def deferred(cls, read: Callable[[], RateLimitInfo]) -> Self:
        """The value of `read`, which is called when a field is first used."""
        limit = cls.__new__(cls)
        object.__setattr__(limit, "_read", read)
        return limit

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            """Called for a field that is not set yet, and for a name that does not exist."""
            if name not in _RATE_LIMIT_FIELDS:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            # Without `_read` this raises AttributeError, which msgspec expects for unset fields.
            read = object.__getattribute__(self, "_read")
            if read is not None:
                values = read()
                for field_name in _RATE_LIMIT_FIELDS:
                    object.__setattr__(self, field_name, getattr(values, field_name))
                # Last: another thread may read the fields at the same time.
                object.__setattr__(self, "_read", None)
            return object.__getattribute__(self, name)

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in _RATE_LIMIT_FIELDS)
        shown = (f"{name}={value!r}" for name, value in values if value not in (None, {}))
        return f"RateLimitInfo({', '.join(shown)})"


_RATE_LIMIT_FIELDS = tuple(one.name for one in fields(RateLimitInfo))


class Attempt(Record, frozen=True, kw_only=True):
    """One HTTP exchange of a call, successful or not."""

    number: int
    """0 is the first."""
    provider: str = ""
    """The adapter that was called."""
    model: str = ""
    """The model, as it was sent."""
    error_class: ErrorClass | None = None
    """None if it succeeded."""
    usage: Usage | None = None
    """
    What the provider reported; None if it reported nothing.

    It is an estimate for a stream that was cut, and for a request that a hedge has cancelled.
    """
    cost: Cost | None = None
    """What the attempt cost; None if the price is unknown."""
    latency_ms: float | None = None
    """Milliseconds until the answer was whole or the attempt failed."""
    member: str | None = None
    """Which of several keys or endpoints of the provider was used, if there are several."""


_SHOWN_TEXT = 300  # characters in a `repr`
_SHOWN_ITEMS = 8


def summarize(value: object, **fields: Any) -> str:
    """A `repr` that fits on a screen: long texts and lists are cut, empty fields left out."""
    shown = (f"{name}={_cut(field)}" for name, field in fields.items() if field)
    return f"{type(value).__name__}({', '.join(shown)})"


def _cut(value: Any, room: int = _SHOWN_TEXT) -> str:
    if isinstance(value, (list, tuple, Mapping)):
        if room < _SHOWN_ITEMS:
            return "…"
        inner = room // _SHOWN_ITEMS
        if isinstance(value, Mapping):
            pairs = list(islice(value.items(), _SHOWN_ITEMS))
            items = [f"{_cut(key, inner)}: {_cut(item, inner)}" for key, item in pairs]
        else:
            items = [_cut(item, inner) for item in value[:_SHOWN_ITEMS]]
        if len(value) > _SHOWN_ITEMS:
            items.append(f"… {len(value)} in all")
        text = ", ".join(items)
        return f"{{{text}}}" if isinstance(value, Mapping) else f"[{text}]"
    if isinstance(value, str):
        rest = f"… ({len(value)} characters)" if len(value) > room else ""
        return repr(value[:room]) + rest
    text = repr(value)
    return text if len(text) <= room else f"{text[:room]}…"


class Response(Record, frozen=True, kw_only=True):
    """One response, in the canonical language."""

    id: str = ""
    """The provider's id of the answer."""
    model: str = ""
    """The model that answered, as the provider names it."""
    provider: str = ""
    """The adapter that was called."""
    message: Message = Message(role="assistant")
    """The answer as a message, to append to the conversation."""
    finish_reason: FinishReason = FinishReason(reason="other")
    """Why generation ended."""
    usage: Usage = Usage()
    """The tokens of the call."""
    cost: Cost | None = None
    """What it cost; None if the price is unknown, and a warning says so."""
    warnings: tuple[Warning, ...] = ()
    """What was changed or lost in the request, or is unusual in the answer."""
    rate_limit: RateLimitInfo | None = None
    """The rate limits in the headers, if there were any."""
    raw: UncheckedJson = None
    """
    The body as it was received, for debugging; never used to encode.

    Of a stream: the list of its wire events, if the request has `keep_raw`; else None.
    """
    request_id: str | None = None
    """The id of our request."""
    provider_request_id: str | None = None
    """The provider's id of the request, for its support, if it sent one."""
    created_at: float | None = None
    """
    When a server made the answer, in seconds since 1970; None for answers that were received.

    An answer with a time is encoded with all fields that the vendor's own answers always have.
    """
    latency_ms: float | None = None
    """Milliseconds from the start of the call to the whole answer."""
    attempts: tuple[Attempt, ...] = ()
    """All HTTP exchanges of the call, including failed ones; the last one made the answer."""
    extra: Extra = {}
    """Body fields without a canonical place, by dialect name."""

    if TYPE_CHECKING:  # `__post_init__` accepts more types than the fields declare

        def __init__(  # noqa: PLR0913 -- every field
            self,
            *,
            id: str = "",  # noqa: A002 -- the field's name
            model: str = "",
            provider: str = "",
            message: Message = ...,
            finish_reason: FinishReason = ...,
            usage: Usage = ...,
            cost: Cost | None = None,
            warnings: Iterable[Warning] = (),
            rate_limit: RateLimitInfo | None = None,
            raw: UncheckedJson = None,
            request_id: str | None = None,
            provider_request_id: str | None = None,
            created_at: float | None = None,
            latency_ms: float | None = None,
            attempts: tuple[Attempt, ...] = (),
            extra: Extra = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        if type(self.warnings) is not tuple:
            msgspec.structs.force_setattr(self, "warnings", tuple(self.warnings))

    def __repr__(self) -> str:
        return summarize(
            self,
            text=self.text,
            reasoning=self.reasoning,
            tool_calls=[call.name for call in self.tool_calls],
            finish_reason=self.finish_reason.reason,
            model=":".join(filter(None, (self.provider, self.model))),
            input_tokens=self.usage.input_tokens,
            output_tokens=self.usage.output_tokens,
            warnings=[warning.code for warning in self.warnings],
        )

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return self.message.text

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls to run, without those that the provider runs itself."""
        return self.message.tool_calls

    @property
    def reasoning(self) -> str | None:
        """The visible thinking, joined; None if there is none."""
        return self.message.reasoning


_COUNTS = tuple(
    name
    for name in Usage.__struct_fields__
    if name not in ("input_tokens", "output_tokens", "passes", "estimated", "raw")
    and name not in ("service_tier", "media_size", "media_quality", "reported_cost")
)
"""The counts that are None if the provider did not report them."""
_NO_MORE_USAGE = msgspec.structs.astuple(Usage())[2:-1]
"""What follows the two totals, without `raw`, if the provider reported nothing else."""
_OPTIONAL_AMOUNTS = (*_AMOUNTS[1:], "pricing_version")
"""The fields of a cost that are left out of the metadata of a message if they are 0 or empty."""
RAW_FINISH_REASON = "raw_finish_reason"
"""The metadata of an answer that ended for a reason without a canonical form."""


def label_message(
    response: Response,
    message_id: str,
    provider: str,
    model: str,
    registry_id: str | None = None,
    because: str | None = None,
) -> Message:
    """
    The message of a response, with an id and with metadata for the rules of history repair.

    `model` is the name that was sent, so that the same name later means the same maker: a
    provider may answer with the name of a version. `because` says why that model was chosen. What
    the message has already is kept.
    """
    message, finish, usage = response.message, response.finish_reason, response.usage
    metadata = {
        **message.metadata,
        "model": model or response.model,
        "provider": provider or response.provider,
        "finish_reason": finish.reason,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
    }
    if msgspec.structs.astuple(usage)[2:-1] != _NO_MORE_USAGE:
        # Fields that are not set are left out. A custom adapter may have figures of other types.
        known = msgspec.structs.replace(usage, raw=None)
        metadata["usage"] |= msgspec.to_builtins(known, enc_hook=float)
    if finish.reason == "other" and finish.raw:
        metadata[RAW_FINISH_REASON] = finish.raw
    if response.cost is not None:
        amounts = metadata["cost"] = msgspec.structs.asdict(response.cost)
        for name in _OPTIONAL_AMOUNTS:
            if not amounts[name]:
                del amounts[name]
    if registry_id is not None:
        metadata["registry_id"] = registry_id
    if because is not None:
        metadata["chosen_because"] = because
    return msgspec.structs.replace(message, id=message.id or message_id, metadata=metadata)


def with_usage(response: Response, usage: Usage, cost: Cost | None) -> Response:
    """The response with another usage and cost, also in the metadata of its message."""
    response = msgspec.structs.replace(response, usage=usage, cost=cost)
    metadata = response.message.metadata
    if "usage" not in metadata:
        return response
    message = label_message(response, "", metadata["provider"], metadata["model"])
    return msgspec.structs.replace(response, message=message)


def sum_costs(costs: Iterable[Cost | None]) -> Cost | None:
    """The sum; None if there are none, or if one of them is unknown: it would be too small."""
    total: Cost | None = None
    for cost in costs:
        if cost is None:
            return None
        total = cost if total is None else total + cost
    return total


def _add_known(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right
