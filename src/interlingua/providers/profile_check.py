"""
What a profile and the catalog decide about a whole call.

Of a request: its mode, its kind of model, its length. Of an operation: its kind of model, and the
settings whose limits the catalog knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from interlingua.prepare.video import listed
from interlingua.providers.catalog.models import ModelInfo, find_model
from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.provider import Provider
from interlingua.providers.rows import find_own_id, maker_of, providers
from interlingua.spec.contracts import Modality, ModelKind, Profile
from interlingua.spec.errors import ContextLengthError, UnsupportedError
from interlingua.spec.modalities.images import pixels_of, resolution_of
from interlingua.spec.operations import Operation, OperationInput
from interlingua.spec.request import OnLoss, Request
from interlingua.spec.response import Warning
from interlingua.spec.warnings import check_losses, raising_losses
from interlingua.tokens.bounds import bound_tokens

_FUNCTIONS: Mapping[ModelKind, str] = {
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
KIND_OF_OPERATION: Mapping[str, ModelKind] = {
    "embed": "embedding",
    **dict.fromkeys(("generate_image", "edit_image", "stream_image"), "image"),
    **dict.fromkeys(("speak", "stream_speech"), "speech"),
    **dict.fromkeys(("transcribe", "stream_transcription"), "transcription"),
    **dict.fromkeys(("create_video", "remix_video"), "video"),
    "rerank": "rerank",
    "moderate": "moderation",
}
"""The kind of model that an operation needs; other operations need none."""
_SETTINGS = ("dimensions", "speed", "size", "seconds")
"""The settings of operations whose limits the catalog may know."""
_OUTPUTS: Mapping[ModelKind, Modality] = {"image": "image", "speech": "audio"}
"""What a chat model must return to do the work of a model of this kind."""

_CAPABILITIES = {
    "audio_dropped": "audio",
    "document_dropped": "pdf",
    "image_dropped": "vision",
    "tools_dropped": "tools",
}
"""The capability that a model lacks, by the code of the loss."""
_MOST_NAMED = 3
_ANYWAY = "on_loss='warn' sends the request anyway."


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


def can_stream(request: Request, profile: Profile, *, asked: bool) -> bool:
    """
    Whether the reply will be a stream.

    A stream that the model does not support is read as a whole answer and delivered as events;
    a whole answer that it does not support, because it has tools or may become too long, is
    streamed and joined.
    """
    if not asked:
        most, length = profile.max_whole_tokens, request.max_tokens or 0
        length = min(length, profile.max_output_tokens or length)  # `prepare` lowers it so
        if most is not None and length > most and profile.streaming is not False:
            return True
        return profile.whole_tool_calls is False and bool(request.tools)
    if profile.streaming is False:
        return False
    return profile.streaming_tool_calls is not False or not request.tools


def wrong_kind(model: str, kind: ModelKind) -> UnsupportedError:
    """The error for a chat request to a model that does not chat."""
    return UnsupportedError(
        f"{model} is a model of kind {kind!r} and does not answer chat requests. "
        f"Use {_FUNCTIONS[kind]}(...), or another model; {_ANYWAY}"
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


def check_operation(
    operation: Operation, value: Any, profile: Profile, provider: str, on_loss: OnLoss
) -> None:
    """Raise `UnsupportedError` if the model of a value is of another kind, or has other limits."""
    needed = KIND_OF_OPERATION.get(operation.name)
    if needed is None or not isinstance(value, OperationInput) or not value.model:
        return
    if (value.on_loss or on_loss) == "warn":
        return
    if (
        profile.kind not in (None, needed)
        and not _performs(operation, needed, profile)
        and not _is_kind_of_row(value.model, profile, provider)
    ):
        raise _wrong_model(value.model, needed, profile, provider)
    for setting in _SETTINGS:
        given = getattr(value, setting, None)
        info = None if given is None else find_model(value.model, provider)
        if info is not None:
            _check_setting(value.model, setting, given, info)


def _performs(operation: Operation, needed: ModelKind, profile: Profile) -> bool:
    """Whether a model of another kind can perform an operation, as far as is known."""
    if profile.kind != "chat" or operation.chat_models is None:
        return False
    if operation.chat_models == "all" or profile.output_modalities is None:
        return True
    return _OUTPUTS.get(needed, "text") in profile.output_modalities


def _is_kind_of_row(model: str, profile: Profile, provider: str) -> bool:
    """Whether the kind is that of a row without chat, and says nothing of a model without entry."""
    is_known = find_model(model, provider) is not None
    return not is_known and profile.kind == profile_for(profile.dialect, "", provider).kind


def _wrong_model(
    model: str, needed: ModelKind, profile: Profile, provider: str
) -> UnsupportedError:
    from interlingua.providers.catalog.search import list_models  # only for the message

    kind = profile.kind or "chat"
    others = list_models(provider, kind=needed, available=True)
    other = f", such as {provider}:{others[0].id}" if others else ""
    return UnsupportedError(
        f"{model} is a model of kind {kind!r}, and this needs one of kind {needed!r}{other}. "
        f"With {model}, use {_FUNCTIONS[kind]}(...); {_ANYWAY}"
    )


def _check_setting(model: str, setting: str, given: Any, info: ModelInfo) -> None:
    """Raise `UnsupportedError` for a setting outside of the limits that the catalog knows."""
    slowest, fastest = info.speeds or (0.0, math.inf)
    most = math.inf if info.max_dimensions is None else info.max_dimensions
    is_allowed, allowed = True, ""
    if setting == "dimensions":
        is_allowed, allowed = given <= most, f"at most {most}"
    elif setting == "speed":
        is_allowed, allowed = slowest <= given <= fastest, f"from {slowest:g} to {fastest:g}"
    elif setting == "size":
        is_allowed, allowed = _has_size(given, info.sizes), listed(info.sizes)
    elif info.seconds:
        is_allowed, allowed = given in info.seconds, listed(info.seconds)
    if not is_allowed:
        shown = f"{given:g}" if isinstance(given, float) else str(given)
        what = f"{model} does not support {setting} {shown}. Allowed: {allowed}."
        raise UnsupportedError(what, setting=setting)


def _has_size(size: str, sizes: tuple[str, ...]) -> bool:
    """Whether a size is one of these: in pixels, or by the name of its resolution."""
    if not sizes or size in sizes:
        return True
    if pixels_of(size) is None:  # a name; where only pixels are known, the dialect converts it
        return all(pixels_of(each) is not None or each == "auto" for each in sizes)
    return resolution_of(size) in sizes


def check_window(request: Request, window: int, family: str) -> None:
    """Raise `ContextLengthError` if the lower bound of the estimate exceeds the window."""
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
