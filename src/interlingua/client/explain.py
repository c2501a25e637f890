"""What a request would become, without a key or the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import time

import msgspec
from msgspec.structs import replace

from interlingua.client.adapter_members import (
    estimate_tokens,
    policy_of,
    prepare_custom,
    profile_of,
)
from interlingua.client.metering import options_of, seller_of
from interlingua.prepare.behaviour import Behaved, behave
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.cost_range import CostRange, price_range
from interlingua.providers.media import load_files, mark_lost_files
from interlingua.providers.profile_check import check_maker, wrong_kind
from interlingua.providers.provider import find_dialect, sign
from interlingua.providers.tariffs import Seller, Tariffs
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.content import UncheckedJson
from interlingua.spec.contracts import Adapter, Profile
from interlingua.spec.json_form import to_document
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.spec.warnings import make_warning, raising_losses
from interlingua.tokens.bounds import bounds_of, kind_of
from interlingua.wire.secrets import redact_headers


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a request would become: the HTTP request and the changes made to it."""

    provider: str
    """The provider that would be called."""
    model: str
    """The model, as it would be sent."""
    dialect: str
    """The dialect of the request."""
    method: str = "POST"
    """The HTTP method; empty for an adapter of your own."""
    url: str
    """The address; empty for an adapter of your own."""
    headers: Mapping[str, str]
    """The headers, with secrets redacted."""
    body: UncheckedJson
    """
    The body, with the bytes of local files, but without those of the URLs in `fetches`.

    For an adapter of your own, the request that it would get, in its JSON form.
    """
    fetches: tuple[str, ...] = ()
    """The paths of parts whose URL the call would fetch first."""
    warnings: tuple[Warning, ...]
    """Every change and loss."""
    refused: tuple[Warning, ...] = ()
    """The warnings for which the call itself would raise `UnsupportedError`."""
    addendum: str = ""
    """What the behaviour of the provider added to the system prompt."""
    tools_left_out: tuple[str, ...] = ()
    """The names of the tools that the behaviour of the provider did not send."""
    chosen_because: str | None = None
    """Why this model was chosen; None if the caller named it."""
    cache_marks: tuple[str, ...]
    """The paths in the body that ask for caching."""
    estimated_input_tokens: int
    """The number of input tokens, estimated offline."""
    input_token_bounds: tuple[int, int | None]
    """
    Between which the true number is, for 97 of 100 recorded requests of this kind.

    The upper one is None if no bound holds, because of hosted tools, images or documents. Budgets
    and rate limits reserve the upper one; where there is none, twice the estimate, which was chosen
    and not measured; for an estimate below 100 tokens, the estimate.
    """
    estimated_cost: CostRange | None = None
    """The least and the most that the call may cost; None if unknown: see `estimate_cost`."""
    profile: Profile
    """What the model accepts, as far as it is known."""


def explain(
    adapter: HttpAdapter, request: Request, tariffs: Tariffs, *, stream: bool = False
) -> Explanation:
    """The exact wire request with its key redacted, and every change and warning."""
    adapter = adapter.for_model(request.model)
    profile = adapter.profile_for(request.model)
    on_loss = request.on_loss or adapter.on_loss
    if profile.kind not in (None, "chat") and on_loss != "warn":
        raise wrong_kind(request.model, profile.kind)
    if on_loss != "warn":
        check_maker(request.model, adapter.provider)
    request, fetches = load_files(request, profile, reads_files=adapter.reads_files)
    request = mark_lost_files(request, (adapter.name, adapter.provider.name), time())
    call = adapter.dry_run(replace(request, on_loss="warn"), stream=stream)
    facts = find_dialect(adapter.dialect).FACTS
    # A part that the call would fetch first is not lost; only this body is without it.
    found = (*call.warnings, *_missing_key(adapter))
    warnings = tuple(warning for warning in found if warning.path not in fetches)
    refused = raising_losses(warnings, request, on_loss)
    return Explanation(
        provider=adapter.name,
        model=request.model,
        dialect=adapter.dialect,
        url=call.url,
        headers={**redact_headers(call.headers), **_key_headers(adapter)},
        body=call.body,
        fetches=fetches,
        warnings=warnings,
        refused=tuple(refused),
        addendum=call.addendum,
        tools_left_out=call.left_out,
        chosen_because=request.chosen_because,
        cache_marks=tuple(_find_fields(call.body, facts.cache.fields)),
        estimated_input_tokens=(tokens := adapter.estimate_input_tokens(request)),
        input_token_bounds=_bounds(tokens, request),
        estimated_cost=estimate_cost(adapter, request, tariffs, adapter.seller),
        profile=call.profile,
    )


def explain_custom(
    adapter: Adapter, request: Request, tariffs: Tariffs, behaviour: Behaviour | None
) -> Explanation:
    """What an adapter of a program's own would get: a request without address and headers."""
    key, profile = request.provider or "", profile_of(adapter, request.model)
    behaved = Behaved(request=request)
    if behaviour is not None:
        behaved = behave(request, behaviour, profile)
    prepared = prepare_custom(adapter, behaved.request, profile)
    warnings = behaved.add_warnings(prepared.warnings)
    return Explanation(
        provider=key,
        model=request.model,
        dialect=profile.dialect,
        method="",
        url="",
        headers={},
        body=to_document(prepared.request),
        warnings=warnings,
        refused=tuple(raising_losses(warnings, request, policy_of(adapter, request))),
        addendum=behaved.addendum,
        tools_left_out=behaved.left_out,
        chosen_because=request.chosen_because,
        cache_marks=(),
        estimated_input_tokens=(tokens := estimate_tokens(adapter, behaved.request)),
        input_token_bounds=_bounds(tokens, behaved.request),
        estimated_cost=estimate_cost(adapter, request, tariffs, seller_of(adapter, key)),
        profile=profile,
    )


def _bounds(tokens: int, request: Request) -> tuple[int, int | None]:
    bounds = bounds_of(tokens, kind_of(request))
    return bounds.lower, bounds.upper


def _key_headers(adapter: HttpAdapter) -> Mapping[str, str]:
    """The headers of the key without the key, or with the word that it is missing."""
    if adapter.has_key:
        return redact_headers(sign(adapter.provider.signing, "key"))
    names = sign(adapter.provider.signing, "key") if adapter.provider.key_required else ()
    return dict.fromkeys(names, "[missing]")


def _missing_key(adapter: HttpAdapter) -> Iterator[Warning]:
    if not adapter.is_configured:
        variables = " or ".join(adapter.provider.key_env)
        advice = f"set {variables}" if variables else "give the adapter one"
        yield make_warning("key_missing", target=adapter.name, advice=advice)


def estimate_cost(
    adapter: Adapter, request: Request, tariffs: Tariffs, seller: Seller
) -> CostRange | None:
    """
    What a call may cost; None if the price or the longest possible answer is unknown.

    The request may ask for another tier of service in its `provider_options`, or the adapter in its
    `options`, so with these every tier is possible.
    """
    tariff = tariffs[seller, request.model, request.model]
    if tariff is None:
        return None
    profile, tokens = profile_of(adapter, request.model), estimate_tokens(adapter, request)
    behaviour: Behaviour | None = getattr(adapter, "behaviour", None)
    asked = request.max_tokens
    if asked is None and behaviour is not None:
        asked = behaviour.max_tokens
    longest = [limit for limit in (asked, profile.max_output_tokens) if limit is not None]
    if not longest and profile.context_window is not None:
        longest = [max(0, profile.context_window - tokens)]
    if not longest:
        return None
    every_tier = bool(request.provider_options or options_of(adapter))
    answers = min(longest)
    return price_range(tariff, tariffs.clock(), tokens, answers, every_tier=every_tier)


def _find_fields(value: UncheckedJson, names: tuple[str, ...], path: str = "") -> Iterator[str]:
    """The paths of the fields with these names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            inner_path = f"{path}.{key}" if path else key
            if key in names and inner is not None:
                yield inner_path
            else:
                yield from _find_fields(inner, names, inner_path)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _find_fields(inner, names, f"{path}[{index}]")
