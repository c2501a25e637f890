"""What a profile and the catalog decide about a request: its mode, kind of model and length."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from interlingua.prepare.settings import max_tokens_sent
from interlingua.providers.provider import Provider
from interlingua.providers.rows import find_own_id, maker_of, providers
from interlingua.spec.contracts import ModelKind, Prepared, Profile
from interlingua.spec.errors import ConfigurationError, ContextLengthError, UnsupportedError
from interlingua.spec.facts import Facts
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Warning
from interlingua.spec.warnings import check_losses, raising_losses

FUNCTIONS: Mapping[ModelKind, str] = {
    "chat": "generate",
    "embedding": "embed",
    "image": "generate_image",
    "speech": "speak",
    "transcription": "transcribe",
    "video": "generate_video",
    "rerank": "rerank",
    "moderation": "moderate",
}
"""The function to use with a model of a kind."""
_CAPABILITIES = {
    "audio_dropped": "audio",
    "document_dropped": "pdf",
    "image_dropped": "vision",
    "tools_dropped": "tools",
}
"""The capability that a model lacks, by the code of the loss."""
_MOST_NAMED = 3
ANYWAY = "on_loss='warn' sends the request anyway."


def refuse_losses(warnings: Iterable[Warning], request: Request, on_loss: OnLoss) -> None:
    """`check_losses`; its error also names models that can do what is asked for."""
    try:
        check_losses(warnings, request, on_loss)
    except UnsupportedError as error:
        codes = [warning.code for warning in raising_losses(warnings, request, on_loss)]
        lacking = dict.fromkeys(_CAPABILITIES[code] for code in codes if code in _CAPABILITIES)
        models = _able_models(tuple(lacking)) if lacking else []
        if models:
            error.add_facts(advice=f"models with {' and '.join(lacking)}: {', '.join(models)}")
        raise


def _able_models(capabilities: tuple[str, ...]) -> list[str]:
    """One model of each of some makers that has these capabilities."""
    from interlingua.providers.catalog.search import list_models  # only for the message

    found: dict[str, str] = {}
    for model in list_models(capability=capabilities, kind="chat", available=True):
        found.setdefault(model.provider, f"{model.provider}:{model.id}")
    return list(found.values())[:_MOST_NAMED]


def can_stream(request: Request, profile: Profile) -> bool:
    """
    Whether the reply to a request for a stream will be one.

    Otherwise the model does not support it: a whole answer is read, and delivered as events.
    """
    if profile.streaming is False:
        return False
    return profile.streaming_tool_calls is not False or not request.tools


def must_stream(prepared: Prepared, profile: Profile, facts: Facts) -> bool:
    """
    Whether the reply to a request for a whole answer will be a stream, which is joined.

    It is if the model supports tools only in streams, or if the answer may take longer than the
    provider answers without streaming. What counts is the `max_tokens` that is sent, also if nobody
    has set it.
    """
    if profile.whole_tool_calls is False and prepared.request.tools:
        return True
    most = profile.max_whole_tokens
    if most is None or profile.streaming is False:
        return False
    options = prepared.options
    given = [options[name] for name in facts.length_options if name in options]
    lengths = [length for length in given if isinstance(length, int)]
    if not lengths and "path" not in options:  # another endpoint may need no `max_tokens`
        lengths = [max_tokens_sent(prepared.request, profile, facts) or 0]
    return max(lengths, default=prepared.request.max_tokens or 0) > most


def wrong_kind(model: str, kind: ModelKind) -> UnsupportedError:
    """The error for a chat request to a model that does not chat."""
    return UnsupportedError(
        f"{model} is a model of kind {kind!r} and does not answer chat requests. "
        f"Use {FUNCTIONS[kind]}(...), or another model; {ANYWAY}"
    )


def check_maker(model: str, row: Provider) -> None:
    """Raise `UnsupportedError` if a row that serves only some makers is asked for another's."""
    maker = maker_of(model.rpartition("/")[2])  # the last part of an ARN is the model or a profile
    if not row.makers or maker is None or maker in row.makers:
        return
    ids = {each.name: find_own_id(each, model) for each in providers().values() if not each.makers}
    names = [f"{name}:{own}" for name, own in ids.items() if own is not None]
    raise UnsupportedError(
        f"{row.name} serves only models of {' or '.join(row.makers)}, not {model!r}. "
        + (f"Write {names[0]}." if names else "Name another provider.")
    )


def check_places(model: str, row: Provider, places: Mapping[str, str]) -> None:
    """Raise `ConfigurationError` if an id is of another place than the address: a region."""
    match = re.fullmatch(row.own_ids, model) if row.own_ids else None
    for place, value in ({} if match is None else match.groupdict()).items():
        own = places.get(place) if place in row.url_env else None
        if own is not None and value not in (None, own):
            variables = " or ".join(row.url_env[place])
            raise ConfigurationError(
                f"{model!r} is of the {place} {value}, and {row.name} is used in {own}. Set "
                f'{variables}, or pass places={{"{place}": "{value}"}}.',
                setting="places",
            )


def check_window(request: Request, window: int, family: str) -> None:
    """Raise `ContextLengthError` if the lower bound of the estimate exceeds the window."""
    from interlingua.tokens.bounds import bound_tokens  # most requests are short

    tokens = bound_tokens(request, family, only_known=True)
    if tokens.lower > window:
        raise too_long(tokens.estimate, window)


def too_long(tokens: int, window: int) -> ContextLengthError:
    """The error for a request that is longer than the context window."""
    return ContextLengthError(
        f"The request has about {tokens} tokens, and the context window is {window}. "
        "Shorten the history, use on_overflow='truncate', or use a model with a larger "
        "window; on_loss='warn' sends the request anyway."
    )
