"""Adapters from the environment, the only reader of it for clients."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from importlib.util import find_spec

from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.environment import add_environment, first_value, has_address
from interlingua.providers.provider import Provider
from interlingua.providers.rows import providers


def adapters_from_env(
    environ: Mapping[str, str] | None = None,
    *,
    named: str | None = None,
    known: Container[str] = (),
) -> dict[str, HttpAdapter]:
    """
    An adapter for each provider with a key (or, if it is local, an address) in the environment.

    Providers of other packages come after the built-in ones. The local model, if it is installed,
    comes last. A provider without a base URL is skipped unless the environment has one. A row
    without a key is also there, at its default address, if it is `named`; with the keys of a whole
    cloud a row is there only then. Those that are `known` are left out.
    """
    environ = os.environ if environ is None else environ
    adapters: dict[str, HttpAdapter] = {}
    rows = [row for name, row in providers().items() if name not in known]
    rows = [row for row in rows if row.name == named or not row.only_named]
    for row in rows:
        is_addressed = has_address(row, environ)
        is_wanted = row.name == named or is_addressed
        has_identity = row.name == named and row.identity is not None
        if (row.key_required and not has_identity) or not is_wanted:
            is_wanted = first_value(environ, (*row.key_env, *row.token_env)) is not None
        if is_wanted and (is_addressed or not row.address_env):
            adapters[row.name] = _make(row, environ)
    if find_spec("xllamacpp") is not None:  # the extra `local`
        embedded = [row for row in rows if row.is_embedded]
        adapters |= {row.name: _make(row, environ) for row in embedded}
    return adapters


def _make(row: Provider, environ: Mapping[str, str]) -> HttpAdapter:
    adapter = HttpAdapter(row, **add_environment(row, {}, environ))
    adapter.given_settings = {}
    return adapter
