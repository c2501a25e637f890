"""Who a limit is for: the part of a request that its key is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from interlingua.client.stores.contract import storable
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request

ScopeKey: TypeAlias = str | Callable[[Request], str | None]
"""
A word ("user", "session", "run", "model" or "provider"), a name of one's own, or a function.

A function returns the name for a request; None if the request is not limited.
"""

_last: tuple[str | None, str, str] | None = None


def _model_scope(request: Request) -> str:
    """The last one is kept: most calls ask the same model as the call before."""
    global _last  # noqa: PLW0603 -- one tuple, which is replaced as a whole
    known = _last
    if known is None or known[1] != request.model or known[0] != request.provider:
        provider, model = request.provider, request.model
        known = _last = (provider, model, f"model={provider}:{model}")
    return known[2]


_WORDS: dict[str, Callable[[Request], str | None]] = {
    "user": lambda request: f"user={storable(request.user or '')}",
    "session": lambda request: f"session={storable(request.session_id or '')}",
    "run": lambda request: f"run={storable(request.request_id or '')}",
    "model": _model_scope,
    "provider": lambda request: f"provider={request.provider}",
}


def scope_reader(key: ScopeKey) -> Callable[[Request], str | None]:
    """
    A function that gives the scope of a request, such as `user=alice`; None: not limited.

    Requests without a user, say, have a scope together: a limit cannot be left by saying nothing.
    """
    given: Any = key
    if callable(given):
        return lambda request: _check(given(request))
    if not isinstance(given, str) or not given:
        raise ConfigurationError(
            f"`key=` must be one of {', '.join(_WORDS)}, a name, or a function of the request, "
            f"not {given!r}."
        )
    return _WORDS.get(given) or (lambda _: given)


def name_scope(key: ScopeKey, name: str | None) -> str:
    """The scope of one name: `user=alice` for the key "user", else the name itself."""
    name = storable(name or "")
    return f"{key}={name}" if isinstance(key, str) and key in _WORDS else name or str(key)


def _check(name: Any) -> str | None:
    if name is None:
        return None
    if isinstance(name, str):
        return storable(name)
    raise ConfigurationError(f"`key=` returned {name!r}; it must return a string or None.")
