"""What a request would become, without key or network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.media import load_files
from interlingua.providers.provider import find_dialect, sign
from interlingua.spec.content import Json
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request
from interlingua.spec.response import Warning
from interlingua.spec.warnings import raising_losses
from interlingua.wire.secrets import redact_headers


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A call as it would be made, and what was changed for that."""

    provider: str
    model: str
    dialect: str
    method: str = "POST"
    url: str
    headers: Mapping[str, str]
    """With every secret covered."""
    body: Json
    """With the bytes of local files; URLs that are fetched first are not, and may be missing."""
    fetches: tuple[str, ...] = ()
    """Where parts stand whose URL is fetched before the call: the body is not whole then."""
    warnings: tuple[Warning, ...]
    refused: tuple[Warning, ...] = ()
    """Those of the warnings for which the call itself would raise `UnsupportedError`."""
    cache_marks: tuple[str, ...]
    """Where the body asks for caching, as paths."""
    estimated_input_tokens: int
    estimated_cost: float | None = None
    """In dollars; None while it is not known."""
    profile: Profile


def explain(adapter: HttpAdapter, request: Request, *, stream: bool = False) -> Explanation:
    """The exact wire request, its key covered, and every clamp and warning."""
    fetches: tuple[str, ...] = ()
    if adapter.reads_files:
        request, fetches = load_files(request, adapter.profile_for(request.model))
    call = adapter.dry_run(replace(request, on_loss="warn"), stream=stream)
    refused = raising_losses(call.warnings, request, request.on_loss or adapter.on_loss)
    return Explanation(
        provider=adapter.name,
        model=request.model,
        dialect=adapter.dialect,
        url=call.url,
        headers=redact_headers({**call.headers, **sign(adapter.provider.signing, "key")}),
        body=call.body,
        fetches=fetches,
        warnings=call.warnings,
        refused=tuple(refused),
        cache_marks=tuple(_marks(call.body, find_dialect(adapter.dialect).FACTS.cache.fields)),
        estimated_input_tokens=adapter.estimate_input_tokens(request),
        profile=call.profile,
    )


def _marks(value: Any, names: tuple[str, ...], path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            place = f"{path}.{key}" if path else key
            if key in names and inner is not None:
                yield place
            else:
                yield from _marks(inner, names, place)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _marks(inner, names, f"{path}[{at}]")
