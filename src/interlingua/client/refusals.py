"""
Why a model is sent nowhere: one sentence of what is wrong, and one thing to do.

The command line prints these errors too, so they advise in names of models and of variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec

from interlingua.client.configured import Configured, find_adapter
from interlingua.providers.catalog.models import ModelInfo, find_model, providers_of, table
from interlingua.providers.environment import first_value, has_credentials
from interlingua.providers.provider import Provider
from interlingua.providers.rows import (
    OPEN_MODELS,
    OTHERS,
    find_own_id,
    maker_of,
    maker_of_family,
    near_names,
    providers,
    row_name,
)
from interlingua.spec.errors import ConfigurationError

_LONGEST_SENTENCE = 1000
_MAX_CHOICES = 20  # names in an error
_GATEWAY = "openrouter"  # its ids are those of others, after their makers and a slash
_match_effort = re.compile("(.+)-(minimal|low|medium|high|xhigh)").fullmatch


# A provider that is named.


def not_configured(name: str, configured: Configured) -> ConfigurationError:
    """The error for a provider that is named, but is none of the client's."""
    if configured.is_removed(name):
        return removed(name, configured)
    key = _key_of(name, configured)
    if key is not None:
        return _error(f"The client knows {name!r} as {key!r}.", f"Write {key}:model.")
    if row_name(name) is None and name.lower() not in OTHERS:
        near = maker_of_family(name) or _near(name, (*configured.adapters, *providers()))
        advice = f"Did you mean {near!r}?" if near else _use_another(configured)
        return _error(f"Provider {name!r} is not configured.", advice)
    setup = _setup(name, configured)
    what = f"Provider {name!r} is not configured."
    return _error(what, f"{setup[:1].upper()}{setup[1:]}.", is_setup=True)


def removed(name: str, configured: Configured) -> ConfigurationError:
    """The error for an adapter that was unregistered."""
    what = f"Provider {name!r} is not configured: it was unregistered."
    return _error(what, _use_another(configured))


def lost_default(model: str, configured: Configured) -> ConfigurationError:
    """The error for a model that the default provider served, which was unregistered."""
    what = f"The default provider {configured.lost_default!r} was unregistered."
    return _error(what, _write_provider(model, configured))


def is_like_provider(prefix: str, configured: Configured) -> bool:
    """Whether a prefix is the name of a provider, or nearly is."""
    return configured.knows(prefix) or _nearest(prefix, configured) is not None


def unknown_prefix(prefix: str, rest: str, configured: Configured) -> ConfigurationError:
    """The error for a name with a colon, after what is no provider."""
    if configured.knows(prefix):
        return not_configured(prefix, configured)
    model = f"{prefix}:{rest}"
    rows = _own_rows(model)
    if rows:
        return _own_form(model, rows, configured)
    what = f"Unknown provider {prefix!r}."
    maker = maker_of_family(prefix)
    if maker is not None:
        return _advise(what, maker, _id_in_family(prefix, rest, maker), configured)
    near = _nearest(prefix, configured)
    if near is not None:
        return _suggest(what, near, rest, configured)
    if not _choices(configured):
        return _error(what, _write_provider(model, configured))
    spellings = " or ".join(f"{key}:{model}" for key in _choices(configured))
    return _error(what, f"If the colon belongs to the name of the model, write {spellings}.")


def slash(owner: str, name: str, configured: Configured) -> ConfigurationError:
    """The error for `x/y` with a provider's name before the slash."""
    model, provider = f"{owner}/{name}", row_name(owner) or owner
    what = f"A provider is written with a colon, not as in {model!r}."
    rows = _own_rows(name)
    if provider in [row.name for row in rows]:
        best = _best_row(rows, name, configured)
        return _advise(what, best.name, find_own_id(best, name) or name, configured)
    serving = providers_of(model)
    places = [key for key in _choices(configured) if configured.names(key) & {*serving}]
    row = providers().get(provider)
    if maker_of(name) == OPEN_MODELS and row is not None and row.families:  # not hosted there
        hosts = places or serving or (_GATEWAY,)
        return _advise(what, hosts[0], model, configured)
    spelling = _spell(provider, model if provider in serving else name, configured)
    gateways = [key for key in places or _gateways(owner) if key != provider]
    others = f" (or {' or '.join(f'{key}:{model}' for key in gateways)})" if gateways else ""
    is_ready = any(key in configured.adapters for key in gateways)
    setup = "" if is_ready else _setup(provider, configured)
    ending = f" and {setup}" if setup else ""
    return _error(what, f"Write {spelling}{others}{ending}.", is_setup=bool(setup))


def _gateways(maker: str) -> list[str]:
    """The gateway, if it has models of this maker."""
    ids = table().models.ids(_GATEWAY)
    return [_GATEWAY] if any(each.startswith(f"{maker}/") for each in ids) else []


# A model whose provider is not named.


def short_name(model: str, info: ModelInfo, configured: Configured) -> ConfigurationError:
    """The error for a short name of a model of a provider that is not configured."""
    what = f"{model!r} is a short name of a model of {info.provider}."
    return _advise(what, info.provider, info.id, configured)


def check_effort(model: str, configured: Configured) -> None:
    """Raise an error for `o4-mini-high`: an effort is a setting, not a part of the name."""
    match = _match_effort(model)
    known = providers_of(match[1]) if match else ()
    if match is None or not known:
        return
    info = find_model(match[1], known[0])
    if info is None or info.kind != "chat" or info.supports_reasoning is False:
        return
    owner = next((name for name in known if _key_of(name, configured)), known[0])
    setup = _setup(owner, configured)
    ending = f", and {setup}" if setup else ""
    raise _error(
        f"No model is called {model!r}: the effort is a setting.",
        f'Write {_spell(owner, match[1], configured)} with reasoning_effort="{match[2]}"{ending}.',
        is_setup=bool(setup),
    )


def no_route(
    model: str, known: tuple[str, ...], maker: str | None, configured: Configured
) -> ConfigurationError:
    """The error for a model that no configured provider is known to serve."""
    if known:
        what = f"{model!r} is a model of {' or '.join(known)}, which is not configured."
        setups = [_setup(name, configured).removeprefix("set ") for name in known]
        return _error(what, f"Set {' or '.join(setups)}.", is_setup=True)
    rows = _own_rows(model)
    if rows:
        return _own_form(model, rows, configured)
    if maker == OPEN_MODELS:
        what = f"{model!r} is an open model with many hosts."
        choices = [f"{key}:{model}" for key in _choices(configured)] or [f"ollama:{model}"]
        return _error(what, f"Write its host before it, as in {' or '.join(choices)}.")
    if maker is not None:
        return _advise(f"{model!r} is a model of {maker}.", maker, model, configured)
    what = f"Unknown provider for {model!r}."
    info = find_model(_near(model, table().providers) or "")
    if info is not None:
        return _suggest(what, info.provider, info.id, configured)
    return _error(what, _write_provider(model, configured))


def no_model(key: str | None, configured: Configured) -> ConfigurationError:
    """The error for a request without a model, with the choices; `key` if a provider is named."""
    entries = configured.registry.models.values()
    names = [
        " or ".join((entry.id, *entry.aliases)) for entry in entries if key in (None, entry.adapter)
    ]
    if key is not None:
        what = f"No model is given, and {key} has no default_model."
        advice = f"Write it after the provider: {key}:model."
    else:
        what = "No model is given, and there is no default_model in a registry file."
        remote = [f"{name}:model" for name in configured.remote]
        advice = f"Name one, such as {' or '.join(remote) or 'openai:gpt-5.2'}."
    if names:
        advice = f"Name one of: {', '.join(names[:_MAX_CHOICES])}."
    return ConfigurationError(f"{what} {advice}")


# Ids that only some providers have.


def _own_rows(model: str) -> list[Provider]:
    return [row for row in providers().values() if find_own_id(row, model) is not None]


def _own_form(model: str, rows: list[Provider], configured: Configured) -> ConfigurationError:
    row = _best_row(rows, model, configured)
    what = f"{model!r} has the form of an id of {row.name}."
    return _advise(what, row.name, find_own_id(row, model) or model, configured)


def _best_row(rows: list[Provider], model: str, configured: Configured) -> Provider:
    """The row that serves the model and is configured, or could be with what is at hand."""
    maker = maker_of(model.rpartition("/")[2])
    able = [row for row in rows if not row.makers or maker in row.makers]
    ready = [row for row in able if row.name in configured.adapters]
    environ = configured.environ or {}
    ready += [row for row in able if has_credentials(row, environ)]
    ready += [row for row in able if not _setup(row.name, configured)]
    return (ready or able or rows)[0]


def _id_in_family(prefix: str, rest: str, maker: str) -> str:
    """`grok-4` for `grok:grok-4` and for `grok:4`."""
    spellings = (rest, f"{prefix}-{rest}")
    known = [spelling for spelling in spellings if find_model(spelling, maker) is not None]
    is_whole = rest.lower().startswith(prefix.lower())
    return known[0] if known else spellings[0 if is_whole else 1]


# The words.


def _error(what: str, advice: str, *, is_setup: bool = False) -> ConfigurationError:
    # A name may come from a stranger, and be of any length.
    text = " ".join(sentence[:_LONGEST_SENTENCE] for sentence in (what, advice))
    return ConfigurationError(text, error_code="not_configured" if is_setup else None)


def _advise(what: str, owner: str, model: str, configured: Configured) -> ConfigurationError:
    """An error with the right spelling of a model, and the setup that its provider needs."""
    setup = _setup(owner, configured)
    ending = f" and {setup}" if setup else ""
    advice = f"Write {_spell(owner, model, configured)}{ending}."
    return _error(what, advice, is_setup=bool(setup))


def _suggest(what: str, owner: str, model: str, configured: Configured) -> ConfigurationError:
    """An error with a name that is spelled alike, and the setup that its provider needs."""
    setup = _setup(owner, configured)
    ending = f" Then {setup}." if setup else ""
    advice = f"Did you mean {_spell(owner, model, configured)}?{ending}"
    return _error(what, advice, is_setup=bool(setup))


def _write_provider(model: str, configured: Configured) -> str:
    choices = [f"{key}:{model}" for key in _choices(configured)]
    if choices:
        return f"Write its provider before it, as in {' or '.join(choices)}."
    return "Write its provider before it, and set its key, such as OPENAI_API_KEY for openai."


def _use_another(configured: Configured) -> str:
    choices = " or ".join(_choices(configured))
    return f"Use {choices}." if choices else "Add an adapter to the client."


def _spell(owner: str, model: str, configured: Configured) -> str:
    return f"{_key_of(owner, configured) or owner}:{model}"


def _key_of(name: str, configured: Configured) -> str | None:
    """The key of the adapter of a provider, which may have another name in the client."""
    key = find_adapter(name, configured.adapters)
    row = row_name(name)
    own = [each for each in configured.adapters if row in configured.names(each)]
    return key or (own[0] if row is not None and own else None)


def _choices(configured: Configured) -> list[str]:
    """The adapters that a user may name; the embedded model only if it is asked for."""
    named = [key for key in configured.adapters if not _is_embedded(configured.row(key))]
    return (configured.remote or named)[:_MAX_CHOICES]


def _is_embedded(row: Provider | None) -> bool:
    return row is not None and row.is_embedded


def _setup(name: str, configured: Configured) -> str:
    """What to do so that a provider is configured, as a clause; empty if it is."""
    if _key_of(name, configured) is not None:
        return ""
    row = providers().get(row_name(name) or "")
    if row is None:
        return "add an openai_compatible adapter with its address, if it serves Chat Completions"
    if row.is_embedded and find_spec("xllamacpp") is None:
        return "run `pip install 'interlingua[local]'`"
    if row.is_local:
        is_read = configured.environ is not None  # its adapter is made when it is named
        return "" if is_read else f"add HttpAdapter({row.name!r}) to the client"
    environ = configured.environ
    key_env = () if has_credentials(row, environ or {}) else row.key_env  # or those of its cloud
    needed = (key_env, *row.address_env)
    missing = [names for names in needed if names and first_value(environ or {}, names) is None]
    if missing:
        return f"set {' and '.join(' or '.join(names) for names in missing)}"
    if environ is None:
        return "add its adapter to the client"
    return "" if row.base_url or row.identity else "pass base_url= with its address"


def _nearest(prefix: str, configured: Configured) -> str | None:
    return _near(prefix, (*configured.adapters, *providers(), *OTHERS))


def _near(name: str, names: Iterable[str]) -> str | None:
    return next(iter(near_names(name, names, 1)), None)
