"""
The identity of an adapter: what makes two adapters give different answers to the same request.

A cache needs it. Every attribute of a `Configuration` counts unless it is listed here with the
reason why it cannot change an answer, so that a setting that is added later is not forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from interlingua.providers.adapter import HttpAdapter
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.contracts import NEUTRAL_PROFILE, Adapter, Profile
from interlingua.wire.secrets import is_secret_header

if TYPE_CHECKING:
    from interlingua.local import LocalServer

IGNORED: Mapping[str, str] = {
    "answers_take_request": "found by `dialect_name`",
    "branching": "follows from the row, `base_url` and `places`; the model decides the rest",
    "max_retries": "how often a call is tried",
    "source": "where the adapter is configured",
    "starts_server": "read by `_server_form`",
    "_server": "read by `_server_form`",
    "_gguf": "read by `_server_form`",
    "credentials": "read by `_form`, unless the caller names the tenant",
    "dialect": "found by `dialect_name`",
    "endpoint": "found by `dialect_name` and `api_version`",
    "headers": "read by `_form`, without keys if the caller names the tenant",
    "key": "read by `_form`, unless the caller names the tenant",
    "limits": "a reply beyond them is an error",
    "profiles": "cached profiles; the one of the model counts",
    "_redactor": "changes only errors",
    "shared_transport": "how bytes are sent",
    "signature": "the key in its header",
    "streams_take_request": "found by `dialect_name`",
    "timeouts": "a call beyond them is an error",
    "transport": "how bytes are sent",
}
"""The attributes of a `Configuration` that do not count by themselves, each with the reason."""
PARTS = frozenset(
    (
        *("_branches", "_scopes", "configuration", "generation", "has_branches", "operations"),
        *("_made_with", "_rebinds", "given_settings"),  # how to make it again elsewhere
    )
)
"""The attributes of an `HttpAdapter`; a subclass may have others, which count."""

_known: WeakKeyDictionary[object, dict[tuple[str, bool], tuple[Profile, bytes | None]]]
_known = WeakKeyDictionary()
_tokens: WeakKeyDictionary[object, str] = WeakKeyDictionary()
_MAX_MODELS = 512


def identity_of(adapter: Adapter, model: str, *, with_key: bool = True) -> bytes | None:
    """
    A digest that is equal for adapters that answer this model alike; None if there is none.

    With `with_key`, adapters with different API keys are different. An adapter of another class
    may have an attribute `cache_identity`, a text; without it, it is equal only to itself. One
    that is made of others has them in `members`, each as its `adapter`.
    """
    profile_for = getattr(adapter, "profile_for", None)
    profile: Profile = NEUTRAL_PROFILE if profile_for is None else profile_for(model)
    try:
        known = _known.setdefault(adapter, {})
    except TypeError:  # it cannot be referred to weakly
        return None
    found = known.get((model, with_key))
    if found is None or found[0] is not profile:
        if len(known) >= _MAX_MODELS:  # callers choose the names
            known.clear()
        digest = _digest(adapter, model, profile, with_key=with_key)
        found = known[model, with_key] = (profile, digest)
    return found[1]


def _digest(adapter: Adapter, model: str, profile: Profile, *, with_key: bool) -> bytes | None:
    members = [identity_of(each.adapter, model, with_key=with_key) for each in _members(adapter)]
    if None in members:
        return None
    try:
        form = msgspec.json.encode([_form(adapter, with_key=with_key), profile, members])
    except (TypeError, ValueError):  # a setting without a JSON form
        return None
    return blake2b(form, digest_size=32).digest()


def _members(adapter: Adapter) -> tuple[Any, ...]:
    return () if isinstance(adapter, HttpAdapter) else getattr(adapter, "members", ())


def _form(adapter: Adapter, *, with_key: bool) -> list[object]:
    kind = f"{type(adapter).__module__}.{type(adapter).__qualname__}"
    if _members(adapter):
        return [kind, adapter.name]
    if not isinstance(adapter, HttpAdapter):
        token = getattr(adapter, "cache_identity", None)
        return [kind, _tokens.setdefault(adapter, new_ulid()) if token is None else str(token)]
    fields, own = vars(adapter.configuration), vars(adapter)
    settings = {name: fields[name] for name in sorted(fields.keys() - IGNORED.keys())}
    settings |= {f"subclass.{name}": own[name] for name in sorted(own.keys() - PARTS)}
    headers, key = adapter.configuration.headers, adapter.configuration.key
    source = adapter.configuration.credentials
    if source is not None:  # what it makes changes; the adapters of one source are alike
        key = _tokens.setdefault(source, new_ulid())
    if not with_key:
        headers = {name: value for name, value in headers.items() if not is_secret_header(name)}
        key = None
    return [kind, settings, dict(headers), key, _server_form(adapter.server)]


def _server_form(server: LocalServer | None) -> list[object] | None:
    if server is None:
        return None
    return [str(server.gguf), server.model, server.context, server.template]
