"""
Tiers: which model of a tier of the registry file answers a request.

    tier:small                    a model of the tier that can do what the request needs
    tier:deep?can_delegate        … that also has this property; several are joined by commas

The rule, in this order:

1. Models whose adapter is not configured, or is known not to do what is needed, are left out.
2. Models that are known to do it come before those of which it is unknown.
3. Of these, the cheapest (`mixed_price` of the catalog); if a price is unknown, the first in the
   file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from interlingua.client.adapter_members import profile_of
from interlingua.client.registry import ModelEntry, Route
from interlingua.providers.catalog.models import find_model
from interlingua.providers.catalog.search import mixed_price
from interlingua.providers.provider import Provider
from interlingua.spec.check import advice
from interlingua.spec.content import Audio, Document, Image, Part, ToolResult
from interlingua.spec.contracts import AdapterCapabilities, Profile
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request
from interlingua.tokens.bounds import bound_tokens

_Capability = Callable[[Profile], bool | None]


def _takes(field: str) -> _Capability:
    """Whether a profile lists media types in this field; None if it is unknown."""

    def takes(profile: Profile) -> bool | None:
        types = getattr(profile, field)
        return None if types is None else types != ()

    return takes


_CAPABILITIES: dict[str, _Capability] = {
    "images": _takes("image_types"),
    "audio": _takes("audio_types"),
    "documents": _takes("document_types"),
    "tools": lambda profile: profile.tools,
    "parallel_tools": lambda profile: AdapterCapabilities(profile).supports_parallel_tool_calls,
    "thinking": lambda profile: profile.thinking,
    "structured_output": lambda profile: AdapterCapabilities(profile).supports_structured_output,
    "streaming": lambda profile: profile.streaming,
    "caching": lambda profile: profile.caching,
}
_DELEGATE = "can_delegate"
CONDITIONS = (_DELEGATE, *_CAPABILITIES)
"""What may follow `?` in the name of a tier."""
_MEDIA: dict[type, str] = {Image: "images", Audio: "audio", Document: "documents"}


def choose(route: Route, request: Request, adapters: Mapping[str, Any]) -> Route:
    """The model of a tier that answers this request, and why; an error if there is none."""
    _check_conditions(route)
    needs = dict.fromkeys((*route.conditions, *_needs(request)))
    tokens = bound_tokens(request, only_known=True).lower
    left_out: dict[str, str] = {}
    unknown: dict[str, tuple[str, ...]] = {}
    for entry in route.choices:
        refusal, unknown_needs = _judge(entry, needs, tokens, adapters)
        if refusal:
            left_out[entry.id] = refusal
        else:
            unknown[entry.id] = unknown_needs
    able = [entry for entry in route.choices if entry.id in unknown]
    pool = [entry for entry in able if not unknown[entry.id]] or able
    if not pool:
        why_not = "; ".join(f"{name} {why}" for name, why in left_out.items())
        raise ConfigurationError(
            f"No model of {route.model!r} can answer this request: {why_not}. Name another model, "
            "or add one to the tier in the registry file."
        )
    entry, rule = _pick(pool, adapters)
    count = "the only model" if len(pool) == 1 else f"{rule} of {len(pool)} models"
    wanted = f" with {', '.join(needs)}" if needs else ""
    if len(pool) < len(able):  # the others may have it too
        wanted = f" known to have {', '.join(needs)}"
    if unknown[entry.id]:
        wanted = f"; whether it has {' and '.join(unknown[entry.id])} is unknown"
    others = [f"{name} {why}" for name, why in left_out.items()]
    reasons = [route.reason, f"{count} of {route.model}{wanted}", *others]
    return Route(entry.adapter, entry.wire_name, "; ".join(filter(None, reasons)))


def _check_conditions(route: Route) -> None:
    for name in route.conditions:
        if name not in CONDITIONS:
            hint = advice(name, CONDITIONS)
            raise ConfigurationError(f"{route.model!r} has an unknown condition {name!r}. {hint}")


def _needs(request: Request) -> Iterator[str]:
    """The capabilities that a request needs."""
    if request.tools:
        yield "tools"
    effort, budget = request.reasoning_effort, request.thinking_budget
    if effort not in (None, "none") or budget not in (None, 0):
        yield "thinking"
    for message in request.messages:
        for part in message.content:
            yield from _media(part)


def _media(part: Part) -> Iterator[str]:
    if isinstance(part, ToolResult):
        for inner in part.parts or ():
            yield from _media(inner)
    elif type(part) in _MEDIA and getattr(part, "text", None) is None:  # a text document is text
        yield _MEDIA[type(part)]


def _judge(
    entry: ModelEntry, needs: Iterable[str], tokens: int, adapters: Mapping[str, Any]
) -> tuple[str, tuple[str, ...]]:
    """Why a model cannot answer, or an empty text; and the needs of which it is unknown."""
    adapter = adapters.get(entry.adapter)
    if adapter is None or getattr(adapter, "is_configured", True) is False:
        return f"is not configured (adapter {entry.adapter!r})", ()
    profile = profile_of(adapter, entry.wire_name)
    unknown: list[str] = []
    for need in needs:
        if need == _DELEGATE:
            can: bool | None = entry.can_delegate
        else:
            can = _CAPABILITIES[need](profile)
        if can is False:
            return f"has no {need}", ()
        if can is None:
            unknown.append(need)
    window = profile.context_window
    if window is not None and tokens > window:
        return f"has a context window of only {window} tokens", ()
    return "", tuple(unknown)


def _pick(pool: Sequence[ModelEntry], adapters: Mapping[str, Any]) -> tuple[ModelEntry, str]:
    """One of the models that can answer, and by which rule."""
    prices = [_price(entry, adapters[entry.adapter]) for entry in pool]
    known = [price for price in prices if price is not None]
    if len(known) < len(prices) or min(known) == max(known):
        return pool[0], "the first"
    return pool[known.index(min(known))], "the cheapest"


def _price(entry: ModelEntry, adapter: Any) -> float | None:
    """Dollars for a million tokens, input and output mixed; None if it is unknown."""
    row = getattr(adapter, "provider", None)
    if isinstance(row, Provider) and row.is_local:
        return 0.0
    owner = row.name if isinstance(row, Provider) else entry.adapter
    info = find_model(entry.wire_name, owner)
    return None if info is None else mixed_price(info)
